/* queue.h -- queues of tuples of tensors, and the kernels that wait for them.
 *
 * 1. Each enqueue and each dequeue is an attempt. Attempts wait in two lists, in the order of
 *    arrival; the first of a list is served as far as possible before the second. A close waits in
 *    the list of enqueues.
 * 2. The thread that changes a queue serves the attempts that the change makes possible (waiter.h).
 */
#ifndef LEAT_CPU_QUEUE_H
#define LEAT_CPU_QUEUE_H

#include <pthread.h>

#include "kernels/cpu/philox.h"
#include "kernels/any/resource_op.h"
#include "kernels/any/waiter.h"

typedef enum leat_queue_kind {
    LEAT_QUEUE_FIFO,
    LEAT_QUEUE_PADDING,  /* a FIFO whose shapes may be partly known */
    LEAT_QUEUE_PRIORITY, /* the element with the least first component is dequeued first */
    LEAT_QUEUE_SHUFFLE
} leat_queue_kind;

typedef enum leat_attempt_kind {
    LEAT_PUT,        /* one element: the tuple of inputs 1 to n */
    LEAT_PUT_MANY,   /* each row of the inputs */
    LEAT_CLOSE,      /* after the enqueues that came before */
    LEAT_TAKE,       /* one element */
    LEAT_TAKE_MANY,  /* a batch of n */
    LEAT_TAKE_UP_TO, /* a batch of n, or the rest of a closed queue */
} leat_attempt_kind;

/* Called once when a kernel that uses a queue has dequeued an element. Takes s and, if s is OK, the
 * tensors of the tuple; borrows the array. */
typedef void (*leat_queue_taken_fn)(void *arg, leat_status s, leat_tensor **tuple);

enum { LEAT_ATTEMPT_FEW = 8 };
typedef struct leat_attempt {
    leat_waiter base;
    leat_attempt_kind kind;
    int64_t wanted;       /* elements still to be enqueued or dequeued */
    leat_tensor **taken;  /* elements dequeued so far, one tuple after another; few, or allocated */
    int64_t n_taken, cap; /* elements */
    leat_tensor *few[LEAT_ATTEMPT_FEW];
    leat_queue_taken_fn taken_fn; /* of leat_queue_take; else NULL */
    void *taken_arg;
} leat_attempt;

typedef struct leat_queue {
    leat_resource base;
    leat_queue_kind kind;
    char *name;
    int n; /* components of an element */
    leat_dtype *types;
    leat_shape *shapes; /* of components, fully known except in a PADDING queue; NULL: any */
    int64_t capacity, min_after_take;
    int64_t seed, seed2;
    pthread_mutex_t lock; /* guards the following fields; a step's lock is taken under it */
    bool closed;
    bool unlimited; /* elements beyond the capacity are taken, too */
    leat_tensor **items; /* a ring of cap elements, a power of two, each n tensors (owned) */
    int64_t head, count, cap;
    leat_philox philox;
    leat_philox_single random; /* draws from philox */
    leat_waiters puts, takes;  /* lists of leat_attempt */
} leat_queue;

extern const leat_resource_type leat_queue_type;

/* ---- queue_make.c ---- */
extern const leat_resource_maker leat_queue_maker;

/* ---- queue_store.c: elements; the lock is held ---- */
void leat_queue_push(leat_queue *q, leat_tensor *const *tuple); /* takes the tensors */
/* The next element; gives the tensors. */
void leat_queue_pop(leat_queue *q, leat_tensor **tuple_out);
/* Puts dequeued elements back such that they are dequeued first again. Takes the tensors. */
void leat_queue_unpop(leat_queue *q, leat_tensor *const *tuples, int64_t n);
void leat_queue_clear(leat_queue *q);
/* Element i, in the order in which a FIFO queue gives them: its n tensors, borrowed. */
leat_tensor **leat_queue_element(const leat_queue *q, int64_t i);

/* ---- queue_batch.c: shapes, slices and batches ---- */
/* Checks that inputs 1 to n fit q, as one element or as a batch of elements, whose size is set. */
leat_status leat_queue_check_one(const leat_queue *q, leat_kernel *k) LEAT_MUST_CHECK;
leat_status leat_queue_check_many(const leat_queue *q, leat_kernel *k,
                                  int64_t *n_out) LEAT_MUST_CHECK;
/* Row `row` of inputs 1 to n; gives n tensors. */
leat_status leat_queue_slice(const leat_queue *q, leat_kernel *k, int64_t row,
                             leat_tensor **tuple_out) LEAT_MUST_CHECK;
/* Sets outputs 0 to n-1 to batches of these elements. */
leat_status leat_queue_batch(const leat_queue *q, leat_kernel *k, leat_tensor *const *tuples,
                             int64_t n) LEAT_MUST_CHECK;

/* ---- queue_attempt.c ---- */
/* Adds an attempt for the kernel, and calls leat_kernel_done, now or later. Takes the reference to
 * q. */
void leat_queue_attempt(leat_queue *q, leat_kernel *k, leat_attempt_kind kind, int64_t wanted);
/* Dequeues one element for a kernel that goes on with it, such as a reader, which dequeues the name
 * of its next file. fn(arg) is called once, maybe before this returns, from any thread, and sees to
 * it that the kernel ends. The step's cancellation ends the wait. Shares q. */
void leat_queue_take(leat_queue *q, leat_kernel *k, leat_queue_taken_fn fn, void *arg);
/* Serves what can be served, after the queue was changed otherwise than by an attempt. */
void leat_queue_serve(leat_queue *q);
/* Closes at once: pending enqueues are cancelled. */
void leat_queue_close_now(leat_queue *q);

#endif
