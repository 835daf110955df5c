/* gemm_int.h -- between the files of gemm: the arguments of one product. */
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

#endif
