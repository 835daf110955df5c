/* threadpool.h -- pools of threads, called workers, and events to wait for.
 *
 * Waking a sleeping core costs 80 us or more, so an idle worker spins for a while before it
 * sleeps. leat_pool_for splits a loop: the caller works too, and finishes alone if no worker is
 * free. While it waits, the caller takes only pieces of its own loop and never other work, so it
 * may hold locks.
 */
#ifndef LEAT_CORE_THREADPOOL_H
#define LEAT_CORE_THREADPOOL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct leat_pool leat_pool;

int leat_cpu_count(void); /* The number of CPUs that this process may run on. */
/* The default number of threads of a session or server: LEAT_NUM_THREADS if the environment has it,
 * else leat_cpu_count(). */
int leat_default_threads(void);

/* Starts n workers. n may be 0: leat_pool_for then runs in the caller, and leat_pool_submit starts
 * one worker when the first job comes. */
leat_pool *leat_pool_new(int n, const char *name);
void leat_pool_free(leat_pool *p); /* Waits for the jobs that were submitted. */
int leat_pool_size(const leat_pool *p);
/* Runs fn(arg) on some worker. Jobs run in no particular order. */
void leat_pool_submit(leat_pool *p, void (*fn)(void *arg), void *arg);
/* The same as leat_pool_submit, for jobs that may block: they have threads of their own, and the
 * pool adds one when none is free. Gives 0; or, if no thread can be started, its errno (thread.h),
 * and the job does not run. */
int leat_pool_submit_blocking(leat_pool *p, void (*fn)(void *arg), void *arg);
/* Calls fn(arg, begin, end) for pieces that cover [0, n) once. unit_ns is the estimated cost of one
 * unit in nanoseconds. Short loops run in the caller. p may be NULL: all runs in the caller. */
void leat_pool_for(leat_pool *p, int64_t n, double unit_ns,
                   void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

/* fn(arg) says whether the rest of a loop is not needed any more. All threads that work on the loop
 * call it, every few milliseconds. */
typedef struct leat_loop_stop {
    bool (*fn)(void *arg);
    void *arg;
} leat_loop_stop;
static inline bool leat_loop_stopped(const leat_loop_stop *s)
{
    return s && s->fn(s->arg);
}
/* The same as leat_pool_for, but skips the rest of the loop once stop returns true. stop may be
 * NULL. */
void leat_pool_for_until(leat_pool *p, int64_t n, double unit_ns,
                         void (*fn)(void *arg, int64_t begin, int64_t end), void *arg,
                         const leat_loop_stop *stop);

/* An event that one thread waits for, such as the end of a step. */
typedef struct leat_event {
    int32_t state; /* Futex word: 0 not set, 1 set, 2 not set and the waiter is parked. */
} leat_event;
void leat_event_init(leat_event *e);
void leat_event_set(leat_event *e);
/* Spins, then parks. Returns 0 if deadline_ns (CLOCK_MONOTONIC; 0: none) passed first, else 1. */
int leat_event_wait(leat_event *e, int64_t deadline_ns);
/* The same as leat_event_wait without spinning, for events that are not set soon. */
int leat_event_park(leat_event *e, int64_t deadline_ns);
bool leat_event_is_set(const leat_event *e);
/* For a waiter that parks on several futexes at once, e->state among them. leat_event_sleep returns
 * the value of e->state to park on, with which leat_event_set wakes the waiter; -1 if the event is
 * set already. After the wait, the waiter calls leat_event_awake. */
int32_t leat_event_sleep(leat_event *e);
void leat_event_awake(leat_event *e);
/* The same as leat_event_wait, but the thread meanwhile works on jobs and loops of p, which may be
 * NULL. The caller must not hold a lock. */
int leat_pool_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
/* The same as leat_pool_wait, but the thread parks without spinning as soon as there is no work:
 * for events that wait for another process, which may want this CPU. */
int leat_pool_park(leat_pool *p, leat_event *e, int64_t deadline_ns);
int64_t leat_now_ns(void); /* CLOCK_MONOTONIC */

#endif
