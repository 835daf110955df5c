/* reduce.h -- sums, products, greatest and least elements along one dimension: the loops of
 * reductions.
 *
 * A reduction over any set of dimensions is done in passes of (outer, along, inner): each reduces
 * the middle dimension. The order in which elements are added depends on the sizes alone, never on
 * the threads, and is a tree near its leaves, which is more exact than one sum from left to right.
 */
#ifndef LEAT_KERNELS_CPU_REDUCE_H
#define LEAT_KERNELS_CPU_REDUCE_H

#include "kernels/cpu/cpu.h"

typedef enum leat_reducer {
    LEAT_REDUCE_SUM,
    LEAT_REDUCE_PROD,
    LEAT_REDUCE_MAX,
    LEAT_REDUCE_MIN,
    LEAT_REDUCE_ALL, /* bool */
    LEAT_REDUCE_ANY, /* bool */
} leat_reducer;

/* y[c] is the reduction of x[r * ld + c] over r, for c < k. If there are no rows, the neutral
 * element. */
typedef void (*leat_reduce_fn)(const void *x, int64_t rows, int64_t ld, int64_t k, void *y);

/* y[c] = y[c] op x[r * ld + c] for all r, for c < k; y does not overlap x. */
typedef void (*leat_reduce_add)(void *y, const void *x, int64_t rows, int64_t ld, int64_t k);

leat_reduce_fn leat_reduce_find(leat_reducer op, leat_dtype t); /* NULL if there is none */
leat_reduce_add leat_reduce_add_find(leat_reducer op, leat_dtype t);

/* Reduces x (outer, along, inner) to y (outer, inner), on this device's threads. */
leat_status leat_reduce_pass(leat_kernel *k, leat_reduce_fn fn, leat_dtype t, const void *x,
                             int64_t outer, int64_t along, int64_t inner, void *y) LEAT_MUST_CHECK;

#endif
