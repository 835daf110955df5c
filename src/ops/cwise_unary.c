/* cwise_unary.c -- functions of one operand, element by element, and the ops that the gradients of
 * some of them add (SqrtGrad ...), which take the output y and its gradient dy. */
#include <leat/extend.h>
#include <leat/nn.h>

/* ---- Gradients: X is the input, Y the output, DY the output's gradient. For complex numbers the
 * derivative is conjugated; ReciprocalGrad, SqrtGrad and RsqrtGrad do that themselves. ---- */
#define X leat_conj(leat_grad_input(g, 0))
#define Y leat_conj(leat_grad_output(g, 0))
#define PLAIN_Y leat_grad_output(g, 0)
#define DY leat_grad_out(g, 0)
#define GRADIENT(name, dx)                                                                         \
    static leat_status name##_grad(leat_grad *g)                                                   \
    {                                                                                              \
        return leat_grad_in(g, 0, dx);                                                             \
    }

static leat_out times(double v, leat_out x)
{
    return leat_mul(leat_scalar_like(x, v), x);
}

/* 1 + v x^2 */
static leat_out one_and(double v, leat_out x)
{
    leat_out one = leat_scalar_like(x, 1), x2 = leat_square(x);
    return v > 0 ? leat_add(one, x2) : leat_sub(one, x2);
}

static leat_out exp_of_minus_square(leat_out x)
{
    return leat_exp(leat_neg(leat_square(x)));
}

#define TWO_OVER_ROOT_PI 1.1283791670955126

GRADIENT(abs, leat_mul(DY, leat_sign(X)))
GRADIENT(neg, leat_neg(DY))
GRADIENT(reciprocal, leat_reciprocal_grad(PLAIN_Y, DY))
GRADIENT(square, leat_mul(DY, leat_mul(X, leat_scalar_like(X, 2))))
GRADIENT(sqrt, leat_sqrt_grad(PLAIN_Y, DY))
GRADIENT(rsqrt, leat_rsqrt_grad(PLAIN_Y, DY))
GRADIENT(exp, leat_mul(DY, Y))
GRADIENT(expm1, leat_mul(DY, leat_exp(X)))
GRADIENT(log, leat_mul(DY, leat_reciprocal(X)))
GRADIENT(log1p, leat_mul(DY, leat_reciprocal(leat_add(leat_scalar_like(X, 1), X))))
GRADIENT(sinh, leat_mul(DY, leat_cosh(X)))
GRADIENT(cosh, leat_mul(DY, leat_sinh(X)))
GRADIENT(tanh, leat_tanh_grad(Y, DY))
GRADIENT(asinh, leat_div(DY, leat_cosh(Y)))
GRADIENT(acosh, leat_div(DY, leat_sinh(Y)))
GRADIENT(atanh, leat_mul(DY, leat_reciprocal(one_and(-1, X))))
GRADIENT(erf, leat_mul(times(TWO_OVER_ROOT_PI, DY), exp_of_minus_square(X)))
GRADIENT(erfc, leat_mul(times(-TWO_OVER_ROOT_PI, DY), exp_of_minus_square(X)))
GRADIENT(sigmoid, leat_sigmoid_grad(Y, DY))
GRADIENT(sin, leat_mul(DY, leat_cos(X)))
GRADIENT(cos, leat_mul(leat_neg(DY), leat_sin(X)))
GRADIENT(tan, leat_mul(leat_square(leat_reciprocal(leat_cos(X))), DY))
GRADIENT(asin, leat_mul(DY, leat_reciprocal(leat_sqrt(one_and(-1, X)))))
GRADIENT(acos, leat_mul(leat_neg(DY), leat_reciprocal(leat_sqrt(one_and(-1, X)))))
GRADIENT(atan, leat_mul(DY, leat_reciprocal(one_and(1, X))))
GRADIENT(sign, leat_zeros_like(X))

/* ---- Gradients of the gradients: A is y, B is dy ---- */
#define PLAIN_A leat_grad_input(g, 0)
#define PLAIN_B leat_grad_input(g, 1)
#define A leat_conj(PLAIN_A)
#define B leat_conj(PLAIN_B)
#define CONJ_DY leat_conj(DY)
#define GRADIENT2(name, da, db)                                                                    \
    static leat_status name##_grad_grad(leat_grad *g)                                              \
    {                                                                                              \
        LEAT_TRY(leat_grad_in(g, 0, da));                                                          \
        return leat_grad_in(g, 1, db);                                                             \
    }

/* dy b (1 - 2 a) */
static leat_out sigmoid_grad_by_y(leat_out dy, leat_out a, leat_out b)
{
    leat_out dy_b = leat_mul(dy, b);
    return leat_sub(dy_b, leat_mul(times(2, dy_b), a));
}

GRADIENT2(reciprocal, leat_mul(leat_mul(times(-2, CONJ_DY), PLAIN_B), A),
          leat_reciprocal_grad(A, DY))
