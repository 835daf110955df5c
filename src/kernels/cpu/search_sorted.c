/* search_sorted.c -- LowerBound, UpperBound, by bisection in each row. */
#include "kernels/cpu/cpu.h"

typedef struct bound_args {
    const leat_tensor *sorted, *values;
    leat_tensor *y;
    bool upper;
} bound_args;

/* The number of elements of x that are below v or, if upper, not above v. */
#define BISECT(dtype, T)                                                                           \
    static int64_t bisect_##T(const T *x, int64_t n, T v, bool upper)                              \
    {                                                                                              \
        int64_t low = 0;                                                                           \
        while (n > 0) {                                                                            \
            int64_t half = n / 2;                                                                  \
            bool right = upper ? !(v < x[low + half]) : x[low + half] < v;                         \
            low = right ? low + half + 1 : low;                                                    \
            n = right ? n - half - 1 : half;                                                       \
        }                                                                                          \
        return low;                                                                                \
    }
LEAT_X_REAL(BISECT)

#define CASE(dtype, T)                                                                             \
    case LEAT_##dtype:                                                                             \
        at = bisect_##T(AT(T, b->sorted) + row * n, n, AT(T, b->values)[i], b->upper);             \
        break;

static void bound_part(void *arg, int64_t begin, int64_t end)
{
    const bound_args *b = arg;
    int64_t n = b->sorted->shape.dim[1], m = b->values->shape.dim[1];
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / m, at = 0;
        switch (b->sorted->dtype) {
            LEAT_X_REAL(CASE)
        default:
            break;
        }
        if (b->y->dtype == LEAT_INT32)
            AT(int32_t, b->y)[i] = (int32_t)at;
        else
            AT(int64_t, b->y)[i] = at;
    }
}

static leat_status bound(leat_kernel *k, bool upper)
{
    bound_args b = {.sorted = leat_kernel_in(k, 0), .values = leat_kernel_in(k, 1), .upper = upper};
    const leat_shape *s = &b.sorted->shape, *v = &b.values->shape;
    LEAT_REQUIRE(s->rank == 2 && v->rank == 2, INVALID_ARGUMENT,
                 "sorted_inputs and values must be matrices, got shapes %s and %s",
                 leat_shape_show(s).s, leat_shape_show(v).s);
    LEAT_REQUIRE(s->dim[0] == v->dim[0], INVALID_ARGUMENT,
                 "Leading dim_size of both tensors must match.");
    LEAT_REQUIRE(b.values->count < INT32_MAX, INVALID_ARGUMENT,
                 "values tensor size must less than INT_MAX");
    LEAT_TRY(leat_kernel_out(k, 0, v, &b.y));
    LEAT_REQUIRE(b.y->dtype != LEAT_INT32 || s->dim[1] < INT32_MAX, INVALID_ARGUMENT,
                 "trailing dim_size must less than INT_MAX for int32 output type, was %lld",
                 (long long)s->dim[1]);
    leat_kernel_for(k, b.y->count, 40, bound_part, &b);
    return NULL;
}

static leat_status lower(leat_kernel *k)
{
    return bound(k, false);
}

static leat_status upper(leat_kernel *k)
{
    return bound(k, true);
}

#define REAL (LEAT_TYPES_REAL & ~LEAT_TYPES_SMALL_FLOAT)

const leat_kernel_def leat_cpu_search_sorted[] = {
    {.op = "LowerBound", .where = {{"T", REAL}}, .run = lower, .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "UpperBound", .where = {{"T", REAL}}, .run = upper, .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
