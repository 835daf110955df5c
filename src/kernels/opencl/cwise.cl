/* cwise.cl -- element-wise ops of one and two operands. EXPR_Op is the value of an op; the function
 * Op_T computes it for operands of type T. */

/* ---- One operand ---- */
#define EXPR_Abs(x) ((x) < 0 ? -(x) : (x) == 0 ? 0 : (x))
#define EXPR_Neg(x) (0 - (x))
#define EXPR_Inv(x) (1 / (x))
#define EXPR_Reciprocal(x) (1 / (x))
#define EXPR_Square(x) ((x) * (x))
#define EXPR_Sqrt(x) sqrt(x)
#define EXPR_Rsqrt(x) (1 / sqrt(x))
#define EXPR_Round(x) rint(x)
#define EXPR_Exp(x) exp(x)
#define EXPR_Expm1(x) expm1(x)
#define EXPR_Log(x) log(x)
#define EXPR_Log1p(x) log1p(x)
#define EXPR_Sinh(x) sinh(x)
#define EXPR_Cosh(x) cosh(x)
#define EXPR_Tanh(x) tanh(x)
#define EXPR_Asinh(x) asinh(x)
#define EXPR_Acosh(x) acosh(x)
#define EXPR_Atanh(x) atanh(x)
#define EXPR_Erf(x) erf(x)
#define EXPR_Erfc(x) erfc(x)
#define EXPR_Sigmoid(x) (1 / (1 + exp(-(x))))
#define EXPR_Sin(x) sin(x)
#define EXPR_Cos(x) cos(x)
#define EXPR_Tan(x) tan(x)
#define EXPR_Asin(x) asin(x)
#define EXPR_Acos(x) acos(x)
#define EXPR_Atan(x) atan(x)
#define EXPR_IsNan(x) ((x) != (x))
#define EXPR_IsInf(x) (fabs(x) == INFINITY)
#define EXPR_IsFinite(x) (fabs(x) < INFINITY)
#define EXPR_Sign(x) (((x) > 0) - ((x) < 0))
#define EXPR_Floor(x) floor(x)
#define EXPR_Ceil(x) ceil(x)
#define EXPR_Rint(x) rint(x)
#define EXPR_LogicalNot(x) ((x) == 0)
#define EXPR_Relu(x) ((x) < 0 ? 0 : (x)) /* NaN stays */
#define EXPR_Relu6(x) ((x) < 0 ? 0 : (x) > 6 ? 6 : (x))
#define EXPR_Elu(x) ((x) < 0 ? exp(x) - 1 : (x))
#define SELU_SCALE 1.0507009873554805f
#define SELU_ALPHA 1.7580993408473768f /* with the scale */
#define EXPR_Selu(x) ((x) < 0 ? SELU_ALPHA * (exp(x) - 1) : SELU_SCALE * (x))
#define LOW -13.942385f /* the logarithm of float's epsilon, and 2 */
#define EXPR_Softplus(x) ((x) > -LOW ? (x) : (x) < LOW ? exp(x) : log1p(exp(x)))
#define EXPR_Softsign(x) ((x) / (fabs(x) + 1))

/* ---- Two operands ---- */
#define EXPR_Add(x, y) ((x) + (y))
#define EXPR_AddV2(x, y) ((x) + (y))
#define EXPR_Sub(x, y) ((x) - (y))
#define EXPR_Mul(x, y) ((x) * (y))
#define EXPR_MulNoNan(x, y) ((y) == 0 ? 0 : (x) * (y))
#define EXPR_Div(x, y) ((x) / (y))
#define EXPR_RealDiv(x, y) ((x) / (y))
#define EXPR_DivNoNan(x, y) ((y) == 0 ? 0 : (x) / (y))
#define EXPR_FloorDiv(x, y) floor((x) / (y))
#define EXPR_FloorMod(x, y) floor_mod(x, y)
#define EXPR_Mod(x, y) fmod(x, y)
#define EXPR_TruncateMod(x, y) fmod(x, y)
#define EXPR_SquaredDifference(x, y) (((x) - (y)) * ((x) - (y)))
#define EXPR_Maximum(x, y) ((x) < (y) ? (y) : (x))
#define EXPR_Minimum(x, y) ((y) < (x) ? (y) : (x))
#define EXPR_Xdivy(x, y) ((x) == 0 ? 0 : (x) / (y))
#define EXPR_Xlogy(x, y) ((x) == 0 ? 0 : (x) * log(y))
#define EXPR_Pow(x, y) pow(x, y)
#define EXPR_Atan2(y, x) atan2(y, x)
#define EXPR_Less(x, y) ((x) < (y))
#define EXPR_LessEqual(x, y) ((x) <= (y))
#define EXPR_Greater(x, y) ((x) > (y))
#define EXPR_GreaterEqual(x, y) ((x) >= (y))
#define EXPR_Equal(x, y) ((x) == (y))
#define EXPR_NotEqual(x, y) ((x) != (y))
#define EXPR_LogicalAnd(x, y) ((x) & (y))
#define EXPR_LogicalOr(x, y) ((x) | (y))

