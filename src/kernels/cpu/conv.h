/* conv.h -- what the kernels of convolutions share: how windows lie on images, and the patches of
 * images as a matrix.
 *
 * Everything is computed in three dimensions of space, of which a 2-D convolution has one of size 1
 * in front, and with the channels last. Images whose channels come first are transposed before and
 * after. */
#ifndef LEAT_KERNELS_CPU_CONV_H
#define LEAT_KERNELS_CPU_CONV_H

#include "kernels/cpu/arith.h"
#include "kernels/cpu/gemm.h"
#include "ops/window.h"

enum { LEAT_CONV_SPACE = 3 };

/* ---- any/conv_place.c ---- */

/* The attributes of a node: the state of the kernels. */
typedef struct leat_conv_attrs {
    int space; /* dimensions of space: 2 or 3 */
    bool channels_first;
    leat_padding padding;
    int64_t stride[LEAT_CONV_SPACE], rate[LEAT_CONV_SPACE];
    int64_t before[LEAT_CONV_SPACE], after[LEAT_CONV_SPACE]; /* explicit paddings */
} leat_conv_attrs;
/* Conv2D and Conv3D, and the ops of their gradients. */
leat_status leat_conv_init(const leat_node *n, void *state) LEAT_MUST_CHECK;

/* Sizes of one convolution. x is (batch, in, in_depth), w is (window, in_depth / groups,
 * out_depth), y is (batch, out, out_depth). Element i of out lies over elements
 * i * stride - before + j * rate of in, for j in the window. */
typedef struct leat_conv {
    int64_t batch, in_depth, out_depth, groups;
    int64_t in[LEAT_CONV_SPACE], window[LEAT_CONV_SPACE], out[LEAT_CONV_SPACE];
    int64_t stride[LEAT_CONV_SPACE], rate[LEAT_CONV_SPACE], before[LEAT_CONV_SPACE];
} leat_conv;

/* The sizes for a convolution of x by w. */
leat_status leat_conv_place(const leat_conv_attrs *a, const leat_shape *x, const leat_shape *w,
                            leat_conv *c) LEAT_MUST_CHECK;
/* The same for a gradient, where y is known, too. label begins the messages. */
leat_status leat_conv_place_grad(const leat_conv_attrs *a, const char *label, const leat_shape *x,
                                 const leat_shape *w, const leat_shape *y,
                                 leat_conv *c) LEAT_MUST_CHECK;
/* The shape of images of `size` in the node's data format. */
leat_shape leat_conv_shape(const leat_conv_attrs *a, int64_t batch, const int64_t *size,
                           int64_t depth);
/* The sizes that a gradient gets as a vector of int32 or int64, which `what` names. */
leat_status leat_conv_read_sizes(const leat_tensor *t, const char *what,
                                 leat_shape *out) LEAT_MUST_CHECK;

/* Whether minimal filtering, F(4 x 4, 5 x 5), can compute such a convolution of floats, and is
 * faster: windows of 5 by 5 without strides and rates, many channels on both sides, and enough
 * pixels. Tiles of the result have LEAT_CONV_MINIMAL_TILE pixels squared. */
enum { LEAT_CONV_MINIMAL_TILE = 4, LEAT_CONV_MINIMAL_UNIT = 16 }; /* channels are multiples of it */
bool leat_conv_suits_minimal(const leat_conv *c);

/* Images with the channels last: t itself, or a transposed copy that lives as long as the run. */
leat_status leat_conv_channels_last(leat_kernel *k, const leat_conv_attrs *a, const leat_tensor *t,
                                    const void **data) LEAT_MUST_CHECK;
/* Where to write such images that become t, and, when they are written, their way to t. */
leat_status leat_conv_out_begin(leat_kernel *k, const leat_conv_attrs *a, leat_tensor *t,
                                void **data) LEAT_MUST_CHECK;
leat_status leat_conv_out_end(leat_kernel *k, const leat_conv_attrs *a, leat_tensor *t,
                              const void *data) LEAT_MUST_CHECK;

static inline int64_t leat_conv_volume(const int64_t *size)
{
    return size[0] * size[1] * size[2];
}

/* The matrix of patches: a row for each element of (batch, out), a column for each of (window,
 * channels). `depth` elements are between two pixels of x, `channels` of them belong to the group.
 * Its rows are made by leat_conv_patches_read where a product needs them. */
typedef struct leat_conv_patches {
    const leat_conv *c;
    leat_dtype dtype; /* float or double */
    const void *x;    /* at the group's first channel */
    int64_t depth, channels;
    int64_t first; /* the row with which leat_conv_multiply begins */
} leat_conv_patches;
void leat_conv_patches_read(const void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols,
                            void *to, int64_t ld);

/* True if that matrix is x as it is stored. */
bool leat_conv_flat(const leat_conv *c);

/* C = patches * B, or, with LEAT_GEMM_T, the transposed patches times B: C is m by n, and kk is
 * what both have in common. */
leat_status leat_conv_multiply(leat_kernel *k, leat_pool *pool, leat_gemm_op t, int64_t m,
                               int64_t n, int64_t kk, const leat_conv_patches *p, const void *b,
                               int64_t ldb, void *c, int64_t ldc,
                               const leat_gemm_epilogue *e) LEAT_MUST_CHECK;

#endif
