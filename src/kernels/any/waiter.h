/* waiter.h -- kernels that wait for a queue or an accumulator without occupying a thread.
 *
 * 1. A waiter is in a list (leat_waiters) of its resource, guarded by that resource's lock. The
 *    thread that takes it out of the list, with the lock held, finishes it after the lock is
 *    released: either the thread that serves it, or the one that cancels its step.
 * 2. Finishing a waiter frees it, after the step's cancellation cannot call it any more
 *    (leat_step_off_cancel). Finishing may therefore wait for a cancellation in another thread that
 *    waits for the resource's lock. No two cancellations wait for each other: a cancellation takes
 *    other waiters out of the list only if its own waiter was still in it.
 */
#ifndef LEAT_ANY_WAITER_H
#define LEAT_ANY_WAITER_H

#include "kernels/cpu/cpu.h"
#include "runtime/step.h"

typedef struct leat_waiter leat_waiter;

typedef struct leat_waiters {
    leat_waiter *first, *last;
} leat_waiters;

typedef struct leat_waiter_ops {
    size_t size; /* size of the struct whose first member is a leat_waiter */
    /* Sets the kernel's outputs after success or failure, and frees the waiter's other fields. */
    void (*give)(leat_waiter *w);
    /* Called when the step is cancelled. Takes the lock; if w->waiting, takes w out of its list,
     * sets its status and serves those behind it; then finishes all of these. */
    void (*cancelled)(leat_waiter *w);
    /* The kernel has not ended when the waiter is finished: give calls leat_kernel_done, now or
     * later. */
    bool goes_on;
} leat_waiter_ops;

struct leat_waiter {
    const leat_waiter_ops *ops;
    leat_kernel *kernel;
    leat_resource *resource; /* shares a reference */
    leat_waiter *next, *prev;
    bool waiting; /* in its resource's list */
    bool watched; /* the cancel function is registered with the step */
    leat_cancel cancel;
    leat_status status;
};

/* Makes a waiter, zeroed except for these fields; takes the reference to r. */
void *leat_waiter_new(const leat_waiter_ops *ops, leat_kernel *k, leat_resource *r);

/* The resource's lock is held: */
void leat_waiters_add(leat_waiters *l, leat_waiter *w);    /* adds w to the end; sets w->waiting */
void leat_waiters_remove(leat_waiters *l, leat_waiter *w); /* removes w; clears w->waiting */
/* Adds w to the waiters that are to be finished. */
void leat_waiters_done(leat_waiters *finished, leat_waiter *w);
/* Called when w has to wait: registers it with the step's cancellation. False if the step is
 * already cancelled. */
bool leat_waiter_watch(leat_waiter *w);

/* The lock is released: calls give of each waiter and leat_kernel_done for its kernel. */
void leat_waiters_finish(leat_waiters *finished);

#endif