/* ---- Gradients ---- */
#define EXPR_InvGrad(y, dy) (-(dy) * ((y) * (y)))
#define EXPR_ReciprocalGrad(y, dy) (-(dy) * ((y) * (y)))
#define EXPR_SqrtGrad(y, dy) (0.5f * (dy) / (y))
#define EXPR_RsqrtGrad(y, dy) (-0.5f * ((dy) * (y)) * ((y) * (y)))
#define EXPR_TanhGrad(y, dy) ((dy) * (1 - (y) * (y)))
#define EXPR_SigmoidGrad(y, dy) ((dy) * (y) * (1 - (y)))
#define EXPR_ReluGrad(dy, x) ((dy) * (float)((x) > 0)) /* -0 and NaN as TensorFlow has them */
#define EXPR_Relu6Grad(dy, x) ((dy) * (float)((x) > 0 && (x) < 6))
#define EXPR_EluGrad(dy, y) ((y) < 0 ? ((y) + 1) * (dy) : (dy))
#define EXPR_SeluGrad(dy, y) ((y) < 0 ? (dy) * ((y) + SELU_ALPHA) : (dy)*SELU_SCALE)
#define EXPR_SoftplusGrad(dy, x) ((dy) / (exp(-(x)) + 1))
#define EXPR_SoftsignGrad(dy, x) ((dy) / ((fabs(x) + 1) * (fabs(x) + 1)))

