/* batch_norm.c -- FusedBatchNorm and FusedBatchNormGrad, V1 to V3.
 *
 * x is (outer, channels, inner): NHWC has inner = 1, NCHW has outer = batch. A first pass over x
 * makes sums for each channel, a second one the result. The first pass divides the elements into
 * SLICES slices, and each slice into blocks that stay in the cache: of a block the mean and the
 * squared distances from it are computed, and blocks, then slices, are combined by the formula of
 * Chan, Golub and LeVeque. So x is read from memory once, and no digits are lost.
 */
#include "kernels/cpu/batch_norm.h"

#include "kernels/cpu/arith.h"

enum {
    SLICES = 32,
    BLOCK = 8192, /* elements of x in a block, at least a row of channels */
};

typedef struct norm {
    const float *x, *dy, *scale, *mean, *var, *offset;
    float *out;
    int64_t outer, channels, inner, slices;
    /* For each slice two rows of sums, and two rows for those of a block: means and squared
     * distances, or the sums of dy and of dy * (x - mean). */
    float *sums;
    float *a, *b, *c; /* for each channel: factors of the second pass */
} norm;

static int64_t slice_begin(const norm *n, int64_t i)
{
    return n->outer * i / n->slices;
}

static float *sums_of(const norm *n, int64_t slice, int row)
{
    return n->sums + (slice * 4 + row) * n->channels;
}

/* Adds the statistics of `count` elements to those of `before`: means and squared distances. */
static void combine(float *mean, float *square, double before, const float *mean_b,
                    const float *square_b, double count, int64_t channels)
{
    const float part = (float)(count / (before + count));
    const float cross = (float)(before * count / (before + count));
    LEAT_SIMD
    for (int64_t c = 0; c < channels; c++) {
        const float delta = mean_b[c] - mean[c];
        mean[c] += delta * part;
        square[c] += square_b[c] + delta * delta * cross;
    }
}

/* Mean and squared distances of `rows` rows of channels. */
static void row_moments(const float *x, int64_t rows, int64_t channels, float *mean, float *square)
{
    memcpy(mean, x, (size_t)channels * sizeof(float));
    for (int64_t r = 1; r < rows; r++)
        LEAT_SIMD
    for (int64_t c = 0; c < channels; c++)
        mean[c] += x[r * channels + c];
    const float part = 1.0f / (float)rows;
    for (int64_t c = 0; c < channels; c++)
        mean[c] *= part;
    memset(square, 0, (size_t)channels * sizeof(float));
    for (int64_t r = 0; r < rows; r++)
        LEAT_SIMD
    for (int64_t c = 0; c < channels; c++) {
        const float d = x[r * channels + c] - mean[c];
        square[c] += d * d;
    }
}

enum { LANES = 16 };

static float sum_lanes(const float s[LANES])
{
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += s[i];
    return sum;
}

