/* image_resize.h -- what the kernels that resize images share: sizes, scales, checks, and where a
 * pixel of the output lies in the input. */
#ifndef LEAT_CPU_IMAGE_RESIZE_H
#define LEAT_CPU_IMAGE_RESIZE_H

#include "kernels/cpu/arith.h"

/* Both images are (batch, height, width, channels). */
typedef struct leat_resize {
    const leat_tensor *x;
    leat_tensor *y;
    int64_t batch, channels;
    int64_t in_height, in_width, out_height, out_width;
    float height_scale, width_scale; /* input pixels for each output pixel */
    bool align, half;                /* align_corners, half_pixel_centers */
} leat_resize;

/* Of an op that resizes input 0 to the size in input 1: checks both and allocates output 0. */
leat_status leat_resize_begin(leat_kernel *k, leat_resize *r) LEAT_MUST_CHECK;
/* Of the gradient of such an op: input 0 is dy, input 1 the original image. The fields say what
 * the op itself did: y, the gradient, has the size of "in", and is all zeros. */
leat_status leat_resize_begin_grad(leat_kernel *k, leat_resize *r) LEAT_MUST_CHECK;

float leat_resize_scale(int64_t in, int64_t out, bool align);

/* Where pixel i of the output lies in the input. */
static inline float leat_resize_at(const leat_resize *r, int64_t i, float scale)
{
    return r->half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

static inline int64_t leat_resize_bound(int64_t i, int64_t size)
{
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* An output pixel between two input pixels. */
typedef struct leat_lerp {
    int32_t lower, upper;
    float weight; /* of upper */
} leat_lerp;
/* One for each pixel along a dimension. They live as long as the run of the kernel. */
leat_status leat_resize_lerps(leat_kernel *k, const leat_resize *r, int64_t in, int64_t out,
                              float scale, leat_lerp **lerps) LEAT_MUST_CHECK;
/* Memory for n structs of `size` bytes (a multiple of 4), as long as the run of the kernel. */
leat_status leat_resize_temp(leat_kernel *k, int64_t n, size_t size, void *out) LEAT_MUST_CHECK;

/* The types of images, X(dtype, C type); half and bfloat16 are computed in float. */
#define LEAT_X_IMAGE(X)                                                                            \
    X(UINT8, uint8_t)                                                                              \
    X(INT8, int8_t)                                                                                \
    X(UINT16, uint16_t)                                                                            \
    X(INT16, int16_t)                                                                              \
    X(INT32, int32_t)                                                                              \
    X(INT64, int64_t)                                                                              \
    X(FLOAT, float)                                                                                \
    X(DOUBLE, double)
#define LEAT_TYPES_IMAGE                                                                           \
    (LEAT_T(UINT8) | LEAT_T(INT8) | LEAT_T(UINT16) | LEAT_T(INT16) | LEAT_T(INT32) |               \
     LEAT_T(INT64) | LEAT_T(FLOAT) | LEAT_T(DOUBLE))

#endif
