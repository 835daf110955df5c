/* cwise_unary.c -- functions of one operand, element by element; and the ops that the gradients of
 * some of them add, which take the output y and its gradient dy. */
#include <tgmath.h> /* sqrt(x) is sqrtf(x) for a float */

#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"
#include "kernels/cpu/vmath.h"

/* ---- Arithmetic ---- */
#define EXPR1_neg(T, x) (T)(0 - (LEAT_WIDE(T))(x)) /* of 0 it is 0, as in TensorFlow */
#define EXPR1_square(T, x) (T)((LEAT_WIDE(T))(x) * (LEAT_WIDE(T))(x))
#define EXPR1_sign(T, x) (T)(((x) > 0) - ((x) < 0))
#define EXPR1_fabs(T, x) fabs(x)
#define EXPR1_int_abs(T, x) ((x) < 0 ? EXPR1_neg(T, x) : (x))
#define EXPR1_same(T, x) (x)
/* Rounds halves to even. A negative number that is rounded to 0 becomes 0, not -0. */
#define EXPR1_round(T, x) (rint(x) + ((x) == 0 ? (x) : 0))
#define EXPR1_reciprocal(T, x) (1 / (x))
#define EXPR1_rsqrt(T, x) (1 / sqrt(x))
/* The functions of float are vectorised, those of double are the C library's. */
#define EXP_float(x) leat_expf(x)
#define EXP_double(x) exp(x)
#define LOG_float(x) leat_logf(x)
#define LOG_double(x) log(x)
#define TANH_float(x) leat_tanhf(x)
#define TANH_double(x) tanh(x)
#define EXPR1_exp(T, x) EXP_##T(x)
#define EXPR1_log(T, x) LOG_##T(x)
#define EXPR1_tanh(T, x) TANH_##T(x)
#define EXPR1_sigmoid(T, x) (1 / (1 + EXP_##T(-(x))))
#define EXPR1_is_nan(T, x) ((x) != (x))
#define EXPR1_is_inf(T, x) (fabs(x) == (T)INFINITY)
#define EXPR1_is_finite(T, x) (fabs(x) < (T)INFINITY)
LEAT_Y_REAL(LEAT_ROW1_SAME, neg)
LEAT_Y_REAL(LEAT_ROW1_SAME, square)
LEAT_Y_REAL(LEAT_ROW1_SAME, sign)
LEAT_Y_FLOAT(LEAT_ROW1_SAME, fabs)
LEAT_Y_INTEGER(LEAT_ROW1_SAME, int_abs)
LEAT_Y_INTEGER(LEAT_ROW1_SAME, same)
LEAT_Y_FLOAT(LEAT_ROW1_SAME, round)
LEAT_Y_FLOAT(LEAT_ROW1_BOOL, is_nan)
LEAT_Y_FLOAT(LEAT_ROW1_BOOL, is_inf)
LEAT_Y_FLOAT(LEAT_ROW1_BOOL, is_finite)

/* ---- From the C library: X(function, ns for an element) ---- */
#define LIBM(X)                                                                                    \
    X(floor, 0.3)                                                                                  \
    X(ceil, 0.3)                                                                                   \
    X(rint, 0.3)                                                                                   \
    X(sqrt, 0.7)                                                                                   \
    X(expm1, 10)                                                                                   \
    X(log1p, 10)                                                                                   \
    X(sin, 10)                                                                                     \
    X(cos, 10)                                                                                     \
    X(tan, 15)                                                                                     \
    X(sinh, 15)                                                                                    \
    X(cosh, 12)                                                                                    \
    X(asin, 10)                                                                                    \
    X(acos, 10)                                                                                    \
    X(atan, 10)                                                                                    \
    X(asinh, 15)                                                                                   \
    X(acosh, 15)                                                                                   \
    X(atanh, 15)                                                                                   \
    X(erf, 10)                                                                                     \
    X(erfc, 12)
#define LIBM_ROW(name, T)                                                                          \
    static void name##_##T(const void *x_, void *y_, int64_t n)                                    \
    {                                                                                              \
        const T *x = x_;                                                                           \
        T *y = y_;                                                                                 \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = name(x[i]);                                                                     \
    }
#define LIBM_ROWS(name, ns)                                                                        \
    LIBM_ROW(name, float)                                                                          \
    LIBM_ROW(name, double)                                                                         \
    LEAT_ROW1_INIT(name, ns, [LEAT_FLOAT] = name##_float, [LEAT_DOUBLE] = name##_double)
LIBM(LIBM_ROWS)

LEAT_ROW1_INIT(neg, 0.3, LEAT_Y_REAL(LEAT_ROW1_ENTRY, neg))
LEAT_ROW1_INIT(square, 0.3, LEAT_Y_REAL(LEAT_ROW1_ENTRY, square))
LEAT_ROW1_INIT(sign, 0.3, LEAT_Y_REAL(LEAT_ROW1_ENTRY, sign))
LEAT_ROW1_INIT(abs, 0.3,
               LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, fabs) LEAT_Y_INTEGER(LEAT_ROW1_ENTRY, int_abs))
LEAT_ROW1_INIT(round, 0.3,
               LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, round) LEAT_Y_INTEGER(LEAT_ROW1_ENTRY, same))
/* For float and double: defines the functions of an expression, with the estimated cost of an
 * element in ns. */