GRADIENT2(sqrt, leat_mul(leat_neg(leat_conj(leat_div(DY, PLAIN_A))), PLAIN_Y),
          times(0.5, leat_div(DY, PLAIN_A)))
GRADIENT2(rsqrt, leat_mul(leat_mul(times(-1.5, CONJ_DY), PLAIN_B), leat_square(A)),
          leat_rsqrt_grad(A, DY))
GRADIENT2(tanh, leat_mul(leat_mul(times(-2, DY), B), A), leat_tanh_grad(A, DY))
GRADIENT2(sigmoid, sigmoid_grad_by_y(DY, A, B), leat_sigmoid_grad(A, DY))

#define REALS "bfloat16, half, float, double"
#define COMPLEX "complex64, complex128"
#define NUMBER "{" REALS ", int32, int64, " COMPLEX "}"
#define FLOATS "{" REALS ", " COMPLEX "}"
#define REAL "{" REALS "}"
#define UNARY_AS(op, types, gradient, f, ...)                                                      \
    {                                                                                              \
        .name = op, .inputs = "x: T", .outputs = "y: T", .attrs = "T: " types,                     \
        .shape = leat_shape_unchanged, .grad = gradient, .flags = LEAT_OP_CWISE | (f),             \
        ##__VA_ARGS__                                                                              \
    }
#define UNARY(op, types, gradient) UNARY_AS(op, types, gradient, 0)
#define TEST(op)                                                                                   \
    {                                                                                              \
        .name = op, .inputs = "x: T", .outputs = "y: bool", .attrs = "T: " REAL,                   \
        .shape = leat_shape_unchanged, .grad = leat_grad_none                                      \
    }
#define OF_Y_AND_DY(op, gradient, ...)                                                             \
    {                                                                                              \
        .name = op, .inputs = "y: T, dy: T", .outputs = "z: T", .attrs = "T: " FLOATS,             \
        .shape = leat_shape_unchanged, .grad = gradient, .flags = LEAT_OP_CWISE, ##__VA_ARGS__     \
    }

const leat_op_def leat_ops_cwise_unary[] = {
    UNARY("Abs", "{" REALS ", int8, int16, int32, int64}", abs_grad),
    UNARY_AS("Neg", NUMBER, neg_grad, LEAT_OP_INVOLUTION),
    UNARY("Inv", NUMBER, reciprocal_grad),
    UNARY("Reciprocal", NUMBER, reciprocal_grad),
    UNARY("Square", NUMBER, square_grad),
    UNARY("Sqrt", FLOATS, sqrt_grad),
    UNARY("Rsqrt", FLOATS, rsqrt_grad),
    UNARY("Round", NUMBER, leat_grad_none),
    UNARY("Exp", FLOATS, exp_grad),
    UNARY("Expm1", FLOATS, expm1_grad),
    UNARY("Log", FLOATS, log_grad),
    UNARY("Log1p", FLOATS, log1p_grad),
    UNARY("Sinh", FLOATS, sinh_grad),
    UNARY("Cosh", FLOATS, cosh_grad),
    UNARY_AS("Tanh", FLOATS, tanh_grad, 0, .role = LEAT_ROLE_TANH),
    UNARY("Asinh", FLOATS, asinh_grad),
    UNARY("Acosh", FLOATS, acosh_grad),
    UNARY("Atanh", FLOATS, atanh_grad),
    UNARY("Erf", REAL, erf_grad),
    UNARY("Erfc", REAL, erfc_grad),
    UNARY_AS("Sigmoid", FLOATS, sigmoid_grad, 0, .role = LEAT_ROLE_SIGMOID),
    UNARY("Sin", FLOATS, sin_grad),
    UNARY("Cos", FLOATS, cos_grad),
    UNARY("Tan", NUMBER, tan_grad),
    UNARY("Asin", NUMBER, asin_grad),
    UNARY("Acos", NUMBER, acos_grad),
    UNARY("Atan", NUMBER, atan_grad),
    UNARY("Sign", NUMBER, sign_grad),
    UNARY("Floor", REAL, leat_grad_none),
    UNARY("Ceil", REAL, leat_grad_none),
    UNARY("Rint", REAL, leat_grad_none),
    TEST("IsNan"),
    TEST("IsInf"),
    TEST("IsFinite"),
    OF_Y_AND_DY("InvGrad", reciprocal_grad_grad),
    OF_Y_AND_DY("ReciprocalGrad", reciprocal_grad_grad),
    OF_Y_AND_DY("SqrtGrad", sqrt_grad_grad),
    OF_Y_AND_DY("RsqrtGrad", rsqrt_grad_grad),
    OF_Y_AND_DY("TanhGrad", tanh_grad_grad, .role = LEAT_ROLE_TANH_GRAD),
    OF_Y_AND_DY("SigmoidGrad", sigmoid_grad_grad, .role = LEAT_ROLE_SIGMOID_GRAD),
    {0},
};
