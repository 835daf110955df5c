/* range.c -- Range and LinSpace. Range adds delta repeatedly, as TensorFlow does, so that the last
 * floats of a long range differ from start + i * delta. */
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
        T v = start;                                                                               \
        for (int64_t i = 0; i < y->count; i++, v = (T)((LEAT_WIDE(T))v + (LEAT_WIDE(T))delta))     \
            AT(T, y)[i] = v;                                                                       \
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

const leat_kernel_def leat_cpu_range[] = {
    {.op = "Range",
     .where = {{"Tidx", LEAT_ROW_FLOAT | LEAT_ROW_INDEX}},
     .run = range,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "LinSpace",
     .where = {{"T", LEAT_ROW_FLOAT}},
     .run = lin_space,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
