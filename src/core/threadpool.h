/* threadpool.h -- threads that take work without sleeping while work comes often.
 *
 * Waking a sleeping core costs 80 us or more, so an idle worker spins for a while before it
 * sleeps. leat_pool_for splits a loop: the caller works too, takes only pieces of its own loop
 * while it waits (never other work, so locks may be held), and finishes alone if nobody comes.
 */
#ifndef LEAT_CORE_THREADPOOL_H
#define LEAT_CORE_THREADPOOL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct leat_pool leat_pool;

/* n threads besides the callers; 0 is allowed: leat_pool_for then runs in the caller, and
 * leat_pool_submit starts a thread when the first job comes. */
leat_pool *leat_pool_new(int n, const char *name);
void leat_pool_free(leat_pool *p); /* waits for the jobs that were submitted */
int leat_pool_size(const leat_pool *p);
/* Runs fn(arg) on a worker, in no order. Work is stolen between workers. */
void leat_pool_submit(leat_pool *p, void (*fn)(void *arg), void *arg);
/* The same, for jobs that may block: the pool adds a thread when none is free. */
void leat_pool_submit_blocking(leat_pool *p, void (*fn)(void *arg), void *arg);
/* Calls fn(arg, begin, end) for pieces that cover [0, n) once; unit_ns is a guess of one unit's
 * cost. Short loops run in the caller. p may be NULL. */
void leat_pool_for(leat_pool *p, int64_t n, double unit_ns,
                   void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

/* Whether the rest of a loop is not wanted any more: called from all threads at work on it, about
 * every few milliseconds. */
typedef struct leat_loop_stop {
    bool (*fn)(void *arg);
    void *arg;
} leat_loop_stop;
static inline bool leat_loop_stopped(const leat_loop_stop *s)
{
    return s && s->fn(s->arg);
}
/* The same as leat_pool_for, except that what is left is skipped once stop says so. stop may be
 * NULL. */
void leat_pool_for_until(leat_pool *p, int64_t n, double unit_ns,
                         void (*fn)(void *arg, int64_t begin, int64_t end), void *arg,
                         const leat_loop_stop *stop);

/* One waiter, one event: spins, then sleeps. Used by whoever waits for a step to end. */
typedef struct leat_event {
    int32_t state; /* futex word: 0 not set, 1 set, 2 a sleeper waits */
} leat_event;
void leat_event_init(leat_event *e);
void leat_event_set(leat_event *e);
/* False if deadline_ns (CLOCK_MONOTONIC; 0 for none) passed first. */
int leat_event_wait(leat_event *e, int64_t deadline_ns);
/* The same without spinning, for what takes longer than a spin. */
int leat_event_park(leat_event *e, int64_t deadline_ns);
bool leat_event_is_set(const leat_event *e);
/* For a waiter that sleeps at several futexes, state among them: whoever sets the event wakes it
 * while the state is the value given; -1 if the event is set already. Awake again, it says so. */
int32_t leat_event_sleep(leat_event *e);
void leat_event_awake(leat_event *e);
/* The same as leat_event_wait, but the thread works while it waits, on jobs and loops of p, which
 * may be NULL. Not for callers that hold a lock. */
int leat_pool_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
/* The same, but the thread sleeps as soon as there is no work: another process, which may want this
 * CPU, has to send something before the event is set. */
int leat_pool_park(leat_pool *p, leat_event *e, int64_t deadline_ns);
int64_t leat_now_ns(void); /* CLOCK_MONOTONIC */

#endif
