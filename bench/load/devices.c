/* Devices of a plan that come, publish some messages, and go when these are acknowledged, again and
 * again. The next visit begins when everything of the last has been delivered. */
#include "load.h"
#include <stdio.h>
#include <stdlib.h>

enum { LEFT = 1, AWAY = 2 };

static u64 broken;

static void visit(u32 i)
{
    char id[48];
    snprintf(id, sizeof id, "mqd-%x-%u", options.run_id & 0xffff, i);
    if (publishers[i].c)
        open_connection(publishers[i].c, id);
    else
        init_publisher(&publishers[i], dial(DEVICE, i, id, 0), options.qos);
}

void make_devices(void)
{
    publishers = allocate(source_count * sizeof *publishers);
}

void device_up(struct connection *c)
{
    u32 k;
    for (k = 0; k < options.cycle; k++) emit_planned(&publishers[c->idx]);
}

/* Leave when everything is acknowledged. */
void device_answered(struct connection *c)
{
    if (publishers[c->idx].inflight) return;
    c->steps |= LEFT;
    send_disconnect(c); /* and the broker closes */
}

void device_closed(struct connection *c)
{
    if (c->steps & LEFT) {
        totals.cycles++;
        totals.disconnects--;
    } else
        broken++;
    c->steps = AWAY;
}

/* Return how many are there or still waited for. */
static u32 begin_again(int more)
{
    u32 i, busy = 0;
    for (i = 0; i < source_count; i++) {
        struct publisher *p = &publishers[i];
        if (p->c->steps == AWAY && !p->outstanding && more) visit(i);
        busy += p->c->steps != AWAY || p->outstanding > 0;
    }
    return busy;
}

/* The measured phase: visits until the time is used up, then what is under way ends. */
void run_devices(void)
{
    u64 begun = now_ns(), now = begun, moved = 0, moved_at = begun;
    u32 i;
    totals.t_first = begun;
    for (i = 0; i < source_count; i++) visit(i);
    while (begin_again((double)(now - begun) < options.max_seconds * 1e9)) {
        loop_once(20);
        now = now_ns();
        if (totals.unique + totals.acked != moved) {
            moved = totals.unique + totals.acked;
            moved_at = now;
        }
        if (broken || (double)(now - moved_at) > options.drain_timeout * 1e9) break;
    }
    if (broken) die("%llu devices were cut off", LL(broken));
}
