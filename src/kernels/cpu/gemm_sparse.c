/* gemm_sparse.c -- products of floats whose left matrix is mostly zeros: images of digits, rows
 * with a single one, bags of words. Terms with a zero are not computed at all; the others are added
 * in the order in which gemm.c adds them, so that the result has the same bits. (For that, B must
 * be finite: zero times infinity is not zero.)
 *
 * The elements of op(A) that are not zero are listed row by row; a row of C is then a sum of rows
 * of B, held in registers. It is computed for some columns and some rows of B at a time, which stay
 * in the first level of the cache for all rows of A.
 */
#include "kernels/cpu/gemm_int.h"

#ifdef __AVX2__
#include <stdatomic.h>
#include <unistd.h>

#include "kernels/cpu/gemm_sparse_lanes.h"

const bool leat_gemm_sparse_built = true;

enum {
    LEAST_COLUMNS = 32, /* columns of C from which on listing pays */
    LEAST_SIZE = 4096,  /* elements of A from which on listing pays */
    SHARE = 4,          /* at most one element of A in so many may be nonzero */
    PROBES = 64,        /* pieces of A that are sampled before all of A is read */
    PROBED = 8,         /* elements of such a piece */
    STRIP = 32,         /* columns of a transposed A that are converted to rows at a time */
    CACHED = 28 << 10,  /* the least bytes of B that are used at a time: see cached_bytes */
    LEAST_USES = 4,     /* how often a row of B has to be used for a copy of it to pay */
};

/* The nonzero elements of op(A). Those of row r and block b of k are from from[r * blocks + b] to
 * the start of the next block. */
typedef struct elements {
    float *x;
    int32_t *at; /* index k of each element in its block */
    int32_t *from;
    int64_t count;
} elements;

typedef struct job {
    const leat_gemm_call *g;
    int64_t depth, blocks; /* k is divided into `blocks` blocks of `depth` */
    /* True: the sum of a block goes on from that of the block before. False: each block is summed
     * by itself, and then added. */
    bool chained;
    /* C is divided into `chunks` pieces of columns and `row_tasks` of rows. */
    int64_t chunks, row_tasks;
    elements e;
} job;

/* The bytes of B that are used at a time: those of the first level of the cache, but for 4 KB for
 * other data. The more rows of B are used at a time, the fewer times a row of C is begun and ended.
 */
