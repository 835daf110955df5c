/* histogram.c -- counting: Bincount, Bucketize, HistogramFixedWidth. */
#include "kernels/cpu/cpu.h"

/* ---- Bincount ---- */

static leat_status bincount_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *size = leat_kernel_in(k, 1),
                      *w = leat_kernel_in(k, 2);
    LEAT_REQUIRE(size->count == 1, INVALID_ARGUMENT, "size must be a scalar, got shape %s",
                 leat_shape_show(&size->shape).s);
    int64_t n = AT(int32_t, size)[0];
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "size (%lld) must be non-negative", (long long)n);
    for (int64_t i = 0; i < x->count; i++)
        LEAT_REQUIRE(AT(int32_t, x)[i] >= 0, INVALID_ARGUMENT, "Input arr must be non-negative!");
    LEAT_REQUIRE(w->count == 0 || w->count == x->count, INVALID_ARGUMENT,
                 "weights must be empty or as many as arr, got %lld and %lld", (long long)w->count,
                 (long long)x->count);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 1, .dim = {n}}, &y));
#define COUNT(dtype, T, wide)                                                                      \
    case LEAT_##dtype:                                                                             \
        memset(y->data, 0, (size_t)n * sizeof(T));                                                 \
        for (int64_t i = 0; i < x->count; i++) {                                                   \
            int32_t at = AT(int32_t, x)[i];                                                        \
            if (at < n)                                                                            \
                AT(T, y)[at] = (T)((wide)AT(T, y)[at] + (w->count ? (wide)AT(T, w)[i] : 1));       \
        }                                                                                          \
        break;
    switch (y->dtype) {
        COUNT(FLOAT, float, float)
        COUNT(DOUBLE, double, double)
        COUNT(INT32, int32_t, uint32_t)
        COUNT(INT64, int64_t, uint64_t)
    default:
        break;
    }
    return NULL;
}

/* ---- Bucketize ---- */

static leat_status bucketize_init(const leat_node *n, void *state)
{
    (void)state;
    int count;
    const double *b = leat_node_floats(n, "boundaries", &count);
    for (int i = 1; i < count; i++)
        LEAT_REQUIRE(b[i - 1] <= b[i], INVALID_ARGUMENT, "Expected sorted boundaries");
    return NULL;
}

/* The number of boundaries that are not above v; TensorFlow's boundaries are floats. */
static int32_t bucket(const double *b, int n, double v)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (v < (float)b[mid])
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static leat_status bucketize_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    int n;
    const double *b = leat_node_floats(leat_kernel_node(k), "boundaries", &n);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
#define BUCKET(dtype, T)                                                                           \
    case LEAT_##dtype:                                                                             \
        for (int64_t i = 0; i < x->count; i++)                                                     \
            AT(int32_t, y)[i] = bucket(b, n, (double)AT(T, x)[i]);                                 \
        break;
    switch (x->dtype) {
        BUCKET(FLOAT, float)
        BUCKET(DOUBLE, double)
        BUCKET(INT32, int32_t)
        BUCKET(INT64, int64_t)
    default:
        break;
    }
    return NULL;
}

/* ---- HistogramFixedWidth ---- */

static void add_one(leat_tensor *y, int64_t i)
{
    if (y->dtype == LEAT_INT32)
        AT(int32_t, y)[i]++;
    else
        AT(int64_t, y)[i]++;
}

static leat_status histogram_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *range = leat_kernel_in(k, 1),
                      *bins = leat_kernel_in(k, 2);
    LEAT_REQUIRE(range->shape.rank == 1, INVALID_ARGUMENT, "value_range should be a vector.");
    LEAT_REQUIRE(range->count == 2, INVALID_ARGUMENT,
                 "value_range should be a vector of 2 elements.");
    LEAT_REQUIRE(bins->shape.rank == 0, INVALID_ARGUMENT, "nbins should be a scalar.");
    int32_t n = AT(int32_t, bins)[0];
    double low = leat_tensor_at(range, 0), high = leat_tensor_at(range, 1);
    LEAT_REQUIRE(low < high, INVALID_ARGUMENT,
                 "value_range should satisfy value_range[0] < value_range[1], but got '[%g, %g]'",
                 low, high);
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "nbins should be a positive number, but got '%d'", n);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 1, .dim = {n}}, &y));
    memset(y->data, 0, (size_t)n * leat_dtype_size(y->dtype));
    /* The difference of floats is rounded to a float first. */
    bool single = x->dtype == LEAT_FLOAT;
    double step = (single ? (float)high - (float)low : high - low) / n;
    for (int64_t i = 0; i < x->count; i++) {
        double v = leat_tensor_at(x, i);
        v = v > low ? v : low;
        double at = (single ? (float)v - (float)low : v - low) / step;
        add_one(y, at < n - 1 ? (int64_t)at : n - 1);
    }
    return NULL;
}

#define NUMBERS (LEAT_T(FLOAT) | LEAT_T(DOUBLE) | LEAT_TYPES_INDEX)

const leat_kernel_def leat_cpu_histogram[] = {
    {.op = "Bincount", .where = {{"T", NUMBERS}}, .run = bincount_run},
    {.op = "Bucketize", .where = {{"T", NUMBERS}}, .run = bucketize_run, .init = bucketize_init},
    {.op = "HistogramFixedWidth", .where = {{"T", NUMBERS}}, .run = histogram_run},
    {0},
};