/* Mean and squared distances of n elements. */
static void plane_moments(const float *x, int64_t n, float *mean, float *square)
{
    float s[LANES] = {0}, q[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            s[j] += x[i + j];
    for (int j = 0; i + j < n; j++)
        s[j] += x[i + j];
    const float m = sum_lanes(s) / (float)n;
    for (i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            q[j] += (x[i + j] - m) * (x[i + j] - m);
    for (int j = 0; i + j < n; j++)
        q[j] += (x[i + j] - m) * (x[i + j] - m);
    *mean = m;
    *square = sum_lanes(q);
}

/* Slices [begin, end): rows 0 and 1 become means and squared distances. */
static void moments(void *arg, int64_t begin, int64_t end)
{
    const norm *n = arg;
    const int64_t channels = n->channels, row = channels * n->inner;
    const int64_t rows = n->inner > 1 ? 1 : BLOCK / channels + 1;
    for (int64_t s = begin; s < end; s++) {
        float *mean = sums_of(n, s, 0), *square = sums_of(n, s, 1);
        float *mean_b = sums_of(n, s, 2), *square_b = sums_of(n, s, 3);
        memset(mean, 0, 2 * (size_t)channels * sizeof(float));
        const int64_t from = slice_begin(n, s), to = slice_begin(n, s + 1);
        for (int64_t i = from, count; i < to; i += count) {
            count = to - i < rows ? to - i : rows;
            const float *x = n->x + i * row;
            if (n->inner > 1)
                for (int64_t c = 0; c < channels; c++)
                    plane_moments(x + c * n->inner, n->inner, &mean_b[c], &square_b[c]);
            else
                row_moments(x, count, channels, mean_b, square_b);
            combine(mean, square, (double)((i - from) * n->inner), mean_b, square_b,
                    (double)(count * n->inner), channels);
        }
    }
}

/* The sums of dy and of dy * (x - mean) over `rows` rows of channels are added to sum and dot. */
static void row_products(const norm *n, const float *x, const float *dy, int64_t rows, float *sum,
                         float *dot)
{
    const int64_t channels = n->channels;
    for (int64_t r = 0; r < rows; r++, x += channels, dy += channels)
        LEAT_SIMD
    for (int64_t c = 0; c < channels; c++) {
        sum[c] += dy[c];
        dot[c] += dy[c] * (x[c] - n->mean[c]);
    }
}

static void plane_products(const float *x, const float *dy, int64_t n, float mean, float *sum,
                           float *dot)
{
    float s[LANES] = {0}, d[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            s[j] += dy[i + j];
            d[j] += dy[i + j] * (x[i + j] - mean);
        }
    for (int j = 0; i + j < n; j++) {
        s[j] += dy[i + j];
        d[j] += dy[i + j] * (x[i + j] - mean);
    }
    *sum += sum_lanes(s);
    *dot += sum_lanes(d);
}

/* Slices [begin, end): rows 0 and 1 become the sums of dy and of dy * (x - mean). */
static void products(void *arg, int64_t begin, int64_t end)
{
    const norm *n = arg;
    const int64_t channels = n->channels, row = channels * n->inner;
    const int64_t rows = n->inner > 1 ? 1 : BLOCK / channels + 1;
    for (int64_t s = begin; s < end; s++) {
        float *sum = sums_of(n, s, 0), *block = sums_of(n, s, 2);
        memset(sum, 0, 2 * (size_t)channels * sizeof(float));
        const int64_t from = slice_begin(n, s), to = slice_begin(n, s + 1);
        for (int64_t i = from, count; i < to; i += count) {
            count = to - i < rows ? to - i : rows;
            const float *x = n->x + i * row, *dy = n->dy + i * row;
            memset(block, 0, 2 * (size_t)channels * sizeof(float));
            if (n->inner > 1)
                for (int64_t c = 0; c < channels; c++)
                    plane_products(x + c * n->inner, dy + c * n->inner, n->inner, n->mean[c],
                                   &block[c], &block[channels + c]);
            else
                row_products(n, x, dy, count, block, block + channels);
            LEAT_SIMD
            for (int64_t c = 0; c < 2 * channels; c++)
                sum[c] += block[c];
        }
    }
}

/* y = (x - mean) * a + b. */
static void normalize(void *arg, int64_t begin, int64_t end)
{
    const norm *n = arg;
    const int64_t channels = n->channels, inner = n->inner, row = channels * inner;
    for (int64_t r = begin; r < end; r++) {
        const float *x = n->x + r * row;
        float *y = n->out + r * row;
        if (inner == 1) {
            LEAT_SIMD
            for (int64_t c = 0; c < channels; c++)
                y[c] = (x[c] - n->mean[c]) * n->a[c] + n->b[c];
            continue;
        }
        for (int64_t c = 0; c < channels; c++, x += inner, y += inner) {
            const float mean = n->mean[c], a = n->a[c], b = n->b[c];
            LEAT_SIMD
            for (int64_t i = 0; i < inner; i++)
                y[i] = (x[i] - mean) * a + b;
        }
    }
}

/* dx = a * (dy - b - (x - mean) * c). */
static void backward(void *arg, int64_t begin, int64_t end)
{
    const norm *n = arg;
    const int64_t channels = n->channels, inner = n->inner, row = channels * inner;
    for (int64_t r = begin; r < end; r++) {
        const float *x = n->x + r * row, *dy = n->dy + r * row;
        float *dx = n->out + r * row;
        if (inner == 1) {
            LEAT_SIMD
            for (int64_t c = 0; c < channels; c++)
                dx[c] = n->a[c] * (dy[c] - n->b[c] - (x[c] - n->mean[c]) * n->c[c]);
            continue;
        }
        for (int64_t c = 0; c < channels; c++, x += inner, dy += inner, dx += inner) {
            const float mean = n->mean[c], a = n->a[c], b = n->b[c], d = n->c[c];
            LEAT_SIMD
            for (int64_t i = 0; i < inner; i++)
                dx[i] = a * (dy[i] - b - (x[i] - mean) * d);
        }
    }
}

/* Reads x, given by input `in`, and makes room for sums and factors. */
static leat_status begin(leat_kernel *k, int in, norm *n)
{
    const leat_tensor *x = leat_kernel_in(k, in);
    leat_batch_norm_dims d;
    LEAT_TRY(leat_batch_norm_read(k, in, &d));
    n->x = x->data;
    n->channels = d.channels;
    n->outer = d.outer;
    n->inner = d.inner;
    n->slices = n->outer < SLICES ? n->outer : SLICES;
    if (x->count == 0)
        return NULL;
    leat_tensor *t;
    LEAT_TRY(
        leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){2, {n->slices * 4 + 3, n->channels}}, &t));
    n->sums = t->data;
    n->a = sums_of(n, n->slices, 0);
    n->b = n->a + n->channels;
    n->c = n->b + n->channels;
    return NULL;
}

