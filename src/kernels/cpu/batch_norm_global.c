/* batch_norm_global.c -- BatchNormWithGlobalNormalization and its gradient: batch normalisation
 * with given statistics, over the last dimension of (batch, height, width, channels). */
#include <inttypes.h>

#include "kernels/cpu/arith.h"

typedef struct global {
    const leat_tensor *x, *dy;
    const void *mean;
    leat_tensor *out, *factor;
    const void *beta; /* of the forward op */
} global;

/* Vectors of the inputs [1, 4] or [1, 3] have an element for each channel. */
static leat_status check(leat_kernel *k, int vectors, const char *const *names)
{
    const leat_shape *x = &leat_kernel_in(k, 0)->shape;
    LEAT_REQUIRE(x->rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(x).s);
    for (int i = 1; i <= vectors; i++) {
        const leat_shape *s = &leat_kernel_in(k, i)->shape;
        LEAT_REQUIRE(s->rank == 1, INVALID_ARGUMENT, "%s must be 1-dimensional%s", names[i - 1],
                     leat_shape_show(s).s);
        LEAT_REQUIRE(s->dim[0] == x->dim[3], INVALID_ARGUMENT,
                     "%s must have an element for each of %" PRId64 " channels, got %" PRId64,
                     names[i - 1], x->dim[3], s->dim[0]);
    }
    return NULL;
}

#define GLOBAL(dtype, T)                                                                           \
    static void forward_##T(void *arg, int64_t begin, int64_t end)                                 \
    {                                                                                              \
        const global *g = arg;                                                                     \
        const int64_t channels = g->x->shape.dim[3];                                               \
        const T *mean = g->mean, *factor = AT(const T, g->factor), *beta = g->beta;                \
        for (int64_t r = begin; r < end; r++) {                                                    \
            const T *x = AT(const T, g->x) + r * channels;                                         \
            T *y = AT(T, g->out) + r * channels;                                                   \
            LEAT_SIMD                                                                              \
            for (int64_t c = 0; c < channels; c++)                                                 \
                y[c] = (x[c] - mean[c]) * factor[c] + beta[c];                                     \
        }                                                                                          \
    }                                                                                              \
    /* factor = 1 / sqrt(variance + epsilon), times gamma unless that is NULL. */                  \
    static void factors_##T(const T *variance, double epsilon, const T *gamma, int64_t n, T *f)    \
    {                                                                                              \
        for (int64_t c = 0; c < n; c++)                                                            \
            f[c] = (gamma ? gamma[c] : 1) / (T)sqrt((double)variance[c] + epsilon);                \
    }                                                                                              \
    static void backward_##T(const global *g, const T *variance, double epsilon, const T *gamma,   \
                             leat_tensor *const d[5])                                              \
    {                                                                                              \
        const int64_t channels = g->x->shape.dim[3], rows = g->x->count / channels;                \
        const T *mean = g->mean, *factor = AT(const T, g->factor);                                 \
        T *dm = AT(T, d[1]), *dv = AT(T, d[2]), *db = AT(T, d[3]), *dg = AT(T, d[4]);              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const T *x = AT(const T, g->x) + r * channels;                                         \
            const T *dy = AT(const T, g->dy) + r * channels;                                       \
            T *dx = AT(T, d[0]) + r * channels;                                                    \
            LEAT_SIMD                                                                              \
            for (int64_t c = 0; c < channels; c++) {                                               \
                dx[c] = dy[c] * factor[c];                                                         \
                db[c] += dy[c];                                                                    \
                dg[c] += dy[c] * (x[c] - mean[c]);                                                 \
            }                                                                                      \
        }                                                                                          \
        for (int64_t c = 0; c < channels; c++) {                                                   \
            const T wide = variance[c] + (T)epsilon, dot = dg[c];                                  \
            dm[c] = -db[c] * factor[c];                                                            \
            dv[c] = dot * factor[c] * (T)-0.5 / wide;                                              \
            dg[c] = gamma ? dot / (T)sqrt((double)wide) : 0;                                       \
        }                                                                                          \
    }
LEAT_X_FLOAT(GLOBAL)

/* The factors of the channels, from the variance, input 2, and gamma, input `gamma`. */
static leat_status make_factors(leat_kernel *k, int gamma, global *g, double *epsilon,
                                const void **gamma_out)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *variance = leat_kernel_in(k, 2);
    *epsilon = leat_node_float(n, "variance_epsilon");
    *gamma_out =
        leat_node_bool(n, "scale_after_normalization") ? leat_kernel_in(k, gamma)->data : NULL;
    LEAT_TRY(leat_kernel_temp(k, variance->dtype, &variance->shape, &g->factor));
    if (variance->dtype == LEAT_DOUBLE)
        factors_double(variance->data, *epsilon, *gamma_out, variance->count, g->factor->data);
    else
        factors_float(variance->data, *epsilon, *gamma_out, variance->count, g->factor->data);
    return NULL;
}

static leat_status global_run(leat_kernel *k)
{
    static const char *const names[] = {"mean", "var", "beta", "gamma"};
    double epsilon;
    const void *gamma;
    LEAT_TRY(check(k, 4, names));
    global g = {.x = leat_kernel_in(k, 0),
                .mean = leat_kernel_in(k, 1)->data,
                .beta = leat_kernel_in(k, 3)->data};
    LEAT_TRY(leat_kernel_out(k, 0, &g.x->shape, &g.out));
    if (g.out->count == 0)
        return NULL;
    LEAT_TRY(make_factors(k, 4, &g, &epsilon, &gamma));
    const int64_t channels = g.x->shape.dim[3];
    leat_kernel_for(k, g.x->count / channels, 0.2 * (double)channels,
                    g.x->dtype == LEAT_DOUBLE ? forward_double : forward_float, &g);
    return NULL;
}

static leat_status global_grad_run(leat_kernel *k)
{
    static const char *const names[] = {"mean", "var", "gamma"};
    double epsilon;
    const void *gamma;
    leat_tensor *d[5];
    LEAT_TRY(check(k, 3, names));
    global g = {
        .x = leat_kernel_in(k, 0), .mean = leat_kernel_in(k, 1)->data, .dy = leat_kernel_in(k, 4)};
    LEAT_REQUIRE(leat_shape_equal(&g.dy->shape, &g.x->shape), INVALID_ARGUMENT,
                 "out_backprop must have the shape of the input, %s, got %s",
                 leat_shape_show(&g.x->shape).s, leat_shape_show(&g.dy->shape).s);
    const leat_shape vector = {1, {g.x->shape.dim[3]}};
    for (int i = 0; i < 5; i++) {
        LEAT_TRY(leat_kernel_out(k, i, i ? &vector : &g.x->shape, &d[i]));
        if (i && d[i]->count > 0)
            memset(d[i]->data, 0, (size_t)d[i]->count * leat_dtype_size(d[i]->dtype));
    }
    if (g.x->count == 0)
        return NULL;
    LEAT_TRY(make_factors(k, 3, &g, &epsilon, &gamma));
    const void *variance = leat_kernel_in(k, 2)->data;
    if (g.x->dtype == LEAT_DOUBLE)
        backward_double(&g, variance, epsilon, gamma, d);
    else
        backward_float(&g, variance, epsilon, gamma, d);
    return NULL;
}

const leat_kernel_def leat_cpu_batch_norm_global[] = {
    {.op = "BatchNormWithGlobalNormalization",
     .where = {{"T", LEAT_ROW_FLOAT}},
     .run = global_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "BatchNormWithGlobalNormalizationGrad",
     .where = {{"T", LEAT_ROW_FLOAT}},
     .run = global_grad_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
