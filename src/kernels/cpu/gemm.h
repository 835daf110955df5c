/* gemm.h -- products of matrices: C = op(A) op(B), row-major, with an epilogue (bias, activation).
 *
 * op(A) is m by k, op(B) is k by n; a stored matrix of r rows and c columns has its rows ld apart,
 * ld >= c. C overlaps neither A nor B. An element's terms are added in an order that depends on m,
 * n, k and the transposes alone, never on the threads. Steady state allocates nothing: packed
 * copies live in memory that each thread keeps, some MB at most.
 */
#ifndef LEAT_KERNELS_CPU_GEMM_H
#define LEAT_KERNELS_CPU_GEMM_H

#include "core/threadpool.h"
#include <leat/tensor.h>

typedef enum leat_gemm_op {
    LEAT_GEMM_N = 0, /* as stored */
    LEAT_GEMM_T = 1, /* transposed; the values of N and T are those of false and true */
    LEAT_GEMM_H = 2, /* transposed and conjugated; T for real types */
} leat_gemm_op;

typedef enum leat_gemm_act { LEAT_GEMM_LINEAR = 0, LEAT_GEMM_RELU, LEAT_GEMM_RELU6 } leat_gemm_act;

/* The epilogue: what is done to elements of C while they are in registers or cache, in this order.
 * All zero: C is the product. */
typedef struct leat_gemm_epilogue {
    bool accumulate;   /* C += the product */
    const void *bias;  /* n elements of C's type, added to each row; NULL: none */
    leat_gemm_act act; /* NaN stays NaN; real types only */
    /* Called on parts of rows when they are final, from any thread: C[row, col .. col + n). NULL:
     * none. */
    void (*row_fn)(void *arg, int64_t row, int64_t col, void *c, int64_t n);
    void *arg;
    /* When C is not wanted any more: the product ends early, and C holds anything. NULL: never. */
    const leat_loop_stop *stop;
} leat_gemm_epilogue;

/* pool and e may be NULL. m, n or k may be 0; if k is 0 the product is zeros. */
void leat_gemm_f32(leat_pool *pool, leat_gemm_op ta, leat_gemm_op tb, int64_t m, int64_t n,
                   int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
                   int64_t ldc, const leat_gemm_epilogue *e);
void leat_gemm_f64(leat_pool *pool, leat_gemm_op ta, leat_gemm_op tb, int64_t m, int64_t n,
                   int64_t k, const double *a, int64_t lda, const double *b, int64_t ldb, double *c,
                   int64_t ldc, const leat_gemm_epilogue *e);
/* A left matrix whose elements are made when they are needed, such as the patches of images. */
typedef struct leat_gemm_source {
    /* Writes rows [row, row + rows) and columns [col, col + cols) of the stored matrix A to `to`,
     * an array of C's type whose rows are ld apart. Called from any thread. */
    void (*read)(const void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols, void *to,
                 int64_t ld);
    const void *arg;
} leat_gemm_source;
/* C = op(A) B with such an A, for float and double. False if memory for a part of A could not be
 * had: C holds anything then. */
bool leat_gemm_made(leat_dtype t, leat_pool *pool, leat_gemm_op ta, int64_t m, int64_t n, int64_t k,
                    const leat_gemm_source *a, const void *b, int64_t ldb, void *c, int64_t ldc,
                    const leat_gemm_epilogue *e);
/* For all types that MatMul takes: the two above; int32 and int64 (which wrap), complex64,
 * complex128, half and bfloat16 (summed in float) by plain loops. False for other types: nothing is
 * done. */
bool leat_gemm(leat_dtype t, leat_pool *pool, leat_gemm_op ta, leat_gemm_op tb, int64_t m,
               int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
               void *c, int64_t ldc, const leat_gemm_epilogue *e);

#endif
