/* conv_images.c -- images whose channels come first: transposed before and after a convolution. */
#include "kernels/cpu/conv.h"
#include "kernels/cpu/move.h"

/* (batch, outer, inner) becomes (batch, inner, outer). */
static leat_status cross(leat_kernel *k, leat_dtype t, int64_t batch, int64_t outer, int64_t inner,
                         void *to, const void *from)
{
    leat_move m;
    leat_move_begin(&m);
    leat_move_dim(&m, batch, outer * inner, outer * inner);
    leat_move_dim(&m, inner, outer, 1);
    leat_move_dim(&m, outer, 1, inner);
    return m.empty ? NULL : leat_move_run(k, &m, t, to, from);
}

leat_status leat_conv_channels_last(leat_kernel *k, const leat_conv_attrs *a, const leat_tensor *t,
                                    const void **data)
{
    *data = t->data;
    if (!a->channels_first || !t->count)
        return NULL;
    leat_tensor *copy;
    const int64_t batch = t->shape.dim[0], depth = t->shape.dim[1];
    LEAT_TRY(leat_kernel_temp(k, t->dtype, &t->shape, &copy));
    *data = copy->data;
    return cross(k, t->dtype, batch, depth, t->count / batch / depth, copy->data, t->data);
}

leat_status leat_conv_out_begin(leat_kernel *k, const leat_conv_attrs *a, leat_tensor *t,
                                void **data)
{
    *data = t->data;
    if (!a->channels_first || !t->count)
        return NULL;
    leat_tensor *copy;
    LEAT_TRY(leat_kernel_temp(k, t->dtype, &t->shape, &copy));
    *data = copy->data;
    return NULL;
}

leat_status leat_conv_out_end(leat_kernel *k, const leat_conv_attrs *a, leat_tensor *t,
                              const void *data)
{
    if (data == t->data || !t->count)
        return NULL;
    const int64_t batch = t->shape.dim[0], depth = t->shape.dim[1];
    return cross(k, t->dtype, batch, t->count / batch / depth, depth, t->data, data);
}
