/* conv.c -- Conv2D and Conv3D: the matrix of patches times the filter (conv.h), group by group. */
#include "kernels/cpu/conv.h"
#include "kernels/cpu/move.h"

static leat_status conv(leat_kernel *k)
{
    const leat_conv_attrs *a = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *w = leat_kernel_in(k, 1);
    leat_tensor *y;
    leat_conv c;
    leat_loop_stop stop;
    const leat_gemm_epilogue e = {.stop = leat_kernel_stop(k, &stop)};
    LEAT_TRY(leat_conv_place(a, &x->shape, &w->shape, &c));
    const leat_shape shape = leat_conv_shape(a, c.batch, c.out, c.out_depth);
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!y->count)
        return NULL;
    if (!x->count) { /* the windows lie over padding alone */
        leat_move_zero(k, y);
        return NULL;
    }
    const void *images;
    void *out;
    LEAT_TRY(leat_conv_channels_last(k, a, x, &images));
    LEAT_TRY(leat_conv_out_begin(k, a, y, &out));
    const size_t size = leat_dtype_size(y->dtype);
    const int64_t channels = c.in_depth / c.groups, units = c.out_depth / c.groups;
    for (int64_t g = 0; g < c.groups; g++) {
        const leat_conv_patches p = {.c = &c,
                                     .dtype = y->dtype,
                                     .x = (const char *)images + (size_t)(g * channels) * size,
                                     .depth = c.in_depth,
                                     .channels = channels};
        LEAT_TRY(leat_conv_multiply(k, leat_kernel_device(k)->intra, LEAT_GEMM_N,
                                    c.batch * leat_conv_volume(c.out), units,
                                    leat_conv_volume(c.window) * channels, &p,
                                    (const char *)w->data + (size_t)(g * units) * size, c.out_depth,
                                    (char *)out + (size_t)(g * units) * size, c.out_depth, &e));
    }
    return leat_conv_out_end(k, a, y, out);
}

#define KERNEL(name)                                                                               \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_ROW_FLOAT}}, .run = conv,                                 \
        .state_size = sizeof(leat_conv_attrs), .init = leat_conv_init,                             \
        .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_EXPENSIVE                                     \
    }

const leat_kernel_def leat_cpu_conv[] = {
    KERNEL("Conv2D"),
    KERNEL("Conv3D"),
    {0},
};
