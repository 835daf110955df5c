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
#include <immintrin.h>
#include <pthread.h>

const bool leat_gemm_sparse_built = true;

enum {
    LANES = 8,
    /* Vectors of a row of C in registers: leaves some registers for A, B and a mask. */
    MOST_VECTORS = 13,
    LEAST_COLUMNS = 32, /* columns of C from which on listing pays */
    LEAST_SIZE = 4096,  /* elements of A from which on listing pays */
    SHARE = 4,          /* at most one element of A in so many may be nonzero */
    PROBES = 64,        /* vectors of A that are sampled before all of A is read */
    STRIP = 32,         /* columns of a transposed A that are converted to rows at a time */
    CACHED = 28 << 10,  /* bytes of B that are used at a time: less than the first level of cache */
};

/* The nonzero elements of op(A). Those of row r and block b of k are from from[r * blocks + b] to
 * the start of the next block. */
typedef struct elements {
    float *x;
    int32_t *at; /* index k of each element */
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

/* Byte i of front[mask]: the lane that moves to position i when the mask's lanes are compacted to
 * the front. */
static uint64_t front[1 << LANES];
static pthread_once_t front_once = PTHREAD_ONCE_INIT;

static void make_front(void)
{
    for (int mask = 0; mask < 1 << LANES; mask++)
        for (uint64_t lane = 0, place = 0; lane < LANES; lane++)
            if (mask >> lane & 1)
                front[mask] |= lane << 8 * place++;
}

static inline __m256i first_lanes(int w)
{
    static const int32_t some[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i_u *)(some + LANES - w));
}

/* In pieces, because a masked store takes some processors as long as a dozen plain stores. */
static inline void store_some(float *p, __m256 v, int w)
{
    __m128 t = _mm256_castps256_ps128(v);
    if (w == LANES) {
        _mm256_storeu_ps(p, v);
        return;
    }
    if (w & 4) {
        _mm_storeu_ps(p, t);
        t = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (w & 2) {
        _mm_storel_pi((__m64 *)p, t);
        t = _mm_movehl_ps(t, t);
        p += 2;
    }
    if (w & 1)
        _mm_store_ss(p, t);
}

/* The mask of nonzero lanes; NaN is not zero. */
static inline int not_zero(__m256 v)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ));
}

static bool looks_sparse(const leat_gemm_call *g)
{
    const int64_t rows = g->ta ? g->k : g->m, cols = g->ta ? g->m : g->k;
    const float *a = g->a;
    int found = 0;
    for (int64_t i = 0; i < PROBES; i++) {
        const int64_t row = rows * i / PROBES, col = (cols - LANES) * (i * 37 % PROBES) / PROBES;
        found += __builtin_popcount(not_zero(_mm256_loadu_ps(a + row * g->lda + col)));
    }
    /* a quarter more than the limit, because it is an estimate. */
    return 4 * SHARE * found < 5 * PROBES * LANES;
}

static bool is_finite(const float *b, int64_t ld, int64_t rows, int64_t cols)
{
    const __m256 zero = _mm256_setzero_ps();
    __m256 sum[4] = {zero, zero, zero, zero}; /* becomes NaN if an element is not finite */
    for (int64_t r = 0; r < rows; r++, b += ld) {
        int64_t c = 0;
        for (; c + 4 * LANES <= cols; c += 4 * LANES)
            for (int v = 0; v < 4; v++)
                sum[v] = _mm256_fmadd_ps(zero, _mm256_loadu_ps(b + c + v * LANES), sum[v]);
        for (; c < cols; c += LANES) {
            const __m256i lanes = first_lanes(cols - c < LANES ? (int)(cols - c) : LANES);
            sum[0] = _mm256_fmadd_ps(zero, _mm256_maskload_ps(b + c, lanes), sum[0]);
        }
    }
    sum[0] = _mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3]));
    return _mm256_movemask_ps(_mm256_cmp_ps(sum[0], sum[0], _CMP_UNORD_Q)) == 0;
}

/* Appends the nonzero elements of a[0 .. n), whose first element has index k. May write up to LANES
 * elements too many. */
static void append(elements *e, const float *a, int64_t n, int64_t k)
{
    float *x = e->x;
    int32_t *at = e->at;
    int64_t count = e->count;
    for (int64_t i = 0; i < n; i += LANES) {
        const __m256 v = n - i < LANES ? _mm256_maskload_ps(a + i, first_lanes((int)(n - i)))
                                       : _mm256_loadu_ps(a + i);
        const int mask = not_zero(v);
        const __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)front[mask]));
        _mm256_storeu_ps(x + count, _mm256_permutevar8x32_ps(v, lanes));
        _mm256_storeu_si256((__m256i_u *)(at + count),
                            _mm256_add_epi32(lanes, _mm256_set1_epi32((int32_t)(k + i))));
        count += __builtin_popcount((unsigned)mask);
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
    pthread_once(&front_once, make_front);
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
                append(e, row + p, g->k - p < j->depth ? g->k - p : j->depth, p);
            }
            if (e->count > most)
                return false;
        }
    }
    *from = (int32_t)e->count;
    return true;
}

#define EACH _Pragma("GCC unroll 16") for (int v = 0; v < nv; v++)
#define LOAD(p)                                                                                    \
    (v < nv - 1 ? _mm256_loadu_ps((p) + v * LANES) : _mm256_maskload_ps((p) + v * LANES, lanes))

/* Adds rows of b to acc: nv vectors of each, the last one with a mask of lanes. */
static inline __attribute__((always_inline)) void sum_rows(const int nv, __m256 *acc,
                                                           const elements *e, const int32_t *from,
                                                           const float *b, int64_t ldb,
                                                           __m256i lanes)
{
    for (int32_t i = from[0]; i < from[1]; i++) {
        const __m256 x = _mm256_broadcast_ss(e->x + i);
        const float *row = b + e->at[i] * ldb;
        EACH acc[v] = _mm256_fmadd_ps(x, LOAD(row), acc[v]);
    }
}

