/* gemm.c -- products of float and double matrices: what both types share, and their two instances
 * of the templates gemm_kernel.inc (a tile), gemm_vector.inc (C is a row or a column),
 * gemm_drive.inc (division of matrices into tiles) and gemm_front.inc (the functions of gemm.h).
 * gemm_sparse.c computes products of matrices that are mostly zeros.
 *
 * With AVX2 and FMA a tile of 6 by 16 floats needs 12 registers, 2 for B and 1 for A; per step of k
 * it does 12 multiply-adds on 8 loads, so that the multipliers are the limit, not the loads.
 * Without AVX vectors have 16 bytes (SSE2, NEON), and all else is the same. With AVX-512 and NEON,
 * which have 32 registers, tiles of 3 vectors are as high as those of 2: 1 to 3 % of all products.
 *
 * With AVX-512 the code is there for vectors of 32 and of 64 bytes, with the same results bit for
 * bit; gemm_wide.c says which are used.
 */
#include "kernels/cpu/gemm_int.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef LEAT_INSTRUMENTED /* With a fuzzer's instrumentation, unrolled tiles take clang minutes. */
#define INLINE static __attribute__((noinline, unused))
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#ifdef __AVX__
#include <immintrin.h>
enum { VECTOR_BYTES = 32 };
#if !HAS_WIDE_VECTORS
static const int64_t some[8] = {-1, -1, -1, -1}; /* at 4 - w: w lanes of double, 2 w of float */
#endif
#else
enum { VECTOR_BYTES = 16 };
#endif

#if HAS_WIDE_VECTORS || defined(__aarch64__)
#define HAS_32_REGISTERS 1
#else
#define HAS_32_REGISTERS 0
#endif

enum {
    /* Limit of the packed copy of B; if B is larger, it is packed in several rounds. */
    GEMM_PACKED_BYTES = 4 << 20,
    /* Bytes of A in a chunk: together with a packed panel it fits into L2. */
    GEMM_NEAR_BYTES = 144 << 10,
    /* An A of at most this size stays in L2 completely: then k is split less. */
    GEMM_SMALL_BYTES = 320 << 10,
    /* Bytes of a column of a block of an A that is made and transposed. */
    MADE_DEPTH = 512,
};
#define NS_PER_FLOP 0.01 /* estimated, for one core */

/* Rows at a distance of a multiple of this many bytes fall into the same few sets of a cache. */
static bool bad_stride(size_t bytes)
{
    return bytes >= 1024 && bytes % 1024 == 0;
}

/* ---- Memory for packed copies ---- */
typedef struct scratch_memory {
    void *p[SCRATCHES];
    size_t size[SCRATCHES];
    uint64_t id; /* id of the product whose slab of B is in the memory, or 0 */
    int64_t j0, p0;
} scratch_memory;
static __thread scratch_memory kept;
static pthread_key_t kept_key; /* used for its destructor only */
static bool has_kept_key;      /* guarded by kept_lock */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static void kept_release(void *arg)
{
    scratch_memory *s = arg;
    for (int i = 0; i < SCRATCHES; i++)
        free(s->p[i]);
    *s = (scratch_memory){0};
}

/* Whether the end of this thread will free its memory. */
static bool will_be_released(void)
{
    pthread_mutex_lock(&kept_lock);
    if (!has_kept_key)
        has_kept_key = pthread_key_create(&kept_key, kept_release) == 0;
    const bool has_key = has_kept_key;
    pthread_mutex_unlock(&kept_lock);
    return has_key && pthread_setspecific(kept_key, &kept) == 0;
}

static void *scratch_grow(int which, size_t size)
{
    free(kept.p[which]);
    kept.id = 0;
    size = (size + 4095) / 4096 * 4096;
    kept.p[which] = will_be_released() ? aligned_alloc(64, size) : NULL;
    kept.size[which] = kept.p[which] ? size : 0;
    return kept.p[which];
}

