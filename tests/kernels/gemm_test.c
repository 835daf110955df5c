/* gemm_test.c -- products of matrices against sums in double, over odd shapes, transposes,
 * leading dimensions and epilogues; the same bits from one thread and from three; nothing read or
 * written outside the matrices (each is its own allocation, so that ASan sees it); the same bits
 * whether zeros are left out or not, and from vectors of either size. */
#include "kernels/cpu/gemm_int.h"
#include "test.h"

#include <pthread.h>

#include "core/threadpool.h"
#include "kernels/levels.h"

static leat_pool *pool;

/* In place of the C library's, for this whole program: so that memory can run out. */
static bool no_memory;
void *aligned_alloc(size_t alignment, size_t size)
{
    void *p = NULL;
    return no_memory || posix_memalign(&p, alignment, size) != 0 ? NULL : p;
}

static uint32_t seed = 1;
static double noise(void) /* in [-1, 1) */
{
    seed = seed * 1664525 + 1013904223;
    return (double)(int32_t)seed / 2147483648.0;
}

typedef struct shape {
    leat_gemm_op ta, tb;
    int64_t m, n, k;
    int pad; /* added to the leading dimensions */
} shape;

static int64_t lda(const shape *s)
{
    return (s->ta ? s->m : s->k) + s->pad;
}
static int64_t ldb(const shape *s)
{
    return (s->tb ? s->k : s->n) + 2 * s->pad;
}
static int64_t ldc(const shape *s)
{
    return s->n + 3 * s->pad;
}

/* How an element of each dtype is made from and read as numbers; im is 0 but for complex. */
static void put(leat_dtype t, void *p, int64_t i, double re, double im)
{
    switch (t) {
    case LEAT_FLOAT:
        ((float *)p)[i] = (float)re;
        break;
    case LEAT_DOUBLE:
        ((double *)p)[i] = re;
        break;
    case LEAT_INT32:
        ((int32_t *)p)[i] = (int32_t)(re * 100);
        break;
    case LEAT_INT64:
        ((int64_t *)p)[i] = (int64_t)(re * 100);
        break;
    case LEAT_HALF:
        ((leat_half *)p)[i] = leat_half_from_float((float)re);
        break;
    case LEAT_BFLOAT16:
        ((leat_bfloat16 *)p)[i] = leat_bfloat16_from_float((float)re);
        break;
    case LEAT_COMPLEX64:
        ((leat_complex64 *)p)[i] = (leat_complex64){(float)re, (float)im};
        break;
    default:
        ((leat_complex128 *)p)[i] = (leat_complex128){re, im};
        break;
    }
}

static leat_complex128 get(leat_dtype t, const void *p, int64_t i)
{
    switch (t) {
    case LEAT_FLOAT:
        return (leat_complex128){((const float *)p)[i], 0};
    case LEAT_DOUBLE:
        return (leat_complex128){((const double *)p)[i], 0};
    case LEAT_INT32:
        return (leat_complex128){((const int32_t *)p)[i], 0};
    case LEAT_INT64:
        return (leat_complex128){(double)((const int64_t *)p)[i], 0};
    case LEAT_HALF:
        return (leat_complex128){leat_half_to_float(((const leat_half *)p)[i]), 0};
    case LEAT_BFLOAT16:
        return (leat_complex128){leat_bfloat16_to_float(((const leat_bfloat16 *)p)[i]), 0};
    case LEAT_COMPLEX64:
        return (leat_complex128){((const leat_complex64 *)p)[i].re,
                                 ((const leat_complex64 *)p)[i].im};
    default:
        return ((const leat_complex128 *)p)[i];
    }
}

static double tolerance(leat_dtype t, int64_t k)
{
    switch (t) {
    case LEAT_FLOAT:
    case LEAT_COMPLEX64:
        return 1e-6 * (double)(k + 4);
    case LEAT_HALF:
        return 4e-3 * (1 + sqrt((double)k));
    case LEAT_BFLOAT16:
        return 3e-2 * (1 + sqrt((double)k));
    default:
        return 1e-13 * (double)(k + 4);
    }
}

typedef struct wide { /* rows x cols of a matrix in double */
    double *re, *im;
} wide;

