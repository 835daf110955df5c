/* reduce_fn.c -- the loops of reductions, for each operation and type.
 *
 * Rows are processed four at a time, so that the sum so far is read and written once for four
 * numbers. If rows are short, several are processed as one wide row, whose parts are combined at
 * the end. If rows have one element, they are one long row, whose sums are kept in registers.
 */
#include "kernels/cpu/complex.h"
#include "kernels/cpu/reduce.h"

enum {
    LANES = 256, /* elements of a wide row */
    TILE = 1024, /* columns at a time: the sums so far stay in the first-level cache */
    BLOCK = 256, /* rows that are summed before they are added to the sums so far */
    ROW = 8192,  /* the same, for rows of one element */
};

#define OP_sum(T, a, b) (T)((LEAT_WIDE(T))(a) + (LEAT_WIDE(T))(b))
#define OP_prod(T, a, b) (T)((LEAT_WIDE(T))(a) * (LEAT_WIDE(T))(b))
#define OP_max(T, a, b) ((a) < (b) ? (b) : (a))
#define OP_min(T, a, b) ((b) < (a) ? (b) : (a))
#define OP_all(T, a, b) ((a) & (b))
#define OP_any(T, a, b) ((a) | (b))
/* Four at once: sums and products as a tree; the greatest and least one after another, so that a
 * NaN, for which comparisons are false, is skipped. */
#define TREE(op, T, y, a, b, c, d)                                                                 \
    {                                                                                              \
        const T ab = OP_##op(T, a, b), cd = OP_##op(T, c, d), abcd = OP_##op(T, ab, cd);           \
        y = OP_##op(T, y, abcd);                                                                   \
    }
#define CHAIN(op, T, y, a, b, c, d)                                                                \
    {                                                                                              \
        const T m1 = OP_##op(T, y, a), m2 = OP_##op(T, m1, b), m3 = OP_##op(T, m2, c);             \
        y = OP_##op(T, m3, d);                                                                     \
    }

