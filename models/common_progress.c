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
    *p = (progress){.tty = isatty(STDOUT_FILENO), .unit = "examples"};
    p->started = p->last = progress_clock();
}

bool progress_add(progress *p, int64_t examples)
{
    p->examples += examples;
    return progress_clock() - p->last >= 1;
}

/* "  0:12 left", at the rate since the first line; "" if that is not known. */
static void time_left(const progress *p, int64_t step, double now, char *out, size_t size)
{
    out[0] = 0;
    if (!p->steps || !p->drawn || step <= p->first || step > p->steps)
        return;
    const double each = (now - p->first_at) / (double)(step - p->first);
    const long long left = (long long)(each * (double)(p->steps - step) + 0.5);
    if (left < 3600)
        snprintf(out, size, "  %lld:%02lld left", left / 60, left % 60);
    else
        snprintf(out, size, "  %lld:%02lld:%02lld left", left / 3600, left / 60 % 60, left % 60);
}

void progress_line(progress *p, int64_t step, double epoch, double loss)
{
    char of[32] = "", left[64];
    double now = progress_clock(),
           rate = (double)(p->examples - p->last_examples) / (now - p->last);
    if (p->steps)
        snprintf(of, sizeof(of), " of %lld", (long long)p->steps);
    time_left(p, step, now, left, sizeof(left));
    /* On a terminal, the line is written over the last one, and what is longer there is erased. */
    printf("%sstep %lld%s  epoch %.2f  loss %.4f  %.0f %s/s%s%s", p->tty ? "\r" : "",
           (long long)step, of, epoch, loss, rate, p->unit, left, p->tty ? "\033[K" : "\n");
    fflush(stdout);
    if (!p->drawn) {
        p->first = step;
        p->first_at = now;
    }
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
