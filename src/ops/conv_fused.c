/* conv_fused.c -- FusedPadConv2D and FusedResizeAndPadConv2D: images are resized, mirrored at their
 * borders, and convolved. TensorFlow has no gradients of them. */
#include "ops/image_util.h"
#include "ops/window.h"

/* The inputs are images, size if they are resized, paddings and filter. */
static leat_status fused_shape(leat_infer *c, bool resizes)
{
    const leat_node *node = leat_infer_node(c);
    leat_shape x, pads, w;
    const int64_t *stride;
    int count;
    int64_t unused, size[2];
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    if (resizes) {
        LEAT_TRY(leat_infer_image_size(c, 1, size));
        x.dim[1] = size[0];
        x.dim[2] = size[1];
    }
    LEAT_TRY(leat_infer_rank(c, 1 + resizes, 2, &pads));
    LEAT_REQUIRE(pads.dim[0] < 0 || pads.dim[0] == 4, INVALID_ARGUMENT,
                 "Shape must be rank %" PRId64 " but is rank 4", pads.dim[0]);
    LEAT_TRY(leat_dim_merge(pads.dim[1], 2, &unused));
    const leat_tensor *t = leat_infer_value(c, 1 + resizes);
    if (!t)
        x = leat_shape_unknown_dims(4);
    for (int d = 0; t && d < 4; d++) {
        const int64_t before = leat_int_at(t, 2 * d), after = leat_int_at(t, 2 * d + 1);
        LEAT_REQUIRE(before >= 0 && after >= 0, INVALID_ARGUMENT, "Paddings must be non-negative");
        LEAT_TRY(leat_dim_add(x.dim[d], before + after, &x.dim[d]));
    }
    LEAT_TRY(leat_infer_rank(c, 2 + resizes, 4, &w));
    LEAT_TRY(leat_window_attr(node, "strides", &stride, &count));
    LEAT_REQUIRE(count == 4, INVALID_ARGUMENT,
                 "Operation requires the stride attribute to contain 4 values, but got: %d", count);
    LEAT_TRY(leat_dim_merge(x.dim[3], w.dim[2], &unused));
    for (int i = 0; i < 2; i++)
        LEAT_TRY(leat_window_count(x.dim[1 + i], w.dim[i], 1, stride[1 + i], leat_padding_of(node),
                                   0, &x.dim[1 + i]));
    x.dim[3] = w.dim[3];
    leat_infer_out(c, 0, x);
    return NULL;
}

static leat_status pad_shape(leat_infer *c)
{
    return fused_shape(c, false);
}

static leat_status resize_shape(leat_infer *c)
{
    return fused_shape(c, true);
}

#define WINDOW "mode: {'REFLECT', 'SYMMETRIC'}; strides: list(int); padding: {'SAME', 'VALID'}"

const leat_op_def leat_ops_conv_fused[] = {
    {.name = "FusedPadConv2D",
     .inputs = "input: T, paddings: int32, filter: T",
     .outputs = "output: T",
     .attrs = "T: {half, float, double}; " WINDOW,
     .shape = pad_shape,
     .grad = leat_grad_missing},
    {.name = "FusedResizeAndPadConv2D",
     .inputs = "input: T, size: int32, paddings: int32, filter: T",
     .outputs = "output: T",
     .attrs = "T: {half, float, double}; resize_align_corners: bool = false; " WINDOW,
     .shape = resize_shape,
     .grad = leat_grad_missing},
    {0},
};
