/* conv_minimal.h -- convolutions by minimal filtering: fewer multiplications than the product of
 * patches and filter has. */
#ifndef LEAT_KERNELS_CPU_CONV_MINIMAL_H
#define LEAT_KERNELS_CPU_CONV_MINIMAL_H

#include "kernels/cpu/conv.h"

/* leat_conv_suits_minimal, and floats. */
bool leat_conv_minimal_fits(const leat_conv *c, leat_dtype t);

/* y = x convolved with w, with an epilogue as that of a product whose rows are pixels. */
leat_status leat_conv_minimal(leat_kernel *k, const leat_conv *c, const float *x, const float *w,
                              float *y, const leat_gemm_epilogue *e) LEAT_MUST_CHECK;
/* dw: the gradient by the filter. */
leat_status leat_conv_minimal_by_filter(leat_kernel *k, const leat_conv *c, const float *x,
                                        const float *dy, float *dw,
                                        const leat_loop_stop *stop) LEAT_MUST_CHECK;

#endif
