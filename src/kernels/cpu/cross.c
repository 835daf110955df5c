/* cross.c -- Cross, the product of vectors of three. */
#include "kernels/cpu/arith.h"

#define CROSS(dtype, T)                                                                            \
    static void cross_##T(const T *a, const T *b, T *y, int64_t n)                                 \
    {                                                                                              \
        typedef LEAT_WIDE(T) W;                                                                    \
        for (int64_t i = 0; i < n; i++, a += 3, b += 3, y += 3) {                                  \
            const W a0 = (W)a[0], a1 = (W)a[1], a2 = (W)a[2];                                      \
            const W b0 = (W)b[0], b1 = (W)b[1], b2 = (W)b[2];                                      \
            y[0] = (T)(a1 * b2 - a2 * b1);                                                         \
            y[1] = (T)(a2 * b0 - a0 * b2);                                                         \
            y[2] = (T)(a0 * b1 - a1 * b0);                                                         \
        }                                                                                          \
    }
LEAT_X_REAL(CROSS)

#define CROSS_CASE(dtype, T)                                                                       \
    case LEAT_##dtype:                                                                             \
        cross_##T(AT(T, a), AT(T, b), AT(T, y), a->count / 3);                                     \
        break;

static leat_status cross_run(leat_kernel *k)
{
    const leat_tensor *a = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1);
    LEAT_REQUIRE(leat_shape_equal(&a->shape, &b->shape), INVALID_ARGUMENT,
                 "Both inputs must be of same shape: %s vs. %s", leat_shape_show(&a->shape).s,
                 leat_shape_show(&b->shape).s);
    LEAT_REQUIRE(a->shape.rank >= 1, INVALID_ARGUMENT, "Input must be at least 1D%s",
                 leat_shape_show(&a->shape).s);
    LEAT_REQUIRE(a->shape.dim[a->shape.rank - 1] == 3, FAILED_PRECONDITION,
                 "Cross-products are only defined for 3-element vectors.");
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &a->shape, &y));
    switch (a->dtype) {
        LEAT_X_REAL(CROSS_CASE)
    default:
        break;
    }
    return NULL;
}

const leat_kernel_def leat_cpu_cross[] = {
    {.op = "Cross",
     .where = {{"T", LEAT_ROW_REAL}},
     .run = cross_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