static leat_status vector_of(leat_kernel *k, int i, const char *name, const norm *n,
                             const float **out)
{
    LEAT_TRY(leat_batch_norm_vector(k, i, name, n->channels));
    *out = leat_kernel_in(k, i)->data;
    return NULL;
}

/* The statistics of the batch: mean, variance, and variance with Bessel's correction. */
static void batch_statistics(leat_kernel *k, norm *n, float *mean, float *var, float *unbiased)
{
    leat_kernel_for(k, n->slices,
                    0.15 * (double)(n->outer * n->channels * n->inner) / (double)n->slices, moments,
                    n);
    const double count = (double)(n->outer * n->inner);
    for (int64_t c = 0; c < n->channels; c++) {
        double m = 0, q = 0, before = 0;
        for (int64_t s = 0; s < n->slices; s++) {
            const double more = (double)((slice_begin(n, s + 1) - slice_begin(n, s)) * n->inner);
            const double delta = sums_of(n, s, 0)[c] - m;
            m += delta * more / (before + more);
            q += sums_of(n, s, 1)[c] + delta * delta * before * more / (before + more);
            before += more;
        }
        mean[c] = (float)m;
        var[c] = (float)(q / count);
        unbiased[c] = (float)(q / (count > 1 ? count - 1 : 1));
    }
}

static leat_status norm_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const bool training = leat_node_bool(node, "is_training");
    const float epsilon = (float)leat_node_float(node, "epsilon");
    norm n = {0};
    leat_tensor *y, *out[4];
    LEAT_TRY(begin(k, 0, &n));
    LEAT_TRY(vector_of(k, 1, "scale", &n, &n.scale));
    LEAT_TRY(vector_of(k, 2, "offset", &n, &n.offset));
    if (!training) {
        LEAT_TRY(vector_of(k, 3, "mean", &n, &n.mean));
        LEAT_TRY(vector_of(k, 4, "variance", &n, &n.var));
    }
    LEAT_TRY(leat_kernel_out(k, 0, &leat_kernel_in(k, 0)->shape, &y));
    for (int i = 0; i < 4; i++)
        LEAT_TRY(leat_kernel_out(k, i + 1, &(leat_shape){1, {n.channels}}, &out[i]));
    if (leat_node_outputs(node) > 5) {
        leat_tensor *reserved;
        LEAT_TRY(leat_kernel_out(k, 5, &(leat_shape){0}, &reserved));
        *AT(float, reserved) = 0;
    }
    n.out = y->data;
    float *mean = out[0]->data, *unbiased = out[1]->data, *saved = out[3]->data;
    const size_t bytes = (size_t)n.channels * sizeof(float);
    if (training && y->count > 0) {
        batch_statistics(k, &n, mean, saved, unbiased);
        n.mean = mean;
        n.var = saved;
    } else if (training) {
        for (int64_t c = 0; c < n.channels; c++)
            mean[c] = unbiased[c] = saved[c] = NAN;
    } else if (n.channels > 0) {
        memcpy(mean, n.mean, bytes);
        memcpy(unbiased, n.var, bytes);
        memcpy(saved, n.var, bytes);
    }
    if (n.channels > 0)
        memcpy(out[2]->data, mean, bytes);
    if (y->count == 0)
        return NULL;
    for (int64_t c = 0; c < n.channels; c++) {
        n.a[c] = n.scale[c] / sqrtf(n.var[c] + epsilon);
        n.b[c] = n.offset[c];
    }
    leat_kernel_for(k, n.outer, 0.15 * (double)(n.channels * n.inner), normalize, &n);
    return NULL;
}

