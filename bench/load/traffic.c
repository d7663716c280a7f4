/* The modes pair, fanin and fanout: traffic whose every message is followed to its end. */
#include "load.h"
#include <stdio.h>
#include <stdlib.h>

#define MOST_STALLS 20 /* without a message missing, after which the run ends */

struct publisher *publishers;
struct connection **subscribers;
struct stream *streams;
u32 streams_each;
u32 fanout = 1;
int dirty;

static int can_send(const struct publisher *p)
{ return p->seq < p->quota && p->c->state == UP; }

/* Messages that somebody has not received yet; only for modes with receivers. */
static u64 on_the_way(const struct publisher *p)
{ return (u64)(p->outstanding + fanout - 1) / fanout; }

/* How many messages a publisher may send now; 0 until it is worth a write. */
static u64 room_of(const struct publisher *p, int qos, u64 window)
{
    u64 room = 1u << 20, worth = 0, left = p->quota - p->seq;
    if (window) {
        u64 used = on_the_way(p);
        room = used >= window ? 0 : window - used;
        worth = window / 8;
    }
    if (qos) {
        u64 free_ids = p->inflight_most - p->inflight;
        if (free_ids < room) room = free_ids;
        worth = 0; /* a reply held back would meet the delayed ACK of a broker with Nagle */
    }
    if (room > left) return left;
    return room < worth ? 0 : room;
}

static void send_one(struct publisher *p, u64 due)
{
    if (options.mode == MODE_PLAN)
        emit_planned(p);
    else
        emit(p, due);
}

/* Serve the publishers that have room. Returns 1 while there is more to send. */
static int feed(int qos, u64 window)
{
    u32 i;
    int more = 0;
    for (i = 0; i < options.publishers; i++) {
        struct publisher *p = &publishers[i];
        u64 room, count, now;
        if (!can_send(p)) continue;
        more = 1;
        if (p->c->out_length - p->c->out_offset >= CHUNK) continue;
        for (room = room_of(p, qos, window); room; room -= count) {
            u64 k = count = CHUNK / p->len + 1 < room ? CHUNK / p->len + 1 : room;
            now = now_ns();
            while (k--) send_one(p, now);
            flush(p->c);
            if (p->c->out_length > p->c->out_offset) break; /* socket full */
        }
    }
    return more;
}

static u64 after_seconds(double seconds)
{ return totals.t_first + (u64)(seconds * 1e9); }

/* With --rate: when the message with this number, over all publishers, is to be sent. */
u64 due_at(u64 number)
{ return after_seconds((double)number / options.rate); }

/* Send what is due, publisher after publisher. Returns 1 while there is more to send. */
static int pace(int qos, u64 window, u64 now, u64 *next)
{
    u64 due = (u64)((double)(now - totals.t_first) * options.rate / 1e9) + 1;
    u32 i, blocked = 0;
    int more = 0;
    for (i = 0; i < options.publishers && !more; i++) more = can_send(&publishers[i]);
    while (more && *next < due && blocked < options.publishers) {
        struct publisher *p = &publishers[*next % options.publishers];
        if (!can_send(p)) {
            blocked++;
            ++*next;
            continue;
        }
        if ((window && on_the_way(p) >= window) || (qos && p->inflight >= p->inflight_most)) {
            totals.behind++;
            break;
        }
        blocked = 0;
        send_one(p, due_at(*next));
        flush(p->c);
        ++*next;
    }
    return more;
}

/* Whether everything that was sent has arrived and is acknowledged. */
static int complete(int qos, int nobody_receives)
{
    u32 i;
    if (totals.unique < totals.expected && !nobody_receives) return 0;
    for (i = 0; qos && i < options.publishers; i++)
        if (publishers[i].inflight && publishers[i].c->state == UP) return 0;
    return 1;
}

