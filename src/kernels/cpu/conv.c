/* conv.c -- Conv2D, _FusedConv2D and Conv3D: the matrix of patches times the filter (conv.h), group
 * by group. */
#include "kernels/cpu/conv_minimal.h"
#include "kernels/cpu/conv_thin.h"
#include "kernels/cpu/fused_end.h"
#include "kernels/cpu/move.h"

typedef struct conv_state {
    leat_conv_attrs attrs;
    leat_fused_end end;
} conv_state;

static leat_status plain_init(const leat_node *n, void *state)
{
    conv_state *s = state;
    s->end = (leat_fused_end){0};
    return leat_conv_init(n, &s->attrs);
}

static leat_status fused_init(const leat_node *n, void *state)
{
    conv_state *s = state;
    LEAT_TRY(leat_fused_end_init(n, &s->end));
    LEAT_TRY(leat_conv_init(n, &s->attrs));
    LEAT_REQUIRE(!s->attrs.channels_first, UNIMPLEMENTED,
                 "_FusedConv2D: data_format is NCHW, and the CPU's kernel is for NHWC");
    return NULL;
}

static leat_status conv(leat_kernel *k)
{
    const conv_state *s = leat_kernel_state(k);
    const leat_conv_attrs *a = &s->attrs;
    const leat_tensor *x = leat_kernel_in(k, 0), *w = leat_kernel_in(k, 1);
    leat_tensor *y;
    leat_conv c;
    leat_loop_stop stop;
    leat_gemm_epilogue e = {.stop = leat_kernel_stop(k, &stop)};
    LEAT_TRY(leat_conv_place(a, &x->shape, &w->shape, &c));
    const leat_shape shape = leat_conv_shape(a, c.batch, c.out, c.out_depth);
    LEAT_TRY(leat_fused_end_use(k, &s->end, &shape, &e));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!y->count)
        return NULL;
    leat_pool *pool = leat_kernel_device(k)->intra;
    const int64_t pixels = c.batch * leat_conv_volume(c.out);
    if (!x->count) { /* the windows lie over padding alone */
        if (s->end.bias)
            leat_gemm(y->dtype, pool, LEAT_GEMM_N, LEAT_GEMM_N, pixels, c.out_depth, 0, NULL, 0,
                      NULL, c.out_depth, y->data, c.out_depth, &e);
        else
            LEAT_TRY(leat_move_zero(k, y));
        return NULL;
    }
    const void *images;
    void *out;
    LEAT_TRY(leat_conv_channels_last(k, a, x, &images));
    LEAT_TRY(leat_conv_out_begin(k, a, y, &out));
    const size_t size = leat_dtype_size(y->dtype);
    const int64_t channels = c.in_depth / c.groups, units = c.out_depth / c.groups;
    const char *bias = e.bias;
    const bool minimal = leat_conv_minimal_fits(&c, y->dtype);
    if (minimal || leat_conv_thin_fits(&c, y->dtype)) {
        LEAT_TRY((minimal ? leat_conv_minimal : leat_conv_thin)(k, &c, images, w->data, out, &e));
        return leat_conv_out_end(k, a, y, out);
    }
    for (int64_t g = 0; g < c.groups; g++) {
        const leat_conv_patches p = {.c = &c,
                                     .dtype = y->dtype,
                                     .x = (const char *)images + (size_t)(g * channels) * size,
                                     .depth = c.in_depth,
                                     .channels = channels};
        e.bias = bias ? bias + (size_t)(g * units) * size : NULL;
        LEAT_TRY(leat_conv_multiply(k, pool, LEAT_GEMM_N, pixels, units,
                                    leat_conv_volume(c.window) * channels, &p,
                                    (const char *)w->data + (size_t)(g * units) * size, c.out_depth,
                                    (char *)out + (size_t)(g * units) * size, c.out_depth, &e));
    }
    return leat_conv_out_end(k, a, y, out);
}

#define KERNEL(name)                                                                               \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_ROW_FLOAT}}, .run = conv,                                 \
        .state_size = sizeof(conv_state), .init = plain_init,                                      \
        .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_EXPENSIVE                                     \
    }

const leat_kernel_def leat_cpu_conv[] = {
    KERNEL("Conv2D"),
    {.op = "_FusedConv2D",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = conv,
     .state_size = sizeof(conv_state),
     .init = fused_init,
     .flags = LEAT_KERNEL_EXPENSIVE},
    KERNEL("Conv3D"),
    {0},
};
