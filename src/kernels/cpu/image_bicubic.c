/* image_bicubic.c -- ResizeBicubic, ResizeBicubicGrad: cubic convolution (Keys, 1981) of four by
 * four pixels. Weights are taken from a table of 1024 steps, as in TensorFlow.
 *
 * The four input rows of an output row are weighted first, for all input columns that a block of
 * output columns needs; then the four columns. */
#include "kernels/cpu/image_resize.h"

enum { STEPS = 1024, BLOCK = 4096 }; /* BLOCK: elements of weighted input rows at a time */

typedef struct taps {
    float weight[4];
    int32_t index[4];
} taps;

typedef struct bicubic {
    leat_resize r;
    const taps *columns, *rows;
} bicubic;

/* The weights at distance step / STEPS and at that distance plus 1. */
static float near_weight(double a, int64_t step)
{
    const float x = (float)((double)step / STEPS);
    return (float)(((a + 2) * x - (a + 3)) * x * x + 1);
}

static float far_weight(double a, int64_t step)
{
    float x = (float)((double)step / STEPS);
    x = (float)(x + 1.0);
    return (float)(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

static taps taps_at(const leat_resize *r, int64_t i, int64_t in, float scale)
{
    const float at = leat_resize_at(r, i, scale);
    const int64_t first = (int64_t)floorf(at);
    const int64_t step = lrintf((at - (float)first) * STEPS);
    const double a = r->half ? -0.5 : -0.75;
    taps t = {.weight = {far_weight(a, step), near_weight(a, step), near_weight(a, STEPS - step),
                         far_weight(a, STEPS - step)}};
    for (int j = 0; j < 4; j++) {
        t.index[j] = (int32_t)leat_resize_bound(first - 1 + j, in);
        if (r->half && t.index[j] != first - 1 + j)
            t.weight[j] = 0; /* outside: the other weights are scaled so that their sum is 1 */
    }
    const float sum = t.weight[0] + t.weight[1] + t.weight[2] + t.weight[3];
    if (r->half && fabsf(sum) >= 1000.0f * 1.17549435e-38f) {
        const float one_over_sum = 1.0f / sum;
        for (int j = 0; j < 4; j++)
            t.weight[j] *= one_over_sum;
    }
    return t;
}

static leat_status find_taps(leat_kernel *k, const leat_resize *r, int64_t in, int64_t out,
                             float scale, const taps **all)
{
    taps *v;
    LEAT_TRY(leat_resize_temp(k, out, sizeof(*v), &v));
    for (int64_t i = 0; i < out; i++)
        v[i] = taps_at(r, i, in, scale);
    *all = v;
    return NULL;
}

static leat_status find_all(leat_kernel *k, bicubic *b)
{
    const leat_resize *r = &b->r;
    LEAT_TRY(find_taps(k, r, r->in_width, r->out_width, r->width_scale, &b->columns));
    return find_taps(k, r, r->in_height, r->out_height, r->height_scale, &b->rows);
}

/* The end of the block of output columns that begins at x0: those whose input columns fit into
 * BLOCK elements, one at least. */
static int64_t block_end(const bicubic *b, int64_t x0, int64_t channels)
{
    int64_t x1 = x0 + 1;
    while (x1 < b->r.out_width &&
           (b->columns[x1].index[3] - b->columns[x0].index[0] + 1) * channels <= BLOCK)
        x1++;
    return x1;
}

/* Columns [x0, x1) and channels [c0, c1) of output row i. */
#define BLOCK_OF(dtype, T)                                                                         \
    static void block_##T(const bicubic *b, int64_t i, int64_t x0, int64_t x1, int64_t c0,         \
                          int64_t c1)                                                              \
    {                                                                                              \
        const leat_resize *r = &b->r;                                                              \
        const int64_t channels = r->channels, width = r->in_width * channels, n = c1 - c0;         \
        const taps v = b->rows[i % r->out_height];                                                 \
        const int64_t first = b->columns[x0].index[0], last = b->columns[x1 - 1].index[3];         \
        const T *image =                                                                           \
            AT(const T, r->x) + i / r->out_height * r->in_height * width + first * channels + c0;  \
        const T *p0 = image + v.index[0] * width, *p1 = image + v.index[1] * width;                \
        const T *p2 = image + v.index[2] * width, *p3 = image + v.index[3] * width;                \
        float down[BLOCK];                                                                         \
        const int64_t runs = n == channels ? 1 : last - first + 1;                                 \
        const int64_t length = n == channels ? (last - first + 1) * n : n;                         \
        for (int64_t e = 0; e < runs; e++) {                                                       \
            float *to = down + e * n;                                                              \
            const int64_t o = e * channels;                                                        \
            LEAT_SIMD                                                                              \
            for (int64_t j = 0; j < length; j++)                                                   \
                to[j] = (float)p0[o + j] * v.weight[0] + (float)p1[o + j] * v.weight[1] +          \
                        (float)p2[o + j] * v.weight[2] + (float)p3[o + j] * v.weight[3];           \
        }                                                                                          \
        float *y = AT(float, r->y) + (i * r->out_width + x0) * channels + c0;                      \
        for (int64_t x = x0; x < x1; x++, y += channels) {                                         \
            const taps h = b->columns[x];                                                          \
            const float *d0 = down + (h.index[0] - first) * n,                                     \
                        *d1 = down + (h.index[1] - first) * n;                                     \
            const float *d2 = down + (h.index[2] - first) * n,                                     \
                        *d3 = down + (h.index[3] - first) * n;                                     \
            for (int64_t c = 0; c < n; c++)                                                        \
                y[c] = d0[c] * h.weight[0] + d1[c] * h.weight[1] + d2[c] * h.weight[2] +           \
                       d3[c] * h.weight[3];                                                        \
        }                                                                                          \
    }
LEAT_X_IMAGE(BLOCK_OF)

static void bicubic_part(void *arg, int64_t begin, int64_t end)
{
    const bicubic *b = arg;
    enum { CHANNELS = BLOCK / 4 }; /* four columns fit into BLOCK */
    for (int64_t i = begin; i < end; i++)
        for (int64_t c0 = 0; c0 < b->r.channels; c0 += CHANNELS) {
            const int64_t left = b->r.channels - c0, n = left < CHANNELS ? left : CHANNELS;
            for (int64_t x0 = 0, x1; x0 < b->r.out_width; x0 = x1) {
                x1 = block_end(b, x0, n);
                switch (b->r.x->dtype) {
#define CASE(dtype, T)                                                                             \
    case LEAT_##dtype:                                                                             \
        block_##T(b, i, x0, x1, c0, c0 + n);                                                       \
        break;
                    LEAT_X_IMAGE(CASE)
                default:
                    break;
                }
            }
        }
}

static leat_status bicubic_run(leat_kernel *k)
{
    bicubic b = {0};
    LEAT_TRY(leat_resize_begin(k, &b.r));
    if (b.r.y->count == 0)
        return NULL;
    LEAT_TRY(find_all(k, &b));
    leat_kernel_for(k, b.r.batch * b.r.out_height, 4 * (double)(b.r.out_width * b.r.channels),
                    bicubic_part, &b);
    return NULL;
}

/* The gradient: dy is added to the sixteen pixels that each output pixel came from. */
#define SPREAD(dtype, T)                                                                           \
    static void spread_##T(void *arg, int64_t begin, int64_t end)                                  \
    {                                                                                              \
        const bicubic *b = arg;                                                                    \
        const leat_resize *r = &b->r;                                                              \
        const int64_t channels = r->channels, row = r->in_width * channels;                        \
        const float *dy = AT(const float, r->x) + begin * r->out_height * r->out_width * channels; \
        for (int64_t i = begin; i < end; i++) {                                                    \
            T *image = AT(T, r->y) + i * r->in_height * row;                                       \
            for (int64_t y = 0; y < r->out_height; y++)                                            \
                for (int64_t x = 0; x < r->out_width; x++, dy += channels) {                       \
                    const taps v = b->rows[y], h = b->columns[x];                                  \
                    for (int j = 0; j < 4; j++)                                                    \
                        for (int l = 0; l < 4; l++) {                                              \
                            T *to = image + v.index[j] * row + h.index[l] * channels;              \
                            for (int64_t c = 0; c < channels; c++)                                 \
                                to[c] += (T)dy[c] * v.weight[j] * h.weight[l];                     \
                        }                                                                          \
                }                                                                                  \
        }                                                                                          \
    }
LEAT_X_FLOAT(SPREAD)

static leat_status bicubic_grad_run(leat_kernel *k)
{
    bicubic b = {0};
    LEAT_TRY(leat_resize_begin_grad(k, &b.r));
    if (b.r.y->count == 0)
        return NULL;
    LEAT_TRY(find_all(k, &b));
    leat_kernel_for(k, b.r.batch, 16 * (double)b.r.x->count / (double)b.r.batch,
                    b.r.y->dtype == LEAT_DOUBLE ? spread_double : spread_float, &b);
    return NULL;
}

const leat_kernel_def leat_cpu_image_bicubic[] = {
    {.op = "ResizeBicubic",
     .where = {{"T", LEAT_TYPES_IMAGE}},
     .run = bicubic_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "ResizeBicubicGrad", .where = {{"T", LEAT_ROW_FLOAT}}, .run = bicubic_grad_run},
    {0},
};
