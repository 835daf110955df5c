/* waiter.h -- kernels that wait for a queue or an accumulator without holding a thread.
 *
 * 1. A waiter stands in a line of its resource, guarded by that resource's lock. Whoever takes it
 *    out of the line, with the lock held, finishes it after the lock is released: the one who
 *    served it, or the cancellation of its step.
 * 2. The step's cancellation holds a reference of its own, since it may be on its way while
 *    another thread finishes the waiter.
 */
#ifndef LEAT_CPU_WAITER_H
#define LEAT_CPU_WAITER_H

#include "kernels/cpu/cpu.h"
#include "runtime/step.h"

typedef struct leat_waiter leat_waiter;

typedef struct leat_line {
    leat_waiter *first, *last;
} leat_line;

typedef struct leat_waiter_ops {
    size_t size;                  /* of the struct that begins with a leat_waiter; a block's */
    void (*give)(leat_waiter *w); /* served, or failed: sets the kernel's outputs, frees the rest */
    /* The step is cancelled. Takes the lock; if w->waiting, takes it out of its line, sets its
     * status, serves those behind it; then finishes all these. */
    void (*cancelled)(leat_waiter *w);
} leat_waiter_ops;

struct leat_waiter {
    const leat_waiter_ops *ops;
    leat_kernel *kernel;
    leat_resource *resource; /* shared */
    leat_waiter *next, *prev;
    bool waiting; /* in its resource's line */
    bool cancellable;
    atomic_int refs;
    leat_cancel cancel;
    leat_status status;
};

/* Zeroed but for what is said here; takes the reference to r. */
void *leat_waiter_new(const leat_waiter_ops *ops, leat_kernel *k, leat_resource *r);

/* With the resource's lock held: */
void leat_line_add(leat_line *l, leat_waiter *w);  /* at its end; w waits */
void leat_line_take(leat_line *l, leat_waiter *w); /* w waits no more */
/* Adds to those to be finished. */
void leat_line_done(leat_line *finished, leat_waiter *w);
/* w has to wait: the step may cancel it. False if it is cancelled already. */
bool leat_waiter_watch(leat_waiter *w);

/* With it released: gives each what it came for and calls its kernel's done. */
void leat_line_finish(leat_line *finished);

#endif
