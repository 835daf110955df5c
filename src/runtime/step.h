/* step.h -- one run of a plan: what comes in and goes out, its first error, cancellation.
 *
 * 1. The first error wins; it cancels the step. Nodes that have not started then never start.
 * 2. Code that waits for something on behalf of a step registers a leat_cancel. The thread that
 *    brings the first error calls all that are registered, one after the other, with the step's
 *    lock not held.
 * 3. A leat_cancel belongs to the code that registered it, which frees it after
 *    leat_step_off_cancel or leat_step_finish. Both wait for a call under way in another thread, so
 * neither may be called with a lock held that a callback takes. A callback may remove and free its
 * own leat_cancel; it never ends its step.
 * 4. The caller of leat_step_fail sees to it that the step is not released meanwhile.
 */
#ifndef LEAT_STEP_H
#define LEAT_STEP_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/threadpool.h"
#include "runtime/rendezvous.h"
#include "runtime/trace.h"

typedef struct leat_cancel {
    void (*fn)(void *arg, leat_status why); /* borrows why, the step's first error */
    void *arg;
    /* Guarded by the step's lock: */
    struct leat_cancel *next, *prev;
    bool listed; /* in the step's list: not called yet */
} leat_cancel;

/* The arguments of leat_step_new. All that they point to is borrowed until the step is freed. */
typedef struct leat_step_options {
    uint64_t id; /* not used if the plan has parts on other tasks: leat_far gives the id */
    leat_tensor *const *feeds; /* by the index of _Arg */
    leat_tensor **fetches;     /* by the index of _Retval; the caller owns the tensors */
    struct leat_late *late;    /* not NULL: feeds and fetches go through it (partial runs) */
    leat_trace *trace;         /* NULL: nothing is recorded */
    int64_t deadline_ns;       /* CLOCK_MONOTONIC; 0: none */
    int call_depth; /* number of function calls that the step is nested in (callable.h) */
    /* For a part of another task's step: where it meets the other parts. NULL: the step has a
     * rendezvous of its own. */
    leat_rendezvous *rendezvous;
    /* Called once when all parts have ended, from any thread. NULL with leat_step_run. */
    void (*ended)(void *arg);
    void *arg;
} leat_step_options;

/* The first group is set by leat_step_new (plan_step.c) and nowhere else, and does not change. */
typedef struct leat_step {
    uint64_t id;
    leat_tensor *const *feeds;
    leat_tensor **fetches;
    struct leat_late *late;
    leat_trace *trace;
    int64_t deadline_ns;
    leat_rendezvous *rendezvous; /* NULL if the plan has one partition */
    int call_depth;
    void (*ended)(void *arg);
    void *arg;

    atomic_bool cancelled;
    atomic_int running; /* parts that have not ended */
    leat_event done;    /* set when all parts have ended, if `ended` is NULL */

    pthread_mutex_t lock; /* guards what follows; no other lock is taken under it */
    leat_status status;   /* the first error; does not change while callbacks run */
    leat_cancel *cancels;
    leat_cancel *calling; /* whose callback is running, or NULL */
    bool failing;         /* a thread, `failer`, is calling what was registered */
    pthread_t failer;
    bool finished;         /* leat_step_settle was called */
    pthread_cond_t called; /* `calling` or `failing` has changed */
} leat_step;

/* A step without a plan, for a kernel that runs alone. Those of plans: plan.h. */
void leat_step_init(leat_step *s);
void leat_step_release(leat_step *s);
static inline bool leat_step_cancelled(const leat_step *s)
{
    return atomic_load_explicit(&((leat_step *)s)->cancelled, memory_order_relaxed);
}
void leat_step_part_ended(leat_step *s); /* counts `running` down */
/* Takes error; OK does nothing, nor does any error after the first one. */
void leat_step_fail(leat_step *s, leat_status error);
/* False if the step is cancelled already: c is not registered then, and not called. */
bool leat_step_on_cancel(leat_step *s, leat_cancel *c);
/* After this, c is not called any more and is not being called by another thread. Does nothing for
 * one that was called or not registered. */
void leat_step_off_cancel(leat_step *s, leat_cancel *c);
/* The step has ended: nothing that is registered is called any more or is being called, and later
 * errors do nothing. Gives the status. */
leat_status leat_step_settle(leat_step *s) LEAT_MUST_CHECK;

#endif
