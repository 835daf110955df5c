/* arg_reduce.c -- ArgMax and ArgMin: x is (outer, along, inner). Of equal elements the first is
 * taken; a NaN is taken only if all are NaN, since comparisons with it are false. */
#include "kernels/cpu/arith.h"
#include "kernels/cpu/reduce.h"

typedef struct arg_args {
    const leat_tensor *x;
    leat_tensor *y;
    bool least;
    leat_reduce_fn fn; /* finds the greatest or least of a long row */
    int64_t along, inner;
} arg_args;

enum { TILE = 512, LONG = 48 };

/* best and at: the best element so far of each column, and its row. */
#define ARG_TILE(name, dtype, T)                                                                   \
    static void tile_##T(const T *x, int64_t along, int64_t ld, int64_t w, bool least,             \
                         int64_t *restrict at)                                                     \
    {                                                                                              \
        T best[TILE];                                                                              \
        memcpy(best, x, sizeof(T) * (size_t)w);                                                    \
        memset(at, 0, sizeof(*at) * (size_t)w);                                                    \
        for (int64_t r = 1; r < along; r++) {                                                      \
            const T *row = x + r * ld;                                                             \
            for (int64_t i = 0; i < w; i++) {                                                      \
                const bool better = least ? row[i] < best[i] : row[i] > best[i];                   \
                const bool first =                                                                 \
                    best[i] != best[i] && row[i] == row[i]; /* only NaN until now */               \
                best[i] = better || first ? row[i] : best[i];                                      \
                at[i] = better || first ? r : at[i];                                               \
            }                                                                                      \
        }                                                                                          \
    }
LEAT_Y_REAL(ARG_TILE, )

/* For one row: if it is long, finds the greatest element first, then its index. */
#define ARG_ROW(name, dtype, T)                                                                    \
    static int64_t row_##T(const T *x, int64_t n, bool least, leat_reduce_fn fn)                   \
    {                                                                                              \
        T best = x[0];                                                                             \
        int64_t at = 0;                                                                            \
        if (n < LONG) {                                                                            \
            for (int64_t i = 1; i < n; i++) {                                                      \
                const bool better = least ? x[i] < best : x[i] > best;                             \
                if (better || (best != best && x[i] == x[i])) {                                    \
                    best = x[i];                                                                   \
                    at = i;                                                                        \
                }                                                                                  \
            }                                                                                      \
            return at;                                                                             \
        }                                                                                          \
        fn(x, n, 1, 1, &best);                                                                     \
        for (; at + 16 <= n; at += 16) {                                                           \
            int same = 0;                                                                          \
            for (int j = 0; j < 16; j++)                                                           \
                same |= x[at + j] == best;                                                         \
            if (same)                                                                              \
                break;                                                                             \
        }                                                                                          \
        for (; at < n; at++)                                                                       \
            if (x[at] == best)                                                                     \
                return at;                                                                         \
        return 0; /* all are NaN */                                                                \
    }
LEAT_Y_REAL(ARG_ROW, )

#define ROW_CASE(name, dtype, T)                                                                   \
    case LEAT_##dtype:                                                                             \
        return row_##T(AT(T, a->x) + o * a->along, a->along, a->least, a->fn);

static int64_t row(const arg_args *a, int64_t o)
{
    switch (a->x->dtype) {
        LEAT_Y_REAL(ROW_CASE, )
    default:
        return 0;
    }
}

static void rows_part(void *arg, int64_t begin, int64_t end)
{
    const arg_args *a = arg;
    for (int64_t o = begin; o < end; o++) {
        const int64_t at = row(a, o);
        if (a->y->dtype == LEAT_INT64)
            AT(int64_t, a->y)[o] = at;
        else
            AT(int32_t, a->y)[o] = (int32_t)at;
    }
}

#define ARG_CASE(name, dtype, T)                                                                   \
    case LEAT_##dtype:                                                                             \
        tile_##T(AT(T, a->x) + o * a->along * a->inner + c, a->along, a->inner, w, a->least, at);  \
        break;

/* A unit of work is a tile of the columns of one outer index. */
static void part(void *arg, int64_t begin, int64_t end)
{
    const arg_args *a = arg;
    const int64_t tiles = (a->inner + TILE - 1) / TILE;
    for (int64_t u = begin; u < end; u++) {
        const int64_t o = u / tiles, c = u % tiles * TILE;
        const int64_t w = a->inner - c < TILE ? a->inner - c : TILE, to = o * a->inner + c;
        int64_t at[TILE];
        switch (a->x->dtype) {
            LEAT_Y_REAL(ARG_CASE, )
        default:
            return;
        }
        for (int64_t i = 0; i < w; i++)
            if (a->y->dtype == LEAT_INT64)
                AT(int64_t, a->y)[to + i] = at[i];
            else
                AT(int32_t, a->y)[to + i] = (int32_t)at[i];
    }
}

static leat_status arg_reduce(leat_kernel *k, bool least)
{
    arg_args a = {.x = leat_kernel_in(k, 0), .least = least};
    const leat_tensor *t = leat_kernel_in(k, 1);
    const leat_shape *s = &a.x->shape;
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "dim must be a scalar, but received tensor of shape: %s",
                 leat_shape_show(&t->shape).s);
    const int64_t given = leat_index_at(t, 0), axis = given < 0 ? given + s->rank : given;
    LEAT_REQUIRE(axis >= 0 && axis < s->rank, INVALID_ARGUMENT,
                 "Expected dimension in the range [%d, %d), but got %lld", -s->rank, s->rank,
                 (long long)given);
    LEAT_REQUIRE(s->dim[axis] > 0, INVALID_ARGUMENT, "Reduction axis %lld is empty in shape %s",
                 (long long)given, leat_shape_show(s).s);
    leat_shape out = {.rank = 0};
    int64_t outer = 1;
    a.inner = 1;
    for (int d = 0; d < s->rank; d++) {
        if (d == axis)
            continue;
        out.dim[out.rank++] = s->dim[d];
        *(d < axis ? &outer : &a.inner) *= s->dim[d];
    }
    a.along = s->dim[axis];
    LEAT_TRY(leat_kernel_out(k, 0, &out, &a.y));
    if (!a.x->count)
        return NULL;
    if (a.inner == 1) {
        a.fn = leat_reduce_find(least ? LEAT_REDUCE_MIN : LEAT_REDUCE_MAX, a.x->dtype);
        leat_kernel_for(k, outer, 5 + 0.5 * (double)a.along, rows_part, &a);
        return NULL;
    }
    const int64_t tiles = (a.inner + TILE - 1) / TILE;
    leat_kernel_for(k, outer * tiles, (double)a.along * (a.inner < TILE ? a.inner : TILE), part,
                    &a);
    return NULL;
}

static leat_status arg_max(leat_kernel *k)
{
    return arg_reduce(k, false);
}

static leat_status arg_min(leat_kernel *k)
{
    return arg_reduce(k, true);
}

#define KERNEL(op_, fn)                                                                            \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_REAL}}, .run = fn, .flags = LEAT_KERNEL_VIA_FLOAT      \
    }

const leat_kernel_def leat_cpu_arg_reduce[] = {
    KERNEL("ArgMax", arg_max),
    KERNEL("ArgMin", arg_min),
    {0},
};
