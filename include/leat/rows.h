/* rows.h -- kernels that are functions on rows of elements, for element-wise ops (LEAT_OP_CWISE)
 * and for training ops (leat_op_def.gradient). Leat's own kernels and users' are written with it
 * alike.
 *
 * Such a function computes n elements and does nothing else, so that it can be called block by
 * block: a tree of element-wise ops, or an update with the tree of ops that computes its gradient,
 * reads and writes memory once. An element-wise kernel of one operand is
 *
 *     #define EXPR1_cube(T, x) ((x) * (x) * (x))
 *     LEAT_ROW1_SAME(cube, FLOAT, float)
 *     LEAT_ROW1_SAME(cube, DOUBLE, double)
 *     LEAT_ROW1_INIT(cube, 0.3, LEAT_ROW1_ENTRY(cube, FLOAT, float)
 *                                   LEAT_ROW1_ENTRY(cube, DOUBLE, double))
 *     ...
 *     LEAT_ROW1_KERNEL("Cube", LEAT_T(FLOAT) | LEAT_T(DOUBLE), cube) // in a leat_kernel_def[]
 */
#ifndef LEAT_ROWS_H
#define LEAT_ROWS_H

#include <leat/extend.h>

/* In front of a loop whose iterations are independent: element i of the output is written after
 * element i of the inputs was read, and nothing else is shared. */
#if defined(__clang__)
/* Loops that call the C library are not vectorised. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define LEAT_SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define LEAT_SIMD _Pragma("GCC ivdep")
#endif

/* ---- One operand ---- */

/* y[i] = f(x[i]); y may be x. */
typedef void (*leat_row1_fn)(const void *x, void *y, int64_t n);

/* The state of such a kernel, filled by leat_row1_bind in its init function. */
typedef struct leat_row1 {
    leat_row1_fn fn;
    float unit_ns; /* estimated cost of an element */
} leat_row1;

/* The kernel's run function: output 0 has the shape of input 0. Its state is a leat_row1. */
LEAT_API leat_status leat_row1_run(leat_kernel *k) LEAT_MUST_CHECK;
/* fns has a function for each dtype that the kernel's row in leat_kernel_def[] lists. */
LEAT_API void leat_row1_bind(const leat_node *n, const leat_row1_fn *fns, double unit_ns,
                             void *state);

/* Defines, from the expression EXPR1_name(T, x), the function name_T, whose results are of type T,
 * or bools. */
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

/* Defines init_name, which finds the function for a node's dtype in an array that is indexed by
 * dtype. */
#define LEAT_ROW1_INIT(name, ns, ...)                                                              \
    static leat_status init_##name(const leat_node *n, void *state)                                \
    {                                                                                              \
        static const leat_row1_fn fns[] = {__VA_ARGS__};                                           \
        leat_row1_bind(n, fns, ns, state);                                                         \
        return NULL;                                                                               \
    }

/* An element of leat_kernel_def[]: op name, dtypes of T, name of the functions. */
#define LEAT_ROW1_KERNEL(op_, types, name)                                                         \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = leat_row1_run, .state_size = sizeof(leat_row1), \
        .init = init_##name, .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_ROWS                     \
    }

/* ---- Two operands, which broadcast against each other as in numpy ---- */

/* z[i] = f(a[i], b[i]); a[0] for all i if a_one, b[0] for all i if b_one. z may be a or b. Returns
 * false if an element has no result, as in a division of integers by zero; never for floats. */
typedef bool (*leat_row2_fn)(const void *a, bool a_one, const void *b, bool b_one, void *z,
                             int64_t n);

/* The state of such a kernel, filled by leat_row2_bind in its init function. */
typedef struct leat_row2 {
    leat_row2_fn fn;
    float unit_ns;     /* estimated cost of an element */
    const char *error; /* the error message if fn returns false */
} leat_row2;

/* The kernels' run functions: inputs 0 and 1 broadcast against each other; or they have one shape,
 * for an op whose shape function demands that. */
LEAT_API leat_status leat_row2_run(leat_kernel *k) LEAT_MUST_CHECK;
LEAT_API leat_status leat_row2_run_same(leat_kernel *k) LEAT_MUST_CHECK;
LEAT_API void leat_row2_bind(const leat_node *n, const leat_row2_fn *fns, double unit_ns,
                             const char *error, void *state);

/* Defines, from the expression EXPR_name(T, x, y), which may set ok to false, the function
 * name_T. */
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
/* The same with one loop instead of three, for functions that are too costly or too rarely used to
 * gain from three. */
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

#define LEAT_ROW2_INIT(name, ns, error, ...)                                                       \
    static leat_status init_##name(const leat_node *n, void *state)                                \
    {                                                                                              \
        static const leat_row2_fn fns[] = {__VA_ARGS__};                                           \
        leat_row2_bind(n, fns, ns, error, state);                                                  \
        return NULL;                                                                               \
    }

#define LEAT_ROW2_KERNEL_OF(op_, types, name, run_)                                                \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = run_, .state_size = sizeof(leat_row2),          \
        .init = init_##name, .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_ROWS                     \
    }
#define LEAT_ROW2_KERNEL(op_, types, name) LEAT_ROW2_KERNEL_OF(op_, types, name, leat_row2_run)
#define LEAT_ROW2_SAME_KERNEL(op_, types, name)                                                    \
    LEAT_ROW2_KERNEL_OF(op_, types, name, leat_row2_run_same)

/* ---- Training ops ---- */

/* The update of n elements by a training op: v are its variables (4 at most), g the gradient, h its
 * scalars in the order of the definition (6 at most), flag its attribute use_nesterov or
 * update_slots. */
typedef struct leat_apply_rule {
    void (*run_float)(float *const *v, const float *g, int64_t n, const float *h, bool flag);
    void (*run_double)(double *const *v, const double *g, int64_t n, const double *h, bool flag);
    double unit_ns; /* estimated cost of an element of type float */
    bool checked;   /* check that lr > 0, l1 >= 0, l2 >= 0 and lr_power <= 0 */
} leat_apply_rule;

/* Init and run functions of a kernel that applies a rule; run holds the variables' locks. */
enum { LEAT_APPLY_STATE = 192 }; /* size of the kernel's state, in bytes */
LEAT_API leat_status leat_apply_init(const leat_node *n, void *state) LEAT_MUST_CHECK;
LEAT_API leat_status leat_apply_run(leat_kernel *k) LEAT_MUST_CHECK;

#define LEAT_APPLY_KERNEL(op_, types, rule_)                                                       \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = leat_apply_run, .init = leat_apply_init,        \
        .state_size = LEAT_APPLY_STATE, .rule = rule_                                              \
    }

#endif