static int64_t cached_bytes(void)
{
    static _Atomic int64_t known;
    int64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (!bytes) {
        const int64_t level1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), rest = 4 << 10;
        bytes = level1 > CACHED + rest && level1 < 1 << 20 ? level1 - rest : CACHED;
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

static bool looks_sparse(const leat_gemm_call *g)
{
    const int64_t rows = g->ta ? g->k : g->m, cols = g->ta ? g->m : g->k;
    const float *a = g->a;
    int found = 0;
    for (int64_t i = 0; i < PROBES; i++) {
        const int64_t row = rows * i / PROBES, col = (cols - PROBED) * (i * 37 % PROBES) / PROBES;
        const unsigned some =
            vec_not_zero(vec_load_some(a + row * g->lda + col, first_lanes(PROBED)));
        found += __builtin_popcount(some);
    }
    /* a quarter more than the limit, because it is an estimate. */
    return 4 * SHARE * found < 5 * PROBES * PROBED;
}

static bool is_finite(const float *b, int64_t ld, int64_t rows, int64_t cols)
{
    const vec zero = vec_zero();
    vec sum[4] = {zero, zero, zero, zero}; /* becomes NaN if an element is not finite */
    for (int64_t r = 0; r < rows; r++, b += ld) {
        int64_t c = 0;
        for (; c + 4 * LANES <= cols; c += 4 * LANES)
            for (int v = 0; v < 4; v++)
                sum[v] = vec_fma(zero, vec_load(b + c + v * LANES), sum[v]);
        for (; c < cols; c += LANES) {
            const lane_mask lanes = first_lanes(cols - c < LANES ? (int)(cols - c) : LANES);
            sum[0] = vec_fma(zero, vec_load_some(b + c, lanes), sum[0]);
        }
    }
    return !vec_any_nan(vec_add(vec_add(sum[0], sum[1]), vec_add(sum[2], sum[3])));
}

/* Appends the nonzero elements of a[0 .. n), a row's part of a block. May write up to LANES
 * elements too many. */
static void append(elements *e, const float *a, int64_t n)
{
    int64_t count = e->count;
    for (int64_t i = 0; i < n; i += LANES) {
        const vec v =
            n - i < LANES ? vec_load_some(a + i, first_lanes((int)(n - i))) : vec_load(a + i);
        const unsigned mask = vec_not_zero(v);
        vec_compress(e->x + count, e->at + count, v, mask, (int32_t)i);
        count += __builtin_popcount(mask);
    }
    e->count = count;
}

/* Lists the elements of A; false if there are too many, or no memory for them. */
static bool write_down(job *j)
{
    const leat_gemm_call *g = j->g;
    elements *e = &j->e;
    const int64_t most = g->m * g->k / SHARE, room = most + g->k + LANES;
    const int64_t copied = g->ta ? STRIP * g->k : 0;
    const int64_t words = 2 * room + g->m * j->blocks + 1 + copied;
    float *strip = leat_gemm_scratch(SCRATCH_A, (size_t)words * sizeof(float));
    if (!strip)
        return false;
    vec_prepare();
    e->x = strip + copied;
    e->at = (int32_t *)(e->x + room);
    e->from = e->at + room;
    const float *a = g->a;
    int32_t *from = e->from;
    for (int64_t r0 = 0, r1; r0 < g->m; r0 = r1) {
        r1 = g->ta && g->m - r0 > STRIP ? r0 + STRIP : g->m;
        if (g->ta)
            leat_gemm_transpose_f32(strip, g->k, a + r0, g->lda, r1 - r0, g->k);
        for (int64_t r = r0; r < r1; r++) {
            const float *row = g->ta ? strip + (r - r0) * g->k : a + r * g->lda;
            for (int64_t p = 0; p < g->k; p += j->depth) {
                *from++ = (int32_t)e->count;
                append(e, row + p, g->k - p < j->depth ? g->k - p : j->depth);
            }
            if (e->count > most)
                return false;
        }
    }
    *from = (int32_t)e->count;
    return true;
}

#define EACH _Pragma("GCC unroll 16") for (int v = 0; v < nv; v++)
#define LOAD(p) (v < nv - 1 ? vec_load((p) + v * LANES) : vec_load_some((p) + v * LANES, lanes))

/* Columns of C, and what B has for them. */
typedef struct columns {
    int64_t col;    /* the first column of C */
    int w;          /* the lanes of the last vector that are columns */
    const float *b; /* row k of the block is at b + k * ldb */
    int64_t ldb;
    bool padded; /* rows may be read to the end of the last vector */
} columns;

/* Adds rows of B to acc: nv vectors of each. */
static inline __attribute__((always_inline)) void sum_rows(const int nv, const bool padded,
                                                           vec *acc, const elements *e,
                                                           const int32_t *from, const columns *s)
{
    const lane_mask lanes = first_lanes(s->w);
    for (int32_t i = from[0]; i < from[1]; i++) {
        const vec x = vec_all(e->x[i]);
        const float *row = s->b + e->at[i] * s->ldb;
        if (padded)
            EACH acc[v] = vec_fma(x, vec_load(row + v * LANES), acc[v]);
        else
            EACH acc[v] = vec_fma(x, LOAD(row), acc[v]);
    }
}

/* Ends rows: bias and activation. */
static inline __attribute__((always_inline)) void
finish(const int nv, vec *acc, const leat_gemm_epilogue *e, int64_t col, lane_mask lanes)
{
    if (e->bias)
        EACH acc[v] = vec_add(acc[v], LOAD((const float *)e->bias + col));
    if (e->act != LEAT_GEMM_LINEAR)
        EACH acc[v] = vec_relu(acc[v]);
    if (e->act == LEAT_GEMM_RELU6)
        EACH acc[v] = vec_at_most(acc[v], 6);
}

/* Adds a block of k to rows r0 to r1 - 1 of C: nv vectors of each. */
static inline __attribute__((always_inline)) void
make_rows(const int nv, const job *j, const columns *s, int64_t block, int64_t r0, int64_t r1)
{
    const leat_gemm_call *g = j->g;
    const lane_mask lanes = first_lanes(s->w);
    const bool last = block == j->blocks - 1;
    const bool goes_on = j->chained && block > 0;
    const bool adds = !j->chained && (block > 0 || g->e.accumulate);
    const int32_t *from = j->e.from + r0 * j->blocks + block;
    float *c = (float *)g->c + r0 * g->ldc + s->col;
    for (int64_t r = r0; r < r1; r++, from += j->blocks, c += g->ldc) {
        if (goes_on && !last && from[0] == from[1])
            continue;
        vec acc[MOST_VECTORS];
        if (goes_on)
            EACH acc[v] = LOAD(c);
        else
            EACH acc[v] = vec_zero();
        if (s->padded)
            sum_rows(nv, true, acc, &j->e, from, s);
        else
            sum_rows(nv, false, acc, &j->e, from, s);
        if (adds)
            EACH acc[v] = vec_add(acc[v], LOAD(c));
        if (last)
            finish(nv, acc, &g->e, s->col, lanes);
        EACH vec_store_some(c + v * LANES, acc[v], v < nv - 1 ? LANES : s->w);
        if (last && g->e.row_fn)
            g->e.row_fn(g->e.arg, r, s->col, c, (nv - 1) * LANES + s->w);
    }
}

/* Copies n rows of B to memory in which each begins at a vector, so that no vector of it is in two
 * lines of the cache, and lets s have that copy. */
static void copy_rows(columns *s, int64_t n, int nv, float *copy)
{
    const lane_mask lanes = first_lanes(s->w);
    for (int64_t k = 0; k < n; k++) {
        const float *b = s->b + k * s->ldb;
        float *to = copy + k * nv * LANES;
        for (int v = 0; v < nv - 1; v++)
            vec_store_some(to + v * LANES, vec_load(b + v * LANES), LANES);
        vec_store_some(to + (nv - 1) * LANES, vec_load_some(b + (nv - 1) * LANES, lanes), LANES);
    }
    s->b = copy;
    s->ldb = nv * LANES;
}
#undef LOAD
#undef EACH

#define MAKE_ROWS(nv)                                                                              \
    static void make_rows_##nv(const job *j, const columns *s, int64_t block, int64_t r0,          \
                               int64_t r1)                                                         \
    {                                                                                              \
        make_rows(nv, j, s, block, r0, r1);                                                        \
    }
