/* range.c -- Range, LinSpace and RaggedRange. Ranges add delta repeatedly, as TensorFlow does, so
 * that the last floats of a long range differ from start + i * delta. */
#include "kernels/cpu/arith.h"

static leat_status want_scalars(leat_kernel *k, const char *const *names)
{
    for (int i = 0; i < 3; i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be a scalar, not shape %s",
                     names[i], leat_shape_show(&t->shape).s);
    }
    return NULL;
}

#define INT_SIZE(name, dtype, T)                                                                   \
    static double size_##T(T start, T limit, T delta)                                              \
    {                                                                                              \
        const uint64_t way = limit >= start ? (uint64_t)limit - (uint64_t)start                    \
                                            : (uint64_t)start - (uint64_t)limit;                   \
        const uint64_t by = delta < 0 ? 0 - (uint64_t)delta : (uint64_t)delta;                     \
        return (double)(way / by + (way % by != 0));                                               \
    }
#define FLOAT_SIZE(name, dtype, T)                                                                 \
    static double size_##T(T start, T limit, T delta)                                              \
    {                                                                                              \
        const T n = (limit - start) / delta;                                                       \
        return ceil((double)(n < 0 ? -n : n));                                                     \
    }
LEAT_Y_INDEX(INT_SIZE, )
LEAT_Y_FLOAT(FLOAT_SIZE, )

#define COUNT(name, dtype, T)                                                                      \
    static void count_##T(T start, T delta, int64_t n, T *y)                                       \
    {                                                                                              \
        T v = start;                                                                               \
        for (int64_t i = 0; i < n; i++, v = (T)((LEAT_WIDE(T))v + (LEAT_WIDE(T))delta))            \
            y[i] = v;                                                                              \
    }
LEAT_Y_INDEX(COUNT, )
LEAT_Y_FLOAT(COUNT, )

#define RANGE(name, dtype, T)                                                                      \
    static leat_status range_##T(leat_kernel *k, T start, T limit, T delta)                        \
    {                                                                                              \
        LEAT_REQUIRE(delta != 0, INVALID_ARGUMENT, "Requires delta != 0: %g", (double)delta);      \
        LEAT_REQUIRE(!(delta > 0) || start <= limit, INVALID_ARGUMENT,                             \
                     "Requires start <= limit when delta > 0: %g/%g", (double)start,               \
                     (double)limit);                                                               \
        LEAT_REQUIRE(!(delta < 0) || start >= limit, INVALID_ARGUMENT,                             \
                     "Requires start >= limit when delta < 0: %g/%g", (double)start,               \
                     (double)limit);                                                               \
        const double n = size_##T(start, limit, delta);                                            \
        LEAT_REQUIRE(n < 0x1p52, INVALID_ARGUMENT, "Range of %g elements is too large", n);        \
        leat_shape s = leat_shape((int64_t)n);                                                     \
        leat_tensor *y;                                                                            \
        LEAT_TRY(leat_kernel_out(k, 0, &s, &y));                                                   \
        count_##T(start, delta, y->count, AT(T, y));                                               \
        return NULL;                                                                               \
    }
LEAT_Y_INDEX(RANGE, )
LEAT_Y_FLOAT(RANGE, )

#define RANGE_CASE(name, dtype, T)                                                                 \
    case LEAT_##dtype:                                                                             \
        return range_##T(k, *AT(T, leat_kernel_in(k, 0)), *AT(T, leat_kernel_in(k, 1)),            \
                         *AT(T, leat_kernel_in(k, 2)));

static leat_status range(leat_kernel *k)
{
    static const char *const names[3] = {"start", "limit", "delta"};
    LEAT_TRY(want_scalars(k, names));
    switch (leat_kernel_in(k, 0)->dtype) {
        LEAT_Y_INDEX(RANGE_CASE, )
        LEAT_Y_FLOAT(RANGE_CASE, )
    default:
        return leat_error(INTERNAL, "Range of this dtype");
    }
}

#define LIN_SPACE(name, dtype, T)                                                                  \
    static void lin_space_##T(T start, T stop, int64_t n, T *y)                                    \
    {                                                                                              \
        const T step = n > 1 ? (stop - start) / (T)(n - 1) : 0;                                    \
        for (int64_t i = 0; i < n - 1; i++)                                                        \
            y[i] = i ? start + step * (T)i : start;                                                \
        y[n - 1] = n > 1 ? stop : start;                                                           \
    }
LEAT_Y_FLOAT(LIN_SPACE, )

static leat_status lin_space(leat_kernel *k)
{
    static const char *const names[3] = {"start", "stop", "num"};
    LEAT_TRY(want_scalars(k, names));
    const leat_tensor *a = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1);
    leat_shape s = {.rank = 1, .dim = {leat_index_at(leat_kernel_in(k, 2), 0)}};
    LEAT_REQUIRE(s.dim[0] > 0, INVALID_ARGUMENT, "Requires num > 0: %lld", (long long)s.dim[0]);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->dtype == LEAT_FLOAT)
        lin_space_float(*AT(float, a), *AT(float, b), s.dim[0], y->data);
    else
        lin_space_double(*AT(double, a), *AT(double, b), s.dim[0], y->data);
    return NULL;
}

