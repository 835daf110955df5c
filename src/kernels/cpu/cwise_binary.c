/* cwise_binary.c -- arithmetic on two operands, element by element. Integers wrap; a division of
 * integers by zero is an error. */
#include <tgmath.h> /* pow(x, y) is powf(x, y) for floats */

#include "kernels/cpu/row2.h"

/* ---- One expression for all types ---- */
#define EXPR_add(T, x, y) (T)((LEAT_WIDE(T))(x) + (LEAT_WIDE(T))(y))
#define EXPR_sub(T, x, y) (T)((LEAT_WIDE(T))(x) - (LEAT_WIDE(T))(y))
#define EXPR_mul(T, x, y) (T)((LEAT_WIDE(T))(x) * (LEAT_WIDE(T))(y))
#define EXPR_squared_difference(T, x, y) EXPR_mul(T, EXPR_sub(T, x, y), EXPR_sub(T, x, y))
/* If the operands cannot be ordered (NaN), the result is the first, as in TensorFlow. */
#define EXPR_maximum(T, x, y) ((x) < (y) ? (y) : (x))
#define EXPR_minimum(T, x, y) ((y) < (x) ? (y) : (x))
#define EXPR_real_div(T, x, y) ((x) / (y))
#define EXPR_mul_no_nan(T, x, y) ((y) == 0 ? 0 : (x) * (y))
#define EXPR_div_no_nan(T, x, y) ((y) == 0 ? 0 : (x) / (y))
#define EXPR_xdivy(T, x, y) ((x) == 0 ? 0 : (x) / (y))

LEAT_Y_REAL(LEAT_ROW2_SAME, add)
LEAT_Y_REAL(LEAT_ROW2_SAME, sub)
LEAT_Y_REAL(LEAT_ROW2_SAME, mul)
LEAT_Y_REAL(LEAT_ROW2_SAME, squared_difference)
LEAT_Y_REAL(LEAT_ROW2_SAME, maximum)
LEAT_Y_REAL(LEAT_ROW2_SAME, minimum)
LEAT_Y_FLOAT(LEAT_ROW2_SAME, real_div)
LEAT_Y_FLOAT(LEAT_ROW2_SAME, mul_no_nan)
LEAT_Y_FLOAT(LEAT_ROW2_SAME, div_no_nan)
LEAT_Y_FLOAT(LEAT_ROW2_SAME, xdivy)

/* ---- Quotients and remainders of integers ---- */
#define INT_FN(name, T, expr)                                                                      \
    static inline T name##_of_##T(T x, T y, bool *ok)                                              \
    {                                                                                              \
        if (y == 0) {                                                                              \
            *ok = false;                                                                           \
            return 0;                                                                              \
        }                                                                                          \
        const bool wraps = (T)-1 < 0 && y == (T)-1; /* the least number by -1 */                   \
        const T q = wraps ? (T)(0 - (LEAT_WIDE(T))x) : (T)(x / y);                                 \
        const T r = wraps ? 0 : (T)(x % y);                                                        \
        (void)q, (void)r;                                                                          \
        return expr;                                                                               \
    }
#define TRUNCATE_DIV(name, dtype, T) INT_FN(name, T, q)
#define TRUNCATE_MOD(name, dtype, T) INT_FN(name, T, r)
#define FLOOR_DIV(name, dtype, T) INT_FN(name, T, (T)(q - (r != 0 && (r < 0) != (y < 0))))
#define FLOOR_MOD(name, dtype, T) INT_FN(name, T, (T)(r != 0 && (r < 0) != (y < 0) ? r + y : r))
LEAT_Y_INTEGER(TRUNCATE_DIV, truncate_div)
LEAT_Y_INTEGER(FLOOR_DIV, floor_div)
LEAT_Y_INDEX(TRUNCATE_MOD, truncate_mod)
LEAT_Y_INDEX(FLOOR_MOD, floor_mod)

