/* accumulator.h -- accumulators of gradients.
 *
 * 1. A gradient of a step before the accumulator's is dropped, and counted.
 * 2. Takers wait in a queue (waiter.h); the first is served once enough gradients were added.
 * Taking empties the accumulator and increments its step.
 * 3. sum is written to only while it has no other owner: the first gradient is shared; a later one
 *    is added to it in place if its buffer has no other owner by then, else to a copy. A gradient
 * is added when the next one comes or the sum is taken: so the last addition and the division for
 *    the mean are done in one pass.
 */
#ifndef LEAT_CPU_ACCUMULATOR_H
#define LEAT_CPU_ACCUMULATOR_H

#include <pthread.h>

#include "kernels/any/resource_op.h"
#include "kernels/any/waiter.h"

typedef struct leat_accumulator {
    leat_resource base;
    leat_dtype dtype;
    leat_shape shape; /* as declared; may be partly known */
    bool sparse, mean;
    char *name;
    pthread_mutex_t lock; /* guards the following fields; a step's lock is taken under it */
    int32_t count;        /* gradients in sum */
    int64_t step, dropped;
    int64_t *dropped_of; /* by replica, for gradients whose node has the attribute _replica */
    int n_dropped_of;
    leat_tensor *sum;  /* NULL when count is 0. Sparse: rows */
    leat_tensor *last; /* dense: a gradient that is not yet added to sum; or NULL */
    int64_t *indices;  /* sparse: the index of each row in the whole tensor */
    int32_t *counts;   /* sparse: the number of gradients that had each row */
    leat_waiters takers;
} leat_accumulator;

/* ---- accumulator_sum.c; the lock is held ---- */
/* Checks the gradient in inputs 2 and following, and adds it. */
leat_status leat_accumulator_add(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;
/* Sets the outputs of k to the mean or the sum. Empties the accumulator on success. */
leat_status leat_accumulator_give(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;

/* ---- accumulator_sparse.c ---- */
leat_status leat_accumulator_add_rows(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;
leat_status leat_accumulator_give_rows(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;

/* t[begin..] /= by, for n elements of a floating dtype. */
void leat_divide(leat_dtype t, void *p, int64_t n, int32_t by);

#endif