/* ---- RaggedRange: a range for each row, one behind the other ---- */

/* Of the inputs that are vectors, all have one number for each row; a scalar is that of all rows.
 */
static leat_status ragged_rows(leat_kernel *k, int64_t *rows)
{
    static const char *const names[3] = {"starts", "limits", "deltas"};
    *rows = -1;
    for (int i = 0; i < 3; i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT, "%s must be a scalar or vector",
                     names[i]);
        LEAT_REQUIRE(t->shape.rank == 0 || *rows < 0 || *rows == t->count, INVALID_ARGUMENT,
                     "starts, limits, and deltas must have the same shape");
        if (t->shape.rank == 1)
            *rows = t->count;
    }
    if (*rows < 0)
        *rows = 1;
    return NULL;
}

#define ROW(T, k, i, row) AT(T, leat_kernel_in(k, i))[leat_kernel_in(k, i)->shape.rank ? (row) : 0]

#define RAGGED(name, dtype, T)                                                                     \
    /* *n: the numbers of a row. */                                                                \
    static leat_status ragged_size_##T(leat_kernel *k, int64_t row, double *n)                     \
    {                                                                                              \
        const T start = ROW(T, k, 0, row), limit = ROW(T, k, 1, row), delta = ROW(T, k, 2, row);   \
        LEAT_REQUIRE(delta != 0, INVALID_ARGUMENT, "Requires delta != 0");                         \
        *n = (delta > 0 ? limit < start : limit > start) ? 0 : size_##T(start, limit, delta);      \
        LEAT_REQUIRE(*n < 0x1p52, INVALID_ARGUMENT,                                                \
                     "Row %lld, from %g to %g by %g, has too many numbers", (long long)row,        \
                     (double)start, (double)limit, (double)delta);                                 \
        return NULL;                                                                               \
    }                                                                                              \
    static void ragged_fill_##T(leat_kernel *k, int64_t rows, const leat_tensor *splits,           \
                                leat_tensor *y)                                                    \
    {                                                                                              \
        for (int64_t i = 0; i < rows; i++) {                                                       \
            const int64_t from = leat_index_at(splits, i), to = leat_index_at(splits, i + 1);      \
            count_##T(ROW(T, k, 0, i), ROW(T, k, 2, i), to - from, AT(T, y) + from);               \
        }                                                                                          \
    }
LEAT_Y_INDEX(RAGGED, )
LEAT_Y_FLOAT(RAGGED, )

#define RAGGED_SIZE_CASE(name, dtype, T)                                                           \
    case LEAT_##dtype:                                                                             \
        return ragged_size_##T(k, row, n);
#define RAGGED_FILL_CASE(name, dtype, T)                                                           \
    case LEAT_##dtype:                                                                             \
        ragged_fill_##T(k, rows, splits, y);                                                       \
        break;

static leat_status ragged_size(leat_kernel *k, int64_t row, double *n)
{
    switch (leat_kernel_in(k, 0)->dtype) {
        LEAT_Y_INDEX(RAGGED_SIZE_CASE, )
        LEAT_Y_FLOAT(RAGGED_SIZE_CASE, )
    default:
        return leat_error(INTERNAL, "RaggedRange of this dtype");
    }
}

static leat_status ragged_range(leat_kernel *k)
{
    int64_t rows, end = 0;
    LEAT_TRY(ragged_rows(k, &rows));
    leat_tensor *splits, *y;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 1, .dim = {rows + 1}}, &splits));
    const bool small = splits->dtype == LEAT_INT32;
    leat_index_put(splits, 0, 0);
    for (int64_t i = 0; i < rows; i++) {
        double n = 0;
        LEAT_TRY(ragged_size(k, i, &n));
        LEAT_REQUIRE((double)end + n < (small ? 0x1p31 : 0x1p52), INVALID_ARGUMENT,
                     "The ranges have too many numbers for splits of type %s: row %lld would end "
                     "behind number %.0f",
                     leat_dtype_name(splits->dtype), (long long)i, (double)end + n);
        end += (int64_t)n;
        leat_index_put(splits, i + 1, end);
    }
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {end}}, &y));
    switch (y->dtype) {
        LEAT_Y_INDEX(RAGGED_FILL_CASE, )
        LEAT_Y_FLOAT(RAGGED_FILL_CASE, )
    default:
        break;
    }
    return NULL;
}

const leat_kernel_def leat_cpu_range[] = {
    {.op = "Range",
     .where = {{"Tidx", LEAT_ROW_FLOAT | LEAT_ROW_INDEX}},
     .run = range,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "LinSpace",
     .where = {{"T", LEAT_ROW_FLOAT}},
     .run = lin_space,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "RaggedRange", .where = {{"T", LEAT_ROW_FLOAT | LEAT_ROW_INDEX}}, .run = ragged_range},
    {0},
};