static wide widened(leat_dtype t, const void *p, int64_t ld, leat_gemm_op op, int64_t rows,
                    int64_t cols)
{
    wide x = {malloc((size_t)(rows * cols + 1) * sizeof(double)),
              malloc((size_t)(rows * cols + 1) * sizeof(double))};
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t r = i / cols, c = i % cols;
        leat_complex128 v = get(t, p, op ? c * ld + r : r * ld + c);
        x.re[i] = v.re;
        x.im[i] = op == LEAT_GEMM_H ? -v.im : v.im;
    }
    return x;
}

/* Row i of the product, added to re and im. */
static void product_row(const shape *s, bool complex, wide a, wide b, int64_t i, double *re,
                        double *im)
{
    for (int64_t p = 0; p < s->k; p++) {
        const double ar = a.re[i * s->k + p], ai = a.im[i * s->k + p];
        const double *br = b.re + p * s->n, *bi = b.im + p * s->n;
        for (int64_t j = 0; j < s->n; j++)
            re[j] += ar * br[j];
        for (int64_t j = 0; complex && j < s->n; j++) {
            re[j] -= ai * bi[j];
            im[j] += ar * bi[j] + ai * br[j];
        }
    }
}

static leat_complex128 finished(leat_dtype t, leat_complex128 v, const leat_gemm_epilogue *e,
                                int64_t j)
{
    if (e->bias) {
        v.re += get(t, e->bias, j).re;
        v.im += get(t, e->bias, j).im;
    }
    if (e->act && !(v.re >= 0))
        v.re = 0;
    if (e->act == LEAT_GEMM_RELU6 && v.re > 6)
        v.re = 6;
    if (e->row_fn)
        v.re *= 2;
    return v;
}

/* A row_fn: doubles each element of a float or double C. */
static void twice(void *arg, int64_t row, int64_t col, void *c, int64_t n)
{
    (void)row, (void)col;
    for (int64_t i = 0; i < n; i++) {
        if (*(const leat_dtype *)arg == LEAT_FLOAT)
            ((float *)c)[i] *= 2;
        else
            ((double *)c)[i] *= 2;
    }
}

static void *random_matrix(leat_dtype t, int64_t rows, int64_t cols, int64_t ld)
{
    int64_t count = rows ? (rows - 1) * ld + cols : 0; /* nothing after the last row */
    void *p = malloc((size_t)count * leat_dtype_size(t) + (count == 0));
    for (int64_t i = 0; i < count; i++)
        put(t, p, i, noise(), t == LEAT_COMPLEX64 || t == LEAT_COMPLEX128 ? noise() : 0);
    return p;
}

/* How far C, and what lies between its rows, is from what it should be. */
static double difference(leat_dtype t, const shape *s, const void *a, const void *b,
                         const void *before, const void *c, const leat_gemm_epilogue *e)
{
    const bool complex = t == LEAT_COMPLEX64 || t == LEAT_COMPLEX128;
    wide wa = widened(t, a, lda(s), s->ta, s->m, s->k),
         wb = widened(t, b, ldb(s), s->tb, s->k, s->n);
    double *row = malloc((size_t)(2 * s->n + 1) * sizeof(double)), worst = 0;
    for (int64_t i = 0; i < s->m; i++) {
        for (int64_t j = 0; j < s->n; j++) {
            leat_complex128 was = get(t, before, i * ldc(s) + j);
            row[j] = e->accumulate ? was.re : 0;
            row[s->n + j] = e->accumulate ? was.im : 0;
        }
        product_row(s, complex, wa, wb, i, row, row + s->n);
        for (int64_t j = 0; j < (i < s->m - 1 ? ldc(s) : s->n); j++) {
            leat_complex128 want = get(t, before, i * ldc(s) + j), is = get(t, c, i * ldc(s) + j);
            if (j < s->n)
                want = finished(t, (leat_complex128){row[j], row[s->n + j]}, e, j);
            double d = fmax(fabs(is.re - want.re), fabs(is.im - want.im));
            worst = d <= worst ? worst : d; /* takes NaN too */
        }
    }
    if (!(worst <= tolerance(t, s->k)))
        printf("%s %d%d %lldx%lldx%lld pad %d:\n", leat_dtype_name(t), s->ta, s->tb,
               (long long)s->m, (long long)s->n, (long long)s->k, s->pad);
    free(wa.re), free(wa.im), free(wb.re), free(wb.im), free(row);
    return worst;
}

