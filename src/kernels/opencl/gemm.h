/* gemm.h -- products of matrices on a device, C = A B, where A may also be the windows of images;
 * gemm.cl says how. */
#ifndef LEAT_OPENCL_GEMM_H
#define LEAT_OPENCL_GEMM_H

#include "kernels/opencl/opencl.h"

/* A number i of up to three digits is at p * stride[0] + q * stride[1] + r * stride[2], where r is
 * below dim2, q below dim1. */
typedef struct leat_cl_digits {
    int32_t dim1, dim2;
    int32_t stride[3];
} leat_cl_digits;

/* Element (i, k) of A is at rows(i) + parts(k / len) + k % len * by. */
typedef struct leat_cl_left {
    leat_cl_digits rows, parts;
    int32_t len, by;
} leat_cl_left;

/* The digits of a number with one stride. */
static inline leat_cl_digits leat_cl_digit(int64_t stride)
{
    return (leat_cl_digits){1, 1, {(int32_t)stride, 0, 0}};
}

typedef struct leat_cl_product {
    int64_t m, n, parts; /* A has parts * left.len columns */
    leat_cl_left left;
    const void *a, *b;
    int64_t b_down, b_right; /* strides of B */
    void *c;
    int64_t ldc;
    bool add; /* to what C holds */
} leat_cl_product;
leat_status leat_cl_gemm(leat_kernel *k, const leat_cl_product *p) LEAT_MUST_CHECK;
/* The same for an ordinary matrix A with these strides. */
leat_status leat_cl_matmul(leat_kernel *k, int64_t m, int64_t n, int64_t depth, const void *a,
                           int64_t a_down, int64_t a_right, const void *b, int64_t b_down,
                           int64_t b_right, void *c) LEAT_MUST_CHECK;

#endif
