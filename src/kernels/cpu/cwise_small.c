/* cwise_small.c -- the few functions of half and bfloat16 whose results differ if they are computed
 * in float. */
#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"

/* Changes the sign, also of zero. */
static void neg_bits(const void *x, void *y, int64_t n)
{
    const uint16_t *a = x;
    uint16_t *b = y;
    LEAT_SIMD
    for (int64_t i = 0; i < n; i++)
        b[i] = a[i] ^ 0x8000;
}

static leat_status init_neg(const leat_node *n, void *state)
{
    *(leat_row1 *)state = (leat_row1){neg_bits, 0.2f};
    return NULL;
}

/* The difference is rounded before it is squared. */
static inline leat_half half_squared_difference(leat_half x, leat_half y)
{
    const float d =
        leat_half_to_float(leat_half_from_float(leat_half_to_float(x) - leat_half_to_float(y)));
    return leat_half_from_float(d * d);
}

#define EXPR_squared_difference(T, x, y) half_squared_difference(x, y)
LEAT_ROW2_SLOW_FN(squared_difference, leat_half, leat_half)

static leat_status init_squared_difference(const leat_node *n, void *state)
{
    *(leat_row2 *)state = (leat_row2){squared_difference_leat_half, 10, NULL};
    return NULL;
}

/* The logarithm is rounded before it is multiplied; 0 times anything is 0. */
static inline leat_half half_xlogy(leat_half x, leat_half y)
{
    const float a = leat_half_to_float(x);
    if (a == 0)
        return leat_half_from_float(0);
    const float l = leat_half_to_float(leat_half_from_float(logf(leat_half_to_float(y))));
    return leat_half_from_float(a * l);
}

#define EXPR_xlogy(T, x, y) half_xlogy(x, y)
LEAT_ROW2_SLOW_FN(xlogy, leat_half, leat_half)

static leat_status init_xlogy(const leat_node *n, void *state)
{
    *(leat_row2 *)state = (leat_row2){xlogy_leat_half, 20, NULL};
    return NULL;
}

const leat_kernel_def leat_cpu_cwise_small[] = {
    {.op = "Neg",
     .where = {{"T", LEAT_TYPES_SMALL_FLOAT}},
     .run = leat_row1_run,
     .state_size = sizeof(leat_row1),
     .init = init_neg},
    {.op = "SquaredDifference",
     .where = {{"T", LEAT_T(HALF)}},
     .run = leat_row2_run,
     .state_size = sizeof(leat_row2),
     .init = init_squared_difference},
    {.op = "Xlogy",
     .where = {{"T", LEAT_T(HALF)}},
     .run = leat_row2_run,
     .state_size = sizeof(leat_row2),
     .init = init_xlogy},
    {0},
};
