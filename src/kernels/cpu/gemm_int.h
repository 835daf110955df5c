/* gemm_int.h -- between the files of gemm: one product, and the plain loops that do it anyway. */
#ifndef LEAT_KERNELS_CPU_GEMM_INT_H
#define LEAT_KERNELS_CPU_GEMM_INT_H

#include "kernels/cpu/gemm.h"

/* The arguments of leat_gemm. */
typedef struct leat_gemm_call {
    leat_gemm_op ta, tb;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    leat_gemm_epilogue e;
} leat_gemm_call;

/* Plain loops; they need no memory: those of float and double are for when there is none. */
void leat_gemm_plain_f32(leat_pool *pool, const leat_gemm_call *g);
void leat_gemm_plain_f64(leat_pool *pool, const leat_gemm_call *g);
void leat_gemm_plain_i32(leat_pool *pool, const leat_gemm_call *g);
void leat_gemm_plain_i64(leat_pool *pool, const leat_gemm_call *g);
void leat_gemm_plain_c64(leat_pool *pool, const leat_gemm_call *g);
void leat_gemm_plain_c128(leat_pool *pool, const leat_gemm_call *g);
void leat_gemm_plain_f16(leat_pool *pool, const leat_gemm_call *g);
void leat_gemm_plain_bf16(leat_pool *pool, const leat_gemm_call *g);

#endif