/* By repeated squaring; wraps. */
#define INT_POW(name, dtype, T)                                                                    \
    static inline T name##_of_##T(T x, T y, bool *ok)                                              \
    {                                                                                              \
        *ok &= y >= 0;                                                                             \
        LEAT_WIDE(T) p = 1, b = (LEAT_WIDE(T))x;                                                   \
        for (; y > 0; y >>= 1, b *= b)                                                             \
            p *= y & 1 ? b : 1;                                                                    \
        return (T)p;                                                                               \
    }
LEAT_Y_INDEX(INT_POW, pow)

/* ---- The same of floats, and what only floats have ---- */
#define FLOAT_FNS(name, dtype, T)                                                                  \
    static inline T floor_div_of_##T(T x, T y, bool *ok)                                           \
    {                                                                                              \
        return floor(x / y);                                                                       \
    }                                                                                              \
    static inline T floor_mod_of_##T(T x, T y, bool *ok)                                           \
    {                                                                                              \
        const T r = fmod(x, y);                                                                    \
        return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                           \
    }                                                                                              \
    static inline T truncate_mod_of_##T(T x, T y, bool *ok)                                        \
    {                                                                                              \
        return fmod(x, y);                                                                         \
    }
LEAT_Y_FLOAT(FLOAT_FNS, )

#define EXPR_floor_div(T, x, y) floor_div_of_##T(x, y, &ok)
#define EXPR_floor_mod(T, x, y) floor_mod_of_##T(x, y, &ok)
#define EXPR_truncate_div(T, x, y) truncate_div_of_##T(x, y, &ok)
#define EXPR_truncate_mod(T, x, y) truncate_mod_of_##T(x, y, &ok)
#define EXPR_pow(T, x, y) pow_of_##T(x, y, &ok)
#define EXPR_atan2(T, y, x) atan2(y, x)
#define EXPR_xlogy(T, x, y) ((x) == 0 ? 0 : (x)*log(y))
LEAT_Y_INTEGER(LEAT_ROW2_SLOW, truncate_div)
LEAT_Y_INTEGER(LEAT_ROW2_SLOW, floor_div)
LEAT_Y_FLOAT(LEAT_ROW2_SAME, floor_div)
#define LEAT_Y_MOD(X, name) LEAT_Y_INDEX(X, name) LEAT_Y_FLOAT(X, name)
LEAT_Y_MOD(LEAT_ROW2_SLOW, truncate_mod)
LEAT_Y_MOD(LEAT_ROW2_SLOW, floor_mod)
LEAT_Y_INDEX(LEAT_ROW2_SLOW, pow)

/* Most powers are squares. */
#define FLOAT_POW(name, dtype, T)                                                                  \
    static bool pow_##T(const void *a_, bool a_one, const void *b_, bool b_one, void *z_,          \
                        int64_t n)                                                                 \
    {                                                                                              \
        const T *a = a_, *b = b_;                                                                  \
        T *z = z_;                                                                                 \
        if (b_one && *b == 2 && !a_one) {                                                          \
            LEAT_SIMD                                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = a[i] * a[i];                                                                \
        } else if (b_one && *b == 1 && !a_one) {                                                   \
            memmove(z, a, sizeof(T) * (size_t)n);                                                  \
        } else {                                                                                   \
            const int64_t sa = !a_one, sb = !b_one;                                                \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = pow(a[i * sa], b[i * sb]);                                                  \
        }                                                                                          \
        return true;                                                                               \
    }
LEAT_Y_FLOAT(FLOAT_POW, )

LEAT_Y_FLOAT(LEAT_ROW2_SLOW, atan2)
LEAT_Y_FLOAT(LEAT_ROW2_SLOW, xlogy)