/* Expect no longer what has not come. Returns 1 when nothing moves at all. */
static int write_off(void)
{
    u64 missing = 0;
    u32 i;
    for (i = 0; i < options.publishers; i++) {
        missing += (u64)publishers[i].outstanding;
        publishers[i].outstanding = 0;
    }
    totals.stalls++;
    totals.written_off += missing;
    dirty = 1;
    return !missing && totals.stalls > MOST_STALLS;
}

static void wait_for_events(int sending, u64 next)
{
    int spin = options.spin >= 0 ? options.spin : options.rate > 0;
    if (spin)
        loop_once(0);
    else if (sending && options.rate > 0) {
        int64_t left = (int64_t)(due_at(next) - now_ns());
        loop_once_ns(left < 0 ? 0 : left);
    } else
        loop_once(20);
}

/* The measured phase: publish until the quotas or the time are used up, then wait for the rest. */
void run_traffic(int qos, int nobody_receives)
{
    u64 now, moved = ~0ull, moved_at, next = 0, window = options.window / options.publishers;
    u32 i;
    int sending = 1;
    if (options.window && !window) window = 1;
    dirty = 1;
    totals.t_first = moved_at = now_ns();
    latency_from = after_seconds(options.warmup);
    for (;; wait_for_events(sending, next)) {
        now = now_ns();
        if (sending && options.max_seconds > 0 && now >= after_seconds(options.max_seconds)) {
            for (i = 0; i < options.publishers; i++) publishers[i].quota = publishers[i].seq;
            sending = 0;
        }
        if (sending && options.rate > 0)
            sending = pace(qos, window, now, &next);
        else if (sending && dirty) {
            dirty = 0;
            sending = feed(qos, window);
        }
        if (totals.unique + totals.acked + totals.sent != moved) {
            moved = totals.unique + totals.acked + totals.sent;
            moved_at = now;
        }
        if (!sending) {
            if (complete(qos, nobody_receives)) break;
            if ((double)(now - moved_at) > options.drain_timeout * 1e9) break;
        } else if ((double)(now - moved_at) > options.stall * 1e9) {
            if (write_off()) break;
            moved_at = now;
        }
    }
}

void dial_extras(void)
{
    u32 i, n = options.extra_connections;
    char id[48];
    u64 t0;
    if (!options.extra_subscriptions) return;
    if (n > options.extra_subscriptions) n = (u32)options.extra_subscriptions;
    t0 = now_ns();
    for (i = 0; i < n; i++) {
        struct connection *c;
        snprintf(id, sizeof id, "mqx-%x-%u", options.run_id & 0xffff, i);
        c = dial(EXTRA, i, id, 0);
        c->extra_next = options.extra_subscriptions * i / n;
        c->extra_end = options.extra_subscriptions * (i + 1) / n;
    }
    settle("extra subscribers");
    wait_for_subacks(options.extra_subscriptions);
    note("%llu extra subscriptions on %u connections in %.2f s (%llu refused)",
         LL(options.extra_subscriptions), n, (double)(now_ns() - t0) / 1e9,
         LL(totals.subscribe_failed));
}

void make_publishers(int qos, int retain)
{
    u32 i;
    char id[48], topic[160];
    struct connection **pc = allocate(options.publishers * sizeof *pc);
    for (i = 0; i < options.publishers; i++) {
        while (pending_connects >= options.parallel) loop_once(100);
        snprintf(id, sizeof id, "mqp-%x-%u", options.run_id & 0xffff, i);
        pc[i] = dial(PUBLISHER, i, id, 0);
    }
    settle("publishers");
    publishers = allocate(options.publishers * sizeof *publishers);
    for (i = 0; i < options.publishers; i++) {
        init_publisher(&publishers[i], pc[i], qos);
        topic_of(topic, sizeof topic, options.mode == MODE_FANOUT ? 0 : i);
        make_template(&publishers[i], topic, qos, retain, i);
        publishers[i].quota = options.messages ? options.messages / options.publishers +
                                                     (i < options.messages % options.publishers)
                                               : ~0ull >> 1;
    }
    free(pc);
}

