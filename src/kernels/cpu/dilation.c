/* dilation.c -- Dilation2D, Dilation2DBackpropInput, Dilation2DBackpropFilter. */
#include <float.h>
#include <inttypes.h>

#include "kernels/cpu/arith.h"

enum { BLOCK = 64 }; /* channels that are computed at a time */

typedef enum goal { FORWARD, TO_INPUT, TO_FILTER } goal;

typedef struct dilation {
    leat_kernel *k;
    goal goal;
    const leat_tensor *x, *filter, *dy;
    leat_tensor *out;
    int64_t in[2], size[2], y[2], stride[2], rate[2], before[2]; /* rows and columns */
    int64_t channels;
} dilation;

/* One block of n channels, at output pixel (at[0], at[1]) of an image. Of equal sums the first
 * counts. Where no element of the filter is over the image, the result is the lowest value, and the
 * gradient goes to the first pixel of the window. */
#define BLOCK_OF(T, LOWEST)                                                                        \
    static void block_##T(const dilation *a, const int64_t at[2], const T *x, const T *filter,     \
                          int n, T *y, T *dx)                                                      \
    {                                                                                              \
        const int64_t ch = a->channels;                                                            \
        const int64_t top = at[0] * a->stride[0] - a->before[0];                                   \
        const int64_t left = at[1] * a->stride[1] - a->before[1];                                  \
        T most[BLOCK];                                                                             \
        int64_t to[BLOCK];                                                                         \
        const int64_t first = (top < 0 ? 0 : top) * a->in[1] + (left < 0 ? 0 : left);              \
        for (int i = 0; i < n; i++) {                                                              \
            most[i] = LOWEST;                                                                      \
            to[i] = a->goal == TO_INPUT ? first : 0;                                               \
        }                                                                                          \
        for (int64_t h = 0; h < a->size[0]; h++) {                                                 \
            const int64_t row = top + h * a->rate[0];                                              \
            for (int64_t w = 0; row >= 0 && row < a->in[0] && w < a->size[1]; w++) {               \
                const int64_t column = left + w * a->rate[1];                                      \
                if (column < 0 || column >= a->in[1])                                              \
                    continue;                                                                      \
                const int64_t pixel = row * a->in[1] + column, tap = h * a->size[1] + w;           \
                const int64_t place = a->goal == TO_INPUT ? pixel : tap;                           \
                for (int i = 0; i < n; i++) {                                                      \
                    const T v =                                                                    \
                        (T)((LEAT_WIDE(T))x[pixel * ch + i] + (LEAT_WIDE(T))filter[tap * ch + i]); \
                    to[i] = most[i] < v ? place : to[i];                                           \
                    most[i] = most[i] < v ? v : most[i];                                           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < n; i++)                                                                \
            if (a->goal == FORWARD)                                                                \
                y[i] = most[i];                                                                    \
            else                                                                                   \
                dx[to[i] * ch + i] = (T)((LEAT_WIDE(T))dx[to[i] * ch + i] + (LEAT_WIDE(T))y[i]);   \
    }                                                                                              \
    /* Images [begin, end); y is the result, or dy. */                                             \
    static void images_##T(void *arg, int64_t begin, int64_t end)                                  \
    {                                                                                              \
        const dilation *a = arg;                                                                   \
        const int64_t ch = a->channels, size = a->in[0] * a->in[1] * ch;                           \
        const leat_tensor *small = a->goal == FORWARD ? a->out : a->dy;                            \
        const int64_t elements = a->size[0] * a->size[1] * ch;                                     \
        leat_look look = leat_look_begin(a->k);                                                    \
        T *y = (T *)small->data + begin * a->y[0] * a->y[1] * ch;                                  \
        for (int64_t image = begin; image < end; image++) {                                        \
            const T *x = AT(const T, a->x) + image * size;                                         \
            T *dx = AT(T, a->out) + (a->goal == TO_INPUT ? image * size : 0);                      \
            int64_t at[2];                                                                         \
            for (at[0] = 0; at[0] < a->y[0]; at[0]++)                                              \
                for (at[1] = 0; at[1] < a->y[1]; at[1]++, y += ch) {                               \
                    if (leat_look_over(&look, elements))                                           \
                        return;                                                                    \
                    for (int64_t c = 0; c < ch; c += BLOCK)                                        \
                        block_##T(a, at, x + c, AT(const T, a->filter) + c,                        \
                                  ch - c < BLOCK ? (int)(ch - c) : BLOCK, y + c, dx + c);          \
                }                                                                                  \
        }                                                                                          \
    }
BLOCK_OF(float, -FLT_MAX)
BLOCK_OF(double, -DBL_MAX)
BLOCK_OF(int8_t, INT8_MIN)
BLOCK_OF(int16_t, INT16_MIN)
BLOCK_OF(int32_t, INT32_MIN)
BLOCK_OF(int64_t, INT64_MIN)
BLOCK_OF(uint8_t, 0)
BLOCK_OF(uint16_t, 0)
BLOCK_OF(uint32_t, 0)
BLOCK_OF(uint64_t, 0)

static leat_status read_spatial(leat_kernel *k, const char *name, const char *what, int64_t out[2])
{
    int n;
    const int64_t *v = leat_node_ints(leat_kernel_node(k), name, &n);
    LEAT_REQUIRE(n == 4, INVALID_ARGUMENT, "%s field must specify 4 dimensions", what);
    LEAT_REQUIRE(v[0] == 1 && v[3] == 1, UNIMPLEMENTED,
                 "%s is only supported across spatial dimensions.", what);
    for (int i = 0; i < 2; i++) {
        LEAT_REQUIRE(v[1 + i] >= 1 && v[1 + i] <= INT32_MAX, INVALID_ARGUMENT,
                     "%s must be > 0 and an int32, but got %" PRId64, what, v[1 + i]);
        out[i] = v[1 + i];
    }
    return NULL;
}

static leat_status read_sizes(leat_kernel *k, dilation *a)
{
    const leat_shape *x = &a->x->shape, *f = &a->filter->shape;
    const bool same = strcmp(leat_node_string(leat_kernel_node(k), "padding"), "SAME") == 0;
    LEAT_TRY(read_spatial(k, "strides", "Stride", a->stride));
    LEAT_TRY(read_spatial(k, "rates", "Rate", a->rate));
    LEAT_REQUIRE(x->rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(x).s);
    LEAT_REQUIRE(f->rank == 3, INVALID_ARGUMENT, "filter must be 3-dimensional: %s",
                 leat_shape_show(f).s);
    LEAT_REQUIRE(x->dim[3] == f->dim[2], INVALID_ARGUMENT,
                 "input and filter must have the same depth: %" PRId64 " vs %" PRId64, x->dim[3],
                 f->dim[2]);
    a->channels = x->dim[3];
    for (int i = 0; i < 2; i++) {
        int64_t span;
        a->in[i] = x->dim[1 + i];
        a->size[i] = f->dim[i];
        LEAT_REQUIRE(a->size[i] > 0, INVALID_ARGUMENT, "filter must not be empty: %s",
                     leat_shape_show(f).s);
        LEAT_REQUIRE(leat_mul_ok(a->size[i] - 1, a->rate[i], &span) && span < INT32_MAX,
                     INVALID_ARGUMENT, "rates of %" PRId64 " are too large", a->rate[i]);
        span++;
        a->y[i] =
            (same ? a->in[i] + a->stride[i] - 1 : a->in[i] - span + a->stride[i]) / a->stride[i];
        const int64_t need = (a->y[i] - 1) * a->stride[i] + span - a->in[i];
        a->before[i] = same && need > 0 ? need / 2 : 0;
        LEAT_REQUIRE(a->y[i] >= 0 && (same || a->in[i] >= span), INVALID_ARGUMENT,
                     "Computed output size would be negative: %" PRId64 " [input_size: %" PRId64
                     ", effective_filter_size: %" PRId64 ", stride: %" PRId64 "]",
                     a->y[i], a->in[i], span, a->stride[i]);
    }
    return NULL;
}

static leat_status run(leat_kernel *k, goal goal)
{
    static void (*const images[])(void *, int64_t, int64_t) = {
#define ENTRY(name, dtype, T) [LEAT_##dtype] = name##_##T,
        LEAT_Y_REAL(ENTRY, images)};
    dilation a = {.k = k, .goal = goal, .x = leat_kernel_in(k, 0), .filter = leat_kernel_in(k, 1)};
    LEAT_TRY(read_sizes(k, &a));
    const int64_t batch = a.x->shape.dim[0];
    const leat_shape y = leat_shape(batch, a.y[0], a.y[1], a.channels);
    if (goal != FORWARD) {
        a.dy = leat_kernel_in(k, 2);
        LEAT_REQUIRE(leat_shape_equal(&a.dy->shape, &y), INVALID_ARGUMENT,
                     "out_backprop has incompatible size.");
    }
    LEAT_TRY(leat_kernel_out(k, 0,
                             goal == FORWARD    ? &y
                             : goal == TO_INPUT ? &a.x->shape
                                                : &a.filter->shape,
                             &a.out));
    if (goal != FORWARD && a.out->count > 0)
        memset(a.out->data, 0, (size_t)a.out->count * leat_dtype_size(a.out->dtype));
    if (a.out->count == 0 || a.x->count == 0)
        return NULL;
    const double ns = (double)(a.y[0] * a.y[1] * a.size[0] * a.size[1] * a.channels);
    if (goal == TO_FILTER) /* all images add to one filter */
        images[a.x->dtype](&a, 0, batch);
    else
        leat_kernel_for(k, batch, ns, images[a.x->dtype], &a);
    return NULL;
}

static leat_status forward_run(leat_kernel *k)
{
    return run(k, FORWARD);
}

static leat_status input_run(leat_kernel *k)
{
    return run(k, TO_INPUT);
}

static leat_status filter_run(leat_kernel *k)
{
    return run(k, TO_FILTER);
}

#define KERNEL(op_, fn)                                                                            \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_REAL}}, .run = fn, .flags = LEAT_KERNEL_VIA_FLOAT      \
    }

const leat_kernel_def leat_cpu_dilation[] = {
    KERNEL("Dilation2D", forward_run),
    KERNEL("Dilation2DBackpropInput", input_run),
    KERNEL("Dilation2DBackpropFilter", filter_run),
    {0},
};
