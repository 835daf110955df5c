/* gemm_sparse_lanes.h -- vectors of floats for gemm_sparse.c, of the width of the processor's
 * level: 16 lanes with AVX-512, 8 with AVX2. */
#ifndef LEAT_KERNELS_CPU_GEMM_SPARSE_LANES_H
#define LEAT_KERNELS_CPU_GEMM_SPARSE_LANES_H

#include <immintrin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __AVX512F__
enum {
    LANES = 16,
    MOST_VECTORS = 16, /* vectors of a row of C in registers */
};
typedef __m512 vec;
typedef __mmask16 lane_mask;

static inline vec vec_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vec vec_all(float x)
{
    return _mm512_set1_ps(x);
}
static inline vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
/* The mask of the first w lanes. */
static inline lane_mask first_lanes(int w)
{
    return (lane_mask)((1u << w) - 1);
}
/* Loads the lanes of the mask; the others become 0, and their memory is not touched. */
static inline vec vec_load_some(const float *p, lane_mask lanes)
{
    return _mm512_maskz_loadu_ps(lanes, p);
}
/* Stores the first w lanes. */
static inline void vec_store_some(float *p, vec v, int w)
{
    if (w == LANES)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, first_lanes(w), v);
}
static inline vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* Bit i is set if lane i is not zero; NaN is not zero. */
static inline unsigned vec_not_zero(vec v)
{
    return _mm512_cmp_ps_mask(v, vec_zero(), _CMP_NEQ_UQ);
}
static inline bool vec_any_nan(vec v)
{
    return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
}
/* Lanes below zero become 0; NaN and -0 stay. */
static inline vec vec_relu(vec v)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, vec_zero(), _CMP_NLT_UQ), v);
}
/* min(v, most), where NaN stays. */
static inline vec vec_at_most(vec v, float most)
{
    return _mm512_min_ps(_mm512_set1_ps(most), v);
}
static inline void vec_prepare(void) {} /* Comes before the first vec_compress. */
/* Stores the lanes of the mask one after the other at x, and their numbers plus k at `at`. May
 * write LANES elements to both. */
static inline void vec_compress(float *x, int32_t *at, vec v, unsigned mask, int32_t k)
{
    const __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_storeu_ps(x, _mm512_maskz_compress_ps((lane_mask)mask, v));
    _mm512_storeu_si512(at, _mm512_maskz_compress_epi32(
                                (lane_mask)mask, _mm512_add_epi32(numbers, _mm512_set1_epi32(k))));
}

#else
enum {
    LANES = 8,
    MOST_VECTORS = 13, /* vectors of a row of C in registers: leaves some for A, B and a mask */
};
typedef __m256 vec;
typedef __m256i lane_mask;

static inline vec vec_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vec vec_all(float x)
{
    return _mm256_set1_ps(x);
}
static inline vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline lane_mask first_lanes(int w)
{
    static const int32_t some[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i_u *)(some + LANES - w));
}
static inline vec vec_load_some(const float *p, lane_mask lanes)
{
    return _mm256_maskload_ps(p, lanes);
}
/* In pieces, because a masked store takes some processors as long as a dozen plain stores. */
static inline void vec_store_some(float *p, vec v, int w)
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
static inline vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline unsigned vec_not_zero(vec v)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, vec_zero(), _CMP_NEQ_UQ));
}
static inline bool vec_any_nan(vec v)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)) != 0;
}
static inline vec vec_relu(vec v)
{
    return _mm256_andnot_ps(_mm256_cmp_ps(v, vec_zero(), _CMP_LT_OQ), v);
}
static inline vec vec_at_most(vec v, float most)
{
    return _mm256_min_ps(_mm256_set1_ps(most), v);
}
/* Byte i of front[mask]: the lane that moves to position i when the mask's lanes are compacted to
 * the front. */
static uint64_t front[1 << LANES];
static void make_front(void)
{
    for (int mask = 0; mask < 1 << LANES; mask++)
        for (uint64_t lane = 0, place = 0; lane < LANES; lane++)
            if (mask >> lane & 1)
                front[mask] |= lane << 8 * place++;
}
static inline void vec_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_front);
}
static inline void vec_compress(float *x, int32_t *at, vec v, unsigned mask, int32_t k)
{
    const __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)front[mask]));
    _mm256_storeu_ps(x, _mm256_permutevar8x32_ps(v, lanes));
    _mm256_storeu_si256((__m256i_u *)at, _mm256_add_epi32(lanes, _mm256_set1_epi32(k)));
}
#endif

#endif