#define FLOATING(name, ns)                                                                         \
    LEAT_Y_FLOAT(LEAT_ROW1_SAME, name)                                                             \
    LEAT_ROW1_INIT(name, ns, LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, name))
FLOATING(reciprocal, 0.5)
FLOATING(rsqrt, 1)
FLOATING(sigmoid, 1.5)
FLOATING(exp, 1)
FLOATING(log, 1)
FLOATING(tanh, 2)
LEAT_ROW1_INIT(is_nan, 0.3, LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, is_nan))
LEAT_ROW1_INIT(is_inf, 0.3, LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, is_inf))
LEAT_ROW1_INIT(is_finite, 0.3, LEAT_Y_FLOAT(LEAT_ROW1_ENTRY, is_finite))

/* ---- Gradients, from y and dy ---- */
#define EXPR_reciprocal_grad(T, y, dy) (-(dy) * ((y) * (y)))
#define EXPR_sqrt_grad(T, y, dy) ((T)0.5 * (dy) / (y))
#define EXPR_rsqrt_grad(T, y, dy) ((T)-0.5 * ((dy) * (y)) * ((y) * (y)))
#define EXPR_tanh_grad(T, y, dy) ((dy) * (1 - (y) * (y)))
#define EXPR_sigmoid_grad(T, y, dy) ((dy) * (y) * (1 - (y)))
#define GRAD(name, ns)                                                                             \
    LEAT_Y_FLOAT(LEAT_ROW2_SAME, name)                                                             \
    LEAT_ROW2_INIT(name, ns, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, name))
GRAD(reciprocal_grad, 0.3)
GRAD(sqrt_grad, 0.5)
GRAD(rsqrt_grad, 0.3)
GRAD(tanh_grad, 0.3)
GRAD(sigmoid_grad, 0.3)

#define FLOAT LEAT_ROW_FLOAT
#define SOME (LEAT_ROW_FLOAT | LEAT_ROW_INDEX)

const leat_kernel_def leat_cpu_cwise_unary[] = {
    LEAT_ROW1_KERNEL("Abs", FLOAT | LEAT_TYPES_SIGNED, abs),
    LEAT_ROW1_KERNEL("Neg", SOME, neg),
    LEAT_ROW1_KERNEL("Inv", FLOAT, reciprocal),
    LEAT_ROW1_KERNEL("Reciprocal", FLOAT, reciprocal),
    LEAT_ROW1_KERNEL("Square", SOME, square),
    LEAT_ROW1_KERNEL("Sqrt", FLOAT, sqrt),
    LEAT_ROW1_KERNEL("Rsqrt", FLOAT, rsqrt),
    LEAT_ROW1_KERNEL("Round", SOME, round),
    LEAT_ROW1_KERNEL("Exp", FLOAT, exp),
    LEAT_ROW1_KERNEL("Expm1", FLOAT, expm1),
    LEAT_ROW1_KERNEL("Log", FLOAT, log),
    LEAT_ROW1_KERNEL("Log1p", FLOAT, log1p),
    LEAT_ROW1_KERNEL("Sinh", FLOAT, sinh),
    LEAT_ROW1_KERNEL("Cosh", FLOAT, cosh),
    LEAT_ROW1_KERNEL("Tanh", FLOAT, tanh),
    LEAT_ROW1_KERNEL("Asinh", FLOAT, asinh),
    LEAT_ROW1_KERNEL("Acosh", FLOAT, acosh),
    LEAT_ROW1_KERNEL("Atanh", FLOAT, atanh),
    LEAT_ROW1_KERNEL("Erf", FLOAT, erf),
    LEAT_ROW1_KERNEL("Erfc", FLOAT, erfc),
    LEAT_ROW1_KERNEL("Sigmoid", FLOAT, sigmoid),
    LEAT_ROW1_KERNEL("Sin", FLOAT, sin),
    LEAT_ROW1_KERNEL("Cos", FLOAT, cos),
    LEAT_ROW1_KERNEL("Tan", FLOAT, tan),
    LEAT_ROW1_KERNEL("Asin", FLOAT, asin),
    LEAT_ROW1_KERNEL("Acos", FLOAT, acos),
    LEAT_ROW1_KERNEL("Atan", FLOAT, atan),
    LEAT_ROW1_KERNEL("IsNan", FLOAT, is_nan),
    LEAT_ROW1_KERNEL("IsInf", FLOAT, is_inf),
    LEAT_ROW1_KERNEL("IsFinite", FLOAT, is_finite),
    LEAT_ROW1_KERNEL("Sign", SOME, sign),
    LEAT_ROW1_KERNEL("Floor", FLOAT, floor),
    LEAT_ROW1_KERNEL("Ceil", FLOAT, ceil),
    LEAT_ROW1_KERNEL("Rint", FLOAT, rint),
    LEAT_ROW2_SAME_KERNEL("InvGrad", FLOAT, reciprocal_grad),
    LEAT_ROW2_SAME_KERNEL("ReciprocalGrad", FLOAT, reciprocal_grad),
    LEAT_ROW2_SAME_KERNEL("SqrtGrad", FLOAT, sqrt_grad),
    LEAT_ROW2_SAME_KERNEL("RsqrtGrad", FLOAT, rsqrt_grad),
    LEAT_ROW2_SAME_KERNEL("TanhGrad", FLOAT, tanh_grad),
    LEAT_ROW2_SAME_KERNEL("SigmoidGrad", FLOAT, sigmoid_grad),
    {0},
};
