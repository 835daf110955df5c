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

/* What is done to each row of a product: a bias is added, then an element-wise op of one operand
 * (expressions.cl) is applied. */
typedef struct leat_cl_end {
    const void *bias; /* NULL: nothing is done */
    const char *op;   /* "Relu"; NULL: none */
} leat_cl_end;

typedef struct leat_cl_product {
    int64_t m, n, parts; /* A has parts * left.len columns */
    leat_cl_left left;
    const void *a, *b;
    int64_t b_down, b_right; /* strides of B */
    const void *panels;      /* B's panels, if the caller has made them; b is not used then */
    void *c;
    int64_t ldc;
    bool add; /* to what C holds */
    leat_cl_end end;
    /* The first of so many products (0: of one), whose matrices, or panels, are these numbers of
     * elements apart. */
    int64_t batch, a_step, b_step, c_step;
} leat_cl_product;
leat_status leat_cl_gemm(leat_kernel *k, const leat_cl_product *p) LEAT_MUST_CHECK;
/* Makes B's panels, for several products that have the same B; not for a batch. */
leat_status leat_cl_pack(leat_kernel *k, leat_cl_product *p) LEAT_MUST_CHECK;
/* UNIMPLEMENTED for a number of elements that kernels cannot count. */
leat_status leat_cl_countable(int64_t n) LEAT_MUST_CHECK;

/* end.c: what a node is fused with, by its attributes fused_ops and num_args. */
typedef struct leat_cl_fused {
    bool bias; /* input 2; false: the node is not fused */
    const char *op;
} leat_cl_fused;
leat_status leat_cl_fused_init(const leat_node *n, leat_cl_fused *f) LEAT_MUST_CHECK;
/* The end of a product whose result has this shape. */
leat_status leat_cl_fused_end(leat_kernel *k, const leat_cl_fused *f, const leat_shape *result,
                              leat_cl_end *out) LEAT_MUST_CHECK;

#endif
