/* The modes retained, enqueue, drain and idle. */
#include "load.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void hold_open(void)
{
    u64 t0 = now_ns();
    u8 b[64];
    for (;;) {
        struct pollfd pf[2] = {{.fd = 0, .events = POLLIN}, {.fd = epoll, .events = POLLIN}};
        int only_ep = options.hold >= 0;
        poll(pf + (only_ep ? 1 : 0), only_ep ? 1 : 2, 200);
        if (only_ep) {
            if ((double)(now_ns() - t0) > options.hold * 1e9) return;
        } else if (pf[0].revents & (POLLIN | POLLHUP)) {
            if (read(0, b, sizeof b) <= 0) return;
        }
        loop_once(0);
    }
}

/* Sets a retained message for each of so many topics and waits until they are acknowledged, or none
 * has been for a while. */
static void set_retained(u64 k, int qos)
{
    char f[160];
    u64 i;
    for (i = 0; i < k && !totals.disconnects;) {
        struct publisher *p = &publishers[0];
        while (i < k && p->inflight < p->inflight_most &&
               p->c->out_length - p->c->out_offset < CHUNK) {
            topic_of(f, sizeof f, (u32)i);
            make_template(p, f, qos, 1, 0);
            emit(p, now_ns());
            i++;
        }
        flush(p->c);
        loop_once(100);
    }
    while (totals.acked < k && !totals.disconnects) {
        u64 a = totals.acked, t = now_ns();
        while (totals.acked == a && now_ns() - t < (u64)(options.drain_timeout * 1e9))
            loop_once(50);
        if (totals.acked == a) break;
    }
}

/* Subscribes to all of them and waits until they have come, or none has for a while. */
static void replay_retained(struct connection *s, u64 k)
{
    char f[160];
    const char *fp = f;
    u64 last = 0, tl;
    snprintf(f, sizeof f, "%s/+/+/+/telemetry", options.prefix);
    send_subscribe(s, 1, &fp, 1, options.subscriber_qos);
    flush(s);
    tl = now_ns();
    while (totals.unique < k && s->state == UP) {
        loop_once(50);
        if (totals.unique != last) {
            last = totals.unique;
            tl = now_ns();
        }
        if (now_ns() - tl > (u64)(options.drain_timeout * 1e9)) break;
    }
}

void mode_retained(void)
{
    u64 k = options.messages, t0, t1, t2;
    struct connection *s;
    int qos = options.qos ? options.qos : 1; /* acknowledgements tell when the set is stored */
    options.publishers = 1;
    options.subscribers = 1;
    streams_each = 1;
    streams = allocate(sizeof *streams);
    make_publishers(qos, 1);
    fanout = 0;
    wait_go("retained-set");
    t0 = now_ns();
    set_retained(k, qos);
    t1 = now_ns();
    s = dial(SUBSCRIBER, 0, "mqs-retained", 0);
    settle("subscriber");
    wait_go("retained-replay");
    t2 = now_ns();
    replay_retained(s, k);
    printf("{\"mode\":\"retained\",\"version\":%d,\"topics\":%llu,\"set_acked\":%llu,\"set_per_s\":"
           "%.1f,"
           "\"replayed\":%llu,\"lost\":%lld,\"duplicates\":%llu,\"replay_per_s\":%.1f,\"replay_"
           "seconds\":%.6f}\n",
           options.version, LL(k), LL(totals.acked),
           per_sec(totals.acked, t0, totals.t_last_ack ? totals.t_last_ack : t1), LL(totals.unique),
           (long long)(k - totals.unique), LL(totals.duplicates),
           per_sec(totals.unique, t2, totals.t_last),
           (double)(totals.t_last > t2 ? totals.t_last - t2 : 0) / 1e9);
    fflush(stdout);
}

