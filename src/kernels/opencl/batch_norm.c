/* batch_norm.c -- FusedBatchNorm and FusedBatchNormGrad, V1 to V3. The mean is found first, then
 * the squares of the distances from it, so that no digits are lost. */
#include "kernels/cpu/batch_norm.h"

#include <math.h>

#include "kernels/opencl/reduce.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_batch_norm;
static const leat_cl_text *const texts[] = {&leat_cl_text_batch_norm, NULL};

static leat_status temp(leat_kernel *k, int64_t n, leat_tensor **out)
{
    const leat_shape s = leat_shape(n);
    return leat_kernel_temp(k, LEAT_FLOAT, &s, out);
}

/* Two sums for each channel (batch_norm.cl), divided by `divide`, to `to`, (2, channels). */
static leat_status sums(leat_kernel *k, const leat_batch_norm_dims *n, const char *options,
                        const void *x, const void *dy, const void *mean, double divide, void *to)
{
    const int64_t chunk = 256, parts = n->inner == 1 ? (n->outer + chunk - 1) / chunk : n->outer;
    const double count = (double)(n->outer * n->channels * n->inner);
    leat_opencl *d = leat_cl_of(k);
    leat_tensor *some;
    LEAT_TRY(temp(k, parts * 2 * n->channels, &some));
    leat_cl_launch l = leat_cl_begin(d, texts, options, "sums");
    leat_cl_at(&l, x);
    leat_cl_at(&l, dy);
    leat_cl_at(&l, mean);
    leat_cl_tensor(&l, some);
    leat_cl_int(&l, n->outer);
    leat_cl_int(&l, n->channels);
    leat_cl_int(&l, n->inner);
    leat_cl_int(&l, chunk);
    const int64_t rows = n->inner == 1 && d->listed->on_cpu ? parts : parts * n->channels;
    LEAT_TRY(leat_cl_each(&l, rows, count / (double)rows));
    return leat_cl_reduce(k, "sum", LEAT_FLOAT, some->data, 1, parts, 2 * n->channels, divide, to);
}

/* Mean and variances of the batch. */
static leat_status batch_statistics(leat_kernel *k, const leat_batch_norm_dims *n, const void *x,
                                    const leat_tensor *mean, const leat_tensor *unbiased,
                                    const leat_tensor *var)
{
    const double count = (double)(n->outer * n->inner);
    leat_tensor *near, *both;
    LEAT_TRY(temp(k, 2 * n->channels, &near));
    LEAT_TRY(temp(k, 2 * n->channels, &both));
    LEAT_TRY(sums(k, n, "-DFIRST", x, x, x, count, near->data));
    LEAT_TRY(sums(k, n, "-DSQUARES", x, x, near->data, 1, both->data));
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "statistics");
    leat_cl_tensor(&l, both);
    leat_cl_tensor(&l, near);
    leat_cl_tensor(&l, mean);
    leat_cl_tensor(&l, unbiased);
    leat_cl_tensor(&l, var);
    leat_cl_int(&l, n->channels);
    leat_cl_float(&l, count);
    return leat_cl_each(&l, n->channels, 5);
}

static leat_status copy(leat_kernel *k, const leat_tensor *from, const leat_tensor *to)
{
    return leat_cl_copy(leat_kernel_device(k), LEAT_QUEUE_COMPUTE, LEAT_COPY_WITHIN, to->data,
                        from->data, (size_t)to->count * sizeof(float));
}

/* y, from mean and variance. */
static leat_status normalize(leat_kernel *k, const leat_batch_norm_dims *n, const leat_tensor *mean,
                             const leat_tensor *var, const leat_tensor *y)
{
    leat_tensor *factor;
    LEAT_TRY(temp(k, n->channels, &factor));
    leat_cl_launch f = leat_cl_begin(leat_cl_of(k), texts, "", "factors");
    leat_cl_tensor(&f, leat_kernel_in(k, 1));
    leat_cl_tensor(&f, var);
    leat_cl_tensor(&f, factor);
    leat_cl_int(&f, n->channels);
    leat_cl_float(&f, leat_node_float(leat_kernel_node(k), "epsilon"));
    LEAT_TRY(leat_cl_each(&f, n->channels, 5));
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "normalized");
    leat_cl_tensor(&l, leat_kernel_in(k, 0));
    leat_cl_tensor(&l, mean);
    leat_cl_tensor(&l, factor);
    leat_cl_tensor(&l, leat_kernel_in(k, 2));
    leat_cl_tensor(&l, y);
    leat_cl_int(&l, n->outer);
    leat_cl_int(&l, n->channels);
    leat_cl_int(&l, n->inner);
    return leat_cl_each(&l, n->inner == 1 ? n->outer : n->outer * n->channels,
                        (double)(n->inner == 1 ? n->channels : n->inner));
}

