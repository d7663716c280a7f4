/* The mode plan: real traffic, as the plan describes it, and the sessions that were away fetch it. */
#include "load.h"
#include <stdio.h>
#include <stdlib.h>

#define TYPICAL_HEAD 80u /* bytes of a packet that are not its sample */

static void name_of(char *id, size_t n, u32 i)
{ snprintf(id, n, "mqs-%x-%u", options.run_id & 0xffff, i); }

static void dial_receivers(void)
{
    u32 i;
    u64 filters = 0;
    char id[48];
    for (i = 0; i < receiver_count; i++) {
        while (pending_connects >= options.parallel) loop_once(100);
        name_of(id, sizeof id, i);
        receivers[i].c = dial(SUBSCRIBER, i, id, receivers[i].persistent);
    }
    settle("subscribers");
    for (i = 0; i < receiver_count; i++) {
        struct receiver *r = &receivers[i];
        send_subscribe_where(r->c, 1, (const char *const *)r->filters, r->filter_count,
                             options.subscriber_qos, r->where);
        flush(r->c);
        filters += r->filter_count;
    }
    wait_for_subacks(filters);
    if (totals.subscribe_failed) die("%llu subscriptions refused", LL(totals.subscribe_failed));
    for (i = 0; i < receiver_count; i++)
        if (receivers[i].away) hang_up(receivers[i].c);
}

static u32 mean_length(void)
{
    u64 i, sum = 0;
    for (i = 0; i < sample_count; i++) sum += samples[i].length;
    return (u32)(sum / sample_count) + TYPICAL_HEAD;
}

static void prepare_publishers(void)
{
    u32 i, length = mean_length();
    options.publishers = source_count;
    if (options.cycle)
        make_devices();
    else
        make_publishers(options.qos, options.retain);
    for (i = 0; i < source_count; i++) publishers[i].len = length;
}

/* Those who were away come back and get what waits for them, which is expected from now on. */
static void fetch(void)
{
    u64 last, moved = now_ns();
    u32 i;
    char id[48];
    wait_go("drain");
    totals.expected += totals.owed;
    for (i = 0; i < receiver_count; i++) {
        if (!receivers[i].away) continue;
        name_of(id, sizeof id, i);
        open_connection(receivers[i].c, id);
    }
    for (last = totals.unique; totals.unique < totals.expected;) {
        loop_once(50);
        if (totals.unique != last) {
            last = totals.unique;
            moved = now_ns();
        } else if ((double)(now_ns() - moved) > options.drain_timeout * 1e9)
            break;
    }
    for (moved = now_ns(); now_ns() - moved < SECOND / 20;) loop_once(10); /* late duplicates */
}

void mode_plan(void)
{
    double cpu;
    u64 last;
    read_plan();
    streams = allocate((size_t)receiver_count * source_count * sizeof *streams);
    dial_receivers();
    prepare_publishers();
    wait_go("traffic");
    totals.reads = totals.writes = 0;
    cpu = cpu_seconds();
    if (options.cycle)
        run_devices();
    else
        run_traffic(options.qos, 0);
    cpu = cpu_seconds() - cpu;
    last = totals.t_last;
    if (totals.owed) fetch();
    totals.t_last = last;
    report_traffic(options.qos, cpu);
}
