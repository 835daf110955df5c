/* sparse_segment.c -- SparseSegmentSum, Mean and SqrtN, and the ops of their gradients. */
#include "kernels/cpu/arith.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/shapes.h"

enum { A_ROW = 8 }; /* elements whose time a row takes besides its own */

typedef enum scaling { SUM, MEAN, SQRT_N } scaling;

/* The divisor for n rows. */
static double divisor(scaling s, int64_t n)
{
    return s == SUM || n == 0 ? 1 : s == MEAN ? (double)n : sqrt((double)n);
}

/* y = x / by (x is y), or y += x * by */
#define SCALE(T)                                                                                   \
    static void divide_##T(T *y, int64_t n, double by)                                             \
    {                                                                                              \
        const T d = (T)by;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] /= d;                                                                             \
    }                                                                                              \
    static void add_scaled_##T(T *restrict y, const T *restrict x, int64_t n, double by)           \
    {                                                                                              \
        const T m = (T)by;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] += x[i] * m;                                                                      \
    }
SCALE(float)
SCALE(double)

static leat_status check(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *indices = leat_kernel_in(k, 1),
                      *ids = leat_kernel_in(k, 2);
    LEAT_REQUIRE(indices->shape.rank == 1, INVALID_ARGUMENT, "indices should be a vector.");
    LEAT_REQUIRE(ids->shape.rank == 1, INVALID_ARGUMENT, "segment_ids should be a vector.");
    LEAT_REQUIRE(indices->count == ids->count, INVALID_ARGUMENT,
                 "segment_ids and indices should have same size.");
    LEAT_REQUIRE(x->shape.rank >= 1, INVALID_ARGUMENT, "data must be at least rank 1");
    return NULL;
}

static leat_status output_rows(leat_kernel *k, int64_t *rows_out)
{
    const leat_tensor *ids = leat_kernel_in(k, 2);
    const int64_t last = ids->count ? leat_index_at(ids, ids->count - 1) : -1;
    LEAT_REQUIRE(last >= (ids->count ? 0 : -1), INVALID_ARGUMENT, "segment ids must be >= 0");
    *rows_out = last + 1;
    if (leat_kernel_inputs(k) < 4)
        return NULL;
    const leat_tensor *number = leat_kernel_in(k, 3);
    LEAT_REQUIRE(number->shape.rank == 0, INVALID_ARGUMENT,
                 "num_segments should be a scalar, not shape %s",
                 leat_shape_show(&number->shape).s);
    const int64_t n = leat_index_at(number, 0);
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "segment ids must be >= 0");
    LEAT_REQUIRE(n >= *rows_out, INVALID_ARGUMENT, "segment ids must be < num_segments");
    *rows_out = n;
    return NULL;
}

static leat_status reduce(leat_kernel *k, scaling scale)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *indices = leat_kernel_in(k, 1),
                      *ids = leat_kernel_in(k, 2);
    LEAT_TRY(check(k));
    leat_shape out = x->shape;
    LEAT_TRY(output_rows(k, &out.dim[0]));
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &out, &y));
    if (y->count)
        memset(y->data, 0, leat_tensor_bytes(y));
    const leat_reduce_add add = leat_reduce_add_find(LEAT_REDUCE_SUM, x->dtype);
    const int64_t row = leat_shape_product(&x->shape, 1, x->shape.rank);
    const int64_t n = ids->count, rows = x->shape.dim[0];
    const size_t bytes = (size_t)row * leat_dtype_size(x->dtype);
    leat_look look = leat_look_begin(k); /* few rows may be added many times */
    for (int64_t i = 0, end; i < n; i = end) {
        const int64_t id = leat_index_at(ids, i);
        LEAT_REQUIRE(id >= 0 && id < out.dim[0], INVALID_ARGUMENT,
                     "Segment id %lld out of range [0, %lld), possibly because 'segment_ids' input "
                     "is not sorted.",
                     (long long)id, (long long)out.dim[0]);
        char *to = (char *)y->data + (size_t)id * bytes;
        for (end = i; end < n && leat_index_at(ids, end) == id; end++) {
            const int64_t from = leat_index_at(indices, end);
            LEAT_REQUIRE(from >= 0 && from < rows, INVALID_ARGUMENT,
                         "Bad: indices[%lld] == %lld out of range [0, %lld)", (long long)end,
                         (long long)from, (long long)rows);
            if (leat_look_over(&look, A_ROW + row))
                return leat_kernel_check(k);
            if (row)
                add(to, (const char *)x->data + (size_t)from * bytes, 1, 0, row);
        }
        LEAT_REQUIRE(end == n || id < leat_index_at(ids, end), INVALID_ARGUMENT,
                     "segment ids are not increasing");
        if (scale != SUM && x->dtype == LEAT_FLOAT)
            divide_float((float *)to, row, divisor(scale, end - i));
        else if (scale != SUM)
            divide_double((double *)to, row, divisor(scale, end - i));
    }
    return NULL;
}

