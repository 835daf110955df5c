/* minimal.h -- convolutions of 5 by 5 by minimal filtering: 64 multiplications for 4 by 4 pixels of
 * the result, which take 400 by definition. leat_conv_suits_minimal says which. */
#ifndef LEAT_OPENCL_MINIMAL_H
#define LEAT_OPENCL_MINIMAL_H

#include "kernels/cpu/conv.h"
#include "kernels/opencl/gemm.h"

/* y = x convolved with w, with an end; images have their channels last. */
leat_status leat_cl_minimal(leat_kernel *k, const leat_conv *c, const float *x, const float *w,
                            float *y, const leat_cl_end *end) LEAT_MUST_CHECK;
/* dw: the gradient by the filter. */
leat_status leat_cl_minimal_by_filter(leat_kernel *k, const leat_conv *c, const float *x,
                                      const float *dy, float *dw) LEAT_MUST_CHECK;

#endif