static void check(leat_dtype t, const shape *s, const leat_gemm_epilogue *given)
{
    void *a = random_matrix(t, s->ta ? s->k : s->m, s->ta ? s->m : s->k, lda(s));
    void *b = random_matrix(t, s->tb ? s->n : s->k, s->tb ? s->k : s->n, ldb(s));
    void *before = random_matrix(t, s->m, s->n, ldc(s)), *bias = random_matrix(t, 1, s->n, s->n);
    const size_t bytes = s->m ? (size_t)((s->m - 1) * ldc(s) + s->n) * leat_dtype_size(t) : 0;
    void *c1 = malloc(bytes + (bytes == 0)), *c2 = malloc(bytes + (bytes == 0));
    memcpy(c1, before, bytes);
    memcpy(c2, before, bytes);
    leat_gemm_epilogue e = given ? *given : (leat_gemm_epilogue){0};
    if (e.bias)
        e.bias = bias;
    e.arg = &t;
    const leat_gemm_epilogue *pe = given ? &e : NULL;
    CHECK(leat_gemm(t, NULL, s->ta, s->tb, s->m, s->n, s->k, a, lda(s), b, ldb(s), c1, ldc(s), pe));
    CHECK(leat_gemm(t, pool, s->ta, s->tb, s->m, s->n, s->k, a, lda(s), b, ldb(s), c2, ldc(s), pe));
    CHECK(memcmp(c1, c2, bytes) == 0);
    const bool wide = leat_gemm_wide();
    leat_gemm_set_wide(!wide);
    memcpy(c2, before, bytes);
    CHECK(leat_gemm(t, NULL, s->ta, s->tb, s->m, s->n, s->k, a, lda(s), b, ldb(s), c2, ldc(s), pe));
    leat_gemm_set_wide(wide);
    CHECK(memcmp(c1, c2, bytes) == 0);
    CHECK_NEAR(difference(t, s, a, b, before, c1, &e), 0, tolerance(t, s->k));
    free(a), free(b), free(before), free(bias), free(c1), free(c2);
}

static const leat_gemm_epilogue epilogues[] = {
    {.accumulate = true},
    {.bias = "set by check"},
    {.act = LEAT_GEMM_RELU},
    {.bias = "", .act = LEAT_GEMM_RELU},
    {.accumulate = true, .bias = "", .act = LEAT_GEMM_RELU6},
    {.row_fn = twice},
    {.accumulate = true, .bias = "", .act = LEAT_GEMM_RELU, .row_fn = twice},
};
enum { EPILOGUES = sizeof(epilogues) / sizeof(epilogues[0]) };

static void check_all_ways(leat_dtype t, int64_t m, int64_t n, int64_t k)
{
    for (int ways = 0; ways < 4; ways++) {
        shape s = {ways & 1, ways >> 1, m, n, k, 0};
        check(t, &s, NULL);
        s.pad = 1 + (int)((m + n + k) % 3);
        check(t, &s, NULL);
        check(t, &s, &epilogues[(m * 5 + n * 3 + k + ways) % EPILOGUES]);
    }
}

/* Every height and width of a tile, with every part of a vector hanging over. */
static void small_shapes(void)
{
    for (int m = 1; m <= 26; m += m < 14 ? 1 : 4)
        for (int n = 1; n <= 50; n += n < 26 ? 1 : 5)
            for (int k = 1; k <= 9; k += 4)
                check_all_ways(LEAT_FLOAT, m, n, k);
    for (int m = 1; m <= 13; m += 2)
        for (int n = 1; n <= 26; n++)
            check_all_ways(LEAT_DOUBLE, m, n, n % 5 + 1);
}

