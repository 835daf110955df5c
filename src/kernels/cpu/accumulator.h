/* accumulator.h -- accumulators of gradients.
 *
 * 1. A gradient of a step before the accumulator's is dropped, and counted.
 * 2. Takers stand in line (waiter.h); the first is served once enough gradients came. Taking
 *    empties the accumulator and begins its next step.
 * 3. sum is written to only while nobody else holds it: the first gradient is shared, the second
 *    is added in place if the giver has let go, else to a copy. It is added when the third comes or
 *    the sum is taken: then the last one is added and the mean made in one pass.
 */
#ifndef LEAT_CPU_ACCUMULATOR_H
#define LEAT_CPU_ACCUMULATOR_H

#include <pthread.h>

#include "kernels/cpu/resource_op.h"
#include "kernels/cpu/waiter.h"

typedef struct leat_accumulator {
    leat_resource base;
    leat_dtype dtype;
    leat_shape shape; /* as declared; may be partly known */
    bool sparse, mean;
    char *name;
    pthread_mutex_t lock; /* guards what follows; a step's lock is taken under it */
    int32_t count;        /* gradients in sum */
    int64_t step, dropped;
    int64_t *dropped_of; /* by replica, for gradients whose node has the attribute _replica */
    int n_dropped_of;
    leat_tensor *sum;  /* NULL when count is 0. Sparse: rows */
    leat_tensor *last; /* dense: to be added to the sum; or NULL */
    int64_t *indices;  /* sparse: what rows of the whole these are, */
    int32_t *counts;   /* and how many gradients each had */
    leat_line takers;
} leat_accumulator;

/* ---- accumulator_sum.c: with the lock held ---- */
/* The gradient in inputs 2 and on fits and is added. */
leat_status leat_accumulator_add(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;
/* The mean or the sum becomes the outputs of k. Empties the accumulator if it succeeds. */
leat_status leat_accumulator_give(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;

/* ---- accumulator_sparse.c ---- */
leat_status leat_accumulator_add_rows(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;
leat_status leat_accumulator_give_rows(leat_accumulator *a, leat_kernel *k) LEAT_MUST_CHECK;

/* t[begin..] /= by, for n elements of a floating dtype. */
void leat_divide(leat_dtype t, void *p, int64_t n, int32_t by);

#endif