void *leat_gemm_scratch(int which, size_t size)
{
    return size <= kept.size[which] ? kept.p[which] : scratch_grow(which, size);
}

static uint64_t scratch_next_id(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* True if this thread's SCRATCH_B holds this slab; if not, records that it will hold it. */
static bool scratch_holds(uint64_t id, int64_t j0, int64_t p0)
{
    if (id && kept.id == id && kept.j0 == j0 && kept.p0 == p0)
        return true;
    kept.id = id;
    kept.j0 = j0;
    kept.p0 = p0;
    return false;
}

/* ---- QUAD by QUAD transposes: to[r * lt + c] = from[c * lf + r] ---- */
typedef float quad_f32 __attribute__((vector_size(16)));
typedef float quad_any_f32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef double quad_f64 __attribute__((vector_size(16)));
typedef double quad_any_f64 __attribute__((vector_size(16), aligned(8), may_alias));

INLINE void transpose_quad_f32(float *to, int64_t lt, const float *from, int64_t lf)
{
    const quad_f32 a = *(const quad_any_f32 *)from, b = *(const quad_any_f32 *)(from + lf);
    const quad_f32 c = *(const quad_any_f32 *)(from + 2 * lf);
    const quad_f32 d = *(const quad_any_f32 *)(from + 3 * lf);
    const quad_f32 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad_f32 ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad_f32 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad_f32 cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad_any_f32 *)to = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(quad_any_f32 *)(to + lt) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(quad_any_f32 *)(to + 2 * lt) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    *(quad_any_f32 *)(to + 3 * lt) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

INLINE void transpose_quad_f64(double *to, int64_t lt, const double *from, int64_t lf)
{
    const quad_f64 a = *(const quad_any_f64 *)from, b = *(const quad_any_f64 *)(from + lf);
    *(quad_any_f64 *)to = __builtin_shufflevector(a, b, 0, 2);
    *(quad_any_f64 *)(to + lt) = __builtin_shufflevector(a, b, 1, 3);
}

/* to[r * ld_to + c] = from[c * ld_from + r] */
#define TRANSPOSE(T, QUAD, SUFFIX)                                                                 \
    static void transpose_##SUFFIX(T *to, int64_t ld_to, const T *from, int64_t ld_from,           \
                                   int64_t rows, int64_t cols)                                     \
    {                                                                                              \
        int64_t c = 0;                                                                             \
        for (; c + QUAD <= cols; c += QUAD) {                                                      \
            int64_t r = 0;                                                                         \
            for (; r + QUAD <= rows; r += QUAD)                                                    \
                transpose_quad_##SUFFIX(to + r * ld_to + c, ld_to, from + c * ld_from + r,         \
                                        ld_from);                                                  \
            for (; r < rows; r++)                                                                  \
                for (int i = 0; i < QUAD; i++)                                                     \
                    to[r * ld_to + c + i] = from[(c + i) * ld_from + r];                           \
        }                                                                                          \
        for (; c < cols; c++)                                                                      \
            for (int64_t r = 0; r < rows; r++)                                                     \
                to[r * ld_to + c] = from[c * ld_from + r];                                         \
    }
TRANSPOSE(float, 4, f32)
TRANSPOSE(double, 2, f64)

/* Smaller products are done before another thread would have started. */
static int threads_for(leat_pool *pool, int64_t m, int64_t n, int64_t k)
{
    return pool && 2.0 * (double)m * (double)n * (double)k * NS_PER_FLOP > 1000
               ? leat_pool_size(pool) + 1
               : 1;
}

#define MASK_8(w) ((__mmask8)((1u << (w)) - 1))
#define MASK_16(w) ((__mmask16)((1u << (w)) - 1))

