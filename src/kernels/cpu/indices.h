/* indices.h -- which rows Gather, OneHot and scatters speak of: the checks of their inputs' shapes,
 * the same for all kinds of devices. Values of indices are not looked at. */
#ifndef LEAT_CPU_INDICES_H
#define LEAT_CPU_INDICES_H

#include "kernels/cpu/cpu.h"

/* params are (batch, outer, dim, inner), indices (batch, picks), and the output, whose shape is
 * `shape`, is (batch, outer, picks, inner). */
typedef struct leat_gather_dims {
    int64_t batch, outer, dim, picks, inner;
    leat_shape shape;
} leat_gather_dims;
/* Inputs 1 and 2 of the kernel are indices and, if there is one, the axis. after_batch: the axis is
 * the first one after batch_dims dimensions. */
leat_status leat_gather_read(leat_kernel *k, const leat_shape *params, bool after_batch,
                             int64_t batch_dims, leat_gather_dims *out) LEAT_MUST_CHECK;

/* indices are (before, after), the output is (before, depth, after). */
typedef struct leat_one_hot_dims {
    int64_t before, depth, after;
    leat_shape shape;
} leat_one_hot_dims;
leat_status leat_one_hot_read(leat_kernel *k, int64_t axis,
                              leat_one_hot_dims *out) LEAT_MUST_CHECK;

/* Whether rows of `params` can be updated: updates.shape = indices.shape + params.shape[1:], or a
 * scalar. */
leat_status leat_scatter_check(const leat_shape *params, const leat_shape *indices,
                               const leat_shape *updates) LEAT_MUST_CHECK;

#endif
