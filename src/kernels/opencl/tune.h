/* tune.h -- which tiles products of matrices use on a device: found by trying, once, and kept on
 * disk. */
#ifndef LEAT_OPENCL_TUNE_H
#define LEAT_OPENCL_TUNE_H

#include "kernels/opencl/gemm.h"

typedef struct leat_cl_tiles {
    int rows, width; /* of a tile of C */
    char options[64];
} leat_cl_tiles;
/* The tiles for products with n columns. What a product gives does not depend on them: each element
 * is summed in the same order. */
leat_status leat_cl_tiles_for(leat_opencl *d, int64_t n, const leat_cl_tiles **out) LEAT_MUST_CHECK;
/* gemm.c: the product by these tiles; p has panels for them. */
leat_status leat_cl_gemm_by(leat_opencl *d, const leat_cl_product *p,
                            const leat_cl_tiles *t) LEAT_MUST_CHECK;

#endif