static leat_status grad_outputs(leat_kernel *k, const leat_shape *x, int64_t channels,
                                bool training, leat_tensor *out[3])
{
    const leat_shape vector = {1, {channels}}, rest = {1, {training ? 0 : channels}};
    LEAT_TRY(leat_kernel_out(k, 0, x, &out[0]));
    for (int i = 1; i < 5; i++) {
        leat_tensor *t;
        LEAT_TRY(leat_kernel_out(k, i, i < 3 ? &vector : &rest, &t));
        if (t->count > 0)
            memset(t->data, 0, (size_t)t->count * sizeof(float));
        if (i < 3)
            out[i] = t;
    }
    return NULL;
}

static leat_status norm_grad_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const bool training = leat_node_bool(node, "is_training");
    const float epsilon = (float)leat_node_float(node, "epsilon");
    const leat_tensor *dy = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1);
    norm n = {.dy = dy->data};
    leat_tensor *out[3];
    LEAT_TRY(leat_batch_norm_same(x, dy));
    LEAT_TRY(begin(k, 1, &n));
    LEAT_TRY(vector_of(k, 2, "scale", &n, &n.scale));
    LEAT_TRY(vector_of(k, 3, "reserve_space_1", &n, &n.mean));
    LEAT_TRY(vector_of(k, 4, "reserve_space_2", &n, &n.var));
    LEAT_TRY(grad_outputs(k, &x->shape, n.channels, training, out));
    if (x->count == 0)
        return NULL;
    n.out = out[0]->data;
    leat_kernel_for(k, n.slices, 0.2 * (double)x->count / (double)n.slices, products, &n);
    const double count = (double)(n.outer * n.inner);
    for (int64_t c = 0; c < n.channels; c++) {
        double sum = 0, dot = 0;
        for (int64_t s = 0; s < n.slices; s++) {
            sum += sums_of(&n, s, 0)[c];
            dot += sums_of(&n, s, 1)[c];
        }
        const double wide = (double)n.var[c] + epsilon;
        AT(float, out[1])[c] = (float)(dot / sqrt(wide));
        AT(float, out[2])[c] = (float)sum;
        n.a[c] = (float)(n.scale[c] / sqrt(wide));
        n.b[c] = training ? (float)(sum / count) : 0;
        n.c[c] = training ? (float)(dot / count / wide) : 0;
    }
    leat_kernel_for(k, n.outer, 0.2 * (double)(n.channels * n.inner), backward, &n);
    return NULL;
}

#define FUSED(op_, fn)                                                                             \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_T(FLOAT)}}, .run = fn, .flags = LEAT_KERNEL_VIA_FLOAT      \
    }

const leat_kernel_def leat_cpu_batch_norm[] = {
    {.op = "FusedBatchNorm", .where = {{"T", LEAT_T(FLOAT)}}, .run = norm_run},
    FUSED("FusedBatchNormV2", norm_run),
    FUSED("FusedBatchNormV3", norm_run),
    {.op = "FusedBatchNormGrad", .where = {{"T", LEAT_T(FLOAT)}}, .run = norm_grad_run},
    FUSED("FusedBatchNormGradV2", norm_grad_run),
    FUSED("FusedBatchNormGradV3", norm_grad_run),
    {0},
};
