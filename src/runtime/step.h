/* step.h -- one run of a plan: what comes in and goes out, its first error, cancellation.
 *
 * 1. The first error wins; it cancels the step. Nodes that have not started then never start.
 * 2. A kernel that waits for something registers a leat_cancel; it is called once, from any
 *    thread, with the step's lock not held.
 */
#ifndef LEAT_STEP_H
#define LEAT_STEP_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/threadpool.h"
#include "runtime/rendezvous.h"
#include "runtime/trace.h"

typedef struct leat_cancel {
    void (*fn)(void *arg);
    void *arg;
    struct leat_cancel *next, *prev;
} leat_cancel;

typedef struct leat_step {
    uint64_t id;
    leat_tensor *const *feeds;   /* by the index of _Arg; borrowed */
    leat_tensor **fetches;       /* by the index of _Retval; owns what is there */
    struct leat_late *late;      /* not NULL: feeds and fetches go through it (partial runs) */
    leat_rendezvous *rendezvous; /* NULL if the plan has one partition */
    leat_trace *trace;           /* NULL: nothing is recorded */
    int64_t deadline_ns;         /* CLOCK_MONOTONIC; 0: none */
    atomic_bool cancelled;
    atomic_int running; /* partitions that have not ended */
    leat_event done;
    void (*ended)(
        struct leat_step *s); /* not NULL: called when all have ended, instead of `done` */
    void *owner;              /* whose `ended` it is */
    struct leat_activation *activation; /* the plan's memory for it */
    pthread_mutex_t lock;               /* guards what follows; no other lock is taken under it */
    leat_status status;
    leat_cancel *cancels;
} leat_step;

void leat_step_init(leat_step *s);
void leat_step_release(leat_step *s);
static inline bool leat_step_cancelled(const leat_step *s)
{
    return atomic_load_explicit(&((leat_step *)s)->cancelled, memory_order_relaxed);
}
void leat_step_part_ended(leat_step *s);              /* one of `running` */
void leat_step_fail(leat_step *s, leat_status error); /* takes error; OK does nothing */
/* False if the step is cancelled already: nothing was registered. */
bool leat_step_on_cancel(leat_step *s, leat_cancel *c);
/* After this, c is not called any more, and is not being called, unless from c itself. False if
 * it was called. */
bool leat_step_off_cancel(leat_step *s, leat_cancel *c);

#endif
