/* gemm_int.h -- shared by the files of gemm. */
#ifndef LEAT_KERNELS_CPU_GEMM_INT_H
#define LEAT_KERNELS_CPU_GEMM_INT_H

#include "kernels/cpu/gemm.h"

#ifdef __AVX512F__
#define HAS_WIDE_VECTORS 1
#else
#define HAS_WIDE_VECTORS 0
#endif

/* Whether products use vectors of 64 bytes, which gives the same bits; see gemm_wide.c. The tests
 * set leat_gemm_set_wide, for all threads; it does nothing where there are no such vectors. */
bool leat_gemm_wide(void);
void leat_gemm_set_wide(bool wide);

/* The arguments of leat_gemm. */
typedef struct leat_gemm_call {
    leat_gemm_op ta, tb;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    leat_gemm_epilogue e;
} leat_gemm_call;

/* Memory for copies of A and B, kept by each thread until it ends: at least size bytes, or NULL;
 * valid until the next call by the same thread. */
enum { SCRATCH_A, SCRATCH_B, SCRATCH_ROWS, SCRATCH_TILES, SCRATCHES };
void *leat_gemm_scratch(int which, size_t size);

/* to[r * ld_to + c] = from[c * ld_from + r] */
void leat_gemm_transpose_f32(float *to, int64_t ld_to, const float *from, int64_t ld_from,
                             int64_t rows, int64_t cols);

/* If A is mostly zeros and it is faster: computes the product with the same bits as gemm.c, which
 * sums blocks of k of this depth. False: nothing was done. */
extern const bool leat_gemm_sparse_built; /* False: this level has no such products. */
bool leat_gemm_sparse_f32(leat_pool *pool, int threads, const leat_gemm_call *g, int64_t depth);

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The start of piece i if n is divided into `of` pieces of sizes as equal as possible, the larger
 * ones first. */
static inline int64_t part(int64_t n, int64_t i, int64_t of)
{
    return i == of ? n : i ? n / of * i + (i < n % of ? i : n % of) : 0;
}

#endif
