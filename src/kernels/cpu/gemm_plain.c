/* gemm_plain.c -- products of matrices of any type that MatMul takes: float and double by
 * gemm.c, the others by the plain loops of gemm_plain.inc. */
#include "kernels/cpu/gemm_int.h"
#include <string.h>

enum { BLOCK_ROWS = 16, BLOCK_COLS = 64, BLOCK_DEPTH = 32 };

#define OP(name) OP_1(KIND, name)
#define OP_1(kind, name) OP_2(kind, name)
#define OP_2(kind, name) kind##_##name

#define REAL_MADD(s, a, b) ((s) += (a) * (b))
#define REAL_ADD(s, a) ((s) += (a))
#define REAL_CONJ(w) (w)
#define REAL_RELU(w, act) ((w) < 0 ? 0 : (act) == LEAT_GEMM_RELU6 && (w) > 6 ? 6 : (w))

/* Sums are unsigned, which may wrap. */
#define INTEGER_MADD(s, a, b) ((s) += (a) * (b))
#define INTEGER_ADD(s, a) ((s) += (a))
#define INTEGER_CONJ(w) (w)
#define INTEGER_RELU(w, act) ((W)REAL_RELU((T)(w), act))

#define COMPLEX_MADD(s, a, b)                                                                      \
    ((s).re += (a).re * (b).re - (a).im * (b).im, (s).im += (a).re * (b).im + (a).im * (b).re)
#define COMPLEX_ADD(s, a) ((s).re += (a).re, (s).im += (a).im)
#define COMPLEX_CONJ(w) ((W){(w).re, -(w).im})
#define COMPLEX_RELU(w, act) (w)

#define T int32_t
#define W uint32_t
#define LOAD(x) (uint32_t)(x)
#define STORE(x) (int32_t)(x)
#define NAME(x) x##_i32
#define KIND INTEGER
#include "gemm_plain.inc"

#define T int64_t
#define W uint64_t
#define LOAD(x) (uint64_t)(x)
#define STORE(x) (int64_t)(x)
#define NAME(x) x##_i64
#define KIND INTEGER
#include "gemm_plain.inc"

#define T leat_complex64
#define W leat_complex64
#define LOAD(x) (x)
#define STORE(x) (x)
#define NAME(x) x##_c64
#define KIND COMPLEX
#include "gemm_plain.inc"

#define T leat_complex128
#define W leat_complex128
#define LOAD(x) (x)
#define STORE(x) (x)
#define NAME(x) x##_c128
#define KIND COMPLEX
#include "gemm_plain.inc"

#define T leat_half
#define W float
#define LOAD(x) leat_half_to_float(x)
#define STORE(x) leat_half_from_float(x)
#define NAME(x) x##_f16
#define KIND REAL
#include "gemm_plain.inc"

#define T leat_bfloat16
#define W float
#define LOAD(x) leat_bfloat16_to_float(x)
#define STORE(x) leat_bfloat16_from_float(x)
#define NAME(x) x##_bf16
#define KIND REAL
#include "gemm_plain.inc"

bool leat_gemm(leat_dtype t, leat_pool *pool, leat_gemm_op ta, leat_gemm_op tb, int64_t m,
               int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
               void *c, int64_t ldc, const leat_gemm_epilogue *e)
{
    leat_gemm_call g = {ta, tb, m, n, k, a, b, c, lda, ldb, ldc, e ? *e : (leat_gemm_epilogue){0}};
    switch (t) {
    case LEAT_FLOAT:
        leat_gemm_f32(pool, ta, tb, m, n, k, a, lda, b, ldb, c, ldc, e);
        return true;
    case LEAT_DOUBLE:
        leat_gemm_f64(pool, ta, tb, m, n, k, a, lda, b, ldb, c, ldc, e);
        return true;
    case LEAT_INT32:
        plain_i32(pool, &g);
        return true;
    case LEAT_INT64:
        plain_i64(pool, &g);
        return true;
    case LEAT_COMPLEX64:
        plain_c64(pool, &g);
        return true;
    case LEAT_COMPLEX128:
        plain_c128(pool, &g);
        return true;
    case LEAT_HALF:
        plain_f16(pool, &g);
        return true;
    case LEAT_BFLOAT16:
        plain_bf16(pool, &g);
        return true;
    default:
        return false;
    }
}