/* Ends rows: bias and activation. */
static inline __attribute__((always_inline)) void
finish(const int nv, __m256 *acc, const leat_gemm_epilogue *e, int64_t col, __m256i lanes)
{
    if (e->bias)
        EACH acc[v] = _mm256_add_ps(acc[v], LOAD((const float *)e->bias + col));
    if (e->act != LEAT_GEMM_LINEAR) /* NaN and -0 stay */
        EACH acc[v] =
            _mm256_andnot_ps(_mm256_cmp_ps(acc[v], _mm256_setzero_ps(), _CMP_LT_OQ), acc[v]);
    if (e->act == LEAT_GEMM_RELU6) /* of 6 and NaN, min gives the second */
        EACH acc[v] = _mm256_min_ps(_mm256_set1_ps(6), acc[v]);
}

/* Adds a block of k to rows r0 to r1 - 1 of C, from column col on: nv vectors, of which the last
 * one has w columns. */
static inline __attribute__((always_inline)) void
make_rows(const int nv, const job *j, int64_t block, int64_t r0, int64_t r1, int64_t col, int w)
{
    const leat_gemm_call *g = j->g;
    const __m256i lanes = first_lanes(w);
    const float *b = (const float *)g->b + col;
    const bool last = block == j->blocks - 1;
    const bool goes_on = j->chained && block > 0;
    const bool adds = !j->chained && (block > 0 || g->e.accumulate);
    const int32_t *from = j->e.from + r0 * j->blocks + block;
    float *c = (float *)g->c + r0 * g->ldc + col;
    for (int64_t r = r0; r < r1; r++, from += j->blocks, c += g->ldc) {
        if (goes_on && !last && from[0] == from[1])
            continue;
        __m256 acc[MOST_VECTORS];
        if (goes_on)
            EACH acc[v] = LOAD(c);
        else
            EACH acc[v] = _mm256_setzero_ps();
        sum_rows(nv, acc, &j->e, from, b, g->ldb, lanes);
        if (adds)
            EACH acc[v] = _mm256_add_ps(acc[v], LOAD(c));
        if (last)
            finish(nv, acc, &g->e, col, lanes);
        EACH store_some(c + v * LANES, acc[v], v < nv - 1 ? LANES : w);
        if (last && g->e.row_fn)
            g->e.row_fn(g->e.arg, r, col, c, (nv - 1) * LANES + w);
    }
}
#undef LOAD
#undef EACH

#define MAKE_ROWS(nv)                                                                              \
    static void make_rows_##nv(const job *j, int64_t block, int64_t r0, int64_t r1, int64_t col,   \
                               int w)                                                              \
    {                                                                                              \
        make_rows(nv, j, block, r0, r1, col, w);                                                   \
    }
/* clang-format off */
MAKE_ROWS(4) MAKE_ROWS(5) MAKE_ROWS(6) MAKE_ROWS(7) MAKE_ROWS(8) MAKE_ROWS(9) MAKE_ROWS(10)
MAKE_ROWS(11) MAKE_ROWS(12) MAKE_ROWS(13)
static void (*const make_rows_of[])(const job *, int64_t, int64_t, int64_t, int64_t, int) = {
    [4] = make_rows_4, make_rows_5, make_rows_6, make_rows_7, make_rows_8, make_rows_9,
    make_rows_10, make_rows_11, make_rows_12, make_rows_13,
};
/* clang-format on */
#undef MAKE_ROWS

/* Threads take tasks in turn, so a thread's next task is likely to have the same columns. */
static void tasks(void *arg, int64_t begin, int64_t end)
{
    enum { AT_ONCE = 64 }; /* rows between looks at the step's cancellation */
    const job *j = arg;
    const leat_gemm_call *g = j->g;
    const int64_t vectors = ceil_div(g->n, LANES);
    for (int64_t t = begin; t < end; t++) {
        const int64_t x = t % j->chunks, y = t / j->chunks;
        const int64_t v0 = part(vectors, x, j->chunks), v1 = part(vectors, x + 1, j->chunks);
        const int64_t c0 = v0 * LANES, c1 = v1 == vectors ? g->n : v1 * LANES;
        const int64_t r0 = part(g->m, y, j->row_tasks), r1 = part(g->m, y + 1, j->row_tasks);
        for (int64_t block = 0; block < j->blocks; block++)
            for (int64_t r = r0; r < r1; r += AT_ONCE) {
                if (leat_loop_stopped(g->e.stop))
                    return;
                make_rows_of[v1 - v0](j, block, r, r1 - r < AT_ONCE ? r1 : r + AT_ONCE, c0,
                                      (int)(c1 - (v1 - 1) * LANES));
            }
    }
}

bool leat_gemm_sparse_f32(leat_pool *pool, int threads, const leat_gemm_call *g, int64_t depth)
{
    enum { EACH = 4 }; /* tasks per thread: cores are not equally fast at all times */
    const double ns_per_term = 0.06;
    if (g->tb || g->n < LEAST_COLUMNS || g->m * g->k < LEAST_SIZE || g->m * g->k > INT32_MAX ||
        (g->ta ? g->m : g->k) < LANES || !looks_sparse(g))
        return false;
    job j = {.g = g, .depth = depth, .chunks = ceil_div(ceil_div(g->n, LANES), MOST_VECTORS)};
    j.chained = g->k <= depth && !g->e.accumulate;
    if (j.chained)
        j.depth = CACHED / (ceil_div(g->n, j.chunks) * (int64_t)sizeof(float));
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
