/* cwise.cl -- element-wise ops of one and two operands, by expressions.cl. The function Op_T computes
 * an op for operands of type T. */
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