void mode_enqueue(void)
{
    struct connection *s;
    char f[160];
    const char *fp = f;
    u64 t1;
    topic_of(f, sizeof f, 0);
    s = dial(SUBSCRIBER, 0, "mqs-offline", 0); /* whatever an earlier run left is dropped */
    settle("old session");
    hang_up(s);
    s = dial(SUBSCRIBER, 0, "mqs-offline", 1);
    settle("offline subscriber");
    send_subscribe(s, 1, &fp, 1, options.subscriber_qos);
    flush(s);
    wait_for_subacks(1);
    hang_up(s);
    options.publishers = 1;
    options.window = 0;
    make_publishers(options.qos, 0);
    fanout = 0; /* nobody is there to receive */
    wait_go("enqueue");
    run_traffic(options.qos, 1);
    t1 = totals.t_last_ack;
    printf("{\"mode\":\"enqueue\",\"version\":%d,\"qos\":%d,\"sent\":%llu,\"acked\":%llu,"
           "\"seconds\":%.6f,"
           "\"enqueue_per_s\":%.1f,\"reason_errors\":%llu,\"disconnects\":%llu}\n",
           options.version, options.qos, LL(totals.sent), LL(totals.acked),
           (double)(t1 > totals.t_first ? t1 - totals.t_first : 0) / 1e9,
           per_sec(totals.acked, totals.t_first, t1), LL(totals.reason_errors),
           LL(totals.disconnects));
    fflush(stdout);
}

void mode_drain(void)
{
    struct connection *s;
    u64 t0, last = 0, tl, want = options.messages;
    options.publishers = options.subscribers = 1;
    fanout = 1;
    streams_each = 1;
    streams = allocate(sizeof *streams);
    publishers = allocate(sizeof *publishers);
    wait_go("drain");
    t0 = totals.t_first = now_ns();
    s = dial(SUBSCRIBER, 0, "mqs-offline", 1);
    settle("offline subscriber");
    tl = now_ns();
    while (totals.unique < want && s->state == UP) {
        loop_once(50);
        if (totals.unique != last) {
            last = totals.unique;
            tl = now_ns();
        }
        if (now_ns() - tl > (u64)(options.drain_timeout * 1e9)) break;
        if (options.max_seconds > 0 && (double)(now_ns() - t0) > options.max_seconds * 1e9) break;
    }
    for (tl = now_ns(); now_ns() - tl < 50000000ull && s->state == UP;)
        loop_once(10); /* last handshakes, late duplicates */
    printf("{\"mode\":\"drain\",\"version\":%d,\"expected\":%llu,\"session_present\":%d,"
           "\"received\":%llu,"
           "\"lost\":%lld,\"duplicates\":%llu,\"reordered\":%llu,\"seconds\":%.6f,\"drain_per_s\":%"
           ".1f}\n",
           options.version, LL(want), s->session_present, LL(totals.unique),
           (long long)(want - totals.unique), LL(totals.duplicates), LL(totals.reordered),
           (double)(totals.t_last > t0 ? totals.t_last - t0 : 0) / 1e9,
           per_sec(totals.unique, t0, totals.t_last));
    fflush(stdout);
}

void mode_idle(void)
{
    u32 i;
    u64 t0, t1;
    char id[48];
    dial_extras();
    totals.connected = 0;
    wait_go("connect");
    t0 = now_ns();
    for (i = 0; i < options.connections; i++) {
        while (pending_connects >= options.parallel) loop_once(100);
        snprintf(id, sizeof id, "mqi-%x-%u", options.run_id & 0xffff, i);
        dial(IDLE, i, id, 0);
    }
    {
        u64 last = totals.connected + totals.refused, tl = now_ns();
        while (pending_connects && now_ns() - tl < 10 * SECOND) {
            loop_once(100);
            if (totals.connected + totals.refused != last) {
                last = totals.connected + totals.refused;
                tl = now_ns();
            }
        }
    }
    t1 = now_ns();
    printf("{\"mode\":\"idle\",\"version\":%d,\"connections\":%llu,\"refused\":%llu,\"seconds\":%."
           "6f,\"connects_per_s\":%.1f,"
           "\"extra_subscriptions\":%llu,\"subscribe_failed\":%llu}\n",
           options.version, LL(totals.connected), LL(totals.refused + pending_connects),
           (double)(t1 - t0) / 1e9, per_sec(totals.connected, t0, t1),
           LL(options.extra_subscriptions), LL(totals.subscribe_failed));
    fflush(stdout);
    hold_open();
    if (totals.disconnects)
        note("%llu connections were closed by the broker while held", LL(totals.disconnects));
}
