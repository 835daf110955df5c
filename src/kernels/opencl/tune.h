/* tune.h -- which tiles products of matrices use on a device: found by trying, once, and kept on
 * disk. */
#ifndef LEAT_OPENCL_TUNE_H
#define LEAT_OPENCL_TUNE_H

#include "kernels/opencl/opencl.h"

typedef struct leat_cl_tiles {
    int rows, width; /* of a tile of C */
    char options[64];
} leat_cl_tiles;
/* The tiles for a product with n columns. */
leat_status leat_cl_tiles_for(leat_kernel *k, int64_t n, const leat_cl_tiles **out) LEAT_MUST_CHECK;

#endif
