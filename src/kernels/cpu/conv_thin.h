/* conv_thin.h -- convolutions of images with few channels, such as the colours of a picture,
 * without a matrix of patches: making one takes half as long as multiplying by it. */
#ifndef LEAT_KERNELS_CPU_CONV_THIN_H
#define LEAT_KERNELS_CPU_CONV_THIN_H

#include "kernels/cpu/conv.h"

/* Whether it can compute such a convolution, and is faster: floats, no strides and rates, few
 * channels of x, and images that fit into the cache. */
bool leat_conv_thin_fits(const leat_conv *c, leat_dtype t);

/* y = x convolved with w, with an epilogue as that of a product whose rows are pixels. The order of
 * sums is that of a product, so that the bits are the same. */
leat_status leat_conv_thin(leat_kernel *k, const leat_conv *c, const float *x, const float *w,
                           float *y, const leat_gemm_epilogue *e) LEAT_MUST_CHECK;
/* dw: the gradient by the filter. */
leat_status leat_conv_thin_by_filter(leat_kernel *k, const leat_conv *c, const float *x,
                                     const float *dy, float *dw,
                                     const leat_loop_stop *stop) LEAT_MUST_CHECK;

#endif
