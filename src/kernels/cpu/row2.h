/* row2.h -- element-wise kernels of two operands that broadcast against each other, as numpy does.
 *
 * Dimensions are merged as far as both operands allow, so that equal shapes, a scalar with a
 * tensor, a row or a column with a matrix come down to one or two loops. The inner loop is a row
 * function: n elements, of each operand either n in a row or one for all.
 *
 * For EXPR_name(T, x, y), LEAT_Y_REAL(LEAT_ROW2_SAME, name) makes name_float, name_int32_t ...;
 * LEAT_ROW2_INIT makes init_name, which finds the function for a node's dtype; LEAT_ROW2_KERNEL
 * is the row in the table of kernels. An expression may set ok to false: see leat_row2_fn.
 */
#ifndef LEAT_KERNELS_CPU_ROW2_H
#define LEAT_KERNELS_CPU_ROW2_H

#include "kernels/cpu/arith.h"

/* z[i] = f(a[i], b[i]), or a[0] where a_one, or b[0] where b_one. z may be a or b. Gives false if
 * an element had no result, as in a division of integers by zero. */
typedef bool (*leat_row2_fn)(const void *a, bool a_one, const void *b, bool b_one, void *z,
                             int64_t n);

/* The state of a broadcasting kernel, filled by leat_row2_bind in its init function. */
typedef struct leat_row2 {
    leat_row2_fn fn;
    float unit_ns;     /* for an element */
    const char *error; /* what it means that fn gave false */
} leat_row2;

typedef struct leat_broadcast {
    int rank;                      /* after merging; at least 1 */
    int64_t dim[LEAT_MAX_RANK];    /* of the output, outer first */
    int64_t a_step[LEAT_MAX_RANK]; /* elements of a to the next of this dimension, 0: the same */
    int64_t b_step[LEAT_MAX_RANK];
    int64_t count; /* elements of the output */
    leat_shape out;
} leat_broadcast;

/* INVALID_ARGUMENT: "Incompatible shapes: [2] vs. [3]" */
leat_status leat_broadcast_init(leat_broadcast *c, const leat_shape *a,
                                const leat_shape *b) LEAT_MUST_CHECK;

/* fns has a function for each dtype that the kernel's row lists. */
void leat_row2_bind(const leat_node *n, const leat_row2_fn *fns, double unit_ns, const char *error,
                    void *state);
/* Kernels: inputs 0 and 1 broadcast against each other; or of the same shape. */
leat_status leat_row2_run(leat_kernel *k) LEAT_MUST_CHECK;
leat_status leat_row2_run_same(leat_kernel *k) LEAT_MUST_CHECK;
/* The same on tensors of a kernel that does more than this; z has the shape c->out. */
leat_status leat_row2_apply(leat_kernel *k, const leat_row2 *r, const leat_broadcast *c,
                            const leat_tensor *a, const leat_tensor *b,
                            leat_tensor *z) LEAT_MUST_CHECK;
leat_status leat_row2_check_same(const char *name, const char *op, const leat_shape *a,
                                 const leat_shape *b) LEAT_MUST_CHECK;

#define LEAT_ROW2_FN(name, T, Z)                                                                   \
    static bool name##_##T(const void *a_, bool a_one, const void *b_, bool b_one, void *z_,       \
                           int64_t n)                                                              \
    {                                                                                              \
        const T *a = a_, *b = b_;                                                                  \
        Z *z = z_;                                                                                 \
        bool ok = true;                                                                            \
        if (a_one) {                                                                               \
            const T x = *a;                                                                        \
            LEAT_SIMD                                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = EXPR_##name(T, x, b[i]);                                                    \
        } else if (b_one) {                                                                        \
            const T y = *b;                                                                        \
            LEAT_SIMD                                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = EXPR_##name(T, a[i], y);                                                    \
        } else {                                                                                   \
            LEAT_SIMD                                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = EXPR_##name(T, a[i], b[i]);                                                 \
        }                                                                                          \
        return ok;                                                                                 \
    }
/* For functions too costly, or too seldom used, to have three loops. */
#define LEAT_ROW2_SLOW_FN(name, T, Z)                                                              \
    static bool name##_##T(const void *a_, bool a_one, const void *b_, bool b_one, void *z_,       \
                           int64_t n)                                                              \
    {                                                                                              \
        const T *a = a_, *b = b_;                                                                  \
        Z *z = z_;                                                                                 \
        const int64_t sa = !a_one, sb = !b_one;                                                    \
        bool ok = true;                                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            z[i] = EXPR_##name(T, a[i * sa], b[i * sb]);                                           \
        return ok;                                                                                 \
    }

#define LEAT_ROW2_SAME(name, dtype, T) LEAT_ROW2_FN(name, T, T)
#define LEAT_ROW2_BOOL(name, dtype, T) LEAT_ROW2_FN(name, T, bool)
#define LEAT_ROW2_SLOW(name, dtype, T) LEAT_ROW2_SLOW_FN(name, T, T)
#define LEAT_ROW2_ENTRY(name, dtype, T) [LEAT_##dtype] = name##_##T,

/* fns: entries of an array by dtype */
#define LEAT_ROW2_INIT(name, ns, error, ...)                                                       \
    static leat_status init_##name(const leat_node *n, void *state)                                \
    {                                                                                              \
        static const leat_row2_fn fns[] = {__VA_ARGS__};                                           \
        leat_row2_bind(n, fns, ns, error, state);                                                  \
        return NULL;                                                                               \
    }

/* A kernel's row: op name, types of T, name of the functions. */
#define LEAT_ROW2_KERNEL(op_, types, name)                                                         \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = leat_row2_run, .state_size = sizeof(leat_row2), \
        .init = init_##name, .flags = LEAT_KERNEL_VIA_FLOAT                                        \
    }
/* The same for operands that must have the same shape. */
#define LEAT_ROW2_SAME_KERNEL(op_, types, name)                                                    \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = leat_row2_run_same,                             \
        .state_size = sizeof(leat_row2), .init = init_##name, .flags = LEAT_KERNEL_VIA_FLOAT       \
    }

#endif
