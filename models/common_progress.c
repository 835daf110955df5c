/* common_progress.c -- see common_progress.h. */
#include "common_progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double progress_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_begin(progress *p)
{
    *p = (progress){.tty = isatty(STDOUT_FILENO)};
    p->started = p->last = progress_clock();
}

bool progress_add(progress *p, int64_t examples)
{
    p->examples += examples;
    return progress_clock() - p->last >= 1;
}

void progress_line(progress *p, int64_t step, double epoch, double loss)
{
    double now = progress_clock(),
           rate = (double)(p->examples - p->last_examples) / (now - p->last);
    printf("%sstep %lld  epoch %.2f  loss %.4f  %.0f examples/s%s", p->tty ? "\r" : "",
           (long long)step, epoch, loss, rate, p->tty ? "   " : "\n");
    fflush(stdout);
    p->last = now;
    p->last_examples = p->examples;
    p->drawn = true;
}

double progress_end(progress *p)
{
    if (p->tty && p->drawn)
        printf("\n");
    return progress_clock() - p->started;
}
