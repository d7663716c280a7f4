/* The modes pair, fanin and fanout: traffic whose every message is followed to its end. */
#include "load.h"
#include <stdio.h>
#include <stdlib.h>

struct publisher *publishers;
struct connection **subscribers;
struct stream *streams;
u32 streams_each;
u32 fanout = 1;
int dirty;

/* Serve the publishers that have room. Returns 1 while there is more to send. */
static int feed(int qos, u64 window, u64 now)
{
    u32 i;
    int more = 0;
    for (i = 0; i < options.publishers; i++) {
        struct publisher *p = &publishers[i];
        u64 room, thr;
        if (p->seq >= p->quota || p->c->state != UP) continue;
        more = 1;
        if (p->c->out_length - p->c->out_offset >= CHUNK) continue;
        if (window) {
            int64_t used = (p->outstanding + fanout - 1) / fanout;
            room = used >= (int64_t)window ? 0 : window - (u64)used;
            thr = window / 8;
        } else {
            room = 1u << 20;
            thr = 0;
        }
        if (qos) {
            u64 r = p->inflight_most - p->inflight;
            if (r < room) room = r;
            thr = 0; /* a held-back reply would meet a Nagling broker's delayed-ACK wait */
        }
        if (room > p->quota - p->seq)
            room = p->quota - p->seq;
        else if (room < thr)
            continue;
        while (room) {
            u64 k = CHUNK / p->len + 1;
            if (k > room) k = room;
            room -= k;
            now = now_ns();
            while (k--) emit(p, now);
            flush(p->c);
            if (p->c->out_length > p->c->out_offset) break; /* socket full */
        }
    }
    return more;
}

/* The measured phase. */
void run_traffic(int qos, u64 expected_known)
{
    u64 t_end = 0, now, progress_mark = ~0ull, progress_t, window = 0, next_i = 0;
    u32 i;
    int sending = 1;
    int spin = options.spin >= 0 ? options.spin : options.rate > 0;
    if (options.window) {
        window = options.window / options.publishers;
        if (!window) window = 1;
    }
    dirty = 1;
    totals.t_first = progress_t = now_ns();
    latency_from = totals.t_first + (u64)(options.warmup * 1e9);
    if (options.max_seconds > 0) t_end = totals.t_first + (u64)(options.max_seconds * 1e9);
    for (;;) {
        u64 prog;
        now = now_ns();
        if (sending && t_end && now >= t_end) {
            for (i = 0; i < options.publishers; i++) publishers[i].quota = publishers[i].seq;
            sending = 0;
        }
        if (sending && options.rate > 0) {
            u64 due = (u64)((double)(now - totals.t_first) * options.rate / 1e9) + 1;
            u32 blocked = 0;
            sending = 0;
            for (i = 0; i < options.publishers; i++)
                if (publishers[i].seq < publishers[i].quota && publishers[i].c->state == UP)
                    sending = 1;
            while (sending && next_i < due && blocked < options.publishers) {
                struct publisher *p = &publishers[next_i % options.publishers];
                u64 ts = totals.t_first + (u64)((double)next_i * 1e9 / options.rate);
                if (p->seq >= p->quota || p->c->state != UP) {
                    blocked++;
                    next_i++;
                    continue;
                }
                if ((window && (p->outstanding + fanout - 1) / fanout >= (int64_t)window) ||
                    (qos && p->inflight >= p->inflight_most)) {
                    totals.behind++;
                    break;
                }
                blocked = 0;
                emit(p, ts);
                flush(p->c);
                next_i++;
            }
        } else if (sending && dirty) {
            dirty = 0;
            sending = feed(qos, window, now);
        }
        prog = totals.unique + totals.acked + totals.sent;
        if (prog != progress_mark) {
            progress_mark = prog;
            progress_t = now;
        }
        if (!sending) {
            int all = totals.unique >= totals.sent * fanout || expected_known;
            if (qos)
                for (i = 0; i < options.publishers && all; i++)
                    if (publishers[i].inflight && publishers[i].c->state == UP) all = 0;
            if (all) break;
            if ((double)(now - progress_t) > options.drain_timeout * 1e9) break;
        } else if ((double)(now - progress_t) > options.stall * 1e9) {
            u64 t = 0;
            for (i = 0; i < options.publishers; i++) {
                t += (u64)publishers[i].outstanding;
                publishers[i].outstanding = 0;
            }
            totals.stalls++;
            totals.written_off += t;
            dirty = 1;
            progress_t = now;
            if (!t && totals.stalls > 20) break; /* nothing moves at all */
        }
        if (spin)
            loop_once(0);
        else if (sending && options.rate > 0) { /* sleep until the next message is due */
            int64_t left = (int64_t)(totals.t_first + (u64)((double)next_i * 1e9 / options.rate)) -
                           (int64_t)now_ns();
            loop_once_ns(left < 0 ? 0 : left);
        } else
            loop_once(20);
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

static void report_traffic(int qos, double cpu)
{
    u64 expected = totals.sent * fanout,
        t1 = totals.t_last > totals.t_last_ack && totals.t_last ? totals.t_last : totals.t_last_ack;
    double secs, lost;
    if (!t1 || t1 < totals.t_first) t1 = now_ns();
    secs = (double)(t1 - totals.t_first) / 1e9;
    lost = (double)expected - (double)totals.unique;
    printf(
        "{\"mode\":\"%s\",\"version\":%d,\"qos\":%d,\"sent\":%llu,\"expected\":%llu,"
        "\"delivered\":%llu,\"unique\":%llu,\"lost\":%.0f,\"duplicates\":%llu,\"reordered\":%llu,"
        "\"misrouted\":%llu,\"foreign\":%llu,\"acked\":%llu,\"seconds\":%.6f,",
        mode_names[options.mode], options.version, qos, LL(totals.sent), LL(expected),
        LL(totals.delivered), LL(totals.unique), lost, LL(totals.duplicates), LL(totals.reordered),
        LL(totals.misrouted), LL(totals.foreign), LL(totals.acked), secs);
    printf("\"delivered_per_s\":%.1f,\"stalls\":%llu,\"written_off\":%llu,\"behind\":%llu,"
           "\"subscribe_failed\":%llu,\"reason_errors\":%llu,\"protocol_errors\":%llu,"
           "\"disconnects\":%llu,",
           per_sec(totals.unique, totals.t_first, totals.t_last), LL(totals.stalls),
           LL(totals.written_off), LL(totals.behind), LL(totals.subscribe_failed),
           LL(totals.reason_errors), LL(totals.ack_errors), LL(totals.disconnects));
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
