/* Errors, memory, time, and the steps with whoever started the generator. */
#include "load.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("load: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

void note(const char *fmt, ...)
{
    va_list ap;
    if (options.quiet) return;
    va_start(ap, fmt);
    fputs("load: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

double cpu_seconds(void)
{
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    return ru.ru_utime.tv_sec + ru.ru_stime.tv_sec +
           (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

void *allocate(size_t n)
{
    void *p = calloc(1, n ? n : 1);
    if (!p) die("out of memory");
    return p;
}

void *grow(void *p, size_t n)
{
    p = realloc(p, n);
    if (!p) die("out of memory");
    return p;
}

double per_sec(u64 n, u64 t0, u64 t1)
{ return t1 > t0 ? (double)n * 1e9 / (double)(t1 - t0) : 0; }

/* With --sync: say that a phase is set up, and begin it on a line of input. */
void wait_go(const char *phase)
{
    char line[64];
    if (!options.sync) return;
    printf("READY %s\n", phase);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) exit(3);
}
