/* reduce.h -- reductions, for the kernels that have one inside. */
#ifndef LEAT_OPENCL_REDUCE_H
#define LEAT_OPENCL_REDUCE_H

#include "kernels/opencl/opencl.h"

/* Reduces x (outer, along, inner) to y (outer, inner) by a function of reduce.cl; the results are
 * divided by `divide`. */
leat_status leat_cl_reduce(leat_kernel *k, const char *function, leat_dtype t, const void *x,
                           int64_t outer, int64_t along, int64_t inner, double divide,
                           void *y) LEAT_MUST_CHECK;

#endif
