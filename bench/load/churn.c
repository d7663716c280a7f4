/* The mode churn: clients that come, subscribe, publish, get their message and go, again and again.
 *
 * Every client has an identifier and a topic that nobody has had before, so whatever a broker keeps
 * of a client that is gone shows in its memory. One of eight goes without DISCONNECT. */
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GOT_PUBACK = 1, GOT_MESSAGE = 2, DONE = 4 };

static u64 begun, lost;
static struct connection **closed; /* whose next client has not come yet */
static u32 closed_count;

static void topic_of_cycle(char *d, size_t n, u32 cycle)
{ snprintf(d, n, "%s/client%u/state", options.prefix, cycle); }

static void begin(struct connection *c)
{
    char id[48];
    c->idx = (u32)begun++;
    snprintf(id, sizeof id, "churn-%x-%u", options.run_id & 0xffff, c->idx);
    open_connection(c, id);
}

static void publish(struct connection *c)
{
    char topic[160];
    u8 *packet;
    u32 packet_id_offset, n;
    topic_of_cycle(topic, sizeof topic, c->idx);
    n = publish_packet(&packet, topic, 1, 0, c->idx, &packet_id_offset);
    put_u16(packet + packet_id_offset, 1);
    append(c, packet, n);
    free(packet);
    totals.sent++;
}

static void leave(struct connection *c)
{
    c->steps |= DONE;
    if (c->idx % 8 == 7) {
        flush(c);
        close_connection(c);
    } else
        send_disconnect(c); /* and the broker closes */
}

/* Go on behind an answer, which is a CONNACK, SUBACK, PUBACK or the client's own message. */
void churn_step(struct connection *c, u8 type, const u8 *payload, u32 len)
{
    char topic[160];
    const char *filter = topic;
    u32 run, idx;
    switch (type) {
    case 2:
        topic_of_cycle(topic, sizeof topic, c->idx);
        send_subscribe(c, 1, &filter, 1, 1);
        return;
    case 9: publish(c); return;
    case 4: c->steps |= GOT_PUBACK; break;
    default:
        if (len < 8) return;
        memcpy(&run, payload, 4);
        memcpy(&idx, payload + 4, 4);
        if (run != options.run_id || idx != c->idx) {
            totals.misrouted++;
            return;
        }
        if (c->steps & GOT_MESSAGE) {
            totals.duplicates++;
            return;
        }
        c->steps |= GOT_MESSAGE;
        totals.unique++;
    }
    if (c->steps == (GOT_PUBACK | GOT_MESSAGE)) leave(c);
}

/* Count a cycle that is over; the next client comes in its place once all events are served. */
void churn_closed(struct connection *c)
{
    if (c->steps & DONE) {
        totals.cycles++;
        totals.disconnects--;
    } else
        lost++;
    closed[closed_count++] = c;
}

static void begin_again(void)
{
    while (closed_count && begun < options.messages) begin(closed[--closed_count]);
}

void mode_churn(void)
{
    u64 t0, done, t_done;
    u32 i, clients = options.parallel < options.messages ? options.parallel : (u32)options.messages;
    closed = allocate(clients * sizeof *closed);
    wait_go("churn");
    t0 = t_done = now_ns();
    for (i = 0; i < clients; i++) {
        char id[48];
        u32 cycle = (u32)begun++;
        snprintf(id, sizeof id, "churn-%x-%u", options.run_id & 0xffff, cycle);
        dial(CHURN, cycle, id, 0);
    }
    done = 0;
    while (totals.cycles + lost < begun || begun < options.messages) {
        begin_again();
        loop_once(100);
        if (totals.cycles != done) {
            done = totals.cycles;
            t_done = now_ns();
        }
        if ((double)(now_ns() - t_done) > options.drain_timeout * 1e9 || lost >= 100) break;
    }
    printf("{\"mode\":\"churn\",\"version\":%d,\"cycles\":%llu,\"broken\":%llu,\"sent\":%llu,"
           "\"unique\":%llu,"
           "\"lost\":%lld,\"duplicates\":%llu,\"misrouted\":%llu,\"seconds\":%.6f,\"cycles_per_s\":"
           "%.1f}\n",
           options.version, LL(totals.cycles), LL(begun - totals.cycles), LL(totals.sent),
           LL(totals.unique), (long long)(totals.sent - totals.unique), LL(totals.duplicates),
           LL(totals.misrouted), (double)(t_done - t0) / 1e9, per_sec(totals.cycles, t0, t_done));
    fflush(stdout);
}