/* clang-format off */
#ifdef __AVX512F__
MAKE_ROWS(2) MAKE_ROWS(3)
#endif
MAKE_ROWS(4) MAKE_ROWS(5) MAKE_ROWS(6) MAKE_ROWS(7) MAKE_ROWS(8) MAKE_ROWS(9) MAKE_ROWS(10)
MAKE_ROWS(11) MAKE_ROWS(12) MAKE_ROWS(13)
#ifdef __AVX512F__
MAKE_ROWS(14) MAKE_ROWS(15) MAKE_ROWS(16)
#endif
static void (*const make_rows_of[])(const job *, const columns *, int64_t, int64_t, int64_t) = {
#ifdef __AVX512F__
    [2] = make_rows_2, make_rows_3,
#endif
    [4] = make_rows_4, make_rows_5, make_rows_6, make_rows_7, make_rows_8, make_rows_9,
    make_rows_10, make_rows_11, make_rows_12, make_rows_13,
#ifdef __AVX512F__
    make_rows_14, make_rows_15, make_rows_16,
#endif
};
/* clang-format on */
#undef MAKE_ROWS

/* Makes rows r0 to r1 - 1 of the columns. */
static void make_columns(const job *j, int64_t r0, int64_t r1, columns *s, int nv)
{
    enum { AT_ONCE = 64 }; /* rows between looks at the step's cancellation */
    const leat_gemm_call *g = j->g;
    const int32_t *from = j->e.from;
    const int64_t uses = from[r1 * j->blocks] - from[r0 * j->blocks];
    const size_t size = (size_t)(j->depth * nv * LANES) * sizeof(float);
    float *copy = uses >= LEAST_USES * g->k ? leat_gemm_scratch(SCRATCH_ROWS, size) : NULL;
    for (int64_t block = 0, k0 = 0; block < j->blocks; block++, k0 += j->depth) {
        s->b = (const float *)g->b + k0 * g->ldb + s->col;
        s->ldb = g->ldb;
        if ((s->padded = copy))
            copy_rows(s, g->k - k0 < j->depth ? g->k - k0 : j->depth, nv, copy);
        for (int64_t r = r0; r < r1; r += AT_ONCE) {
            if (leat_loop_stopped(g->e.stop))
                return;
            make_rows_of[nv](j, s, block, r, r1 - r < AT_ONCE ? r1 : r + AT_ONCE);
        }
    }
}

