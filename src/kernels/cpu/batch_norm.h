/* batch_norm.h -- what the kernels of FusedBatchNorm share on all kinds of devices: sizes and
 * checks (any/batch_norm_place.c). */
#ifndef LEAT_KERNELS_CPU_BATCH_NORM_H
#define LEAT_KERNELS_CPU_BATCH_NORM_H

#include "runtime/kernel_int.h"

/* x is (outer, channels, inner): NHWC has inner = 1, NCHW has outer = batch. */
typedef struct leat_batch_norm_dims {
    int64_t outer, channels, inner;
} leat_batch_norm_dims;
/* Of input `in`, by the node's data_format. */
leat_status leat_batch_norm_read(leat_kernel *k, int in, leat_batch_norm_dims *out) LEAT_MUST_CHECK;
/* Checks that input i, which `name` names, has an element for each channel. */
leat_status leat_batch_norm_vector(leat_kernel *k, int i, const char *name,
                                   int64_t channels) LEAT_MUST_CHECK;
/* Checks that a gradient has the shape of x. */
leat_status leat_batch_norm_same(const leat_tensor *x, const leat_tensor *dy) LEAT_MUST_CHECK;

#endif
