/* Latencies in a histogram with 64 linear steps for each power of two. */
#include "load.h"
#include <stdio.h>

#define STEPS 64u

u64 latency_from = ~0ull;
static u64 histogram[64 * STEPS];
static u64 taken, longest, shortest = ~0ull;
static double sum;

void add_latency(u64 ns)
{
    u32 e, i;
    if (ns < STEPS)
        i = (u32)ns;
    else {
        e = 63u - (u32)__builtin_clzll(ns);
        i = (e - 5) * STEPS + (u32)((ns >> (e - 6)) & (STEPS - 1));
    }
    histogram[i]++;
    taken++;
    sum += (double)ns;
    if (ns > longest) longest = ns;
    if (ns < shortest) shortest = ns;
}

static double latency_us(double q)
{
    u64 want = (u64)(q * (double)taken + 0.999999), seen = 0;
    u32 i;
    if (!taken) return 0;
    if (want < 1) want = 1;
    for (i = 0; i < 64 * STEPS; i++) {
        seen += histogram[i];
        if (seen >= want) {
            double v;
            if (i < STEPS)
                v = i;
            else {
                u32 e = i / STEPS + 5;
                v = (double)((u64)(STEPS + i % STEPS) << (e - 6));
                v += (double)(1ull << (e - 6)) / 2;
            }
            if (v > (double)longest) v = (double)longest;
            return v / 1e3;
        }
    }
    return (double)longest / 1e3;
}

/* Print the object "latency_us" of the report, in microseconds. */
void print_latency(void)
{
    printf("\"latency_us\":{\"n\":%llu,\"min\":%.1f,\"mean\":%.1f,\"p50\":%.1f,\"p90\":%.1f,"
           "\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f}",
           LL(taken), taken ? (double)shortest / 1e3 : 0.0, taken ? sum / (double)taken / 1e3 : 0.0,
           latency_us(.5), latency_us(.9), latency_us(.99), latency_us(.999),
           (double)longest / 1e3);
}