static leat_status forward(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const bool training = leat_node_bool(node, "is_training");
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_opencl *d = leat_cl_of(k);
    leat_batch_norm_dims n;
    leat_tensor *y, *out[4], *reserved; /* out: mean, variance, and both for the gradient */
    LEAT_TRY(leat_batch_norm_read(k, 0, &n));
    LEAT_TRY(leat_batch_norm_vector(k, 1, "scale", n.channels));
    LEAT_TRY(leat_batch_norm_vector(k, 2, "offset", n.channels));
    if (!training) {
        LEAT_TRY(leat_batch_norm_vector(k, 3, "mean", n.channels));
        LEAT_TRY(leat_batch_norm_vector(k, 4, "variance", n.channels));
    }
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    for (int i = 0; i < 4; i++)
        LEAT_TRY(leat_kernel_out(k, i + 1, &(leat_shape){1, {n.channels}}, &out[i]));
    if (leat_node_outputs(node) > 5) {
        LEAT_TRY(leat_kernel_out(k, 5, &(leat_shape){0}, &reserved));
        LEAT_TRY(leat_cl_fill(d, reserved->data, 1, sizeof(float), NULL));
    }
    const float nan = NAN;
    if (training && x->count) {
        LEAT_TRY(batch_statistics(k, &n, x->data, out[0], out[1], out[3]));
    } else if (training) {
        for (int i = 0; i < 4; i++)
            LEAT_TRY(leat_cl_fill(d, out[i]->data, n.channels, sizeof(float), &nan));
    } else {
        LEAT_TRY(copy(k, leat_kernel_in(k, 3), out[0]));
        LEAT_TRY(copy(k, leat_kernel_in(k, 4), out[1]));
        LEAT_TRY(copy(k, leat_kernel_in(k, 4), out[3]));
    }
    if (!training || x->count)
        LEAT_TRY(copy(k, out[0], out[2]));
    return x->count ? normalize(k, &n, out[0], out[3], y) : NULL;
}

static leat_status backward(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const bool training = leat_node_bool(node, "is_training");
    const leat_tensor *dy = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1),
                      *mean = leat_kernel_in(k, 3);
    leat_opencl *d = leat_cl_of(k);
    leat_batch_norm_dims n;
    leat_tensor *out[5], *both, *factor;
    LEAT_TRY(leat_batch_norm_same(x, dy));
    LEAT_TRY(leat_batch_norm_read(k, 1, &n));
    LEAT_TRY(leat_batch_norm_vector(k, 2, "scale", n.channels));
    LEAT_TRY(leat_batch_norm_vector(k, 3, "reserve_space_1", n.channels));
    LEAT_TRY(leat_batch_norm_vector(k, 4, "reserve_space_2", n.channels));
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &out[0]));
    for (int i = 1; i < 5; i++) {
        const leat_shape s = {1, {i > 2 && training ? 0 : n.channels}};
        LEAT_TRY(leat_kernel_out(k, i, &s, &out[i]));
        if (i > 2 || !x->count)
            LEAT_TRY(leat_cl_fill(d, out[i]->data, out[i]->count, sizeof(float), NULL));
    }
    if (!x->count)
        return NULL;
    LEAT_TRY(temp(k, 2 * n.channels, &both));
    LEAT_TRY(temp(k, 3 * n.channels, &factor));
    LEAT_TRY(sums(k, &n, "", x->data, dy->data, mean->data, 1, both->data));
    leat_cl_launch f = leat_cl_begin(d, texts, "", "grad_factors");
    leat_cl_tensor(&f, both);
    leat_cl_tensor(&f, leat_kernel_in(k, 2));
    leat_cl_tensor(&f, leat_kernel_in(k, 4));
    leat_cl_tensor(&f, out[1]);
    leat_cl_tensor(&f, out[2]);
    leat_cl_tensor(&f, factor);
    leat_cl_int(&f, n.channels);
    leat_cl_float(&f, leat_node_float(node, "epsilon"));
    leat_cl_float(&f, (double)(n.outer * n.inner));
    leat_cl_int(&f, training);
    LEAT_TRY(leat_cl_each(&f, n.channels, 5));
    leat_cl_launch l = leat_cl_begin(d, texts, "", "backward");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, dy);
    leat_cl_tensor(&l, mean);
    leat_cl_tensor(&l, factor);
    leat_cl_tensor(&l, out[0]);
    leat_cl_int(&l, n.outer);
    leat_cl_int(&l, n.channels);
    leat_cl_int(&l, n.inner);
    return leat_cl_each(&l, n.inner == 1 ? n.outer : n.outer * n.channels,
                        (double)(n.inner == 1 ? n.channels : n.inner));
}

#define ROW(name, fn)                                                                              \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_T(FLOAT)}, {"U", LEAT_T(FLOAT)}}, .run = fn               \
    }

const leat_kernel_def leat_opencl_batch_norm[] = {
    {.op = "FusedBatchNorm", .where = {{"T", LEAT_T(FLOAT)}}, .run = forward},
    ROW("FusedBatchNormV2", forward),
    ROW("FusedBatchNormV3", forward),
    {.op = "FusedBatchNormGrad", .where = {{"T", LEAT_T(FLOAT)}}, .run = backward},
    ROW("FusedBatchNormGradV2", backward),
    ROW("FusedBatchNormGradV3", backward),
    {0},
};
