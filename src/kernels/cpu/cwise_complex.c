/* cwise_complex.c -- the element-wise functions of complex numbers. */
#include <tgmath.h>

#include "kernels/cpu/complex.h"
#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"

/* ---- Two operands ---- */
#define EXPR_add(T, x, y) ((x) + (y))
#define EXPR_sub(T, x, y) ((x) - (y))
#define EXPR_mul(T, x, y) leat_mul_##T(x, y)
#define EXPR_div(T, x, y) ((x) / (y))
#define EXPR_mul_no_nan(T, x, y) ((y) == 0 ? 0 : leat_mul_##T(x, y))
#define EXPR_div_no_nan(T, x, y) ((y) == 0 ? 0 : (x) / (y))
#define EXPR_xdivy(T, x, y) ((x) == 0 ? 0 : (x) / (y))
#define EXPR_xlogy(T, x, y) ((x) == 0 ? 0 : leat_mul_##T(x, log(y)))
#define EXPR_pow(T, x, y) pow(x, y)
#define EXPR_squared_difference(T, x, y) leat_mul_##T((x) - (y), conj((x) - (y)))
#define EXPR_equal(T, x, y) ((x) == (y))
#define EXPR_not_equal(T, x, y) ((x) != (y))
#define TWO(name, MAKE, ns)                                                                        \
    LEAT_Y_COMPLEX(MAKE, name)                                                                     \
    LEAT_ROW2_INIT(name, ns, NULL, LEAT_Y_COMPLEX(LEAT_ROW2_ENTRY, name))
TWO(add, LEAT_ROW2_SAME, 0.6)
TWO(sub, LEAT_ROW2_SAME, 0.6)
TWO(mul, LEAT_ROW2_SAME, 0.8)
TWO(div, LEAT_ROW2_SLOW, 10)
TWO(mul_no_nan, LEAT_ROW2_SLOW, 2)
TWO(div_no_nan, LEAT_ROW2_SLOW, 10)
TWO(xdivy, LEAT_ROW2_SLOW, 10)
TWO(xlogy, LEAT_ROW2_SLOW, 50)
TWO(pow, LEAT_ROW2_SLOW, 100)
TWO(squared_difference, LEAT_ROW2_SLOW, 2)
TWO(equal, LEAT_ROW2_BOOL, 0.6)
TWO(not_equal, LEAT_ROW2_BOOL, 0.6)