/* Past each limit: more than 64 rows, blocks of k, strides that collide, several rounds, chunks. */
static void large_shapes(void)
{
    static const int64_t shapes[][3] = {
        {65, 33, 70},   {100, 100, 784}, {784, 100, 100},  {100, 10, 100},  {100, 100, 10},
        {17, 256, 256}, {66, 256, 256},  {70, 257, 1100},  {200, 300, 550}, {400, 40, 1030},
        {1, 2000, 33},  {1, 33, 2000},   {2000, 1, 33},    {33, 1, 2000},   {1, 1, 1000},
        {3, 5000, 300}, {66, 2100, 520}, {66, 1100, 1030}, {8, 1024, 64},   {30, 30, 2100},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        check_all_ways(LEAT_FLOAT, shapes[i][0], shapes[i][1], shapes[i][2]);
        if (shapes[i][0] * shapes[i][1] * shapes[i][2] < 10000000)
            check_all_ways(LEAT_DOUBLE, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
}

static void every_epilogue(void)
{
    static const int64_t shapes[][3] = {{1, 1, 1},    {7, 21, 5},   {1, 40, 9},    {40, 1, 9},
                                        {70, 30, 20}, {5, 9, 1100}, {70, 600, 600}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int e = 0; e < EPILOGUES; e++) {
            for (int ways = 0; ways < 4; ways++) {
                shape s = {ways & 1, ways >> 1, shapes[i][0], shapes[i][1], shapes[i][2], ways};
                check(LEAT_FLOAT, &s, &epilogues[e]);
                check(LEAT_DOUBLE, &s, &epilogues[e]);
            }
        }
    }
}

static void other_types(void)
{
    static const leat_dtype types[] = {LEAT_INT32,      LEAT_INT64, LEAT_COMPLEX64,
                                       LEAT_COMPLEX128, LEAT_HALF,  LEAT_BFLOAT16};
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 2, 5}, {17, 65, 33}, {40, 130, 70},
                                        {5, 3, 0}, {0, 3, 2}, {16, 64, 32}};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            for (int ways = 0; ways < 9; ways++) {
                shape s = {ways % 3, ways / 3, shapes[i][0], shapes[i][1], shapes[i][2], ways % 2};
                bool complex = types[t] == LEAT_COMPLEX64 || types[t] == LEAT_COMPLEX128;
                check(types[t], &s, NULL);
                check(types[t], &s, &epilogues[complex ? ways % 2 : ways % 5]);
            }
        }
    }
    CHECK(!leat_gemm(LEAT_STRING, NULL, 0, 0, 1, 1, 1, NULL, 1, NULL, 1, NULL, 1, NULL));
    int32_t a = INT32_MAX, b = 2, c = 0;
    CHECK(leat_gemm(LEAT_INT32, NULL, 0, 0, 1, 1, 1, &a, 1, &b, 1, &c, 1, NULL));
    CHECK_INT(c, -2);
}