/* none: the neutral element; FOUR: TREE or CHAIN. */
#define REDUCER(op, T, none, FOUR)                                                                 \
    static void op##_add_##T(T *restrict y, const T *restrict x, int64_t rows, int64_t ld,         \
                             int64_t k)                                                            \
    {                                                                                              \
        for (; rows >= 4; rows -= 4, x += 4 * ld) {                                                \
            const T *a = x, *b = x + ld, *c = x + 2 * ld, *d = x + 3 * ld;                         \
            for (int64_t i = 0; i < k; i++)                                                        \
                FOUR(op, T, y[i], a[i], b[i], c[i], d[i])                                          \
        }                                                                                          \
        for (; rows > 0; rows--, x += ld)                                                          \
            for (int64_t i = 0; i < k; i++)                                                        \
                y[i] = OP_##op(T, y[i], x[i]);                                                     \
    }                                                                                              \
    static void op##_add_to_##T(void *y, const void *x, int64_t rows, int64_t ld, int64_t k)       \
    {                                                                                              \
        op##_add_##T(y, x, rows, ld, k);                                                           \
    }                                                                                              \
    static void op##_block_##T(const T *x, int64_t rows, int64_t ld, int64_t k, T *y)              \
    {                                                                                              \
        for (int64_t i = 0; i < k; i++)                                                            \
            y[i] = none;                                                                           \
        op##_add_##T(y, x, rows, ld, k);                                                           \
    }                                                                                              \
    /* One row: 32 sums at the same time, then 8, then the rest. */                                \
    static T op##_row_##T(const T *x, int64_t n)                                                   \
    {                                                                                              \
        T s[32], t = none;                                                                         \
        if (n >= 32) {                                                                             \
            for (int j = 0; j < 32; j++)                                                           \
                s[j] = none;                                                                       \
            for (; n >= 32; n -= 32, x += 32)                                                      \
                for (int j = 0; j < 32; j++)                                                       \
                    s[j] = OP_##op(T, s[j], x[j]);                                                 \
            for (int j = 0; j < 16; j++)                                                           \
                s[j] = OP_##op(T, s[j], s[j + 16]);                                                \
            for (int j = 0; j < 8; j++)                                                            \
                s[j] = OP_##op(T, s[j], s[j + 8]);                                                 \
        } else {                                                                                   \
            for (int j = 0; j < 8; j++)                                                            \
                s[j] = none;                                                                       \
        }                                                                                          \
        for (; n >= 8; n -= 8, x += 8)                                                             \
            for (int j = 0; j < 8; j++)                                                            \
                s[j] = OP_##op(T, s[j], x[j]);                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            t = OP_##op(T, t, x[i]);                                                               \
        for (int j = 0; j < 4; j++)                                                                \
            s[j] = OP_##op(T, s[j], s[j + 4]);                                                     \
        FOUR(op, T, t, s[0], s[1], s[2], s[3])                                                     \
        return t;                                                                                  \
    }                                                                                              \
    /* Short rows without gaps, rows * k <= BLOCK * LANES. */                                      \
    static void op##_short_##T(const T *x, int64_t rows, int64_t k, T *y)                          \
    {                                                                                              \
        T wide[LANES];                                                                             \
        int64_t m =                                                                                \
            1; /* number of short rows in a wide one: a power of two, combined in halves */        \
        while (2 * m * k <= LANES && 8 * m <= rows)                                                \
            m *= 2;                                                                                \
        const int64_t w = m * k, n = rows / m;                                                     \
        op##_block_##T(x, n, w, w, wide);                                                          \
        op##_add_##T(wide, x + n * w, 1, 0, (rows - n * m) * k);                                   \
        for (; m > 1; m /= 2)                                                                      \
            op##_add_##T(wide, wide + m / 2 * k, 1, 0, m / 2 * k);                                 \
        memcpy(y, wide, sizeof(T) * (size_t)k);                                                    \
    }                                                                                              \
    static void op##_rows_##T(const void *x_, int64_t rows, int64_t ld, int64_t k, void *y_)       \
    {                                                                                              \
        const T *x = x_;                                                                           \
        T *y = y_;                                                                                 \
        if (k == 1 && ld == 1) {                                                                   \
            T sum = op##_row_##T(x, rows < ROW ? rows : ROW);                                      \
            for (int64_t r = ROW; r < rows; r += ROW) {                                            \
                const T part = op##_row_##T(x + r, rows - r < ROW ? rows - r : ROW);               \
                sum = OP_##op(T, sum, part);                                                       \
            }                                                                                      \
            *y = sum;                                                                              \
            return;                                                                                \
        }                                                                                          \
        if (k <= LANES / 2 && ld == k) {                                                           \
            const int64_t most = BLOCK * LANES / k;                                                \
            T part[LANES / 2];                                                                     \
            op##_short_##T(x, rows < most ? rows : most, k, y);                                    \
            for (int64_t r = most; r < rows; r += most) {                                          \
                op##_short_##T(x + r * k, rows - r < most ? rows - r : most, k, part);             \
                op##_add_##T(y, part, 1, 0, k);                                                    \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t c = 0; c < k; c += TILE) {                                                    \
            const int64_t w = k - c < TILE ? k - c : TILE;                                         \
            T part[TILE];                                                                          \
            op##_block_##T(x + c, rows < BLOCK ? rows : BLOCK, ld, w, y + c);                      \
            for (int64_t r = BLOCK; r < rows; r += BLOCK) {                                        \
                const int64_t n = rows - r < BLOCK ? rows - r : BLOCK;                             \
                op##_block_##T(x + r * ld + c, n, ld, w, part);                                    \
                op##_add_##T(y + c, part, 1, 0, w);                                                \
            }                                                                                      \
        }                                                                                          \
    }

#define SUM(name, dtype, T) REDUCER(sum, T, 0, TREE)
#define PROD(name, dtype, T) REDUCER(prod, T, 1, TREE)
LEAT_Y_REAL(SUM, )
LEAT_Y_COMPLEX(SUM, )
LEAT_Y_REAL(PROD, )
LEAT_Y_COMPLEX(PROD, )

/* X(type, least, greatest) */
#define LIMITS(X)                                                                                  \
    X(float, -INFINITY, INFINITY)                                                                  \
    X(double, -(double)INFINITY, (double)INFINITY)                                                 \
    X(int8_t, INT8_MIN, INT8_MAX)                                                                  \
    X(int16_t, INT16_MIN, INT16_MAX)                                                               \
    X(int32_t, INT32_MIN, INT32_MAX)                                                               \
    X(int64_t, INT64_MIN, INT64_MAX)                                                               \
    X(uint8_t, 0, UINT8_MAX)                                                                       \
    X(uint16_t, 0, UINT16_MAX)                                                                     \
    X(uint32_t, 0, UINT32_MAX)                                                                     \
    X(uint64_t, 0, UINT64_MAX)
#define MAX_MIN(T, least, greatest) REDUCER(max, T, least, CHAIN) REDUCER(min, T, greatest, CHAIN)
LIMITS(MAX_MIN)

REDUCER(all, _Bool, 1, TREE)
REDUCER(any, _Bool, 0, TREE)

#define ROWS_ENTRY(name, dtype, T) [LEAT_##dtype] = name##_rows_##T,
#define ADD_ENTRY(name, dtype, T) [LEAT_##dtype] = name##_add_to_##T,
#define TABLE(ENTRY)                                                                               \
    {                                                                                              \
        [LEAT_REDUCE_SUM] = {LEAT_Y_REAL(ENTRY, sum) LEAT_Y_COMPLEX(ENTRY, sum)},                  \
        [LEAT_REDUCE_PROD] = {LEAT_Y_REAL(ENTRY, prod) LEAT_Y_COMPLEX(ENTRY, prod)},               \
        [LEAT_REDUCE_MAX] = {LEAT_Y_REAL(ENTRY, max)},                                             \
        [LEAT_REDUCE_MIN] = {LEAT_Y_REAL(ENTRY, min)},                                             \
        [LEAT_REDUCE_ALL] = {LEAT_Y_BOOL(ENTRY, all)},                                             \
        [LEAT_REDUCE_ANY] = {LEAT_Y_BOOL(ENTRY, any)},                                             \
    }

leat_reduce_fn leat_reduce_find(leat_reducer op, leat_dtype t)
{
    static const leat_reduce_fn fns[][LEAT_UINT64 + 1] = TABLE(ROWS_ENTRY);
    return (unsigned)t <= LEAT_UINT64 ? fns[op][t] : NULL;
}

leat_reduce_add leat_reduce_add_find(leat_reducer op, leat_dtype t)
{
    static const leat_reduce_add fns[][LEAT_UINT64 + 1] = TABLE(ADD_ENTRY);
    return (unsigned)t <= LEAT_UINT64 ? fns[op][t] : NULL;
}