/* The gradient ops, from an output y and its gradient dy; they use the conjugate of y. */
#define EXPR_reciprocal_grad(T, y, dy) leat_mul_##T(-conj(y), leat_mul_##T(dy, conj(y)))
#define EXPR_sqrt_grad(T, y, dy) ((dy) / (2 * conj(y)))
#define EXPR_rsqrt_grad(T, y, dy)                                                                  \
    (leat_mul_##T(leat_mul_##T(dy, conj(y)), leat_mul_##T(conj(y), conj(y))) / -2)
#define EXPR_tanh_grad(T, y, dy) leat_mul_##T(dy, 1 - leat_mul_##T(y, y))
#define EXPR_sigmoid_grad(T, y, dy) leat_mul_##T(leat_mul_##T(dy, y), 1 - (y))
TWO(reciprocal_grad, LEAT_ROW2_SLOW, 3)
TWO(sqrt_grad, LEAT_ROW2_SLOW, 10)
TWO(rsqrt_grad, LEAT_ROW2_SLOW, 10)
TWO(tanh_grad, LEAT_ROW2_SLOW, 3)
TWO(sigmoid_grad, LEAT_ROW2_SLOW, 3)

/* ---- One operand ---- */
#define EXPR1_neg(T, x) (-(x))
#define EXPR1_square(T, x) leat_mul_##T(x, x)
#define EXPR1_reciprocal(T, x) (1 / (x))
#define EXPR1_rsqrt(T, x) (1 / sqrt(x))
#define EXPR1_sign(T, x) ((x) == 0 ? 0 : (x) / fabs(x))
#define EXPR1_sigmoid(T, x) (1 / (1 + exp(-(x))))
#define EXPR1_expm1(T, x) (exp(x) - 1)
#define EXPR1_log1p(T, x) log(1 + (x))
#define EXPR1_sqrt(T, x) sqrt(x)
#define EXPR1_exp(T, x) exp(x)
#define EXPR1_log(T, x) log(x)
#define EXPR1_sin(T, x) sin(x)
#define EXPR1_cos(T, x) cos(x)
#define EXPR1_tan(T, x) tan(x)
#define EXPR1_sinh(T, x) sinh(x)
#define EXPR1_cosh(T, x) cosh(x)
#define EXPR1_tanh(T, x) tanh(x)
#define EXPR1_asin(T, x) asin(x)
#define EXPR1_acos(T, x) acos(x)
#define EXPR1_atan(T, x) atan(x)
#define EXPR1_asinh(T, x) asinh(x)
#define EXPR1_acosh(T, x) acosh(x)
#define EXPR1_atanh(T, x) atanh(x)
#define ONE(name, ns)                                                                              \
    LEAT_Y_COMPLEX(LEAT_ROW1_SAME, name)                                                           \
    LEAT_ROW1_INIT(name, ns, LEAT_Y_COMPLEX(LEAT_ROW1_ENTRY, name))
ONE(neg, 0.5)
ONE(square, 0.8)
ONE(reciprocal, 10)
ONE(rsqrt, 30)
ONE(sign, 15)
ONE(sigmoid, 50)
ONE(expm1, 40)
ONE(log1p, 40)
ONE(sqrt, 20)
ONE(exp, 40)
ONE(log, 40)
ONE(sin, 50)
ONE(cos, 50)
ONE(tan, 50)
ONE(sinh, 50)
ONE(cosh, 50)
ONE(tanh, 50)
ONE(asin, 80)
ONE(acos, 80)
ONE(atan, 80)
ONE(asinh, 80)
ONE(acosh, 80)
ONE(atanh, 80)

#define KERNEL1(op_, name)                                                                         \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_COMPLEX}}, .run = leat_row1_run,                       \
        .state_size = sizeof(leat_row1), .init = init_##name                                       \
    }
#define KERNEL2(op_, name)                                                                         \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_COMPLEX}}, .run = leat_row2_run,                       \
        .state_size = sizeof(leat_row2), .init = init_##name                                       \
    }

const leat_kernel_def leat_cpu_cwise_complex[] = {
    KERNEL2("Add", add),
    KERNEL2("AddV2", add),
    KERNEL2("Sub", sub),
    KERNEL2("Mul", mul),
    KERNEL2("Div", div),
    KERNEL2("RealDiv", div),
    KERNEL2("MulNoNan", mul_no_nan),
    KERNEL2("DivNoNan", div_no_nan),
    KERNEL2("Xdivy", xdivy),
    KERNEL2("Xlogy", xlogy),
    KERNEL2("Pow", pow),
    KERNEL2("SquaredDifference", squared_difference),
    KERNEL2("Equal", equal),
    KERNEL2("NotEqual", not_equal),
    KERNEL2("InvGrad", reciprocal_grad),
    KERNEL2("ReciprocalGrad", reciprocal_grad),
    KERNEL2("SqrtGrad", sqrt_grad),
    KERNEL2("RsqrtGrad", rsqrt_grad),
    KERNEL2("TanhGrad", tanh_grad),
    KERNEL2("SigmoidGrad", sigmoid_grad),
    KERNEL1("Neg", neg),
    KERNEL1("Square", square),
    KERNEL1("Inv", reciprocal),
    KERNEL1("Reciprocal", reciprocal),
    KERNEL1("Sqrt", sqrt),
    KERNEL1("Rsqrt", rsqrt),
    KERNEL1("Sign", sign),
    KERNEL1("Sigmoid", sigmoid),
    KERNEL1("Exp", exp),
    KERNEL1("Expm1", expm1),
    KERNEL1("Log", log),
    KERNEL1("Log1p", log1p),
    KERNEL1("Sin", sin),
    KERNEL1("Cos", cos),
    KERNEL1("Tan", tan),
    KERNEL1("Sinh", sinh),
    KERNEL1("Cosh", cosh),
    KERNEL1("Tanh", tanh),
    KERNEL1("Asin", asin),
    KERNEL1("Acos", acos),
    KERNEL1("Atan", atan),
    KERNEL1("Asinh", asinh),
    KERNEL1("Acosh", acosh),
    KERNEL1("Atanh", atanh),
    {0},
};
