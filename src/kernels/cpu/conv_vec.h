/* conv_vec.h -- vectors of floats, as long as the registers of the level, for convolutions that are
 * computed without products of matrices. */
#ifndef LEAT_KERNELS_CPU_CONV_VEC_H
#define LEAT_KERNELS_CPU_CONV_VEC_H

#include "kernels/cpu/gemm.h"

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum {
#if defined(__AVX512F__)
    LANES = 16,
#elif defined(__AVX__)
    LANES = 8,
#else
    LANES = 4,
#endif
    UNIT = 16, /* what numbers of channels must be multiples of, so that it is so at all levels */
};

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_any __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(LANES * 4)));

INLINE vec load(const float *p)
{
    return *(const vec_any *)p;
}

INLINE void store(float *p, vec v)
{
    *(vec_any *)p = v;
}

/* Bias and activation of units [u, u + LANES). NaN and -0 stay, as in TensorFlow's max(x, 0). */
INLINE vec finished(vec v, const leat_gemm_epilogue *e, int64_t u)
{
    if (e->bias)
        v += load((const float *)e->bias + u);
    if (e->act != LEAT_GEMM_LINEAR)
        v = (vec)((mask)v & ~(v < 0));
    if (e->act == LEAT_GEMM_RELU6) {
        const vec six = (vec){0} + 6;
        v = (vec)(((mask)v & ~(v > six)) | ((mask)six & (v > six)));
    }
    return v;
}

#endif
