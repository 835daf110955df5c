/* row1.h -- element-wise kernels of one operand, made from expressions.
 *
 * For EXPR1_name(T, x), LEAT_Y_FLOAT(LEAT_ROW1_SAME, name) makes name_float and name_double;
 * LEAT_ROW1_INIT makes init_name, which finds the function for a node's dtype; LEAT_ROW1_KERNEL
 * is the row in the table of kernels.
 */
#ifndef LEAT_KERNELS_CPU_ROW1_H
#define LEAT_KERNELS_CPU_ROW1_H

#include "kernels/cpu/arith.h"

/* y[i] = f(x[i]); y may be x. */
typedef void (*leat_row1_fn)(const void *x, void *y, int64_t n);

typedef struct leat_row1 {
    leat_row1_fn fn;
    float unit_ns;
} leat_row1;

/* A kernel: output 0 has input 0's shape. Its state is a leat_row1. */
leat_status leat_row1_run(leat_kernel *k) LEAT_MUST_CHECK;
/* The same on tensors of a kernel that does more than this; y has x's shape. */
void leat_row1_apply(leat_kernel *k, const leat_row1 *r, const leat_tensor *x, leat_tensor *y);
void leat_row1_bind(const leat_node *n, const leat_row1_fn *fns, double unit_ns, void *state);

#define LEAT_ROW1_FN(name, T, Y)                                                                   \
    static void name##_##T(const void *x_, void *y_, int64_t n)                                    \
    {                                                                                              \
        const T *x = x_;                                                                           \
        Y *y = y_;                                                                                 \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = EXPR1_##name(T, x[i]);                                                          \
    }
#define LEAT_ROW1_SAME(name, dtype, T) LEAT_ROW1_FN(name, T, T)
#define LEAT_ROW1_BOOL(name, dtype, T) LEAT_ROW1_FN(name, T, bool)
#define LEAT_ROW1_ENTRY(name, dtype, T) [LEAT_##dtype] = name##_##T,

#define LEAT_ROW1_INIT(name, ns, ...)                                                              \
    static leat_status init_##name(const leat_node *n, void *state)                                \
    {                                                                                              \
        static const leat_row1_fn fns[] = {__VA_ARGS__};                                           \
        leat_row1_bind(n, fns, ns, state);                                                         \
        return NULL;                                                                               \
    }

#define LEAT_ROW1_KERNEL(op_, types, name)                                                         \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = leat_row1_run, .state_size = sizeof(leat_row1), \
        .init = init_##name, .flags = LEAT_KERNEL_VIA_FLOAT                                        \
    }

#endif