/* Threads take tasks in turn, so a thread's next task is likely to have the same columns. */
static void tasks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const leat_gemm_call *g = j->g;
    const int64_t vectors = ceil_div(g->n, LANES);
    for (int64_t t = begin; t < end; t++) {
        const int64_t x = t % j->chunks, y = t / j->chunks;
        const int64_t v0 = part(vectors, x, j->chunks), v1 = part(vectors, x + 1, j->chunks);
        const int64_t c0 = v0 * LANES, c1 = v1 == vectors ? g->n : v1 * LANES;
        columns s = {.col = c0, .w = (int)(c1 - (v1 - 1) * LANES)};
        make_columns(j, part(g->m, y, j->row_tasks), part(g->m, y + 1, j->row_tasks), &s,
                     (int)(v1 - v0));
    }
}

bool leat_gemm_sparse_f32(leat_pool *pool, int threads, const leat_gemm_call *g, int64_t depth)
{
    enum { EACH = 4 }; /* tasks per thread: cores are not equally fast at all times */
    const double ns_per_term = 0.06;
    if (g->tb || g->n < LEAST_COLUMNS || g->m * g->k < LEAST_SIZE || g->m * g->k > INT32_MAX ||
        (g->ta ? g->m : g->k) < PROBED || !looks_sparse(g))
        return false;
    job j = {.g = g, .depth = depth, .chunks = ceil_div(ceil_div(g->n, LANES), MOST_VECTORS)};
    j.chained = g->k <= depth && !g->e.accumulate;
    if (j.chained)
        j.depth = cached_bytes() /
                  (ceil_div(ceil_div(g->n, LANES), j.chunks) * LANES * (int64_t)sizeof(float));
    j.blocks = ceil_div(g->k, j.depth);
    if (!write_down(&j) || !is_finite(g->b, g->ldb, g->k, g->n))
        return false;
    j.row_tasks = threads == 1 ? 1 : ceil_div(EACH * threads, j.chunks);
    if (j.row_tasks > g->m)
        j.row_tasks = g->m;
    const int64_t all = j.chunks * j.row_tasks;
    if (threads == 1)
        tasks(&j, 0, all);
    else
        leat_pool_for_until(pool, all, ns_per_term * (double)(j.e.count * g->n) / (double)all,
                            tasks, &j, g->e.stop);
    return true;
}
#else
const bool leat_gemm_sparse_built = false;

bool leat_gemm_sparse_f32(leat_pool *pool, int threads, const leat_gemm_call *g, int64_t depth)
{
    return false;
}
#endif