#define T float
#define MASK int32_t
#define OF_TYPE(x) x##_f32
#if HAS_WIDE_VECTORS
#define WIDE 1
#define LANES 16
#define NAME(x) x##_wide_f32
#define LOAD_SOME(p, w) _mm512_maskz_loadu_ps(MASK_16(w), p)
#define STORE_SOME(p, v, w) _mm512_mask_storeu_ps(p, MASK_16(w), (__m512)(v))
#include "gemm_kernel.inc"
#include "gemm_drive.inc"
#undef WIDE
#undef LANES
#undef NAME
#undef LOAD_SOME
#undef STORE_SOME
#define WIDE_NAME(x) x##_wide_f32
#define LOAD_SOME(p, w) _mm256_maskz_loadu_ps(MASK_8(w), p)
#define STORE_SOME(p, v, w) _mm256_mask_storeu_ps(p, MASK_8(w), (__m256)(v))
#elif defined(__AVX__)
#define LOAD_SOME(p, w) _mm256_maskload_ps(p, *(const __m256i_u *)((const int32_t *)some + 8 - (w)))
#endif
#define WIDE 0
#define LANES ((int)(VECTOR_BYTES / sizeof(T)))
#define NAME(x) x##_f32
#define SPARSE
#include "gemm_kernel.inc"
#include "gemm_vector.inc"
#include "gemm_drive.inc"
#include "gemm_front.inc"
#undef T
#undef MASK
#undef OF_TYPE
#undef WIDE
#undef LANES
#undef NAME
#undef WIDE_NAME
#undef SPARSE
#undef LOAD_SOME
#undef STORE_SOME

#define T double
#define MASK int64_t
#define OF_TYPE(x) x##_f64
#if HAS_WIDE_VECTORS
#define WIDE 1
#define LANES 8
#define NAME(x) x##_wide_f64
#define LOAD_SOME(p, w) _mm512_maskz_loadu_pd(MASK_8(w), p)
#define STORE_SOME(p, v, w) _mm512_mask_storeu_pd(p, MASK_8(w), (__m512d)(v))
#include "gemm_kernel.inc"
#include "gemm_drive.inc"
#undef WIDE
#undef LANES
#undef NAME
#undef LOAD_SOME
#undef STORE_SOME
#define WIDE_NAME(x) x##_wide_f64
#define LOAD_SOME(p, w) _mm256_maskz_loadu_pd(MASK_8(w), p)
#define STORE_SOME(p, v, w) _mm256_mask_storeu_pd(p, MASK_8(w), (__m256d)(v))
#elif defined(__AVX__)
#define LOAD_SOME(p, w) _mm256_maskload_pd(p, *(const __m256i_u *)(some + 4 - (w)))
#endif
#define WIDE 0
#define LANES ((int)(VECTOR_BYTES / sizeof(T)))
#define NAME(x) x##_f64
#include "gemm_kernel.inc"
#include "gemm_vector.inc"
#include "gemm_drive.inc"
#include "gemm_front.inc"

void leat_gemm_transpose_f32(float *to, int64_t ld_to, const float *from, int64_t ld_from,
                             int64_t rows, int64_t cols)
{
    transpose_f32(to, ld_to, from, ld_from, rows, cols);
}

bool leat_gemm_made(leat_dtype t, leat_pool *pool, leat_gemm_op ta, int64_t m, int64_t n, int64_t k,
                    const leat_gemm_source *a, const void *b, int64_t ldb, void *c, int64_t ldc,
                    const leat_gemm_epilogue *e)
{
    const leat_gemm_epilogue none = {0};
    if (m <= 0 || n <= 0)
        return true;
    if (k <= 0) { /* A has no elements to be made, and those of C are zeros */
        leat_gemm(t, pool, LEAT_GEMM_N, LEAT_GEMM_N, m, n, 0, b, 0, b, ldb, c, ldc, e);
        return true;
    }
    return t == LEAT_DOUBLE
               ? multiply_made_f64(pool, ta, m, n, k, a, b, ldb, c, ldc, e ? e : &none)
               : multiply_made_f32(pool, ta, m, n, k, a, b, ldb, c, ldc, e ? e : &none);
}
