/* update.c -- p[i] = p[i] op u[i] for every dtype. Integers wrap; half and bfloat16 are computed in
 * float, element by element. */
#include "kernels/cpu/update.h"

/* ---- p[i] = p[i] op u[i] ---- */

#define SAME(x) (x)
#define LOOP(name, T, C, LOAD, STORE, expr)                                                        \
    static bool name(void *vp, const void *vu, int64_t n, int step)                                \
    {                                                                                              \
        T *p = vp;                                                                                 \
        const T *u = vu;                                                                           \
        if (step) {                                                                                \
            for (int64_t i = 0; i < n; i++) {                                                      \
                C a = LOAD(p[i]), b = LOAD(u[i]);                                                  \
                p[i] = STORE(expr);                                                                \
            }                                                                                      \
        } else {                                                                                   \
            C b = LOAD(u[0]);                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                C a = LOAD(p[i]);                                                                  \
                p[i] = STORE(expr);                                                                \
            }                                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }

/* Arithmetic in the unsigned type W wraps around. */
#define INTEGER(dtype, T, W)                                                                       \
    LOOP(add_##T, T, T, SAME, (T), (W)a + (W)b)                                                    \
    LOOP(sub_##T, T, T, SAME, (T), (W)a - (W)b)                                                    \
    LOOP(mul_##T, T, T, SAME, (T), (W)a *(W)b)                                                     \
    LOOP(min_##T, T, T, SAME, (T), b < a ? b : a)                                                  \
    LOOP(max_##T, T, T, SAME, (T), a < b ? b : a)                                                  \
    static bool div_##T(void *vp, const void *vu, int64_t n, int step)                             \
    {                                                                                              \
        T *p = vp;                                                                                 \
        const T *u = vu;                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T b = u[i * step];                                                                     \
            if (b == 0)                                                                            \
                return false;                                                                      \
            p[i] = (T)-1 < 0 && b == (T)-1 ? (T)(0 - (W)p[i]) : (T)(p[i] / b);                     \
        }                                                                                          \
        return true;                                                                               \
    }
#define FLOATING(name, T, C, LOAD, STORE)                                                          \
    LOOP(add_##name, T, C, LOAD, STORE, a + b)                                                     \
    LOOP(sub_##name, T, C, LOAD, STORE, a - b)                                                     \
    LOOP(mul_##name, T, C, LOAD, STORE, a *b)                                                      \
    LOOP(div_##name, T, C, LOAD, STORE, a / b)                                                     \
    LOOP(min_##name, T, C, LOAD, STORE, b < a ? b : a)                                             \
    LOOP(max_##name, T, C, LOAD, STORE, a < b ? b : a)
#define COMPLEX(T, C)                                                                              \
    static T T##_mul(T a, T b)                                                                     \
    {                                                                                              \
        return (T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};                          \
    }                                                                                              \
    static T T##_div(T a, T b)                                                                     \
    {                                                                                              \
        C d = b.re * b.re + b.im * b.im;                                                           \
        return (T){(a.re * b.re + a.im * b.im) / d, (a.im * b.re - a.re * b.im) / d};              \
    }                                                                                              \
    LOOP(add_##T, T, T, SAME, SAME, ((T){a.re + b.re, a.im + b.im}))                               \
    LOOP(sub_##T, T, T, SAME, SAME, ((T){a.re - b.re, a.im - b.im}))                               \
    LOOP(mul_##T, T, T, SAME, SAME, T##_mul(a, b))                                                 \
    LOOP(div_##T, T, T, SAME, SAME, T##_div(a, b))

INTEGER(INT8, int8_t, uint32_t)
INTEGER(INT16, int16_t, uint32_t)
INTEGER(INT32, int32_t, uint32_t)
INTEGER(INT64, int64_t, uint64_t)
INTEGER(UINT8, uint8_t, uint32_t)
INTEGER(UINT16, uint16_t, uint32_t)
INTEGER(UINT32, uint32_t, uint32_t)
INTEGER(UINT64, uint64_t, uint64_t)
FLOATING(float, float, float, SAME, SAME)
FLOATING(double, double, double, SAME, SAME)
FLOATING(leat_half, leat_half, float, leat_half_to_float, leat_half_from_float)
FLOATING(leat_bfloat16, leat_bfloat16, float, leat_bfloat16_to_float, leat_bfloat16_from_float)
COMPLEX(leat_complex64, float)
COMPLEX(leat_complex128, double)
LOOP(add_bool, bool, bool, SAME, SAME, a || b)
LOOP(sub_bool, bool, bool, SAME, SAME, a != b)

#define ROW(T)                                                                                     \
    {                                                                                              \
        NULL, add_##T, sub_##T, mul_##T, div_##T, min_##T, max_##T                                 \
    }
#define UNORDERED(T)                                                                               \
    {                                                                                              \
        NULL, add_##T, sub_##T, mul_##T, div_##T                                                   \
    }
#define TABLE_ROW(dtype, T) [LEAT_##dtype] = ROW(T),

static const leat_update_fn update_table[LEAT_UINT64 + 1][LEAT_UPDATE_MAX + 1] = {
    LEAT_X_REAL(TABLE_ROW) TABLE_ROW(HALF, leat_half)
        TABLE_ROW(BFLOAT16, leat_bfloat16)[LEAT_COMPLEX64] = UNORDERED(leat_complex64),
    [LEAT_COMPLEX128] = UNORDERED(leat_complex128),
    [LEAT_BOOL] = {NULL, add_bool, sub_bool},
};

leat_update_fn leat_update_of(leat_dtype t, leat_update_op op)
{
    return (unsigned)t <= LEAT_UINT64 ? update_table[t][op] : NULL;
}