void report_traffic(int qos, double cpu)
{
    u64 t1 = totals.t_last > totals.t_last_ack && totals.t_last ? totals.t_last : totals.t_last_ack;
    double secs, lost;
    if (!t1 || t1 < totals.t_first) t1 = now_ns();
    secs = (double)(t1 - totals.t_first) / 1e9;
    lost = (double)totals.expected - (double)totals.unique;
    printf(
        "{\"mode\":\"%s\",\"version\":%d,\"qos\":%d,\"sent\":%llu,\"expected\":%llu,"
        "\"delivered\":%llu,\"unique\":%llu,\"lost\":%.0f,\"duplicates\":%llu,\"reordered\":%llu,"
        "\"misrouted\":%llu,\"foreign\":%llu,\"acked\":%llu,\"seconds\":%.6f,",
        mode_names[options.mode], options.version, qos, LL(totals.sent), LL(totals.expected),
        LL(totals.delivered), LL(totals.unique), lost, LL(totals.duplicates), LL(totals.reordered),
        LL(totals.misrouted), LL(totals.foreign), LL(totals.acked), secs);
    printf("\"delivered_per_s\":%.1f,\"stalls\":%llu,\"written_off\":%llu,\"behind\":%llu,"
           "\"subscribe_failed\":%llu,\"reason_errors\":%llu,\"protocol_errors\":%llu,"
           "\"disconnects\":%llu,",
           per_sec(totals.unique, totals.t_first, totals.t_last), LL(totals.stalls),
           LL(totals.written_off), LL(totals.behind), LL(totals.subscribe_failed),
           LL(totals.reason_errors), LL(totals.ack_errors), LL(totals.disconnects));
    printf("\"bytes\":%llu,\"owed\":%llu,\"cycles\":%llu,", LL(totals.bytes), LL(totals.owed),
           LL(totals.cycles));
    print_latency();
    printf(",\"generator_busy\":%.3f,\"reads\":%llu,\"writes\":%llu}\n", secs > 0 ? cpu / secs : 0,
           LL(totals.reads), LL(totals.writes));
    fflush(stdout);
}

void mode_traffic(void)
{
    u32 i;
    char id[48], f[160];
    const char *fp = f;
    double cpu;
    if (!options.subscribers)
        options.subscribers = options.mode == MODE_PAIR    ? options.publishers
                              : options.mode == MODE_FANIN ? 1
                                                           : 50;
    if (options.mode == MODE_PAIR && options.subscribers != options.publishers)
        die("pair mode needs as many subscribers as publishers");
    if (!options.messages && !(options.max_seconds > 0)) die("--messages 0 needs --max-seconds");
    fanout = options.mode == MODE_PAIR ? 1 : options.subscribers;
    streams_each = options.mode == MODE_PAIR ? 1 : options.publishers;
    streams = allocate((size_t)options.subscribers * streams_each * sizeof *streams);
    subscribers = allocate(options.subscribers * sizeof *subscribers);
    dial_extras();
    for (i = 0; i < options.subscribers; i++) {
        while (pending_connects >= options.parallel) loop_once(100);
        snprintf(id, sizeof id, "mqs-%x-%u", options.run_id & 0xffff, i);
        subscribers[i] = dial(SUBSCRIBER, i, id, options.persistent);
    }
    settle("subscribers");
    for (i = 0; i < options.subscribers; i++) {
        if (options.mode == MODE_FANIN)
            snprintf(f, sizeof f, "%s/+/+/+/telemetry", options.prefix);
        else
            topic_of(f, sizeof f, options.mode == MODE_PAIR ? i : 0);
        send_subscribe(subscribers[i], 1, &fp, 1, options.subscriber_qos);
        flush(subscribers[i]);
    }
    wait_for_subacks(options.extra_subscriptions + options.subscribers);
    make_publishers(options.qos, 0);
    wait_go("traffic");
    totals.reads = totals.writes = 0;
    cpu = cpu_seconds();
    run_traffic(options.qos, 0);
    report_traffic(options.qos, cpu_seconds() - cpu);
}
