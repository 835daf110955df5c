/* image_util.h -- what the shape functions of ops on images share. */
#ifndef LEAT_OPS_IMAGE_UTIL_H
#define LEAT_OPS_IMAGE_UTIL_H

#include <leat/ops.h>

#include "ops/infer_util.h"

/* A dimension that must have this size, if it is known. */
static inline leat_status leat_dim_is(int64_t dim, int64_t size)
{
    LEAT_REQUIRE(dim < 0 || dim == size, INVALID_ARGUMENT,
                 "Dimension must be %" PRId64 " but is %" PRId64, size, dim);
    return NULL;
}

/* Inputs [from, to) are scalars. */
static inline leat_status leat_infer_scalars(leat_infer *c, int from, int to)
{
    leat_shape unused;
    for (int i = from; i < to; i++)
        LEAT_TRY(leat_infer_rank(c, i, 0, &unused));
    return NULL;
}

/* Height and width from input i, a vector of two integers; -1 where they are not known. */
static inline leat_status leat_infer_image_size(leat_infer *c, int i, int64_t size[2])
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, i, 1, &s));
    LEAT_TRY(leat_dim_is(s.dim[0], 2));
    const leat_tensor *t = leat_infer_value(c, i);
    for (int d = 0; d < 2; d++) {
        size[d] = t ? leat_int_at(t, d) : -1;
        if (size[d] < 0)
            size[d] = -1;
    }
    return NULL;
}

/* Output 0 is (batch, height, width, channels), with height and width from input `size`. */
static inline leat_status leat_infer_sized_image(leat_infer *c, int64_t batch, int size,
                                                 int64_t channels)
{
    int64_t s[2];
    LEAT_TRY(leat_infer_image_size(c, size, s));
    leat_infer_out(c, 0, leat_shape(batch, s[0], s[1], channels));
    return NULL;
}

#endif
