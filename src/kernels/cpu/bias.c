/* bias.c -- BiasAdd and BiasAddGrad: x is (outer, channels, inner), inner is 1 for NHWC. */
#include "kernels/cpu/arith.h"

typedef struct bias_args {
    const leat_tensor *x, *bias;
    leat_tensor *y;
    leat_tensor *sums; /* (parts, channels): of parts of the rows */
    int64_t outer, channels, inner;
    int64_t parts; /* by the sizes alone, so that threads do not change the sums */
} bias_args;

#define INLINE static inline __attribute__((always_inline))

enum {
    BLOCK = 64,       /* channels that are summed at a time, in registers */
    PART_ROWS = 1024, /* least rows of a part */
    MOST_PARTS = 32,
};

#define BIAS(dtype, T)                                                                             \
    static void add_##T(const bias_args *a, int64_t begin, int64_t end)                            \
    {                                                                                              \
        const T *bias = AT(T, a->bias);                                                            \
        for (int64_t o = begin; o < end; o++) {                                                    \
            const T *x = AT(T, a->x) + o * a->channels * a->inner;                                 \
            T *y = AT(T, a->y) + o * a->channels * a->inner;                                       \
            if (a->inner == 1) {                                                                   \
                LEAT_SIMD                                                                          \
                for (int64_t c = 0; c < a->channels; c++)                                          \
                    y[c] = (T)((LEAT_WIDE(T))x[c] + (LEAT_WIDE(T))bias[c]);                        \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t c = 0; c < a->channels; c++) {                                            \
                LEAT_SIMD                                                                          \
                for (int64_t i = c * a->inner; i < (c + 1) * a->inner; i++)                        \
                    y[i] = (T)((LEAT_WIDE(T))x[i] + (LEAT_WIDE(T))bias[c]);                        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Sums of some rows, each of `inner` elements for a channel, to y; `n` channels from c on. */ \
    INLINE void sum_block_##T(const bias_args *a, int64_t begin, int64_t end, int64_t c, int n,    \
                              T *y)                                                                \
    {                                                                                              \
        T sum[BLOCK] = {0};                                                                        \
        const T *x = AT(const T, a->x) + begin * a->channels + c;                                  \
        for (int64_t o = begin; o < end; o++, x += a->channels) {                                  \
            for (int i = 0; i < n; i++)                                                            \
                sum[i] = (T)((LEAT_WIDE(T))sum[i] + (LEAT_WIDE(T))x[i]);                           \
        }                                                                                          \
        memcpy(y + c, sum, (size_t)n * sizeof(T));                                                 \
    }                                                                                              \
    /* Channels last: the sums of parts [begin, end) of the rows. */                               \
    static void sum_rows_##T(const bias_args *a, int64_t begin, int64_t end)                       \
    {                                                                                              \
        for (int64_t p = begin; p < end; p++) {                                                    \
            const int64_t from = a->outer * p / a->parts, to = a->outer * (p + 1) / a->parts;      \
            T *y = AT(T, a->sums) + p * a->channels;                                               \
            int64_t c = 0;                                                                         \
            for (; c + BLOCK <= a->channels; c += BLOCK)                                           \
                sum_block_##T(a, from, to, c, BLOCK, y);                                           \
            if (c < a->channels)                                                                   \
                sum_block_##T(a, from, to, c, (int)(a->channels - c), y);                          \
        }                                                                                          \
    }                                                                                              \
    /* Channels first: sums of channels [begin, end). */                                           \
    static void sum_##T(const bias_args *a, int64_t begin, int64_t end)                            \
    {                                                                                              \
        T *restrict y = AT(T, a->y);                                                               \
        for (int64_t c = begin; c < end; c++)                                                      \
            y[c] = 0;                                                                              \
        for (int64_t o = 0; o < a->outer; o++) {                                                   \
            const T *restrict x = AT(T, a->x) + o * a->channels * a->inner;                        \
            for (int64_t c = begin; c < end; c++) {                                                \
                LEAT_WIDE(T) sum = (LEAT_WIDE(T))y[c];                                             \
                for (int64_t i = c * a->inner; i < (c + 1) * a->inner; i++)                        \
                    sum = (LEAT_WIDE(T))(sum + (LEAT_WIDE(T))x[i]);                                \
                y[c] = (T)sum;                                                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* The sum of all parts. */                                                                    \
    static void sum_parts_##T(const bias_args *a)                                                  \
    {                                                                                              \
        const T *from = AT(const T, a->sums);                                                      \
        T *restrict y = AT(T, a->y);                                                               \
        for (int64_t p = 0; p < a->parts; p++, from += a->channels)                                \
            for (int64_t c = 0; c < a->channels; c++)                                              \
                y[c] = (T)((LEAT_WIDE(T))(p ? y[c] : 0) + (LEAT_WIDE(T))from[c]);                  \
    }
LEAT_X_REAL(BIAS)

#define CASE_ADD(dtype, T)                                                                         \
    case LEAT_##dtype:                                                                             \
        add_##T(arg, begin, end);                                                                  \
        break;
#define CASE_SUM(dtype, T)                                                                         \
    case LEAT_##dtype:                                                                             \
        sum_##T(arg, begin, end);                                                                  \
        break;
#define CASE_SUM_ROWS(dtype, T)                                                                    \
    case LEAT_##dtype:                                                                             \
        sum_rows_##T(arg, begin, end);                                                             \
        break;
#define CASE_SUM_PARTS(dtype, T)                                                                   \
    case LEAT_##dtype:                                                                             \
        sum_parts_##T(a);                                                                          \
        break;

static void add_part(void *arg, int64_t begin, int64_t end)
{
    switch (((bias_args *)arg)->x->dtype) {
        LEAT_X_REAL(CASE_ADD)
    default:
        break;
    }
}

static void sum_part(void *arg, int64_t begin, int64_t end)
{
    switch (((bias_args *)arg)->x->dtype) {
        LEAT_X_REAL(CASE_SUM)
    default:
        break;
    }
}

static void sum_rows_part(void *arg, int64_t begin, int64_t end)
{
    switch (((bias_args *)arg)->x->dtype) {
        LEAT_X_REAL(CASE_SUM_ROWS)
    default:
        break;
    }
}

static void sum_parts(const bias_args *a)
{
    switch (a->x->dtype) {
        LEAT_X_REAL(CASE_SUM_PARTS)
    default:
        break;
    }
}

/* NCHW: dimension 1 is the channels; else the last one is. */
static leat_status split(leat_kernel *k, bias_args *a)
{
    const leat_shape *s = &a->x->shape;
    LEAT_REQUIRE(s->rank >= 2, INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                 leat_shape_show(s).s);
    bool nchw = strcmp(leat_node_string(leat_kernel_node(k), "data_format"), "NCHW") == 0;
    int channel = nchw ? 1 : s->rank - 1;
    a->outer = a->inner = 1;
    a->channels = s->dim[channel];
    for (int d = 0; d < channel; d++)
        a->outer *= s->dim[d];
    for (int d = channel + 1; d < s->rank; d++)
        a->inner *= s->dim[d];
    return NULL;
}

static leat_status bias_add(leat_kernel *k)
{
    bias_args a = {.x = leat_kernel_in(k, 0), .bias = leat_kernel_in(k, 1)};
    LEAT_TRY(split(k, &a));
    LEAT_REQUIRE(a.bias->shape.rank == 1, INVALID_ARGUMENT, "Biases must be 1D: %s",
                 leat_shape_show(&a.bias->shape).s);
    LEAT_REQUIRE(a.bias->count == a.channels, INVALID_ARGUMENT,
                 "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
                 leat_shape_show(&a.bias->shape).s, leat_shape_show(&a.x->shape).s);
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &a.x->shape, &a.y));
    if (a.x->count > 0)
        leat_kernel_for(k, a.outer, 0.2 * (double)(a.channels * a.inner), add_part, &a);
    return NULL;
}

static leat_status bias_add_grad(leat_kernel *k)
{
    bias_args a = {.x = leat_kernel_in(k, 0)};
    LEAT_TRY(split(k, &a));
    leat_shape s = {.rank = 1, .dim = {a.channels}};
    LEAT_TRY(leat_kernel_out(k, 0, &s, &a.y));
    if (a.inner != 1) {
        leat_kernel_for(k, a.channels, 1 + 0.15 * (double)a.outer * (double)a.inner, sum_part, &a);
        return NULL;
    }
    a.parts = a.outer / PART_ROWS < 1            ? 1
              : a.outer / PART_ROWS < MOST_PARTS ? a.outer / PART_ROWS
                                                 : MOST_PARTS;
    a.sums = a.y;
    if (a.parts > 1)
        LEAT_TRY(leat_kernel_temp(k, a.y->dtype, &(leat_shape){2, {a.parts, a.channels}}, &a.sums));
    leat_kernel_for(k, a.parts, 0.1 * (double)(a.outer / a.parts * a.channels), sum_rows_part, &a);
    if (a.parts > 1)
        sum_parts(&a);
    return NULL;
}

#define REAL (LEAT_TYPES_REAL & ~LEAT_TYPES_SMALL_FLOAT)
#define KERNEL(name, fn)                                                                           \
    {                                                                                              \
        .op = name, .where = {{"T", REAL}}, .run = fn, .flags = LEAT_KERNEL_VIA_FLOAT              \
    }

const leat_kernel_def leat_cpu_bias[] = {
    KERNEL("BiasAdd", bias_add),
    KERNEL("BiasAddV1", bias_add),
    KERNEL("BiasAddGrad", bias_add_grad),
    {0},
};
