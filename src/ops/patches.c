/* patches.c -- ExtractImagePatches and ExtractVolumePatches: all windows of an image (batch, rows,
 * columns, channels) or of a volume (batch, planes, rows, columns, channels), each as one pixel
 * with many channels. */
#include <leat/ops.h>

#include "ops/infer_util.h"

enum { MOST = 3 }; /* dimensions of space */

/* The values of an attribute for the dimensions of space, of which there are n. */
static leat_status patch_attr(leat_infer *c, int n, const char *name, const char *word,
                              int64_t *out)
{
    int count;
    const leat_node *node = leat_infer_node(c);
    const int64_t *v = leat_node_ints(node, name, &count);
    LEAT_REQUIRE(count == n + 2, INVALID_ARGUMENT,
                 "%s requires the %s attribute to contain %d values, but got: %d",
                 leat_node_op(node), word, n + 2, count);
    for (int i = 0; i < n; i++) {
        out[i] = v[1 + i];
        LEAT_REQUIRE(out[i] >= INT32_MIN && out[i] <= INT32_MAX, INVALID_ARGUMENT,
                     "%s: %s of %" PRId64 " is out of range", leat_node_op(node), word, out[i]);
    }
    return NULL;
}

/* The number of windows along a dimension of `in` pixels. */
static leat_status windows(int64_t in, int64_t window, int64_t stride, bool same, int64_t *out)
{
    LEAT_REQUIRE(stride > 0, INVALID_ARGUMENT, "Stride must be > 0, but got %" PRId64, stride);
    *out = same ? (in + stride - 1) / stride : (in - window + stride) / stride;
    LEAT_REQUIRE(*out >= 0, INVALID_ARGUMENT,
                 "Computed output size would be negative: %" PRId64 " [input_size: %" PRId64
                 ", effective_filter_size: %" PRId64 ", stride: %" PRId64 "]",
                 *out, in, window, stride);
    return NULL;
}

static leat_status patches_shape(leat_infer *c, int n, bool rates)
{
    leat_shape x;
    int64_t size[MOST], stride[MOST], rate[MOST] = {1, 1, 1};
    bool known = true;
    LEAT_TRY(leat_infer_rank(c, 0, n + 2, &x));
    LEAT_TRY(patch_attr(c, n, "ksizes", "ksizes", size));
    LEAT_TRY(patch_attr(c, n, "strides", "stride", stride));
    if (rates)
        LEAT_TRY(patch_attr(c, n, "rates", "rates", rate));
    leat_shape out = {.rank = n + 2, .dim = {x.dim[0]}};
    int64_t depth = x.dim[n + 1];
    for (int i = 0; i < n; i++) {
        known &= x.dim[1 + i] >= 0;
        out.dim[1 + i] = -1;
        LEAT_TRY(leat_dim_mul(depth, size[i], &depth));
    }
    out.dim[n + 1] = depth;
    const bool same = !strcmp(leat_node_string(leat_infer_node(c), "padding"), "SAME");
    for (int i = 0; known && i < n; i++) {
        const int64_t window = size[i] + (size[i] - 1) * (rate[i] - 1);
        LEAT_TRY(windows(x.dim[1 + i], window, stride[i], same, &out.dim[1 + i]));
    }
    leat_infer_out(c, 0, out);
    return NULL;
}

static leat_status image_shape(leat_infer *c)
{
    return patches_shape(c, 2, true);
}

static leat_status volume_shape(leat_infer *c)
{
    return patches_shape(c, 3, false);
}

static leat_out dim_of(leat_out shape, int i)
{
    leat_graph *graph = leat_node_graph(shape.node);
    return leat_gather(shape, leat_scalar(graph, LEAT_INT32, i), leat_scalar(graph, LEAT_INT32, 0));
}

/* Attribute `name` of n, for another node. */
static leat_arg same_ints(const leat_node *n, const char *name)
{
    int count;
    const int64_t *v = leat_node_ints(n, name, &count);
    return leat_attr_ints(name, v, count);
}

/* The same windows of another image. */
static leat_out same_patches(const leat_node *n, leat_out image)
{
    const leat_arg ksizes = same_ints(n, "ksizes"), strides = same_ints(n, "strides");
    const leat_arg padding = leat_attr_string("padding", leat_node_string(n, "padding"));
    if (!leat_node_has(n, "rates"))
        return LEAT_OP1("ExtractVolumePatches", image, ksizes, strides, padding);
    return LEAT_OP1("ExtractImagePatches", image, ksizes, strides, same_ints(n, "rates"), padding);
}

/* Patches of an image of indices tell from which pixel each element of a patch was taken; 0 is the
 * padding. The gradients of each pixel are added. */
static leat_status patches_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    leat_graph *graph = leat_grad_graph(g);
    const int space = leat_node_has(n, "rates") ? 2 : 3;
    leat_out one = leat_scalar(graph, LEAT_INT32, 1);
    leat_out in = leat_shape_of(leat_grad_input(g, 0));
    leat_out batch = dim_of(in, 0), channels = dim_of(in, space + 1), pixels = one;
    leat_out image[MOST + 2], spread[MOST + 2];
    for (int i = 0; i < space; i++) {
        image[1 + i] = spread[i] = dim_of(in, 1 + i);
        pixels = leat_mul(pixels, spread[i]);
    }
    pixels = leat_add(pixels, one);
    image[0] = image[space + 1] = one;
    spread[space] = batch;
    spread[space + 1] = channels;
    leat_out index = leat_reshape(leat_range(one, pixels, one), leat_pack(image, space + 2, 0));
    leat_out flat = leat_reshape(same_patches(n, index), leat_ints(graph, -1));
    leat_out by_batch[] = {batch, leat_size_of(flat), channels};
    leat_out dy = leat_transpose(leat_reshape(leat_grad_out(g, 0), leat_pack(by_batch, 3, 0)),
                                 leat_ints(graph, 1, 0, 2));
    leat_out sums = leat_unsorted_segment_sum(dy, flat, pixels);
    leat_out inner = leat_slice(sums, leat_ints(graph, 1, 0, 0), leat_ints(graph, -1, -1, -1));
    leat_out dx = leat_reshape(inner, leat_pack(spread, space + 2, 0));
    leat_out order = space == 2 ? leat_ints(graph, 2, 0, 1, 3) : leat_ints(graph, 3, 0, 1, 2, 4);
    return leat_grad_in(g, 0, leat_transpose(dx, order));
}

const leat_op_def leat_ops_patches[] = {
    {.name = "ExtractImagePatches",
     .inputs = "images: T",
     .outputs = "patches: T",
     .attrs = "ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; "
              "T: realnumbertype; padding: {'SAME', 'VALID'}",
     .shape = image_shape,
     .grad = patches_grad},
    {.name = "ExtractVolumePatches",
     .inputs = "input: T",
     .outputs = "patches: T",
     .attrs = "ksizes: list(int) >= 5; strides: list(int) >= 5; T: realnumbertype; "
              "padding: {'SAME', 'VALID'}",
     .shape = volume_shape,
     .grad = patches_grad},
    {0},
};