#define BY_ZERO "Integer division by zero"
#define NEGATIVE_POWER "Integers to negative integer powers are not allowed"
LEAT_ROW2_INIT(add, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, add))
LEAT_ROW2_INIT(sub, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, sub))
LEAT_ROW2_INIT(mul, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, mul))
LEAT_ROW2_INIT(squared_difference, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, squared_difference))
LEAT_ROW2_INIT(maximum, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, maximum))
LEAT_ROW2_INIT(minimum, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, minimum))
LEAT_ROW2_INIT(real_div, 0.4, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, real_div))
LEAT_ROW2_INIT(mul_no_nan, 0.3, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, mul_no_nan))
LEAT_ROW2_INIT(div_no_nan, 0.4, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, div_no_nan))
LEAT_ROW2_INIT(xdivy, 0.4, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, xdivy))
LEAT_ROW2_INIT(xlogy, 8, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, xlogy))
LEAT_ROW2_INIT(atan2, 20, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, atan2))
LEAT_ROW2_INIT(pow, 15, NEGATIVE_POWER, LEAT_Y_MOD(LEAT_ROW2_ENTRY, pow))
LEAT_ROW2_INIT(floor_mod, 10, BY_ZERO, LEAT_Y_MOD(LEAT_ROW2_ENTRY, floor_mod))
LEAT_ROW2_INIT(truncate_mod, 8, BY_ZERO, LEAT_Y_MOD(LEAT_ROW2_ENTRY, truncate_mod))
LEAT_ROW2_INIT(floor_div, 3, BY_ZERO, LEAT_Y_REAL(LEAT_ROW2_ENTRY, floor_div))
LEAT_ROW2_INIT(truncate_div, 3, BY_ZERO, LEAT_Y_INTEGER(LEAT_ROW2_ENTRY, truncate_div))

/* Quotients that are exact for floats and rounded toward zero for integers. */
LEAT_ROW2_INIT(div, 3, BY_ZERO,
               LEAT_Y_INTEGER(LEAT_ROW2_ENTRY, truncate_div)
                   LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, real_div))

#define REAL LEAT_ROW_REAL
#define FLOAT LEAT_ROW_FLOAT
#define MOD (LEAT_ROW_FLOAT | LEAT_ROW_INDEX)

const leat_kernel_def leat_cpu_cwise_binary[] = {
    LEAT_ROW2_KERNEL("Add", REAL, add),
    LEAT_ROW2_KERNEL("AddV2", REAL, add),
    LEAT_ROW2_KERNEL("Sub", REAL, sub),
    LEAT_ROW2_KERNEL("Mul", REAL, mul),
    LEAT_ROW2_KERNEL("MulNoNan", FLOAT, mul_no_nan),
    LEAT_ROW2_KERNEL("Div", REAL, div),
    LEAT_ROW2_KERNEL("RealDiv", FLOAT, real_div),
    LEAT_ROW2_KERNEL("DivNoNan", FLOAT, div_no_nan),
    LEAT_ROW2_KERNEL("FloorDiv", REAL, floor_div),
    LEAT_ROW2_KERNEL("TruncateDiv", LEAT_ROW_INTEGER, truncate_div),
    LEAT_ROW2_KERNEL("Mod", MOD, truncate_mod),
    LEAT_ROW2_KERNEL("FloorMod", MOD, floor_mod),
    LEAT_ROW2_KERNEL("TruncateMod", MOD, truncate_mod),
    LEAT_ROW2_KERNEL("SquaredDifference", REAL, squared_difference),
    LEAT_ROW2_KERNEL("Maximum", REAL, maximum),
    LEAT_ROW2_KERNEL("Minimum", REAL, minimum),
    LEAT_ROW2_KERNEL("Xdivy", FLOAT, xdivy),
    LEAT_ROW2_KERNEL("Xlogy", FLOAT, xlogy),
    LEAT_ROW2_KERNEL("Pow", MOD, pow),
    LEAT_ROW2_KERNEL("Atan2", FLOAT, atan2),
    {0},
};