/* Without k there may be no A and B; without m or n no C. */
static void empty(void)
{
    static const int64_t shapes[][3] = {{5, 7, 0}, {1, 9, 0}, {9, 1, 0}, {70, 30, 0},
                                        {0, 5, 3}, {5, 0, 3}, {0, 0, 0}, {0, 1, 0}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        check_all_ways(LEAT_FLOAT, shapes[i][0], shapes[i][1], shapes[i][2]);
        check_all_ways(LEAT_DOUBLE, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
    float c[6] = {1, 2, 3, 4, 5, 6}, bias[3] = {-1, 0, 1};
    leat_gemm_f32(pool, 0, 0, 2, 3, 0, NULL, 0, NULL, 3, c, 3, &(leat_gemm_epilogue){.bias = bias});
    for (int i = 0; i < 6; i++)
        CHECK(c[i] == bias[i % 3]);
    leat_gemm_f32(pool, 1, 1, 0, 3, 4, NULL, 1, NULL, 4, NULL, 3, NULL);
    leat_gemm_f64(pool, 0, 1, 4, 0, 4, NULL, 4, NULL, 4, NULL, 1, NULL);
}

/* NaN and infinity pass through, and a NaN is no reason for relu to give 0. */
static void not_numbers(void)
{
    const leat_gemm_epilogue relu = {.act = LEAT_GEMM_RELU6};
    for (int n = 1; n <= 20; n += 19) {
        for (int m = 1; m <= 8; m += 7) {
            float a[8] = {1, 1, 1, 1, 1, 1, 1, 1}, b[20], c[160];
            for (int j = 0; j < n; j++)
                b[j] = j % 3 == 0 ? NAN : j % 3 == 1 ? INFINITY : -INFINITY;
            leat_gemm_f32(NULL, 0, 0, m, n, 1, a, 1, b, n, c, n, &relu);
            for (int i = 0; i < m * n; i++) {
                int kind = i % n % 3;
                CHECK(kind == 0 ? isnan(c[i]) : c[i] == (kind == 1 ? 6 : 0));
            }
        }
    }
}

/* A product whose left matrix has so many elements in a thousand that are not zero, and the same in
 * pieces of C that are too narrow for zeros to be left out: the same bits. */
static void check_sparse(const shape *s, int filled, const leat_gemm_epilogue *given)
{
    const int64_t rows = s->ta ? s->k : s->m, cols = s->ta ? s->m : s->k;
    float *a = random_matrix(LEAT_FLOAT, rows, cols, lda(s));
    float *b = random_matrix(LEAT_FLOAT, s->k, s->n, ldb(s));
    float *before = random_matrix(LEAT_FLOAT, s->m, s->n, ldc(s));
    float *bias = random_matrix(LEAT_FLOAT, 1, s->n, s->n);
    for (int64_t i = 0; i < rows * lda(s) - s->pad; i++)
        if (i * 7919 % 1000 >= filled)
            a[i] = i % 2 ? 0.0f : -0.0f;
    const size_t bytes = (size_t)((s->m - 1) * ldc(s) + s->n) * sizeof(float);
    float *c[3];
    leat_dtype t = LEAT_FLOAT;
    leat_gemm_epilogue e = *given;
    e.arg = &t;
    for (int i = 0; i < 3; i++)
        c[i] = memcpy(malloc(bytes), before, bytes);
    if (e.bias)
        e.bias = bias;
    for (int i = 0; i < 2; i++)
        leat_gemm_f32(i ? pool : NULL, s->ta, s->tb, s->m, s->n, s->k, a, lda(s), b, ldb(s), c[i],
                      ldc(s), &e);
    for (int64_t j = 0, w; j < s->n; j += w) {
        w = s->n - j == 17 ? 15 : s->n - j < 16 ? s->n - j : 16; /* one column would be a line */
        if (e.bias)
            e.bias = bias + j;
        leat_gemm_f32(NULL, s->ta, s->tb, s->m, w, s->k, a, lda(s), b + j, ldb(s), c[2] + j, ldc(s),
                      &e);
    }
    CHECK(memcmp(c[0], c[2], bytes) == 0);
    CHECK(memcmp(c[1], c[2], bytes) == 0);
    if (s->k <= 512) { /* so that it is one block; that zeros were left out, and nothing else */
        leat_gemm_call call = {s->ta, s->tb, s->m,   s->n,   s->k,   a,
                               b,     c[0],  lda(s), ldb(s), ldc(s), e};
        call.e.bias = e.bias ? bias : NULL;
        memcpy(c[0], before, bytes);
        CHECK(leat_gemm_sparse_f32(NULL, 1, &call, s->k) == (filled < 250));
        if (filled < 250)
            CHECK(memcmp(c[0], c[2], bytes) == 0);
    }
    free(a), free(b), free(before), free(bias), free(c[0]), free(c[1]), free(c[2]);
}

static void mostly_zeros(void)
{
    if (!leat_gemm_sparse_built)
        SKIP("this level has no products that skip zeros");
    static const int64_t shapes[][3] = {
        {100, 100, 784}, {784, 100, 100}, {128, 64, 784}, {64, 500, 300}, {70, 32, 64},
        {9, 107, 1500},  {300, 1000, 16}, {8, 33, 512},   {40, 49, 1100}, {4100, 35, 8},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int way = 0; way < 6; way++) {
            const leat_gemm_epilogue none = {0};
            const shape s = {way & 1, 0, shapes[i][0], shapes[i][1], shapes[i][2], way % 3};
            if ((s.ta ? s.m : s.k) >= 8)
                check_sparse(&s,
                             way < 2   ? 0
                             : way < 4 ? 180
                             : way < 5 ? 290
                                       : 900,
                             way ? &epilogues[(i + way) % EPILOGUES] : &none);
        }
    }
    for (int columns = 32; columns <= 220; columns++) { /* every width of a piece */
        const shape s = {columns & 1, 0, 70, columns, 70, columns % 3};
        check_sparse(&s, 100, &epilogues[columns % EPILOGUES]);
    }
}

/* A matrix that looks sparse where it is probed, and is not, is multiplied as any other. */
static void looks_are_deceptive(void)
{
    if (!leat_gemm_sparse_built)
        SKIP("this level has no products that skip zeros");
    enum { M = 128, N = 40, K = 128 };
    static float a[M * K], b[K * N], c[M * N];
    leat_gemm_call call = {0, 0, M, N, K, a, b, c, K, N, N, {0}};
    for (int i = 0; i < K * N; i++)
        b[i] = 1;
    for (int i = 0; i < M * K; i++)
        a[i] = i / K % 2; /* of 128 rows, each second one is probed */
    CHECK(!leat_gemm_sparse_f32(NULL, 1, &call, K));
    leat_gemm_f32(pool, 0, 0, M, N, K, a, K, b, N, c, N, NULL);
    for (int i = 0; i < M * N; i++)
        CHECK(c[i] == (i / N % 2 ? K : 0));
    memset(a, 0, sizeof(a));
    CHECK(leat_gemm_sparse_f32(NULL, 1, &call, K));
}

/* Zero times infinity is not zero, and NaN is none. */
static void zeros_and_infinity(void)
{
    enum { M = 70, N = 40, K = 70 };
    static float a[M * K], b[K * N], c[M * N];
    for (int odd = 0; odd < 3; odd++) {
        memset(a, 0, sizeof(a));
        for (int i = 0; i < K * N; i++)
            b[i] = 1;
        b[5 * N + 3] = odd == 0 ? INFINITY : odd == 1 ? NAN : 1;
        a[7 * K + 9] = odd == 2 ? NAN : 1;
        leat_gemm_f32(pool, 0, 0, M, N, K, a, K, b, N, c, N, NULL);
        for (int i = 0; i < M * N; i++)
            CHECK((odd < 2 ? i % N == 3 : i / N == 7) ? isnan(c[i]) : c[i] == (i / N == 7));
    }
}

static void *without_memory_here(void *arg)
{
    (void)arg;
    static const int64_t shapes[][3] = {{100, 70, 300}, {5, 21, 130}, {300, 300, 300}, {70, 9, 64}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        check_all_ways(LEAT_FLOAT, shapes[i][0], shapes[i][1], shapes[i][2]);
        check_all_ways(LEAT_DOUBLE, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
    static float zeros[70 * 70], c[70 * 70];
    leat_gemm_call call = {0, 0, 70, 70, 70, zeros, zeros, c, 70, 70, 70, {0}};
    CHECK(!leat_gemm_sparse_f32(NULL, 1, &call, 70)); /* nowhere to write the elements down */
    return NULL;
}

/* On threads that have kept no memory from earlier products. */
static void without_memory(void)
{
    leat_pool *before = pool;
    pthread_t thread;
    pool = leat_pool_new(2, "poor");
    no_memory = true;
    CHECK_INT(pthread_create(&thread, NULL, without_memory_here, NULL), 0);
    pthread_join(thread, NULL);
    no_memory = false;
    leat_pool_free(pool);
    pool = before;
}

int main(int argc, char **argv)
{
    leat_status s =
        leat_cpu_level_check(); /* LEAT_CPU is the level that this program was made from */
    if (s) {
        printf("%s\n", leat_status_message(s));
        leat_status_free(s);
        return 1;
    }
    pool = leat_pool_new(2, "gemm");
    int failed =
        RUN(argc, argv, {"small_shapes", small_shapes}, {"large_shapes", large_shapes},
            {"every_epilogue", every_epilogue}, {"other_types", other_types}, {"empty", empty},
            {"not_numbers", not_numbers}, {"mostly_zeros", mostly_zeros},
            {"looks_are_deceptive", looks_are_deceptive},
            {"zeros_and_infinity", zeros_and_infinity}, {"without_memory", without_memory});
    leat_pool_free(pool);
    return failed;
}
