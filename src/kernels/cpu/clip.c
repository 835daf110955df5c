/* clip.c -- ClipByValue: bounds of t's shape, or scalars. */
#include "kernels/cpu/arith.h"

typedef struct clip_args {
    const leat_tensor *x, *low, *high;
    leat_tensor *y;
} clip_args;

#define CLIP(name, dtype, T)                                                                       \
    static void clip_##T(const clip_args *c, int64_t begin, int64_t end)                           \
    {                                                                                              \
        const T *x = AT(T, c->x), *low = AT(T, c->low), *high = AT(T, c->high);                    \
        T *y = AT(T, c->y);                                                                        \
        const int64_t sl = c->low->shape.rank > 0, sh = c->high->shape.rank > 0;                   \
        if (!sl && !sh) {                                                                          \
            const T l = *low, h = *high;                                                           \
            LEAT_SIMD                                                                              \
            for (int64_t i = begin; i < end; i++) {                                                \
                const T v = h < x[i] ? h : x[i];                                                   \
                y[i] = v < l ? l : v;                                                              \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T l = low[i * sl], h = high[i * sh], v = h < x[i] ? h : x[i];                    \
            y[i] = v < l ? l : v;                                                                  \
        }                                                                                          \
    }
LEAT_Y_REAL(CLIP, )

#define CLIP_CASE(name, dtype, T)                                                                  \
    case LEAT_##dtype:                                                                             \
        clip_##T(arg, begin, end);                                                                 \
        break;

static void part(void *arg, int64_t begin, int64_t end)
{
    switch (((clip_args *)arg)->x->dtype) {
        LEAT_Y_REAL(CLIP_CASE, )
    default:
        break;
    }
}

static leat_status clip(leat_kernel *k)
{
    clip_args c = {leat_kernel_in(k, 0), leat_kernel_in(k, 1), leat_kernel_in(k, 2), NULL};
    const leat_shape *x = &c.x->shape, *low = &c.low->shape, *high = &c.high->shape;
    LEAT_REQUIRE((low->rank == 0 || leat_shape_equal(x, low)) &&
                     (high->rank == 0 || leat_shape_equal(x, high)),
                 INVALID_ARGUMENT,
                 "clip_value_min and clip_value_max must be either of the same shape as input, or "
                 "a scalar. input shape: %sclip_value_min shape: %sclip_value_max shape: %s",
                 leat_shape_show(x).s, leat_shape_show(low).s, leat_shape_show(high).s);
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, x, &c.y));
    leat_kernel_for(k, c.x->count, 0.3, part, &c);
    return NULL;
}

const leat_kernel_def leat_cpu_clip[] = {
    {.op = "ClipByValue",
     .where = {{"T", LEAT_ROW_REAL}},
     .run = clip,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
