/* batch_norm_place.c -- see kernels/cpu/batch_norm.h. */
#include "kernels/cpu/batch_norm.h"

#include <inttypes.h>
#include <string.h>

leat_status leat_batch_norm_read(leat_kernel *k, int in, leat_batch_norm_dims *out)
{
    const leat_shape *s = &leat_kernel_in(k, in)->shape;
    const bool first = strcmp(leat_node_string(leat_kernel_node(k), "data_format"), "NCHW") == 0;
    LEAT_REQUIRE(s->rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(s).s);
    *out = first ? (leat_batch_norm_dims){s->dim[0], s->dim[1], s->dim[2] * s->dim[3]}
                 : (leat_batch_norm_dims){s->dim[0] * s->dim[1] * s->dim[2], s->dim[3], 1};
    return NULL;
}

leat_status leat_batch_norm_vector(leat_kernel *k, int i, const char *name, int64_t channels)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "%s must be 1-dimensional%s", name,
                 leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(t->count == channels, INVALID_ARGUMENT,
                 "%s must have the same number of elements as the channels of x, got %" PRId64
                 " and %" PRId64,
                 name, t->count, channels);
    return NULL;
}

leat_status leat_batch_norm_same(const leat_tensor *x, const leat_tensor *dy)
{
    LEAT_REQUIRE(leat_shape_equal(&x->shape, &dy->shape), INVALID_ARGUMENT,
                 "x and y_backprop must have same shape, but x has shape %s and y_backprop has "
                 "shape %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&dy->shape).s);
    return NULL;
}