DEVICE float floor_mod(float x, float y)
{
    float r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

#define UNARY(op, T, Z)                                                                            \
    KERNEL op##_##T(TENSOR(x), TENSOR(z), int n)                                                   \
    {                                                                                              \
        GLOBAL const T *x = OF(const T, x);                                                        \
        GLOBAL Z *z = OF(Z, z);                                                                    \
        EACH(i, n) z[i] = (Z)(EXPR_##op(x[i]));                                                    \
    }

/* A row of n elements, each operand of which is an element for each of the result's, or one for all
 * of them; `loop` is the head of the loop. */
#define ROW(op, T, Z, loop, a, b)                                                                  \
    if ((a) && (b)) {                                                                              \
        loop z[i] = (Z)(EXPR_##op(x[i], y[i]));                                                    \
    } else if (a) {                                                                                \
        const T one = y[0];                                                                        \
        loop z[i] = (Z)(EXPR_##op(x[i], one));                                                     \
    } else {                                                                                       \
        const T one = x[0];                                                                        \
        loop z[i] = (Z)(EXPR_##op(one, y[i]));                                                     \
    }
#ifdef LEAT_ON_CPU
#define ROWS(op, T, Z)                                                                             \
    const int m = w.dim[w.rank - 1];                                                               \
    EACH_ROW(r, n / m)                                                                             \
    {                                                                                              \
        const int2 at = walk_at(&w, (int)r, 1);                                                    \
        GLOBAL const T *x = OF(const T, x) + at.x, *y = OF(const T, y) + at.y;                     \
        GLOBAL Z *z = OF(Z, z) + r * m;                                                            \
        ROW(op, T, Z, VECTORS for (int i = 0; i < m; i++), w.a[w.rank - 1], w.b[w.rank - 1])       \
    }
#else
#define ROWS(op, T, Z)                                                                             \
    EACH(i, n)                                                                                     \
    {                                                                                              \
        const int2 at = walk_at(&w, (int)i, 0);                                                    \
        OF(Z, z)[i] = (Z)(EXPR_##op(OF(const T, x)[at.x], OF(const T, y)[at.y]));                  \
    }
#endif
/* Operands that are broadcast along some dimensions. */
#define BINARY(op, T, Z)                                                                           \
    KERNEL op##_##T(TENSOR(x), TENSOR(y), TENSOR(z), const walk w, int n)                          \
    {                                                                                              \
        if (w.rank == 1) {                                                                         \
            GLOBAL const T *x = OF(const T, x), *y = OF(const T, y);                               \
            GLOBAL Z *z = OF(Z, z);                                                                \
            ROW(op, T, Z, EACH(i, n), w.a[0], w.b[0])                                              \
            return;                                                                                \
        }                                                                                          \
        ROWS(op, T, Z)                                                                             \
    }

#ifdef ONE_OPERAND
UNARY(Abs, float, float)
UNARY(Neg, float, float)
UNARY(Neg, long, long)
UNARY(Inv, float, float)
UNARY(Reciprocal, float, float)
UNARY(Square, float, float)
UNARY(Square, long, long)
UNARY(Sqrt, float, float)
UNARY(Rsqrt, float, float)
UNARY(Round, float, float)
UNARY(Exp, float, float)
UNARY(Expm1, float, float)
UNARY(Log, float, float)
UNARY(Log1p, float, float)
UNARY(Sinh, float, float)
UNARY(Cosh, float, float)
UNARY(Tanh, float, float)
UNARY(Asinh, float, float)
UNARY(Acosh, float, float)
UNARY(Atanh, float, float)
UNARY(Erf, float, float)
UNARY(Erfc, float, float)
UNARY(Sigmoid, float, float)
UNARY(Sin, float, float)
UNARY(Cos, float, float)
UNARY(Tan, float, float)
UNARY(Asin, float, float)
UNARY(Acos, float, float)
UNARY(Atan, float, float)
UNARY(IsNan, float, uchar)
UNARY(IsInf, float, uchar)
UNARY(IsFinite, float, uchar)
UNARY(Sign, float, float)
UNARY(Sign, long, long)
UNARY(Floor, float, float)
UNARY(Ceil, float, float)
UNARY(Rint, float, float)
UNARY(Relu, float, float)
UNARY(Relu6, float, float)
UNARY(Elu, float, float)
UNARY(Selu, float, float)
UNARY(Softplus, float, float)
UNARY(Softsign, float, float)
UNARY(LogicalNot, uchar, uchar)
#else
BINARY(Add, float, float)
BINARY(Add, long, long)
BINARY(AddV2, float, float)
BINARY(AddV2, long, long)
BINARY(Sub, float, float)
BINARY(Sub, long, long)
BINARY(Mul, float, float)
BINARY(Mul, long, long)
BINARY(MulNoNan, float, float)
BINARY(Div, float, float)
BINARY(RealDiv, float, float)
BINARY(DivNoNan, float, float)
BINARY(FloorDiv, float, float)
BINARY(FloorMod, float, float)
BINARY(Mod, float, float)
BINARY(TruncateMod, float, float)
BINARY(SquaredDifference, float, float)
BINARY(SquaredDifference, long, long)
BINARY(Maximum, float, float)
BINARY(Maximum, long, long)
BINARY(Minimum, float, float)
BINARY(Minimum, long, long)
BINARY(Xdivy, float, float)
BINARY(Xlogy, float, float)
BINARY(Pow, float, float)
BINARY(Atan2, float, float)
BINARY(Less, float, uchar)
BINARY(Less, long, uchar)
BINARY(LessEqual, float, uchar)
BINARY(LessEqual, long, uchar)
BINARY(Greater, float, uchar)
BINARY(Greater, long, uchar)
BINARY(GreaterEqual, float, uchar)
BINARY(GreaterEqual, long, uchar)
BINARY(Equal, float, uchar)
BINARY(Equal, long, uchar)
BINARY(Equal, uchar, uchar)
BINARY(NotEqual, float, uchar)
BINARY(NotEqual, long, uchar)
BINARY(NotEqual, uchar, uchar)
BINARY(LogicalAnd, uchar, uchar)
BINARY(LogicalOr, uchar, uchar)
BINARY(InvGrad, float, float)
BINARY(ReciprocalGrad, float, float)
BINARY(SqrtGrad, float, float)
BINARY(RsqrtGrad, float, float)
BINARY(TanhGrad, float, float)
BINARY(SigmoidGrad, float, float)
BINARY(ReluGrad, float, float)
BINARY(Relu6Grad, float, float)
BINARY(EluGrad, float, float)
BINARY(SeluGrad, float, float)
BINARY(SoftplusGrad, float, float)
BINARY(SoftsignGrad, float, float)
#endif
