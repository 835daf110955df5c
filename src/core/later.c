/* later.c -- see later.h. */
#include "core/later.h"

#include <stddef.h>

enum { MOST = 16, PATIENCE = 8 }; /* Different wake-ups; how often the same one is delayed. */

/* What this thread has delayed. */
static __thread struct {
    struct {
        void (*fn)(void *arg);
        void *arg;
        int again; /* How often the same wake-up was requested again. */
    } wakes[MOST];
    int n_wakes, wake_depth, job_depth; /* Depths: nested begin calls that have no end yet. */
    leat_later_job *first, *last;       /* Delayed jobs, linked by next. */
    const void *only;                   /* The step of leat_later_only. */
} later;

/* ---- Wake-ups ---- */

static void wake_all(void)
{
    while (later.n_wakes) {
        int i = --later.n_wakes;
        later.wakes[i].fn(later.wakes[i].arg);
    }
}

void leat_later_begin(void)
{
    later.wake_depth++;
}

void leat_later_end(void)
{
    if (--later.wake_depth == 0)
        wake_all();
}

bool leat_later_put(void (*fn)(void *arg), void *arg, bool *again_out)
{
    *again_out = false;
    if (!later.wake_depth)
        return false;
    for (int i = 0; i < later.n_wakes; i++)
        if (later.wakes[i].fn == fn && later.wakes[i].arg == arg) {
            *again_out = true;
            return ++later.wakes[i].again < PATIENCE;
        }
    if (later.n_wakes == MOST)
        return false;
    later.wakes[later.n_wakes].fn = fn;
    later.wakes[later.n_wakes].arg = arg;
    later.wakes[later.n_wakes++].again = 0;
    return true;
}

/* ---- Jobs ---- */

/* Takes the first job off the list, with all jobs right behind it that have the same function. */
static leat_later_job *take_jobs(void)
{
    leat_later_job *list = later.first, *end = list;
    while (end->next && end->next->run == list->run)
        end = end->next;
    later.first = end->next;
    end->next = NULL;
    return list;
}

void leat_later_jobs_begin(void)
{
    later.job_depth++;
}

void leat_later_jobs_end(void)
{
    while (later.job_depth == 1 && later.first) {
        leat_later_job *list = take_jobs();
        list->run(list);
    }
    later.job_depth--;
}

void leat_later_job_add(leat_later_job *j)
{
    if (!later.job_depth) {
        j->submit(j);
        return;
    }
    j->next = NULL;
    if (later.first)
        later.last->next = j;
    else
        later.first = j;
    later.last = j;
}

void leat_later_only(const void *step)
{
    later.only = step;
}

bool leat_later_may_run(const void *step)
{
    return !later.only || later.only == step;
}

void leat_later_now(void)
{
    wake_all();
    while (later.first) {
        leat_later_job *j = later.first;
        later.first = j->next;
        j->submit(j);
    }
}