static leat_status sum(leat_kernel *k)
{
    return reduce(k, SUM);
}

static leat_status mean(leat_kernel *k)
{
    return reduce(k, MEAN);
}

static leat_status sqrt_n(leat_kernel *k)
{
    return reduce(k, SQRT_N);
}

/* The number of rows of each segment, in temporary memory. */
static leat_status count_rows(leat_kernel *k, const leat_tensor *ids, int64_t segments,
                              int64_t **counts_out)
{
    leat_shape s = {.rank = 1, .dim = {segments}};
    leat_tensor *t;
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &s, &t));
    int64_t *counts = t->data;
    for (int64_t i = 0; i < segments; i++)
        counts[i] = 0;
    for (int64_t i = 0; i < ids->count; i++) {
        const int64_t id = leat_index_at(ids, i);
        LEAT_REQUIRE(id >= 0 && id < segments, INVALID_ARGUMENT,
                     "Segment id %lld out of range [0, %lld).", (long long)id, (long long)segments);
        counts[id]++;
    }
    *counts_out = counts;
    return NULL;
}

static leat_status spread(leat_kernel *k, scaling scale)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *indices = leat_kernel_in(k, 1),
                      *ids = leat_kernel_in(k, 2), *dim0 = leat_kernel_in(k, 3);
    LEAT_TRY(check(k));
    LEAT_REQUIRE(dim0->count == 1 && dim0->shape.rank <= 1, INVALID_ARGUMENT,
                 "output_dim0 should be a scalar.");
    leat_shape out = dy->shape;
    out.dim[0] = leat_index_at(dim0, 0);
    LEAT_REQUIRE(out.dim[0] >= 0, INVALID_ARGUMENT,
                 "Cannot specify a negative value for output_dim0");
    leat_tensor *dx;
    LEAT_TRY(leat_kernel_out(k, 0, &out, &dx));
    if (dx->count)
        memset(dx->data, 0, leat_tensor_bytes(dx));
    const int64_t row = leat_shape_product(&dy->shape, 1, dy->shape.rank);
    const int64_t n = ids->count, segments = dy->shape.dim[0];
    if (!n || !out.dim[0])
        return NULL;
    LEAT_REQUIRE(leat_index_at(ids, n - 1) < segments, INVALID_ARGUMENT,
                 "Invalid number of segments");
    int64_t *counts = NULL;
    LEAT_TRY(count_rows(k, ids, segments, &counts));
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < n; i++) {
        if (leat_look_over(&look, A_ROW + row))
            return leat_kernel_check(k);
        const int64_t to = leat_index_at(indices, i), from = leat_index_at(ids, i);
        LEAT_REQUIRE(to >= 0 && to < out.dim[0], INVALID_ARGUMENT,
                     "Index %lld out of range [0, %lld).", (long long)to, (long long)out.dim[0]);
        const double by = 1 / divisor(scale, counts[from]);
        if (dy->dtype == LEAT_FLOAT)
            add_scaled_float(AT(float, dx) + to * row, AT(float, dy) + from * row, row, by);
        else
            add_scaled_double(AT(double, dx) + to * row, AT(double, dy) + from * row, row, by);
    }
    return NULL;
}

static leat_status mean_grad(leat_kernel *k)
{
    return spread(k, MEAN);
}

static leat_status sqrt_n_grad(leat_kernel *k)
{
    return spread(k, SQRT_N);
}

#define KERNEL(op_, types, fn)                                                                     \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = fn, .flags = LEAT_KERNEL_VIA_FLOAT              \
    }

const leat_kernel_def leat_cpu_sparse_segment[] = {
    KERNEL("SparseSegmentSum", LEAT_ROW_REAL, sum),
    KERNEL("SparseSegmentSumWithNumSegments", LEAT_ROW_REAL, sum),
    KERNEL("SparseSegmentMean", LEAT_ROW_FLOAT, mean),
    KERNEL("SparseSegmentMeanWithNumSegments", LEAT_ROW_FLOAT, mean),
    KERNEL("SparseSegmentSqrtN", LEAT_ROW_FLOAT, sqrt_n),
    KERNEL("SparseSegmentSqrtNWithNumSegments", LEAT_ROW_FLOAT, sqrt_n),
    KERNEL("SparseSegmentMeanGrad", LEAT_ROW_FLOAT, mean_grad),
    KERNEL("SparseSegmentSqrtNGrad", LEAT_ROW_FLOAT, sqrt_n_grad),
    {0},
};
