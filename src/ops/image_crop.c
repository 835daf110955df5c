/* image_crop.c -- ops that take parts of images: CropAndResize and the ops that its gradient adds,
 * RandomCrop, ExtractGlimpse, ExtractImagePatches. Images are (batch, height, width, channels). */
#include "ops/image_util.h"

static leat_status crop_shape(leat_infer *c)
{
    leat_shape image, boxes, index;
    int64_t n;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &image));
    LEAT_TRY(leat_infer_rank(c, 1, 2, &boxes));
    LEAT_TRY(leat_infer_rank(c, 2, 1, &index));
    LEAT_TRY(leat_dim_merge(boxes.dim[0], index.dim[0], &n));
    LEAT_TRY(leat_dim_is(boxes.dim[1], 4));
    return leat_infer_sized_image(c, n, 3, image.dim[3]);
}

static leat_status crop_image_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 3, &s));
    LEAT_TRY(leat_shape_with_rank(&s, 4, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status crop_boxes_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_infer_in(c, 2));
    return NULL;
}

/* The boxes get the gradient of bilinear sampling for either method; only images of floats get a
 * gradient. */
static leat_status crop_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), image = leat_grad_input(g, 0), boxes = leat_grad_input(g, 1);
    leat_out index = leat_grad_input(g, 2);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(image));
    if (t == LEAT_HALF || t == LEAT_FLOAT || t == LEAT_DOUBLE)
        LEAT_TRY(leat_grad_in(
            g, 0,
            LEAT_OP4("CropAndResizeGradImage", dy, boxes, index, leat_shape_of(image),
                     leat_attr_type("T", t),
                     leat_attr_string("method", leat_node_string(leat_grad_node(g), "method")))));
    return leat_grad_in(g, 1, LEAT_OP4("CropAndResizeGradBoxes", dy, image, boxes, index));
}

static leat_status random_crop_shape(leat_infer *c)
{
    leat_shape image, size = leat_infer_in(c, 1), two = leat_shape(2);
    int64_t s[2];
    LEAT_TRY(leat_infer_rank(c, 0, 3, &image));
    LEAT_TRY(leat_shape_merge(&size, &two, &two));
    LEAT_TRY(leat_infer_image_size(c, 1, s));
    leat_infer_out(c, 0, leat_shape(s[0], s[1], image.dim[2]));
    return NULL;
}

static leat_status glimpse_shape(leat_infer *c)
{
    leat_shape image, offsets;
    int64_t batch;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &image));
    LEAT_TRY(leat_infer_rank(c, 2, 2, &offsets));
    LEAT_TRY(leat_dim_merge(image.dim[0], offsets.dim[0], &batch));
    LEAT_TRY(leat_dim_is(offsets.dim[1], 2));
    const char *noise = leat_node_string(leat_infer_node(c), "noise");
    LEAT_REQUIRE(!leat_node_bool(leat_infer_node(c), "uniform_noise") || !*noise ||
                     !strcmp(noise, "uniform"),
                 INVALID_ARGUMENT,
                 "The uniform_noise and noise should not be specified at the same time");
    return leat_infer_sized_image(c, batch, 1, image.dim[3]);
}

/* ---- ExtractImagePatches: all windows of an image, each as one pixel with many channels ---- */

static leat_status patch_attr(leat_infer *c, const char *name, const char *word, int64_t out[2])
{
    int n;
    const int64_t *v = leat_node_ints(leat_infer_node(c), name, &n);
    LEAT_REQUIRE(n == 4, INVALID_ARGUMENT,
                 "ExtractImagePatches requires the %s attribute to contain 4 values, but got: %d",
                 word, n);
    for (int i = 0; i < 2; i++) {
        out[i] = v[1 + i];
        LEAT_REQUIRE(out[i] >= INT32_MIN && out[i] <= INT32_MAX, INVALID_ARGUMENT,
                     "ExtractImagePatches: %s of %" PRId64 " is out of range", word, out[i]);
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

static leat_status patches_shape(leat_infer *c)
{
    leat_shape x;
    int64_t size[2], stride[2], rate[2], out[2] = {-1, -1}, depth;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    LEAT_TRY(patch_attr(c, "ksizes", "ksizes", size));
    LEAT_TRY(patch_attr(c, "strides", "stride", stride));
    LEAT_TRY(patch_attr(c, "rates", "rates", rate));
    LEAT_TRY(leat_dim_mul(x.dim[3], size[0] * size[1], &depth));
    const bool same = !strcmp(leat_node_string(leat_infer_node(c), "padding"), "SAME");
    if (x.dim[1] >= 0 && x.dim[2] >= 0)
        for (int i = 0; i < 2; i++) {
            const int64_t window = size[i] + (size[i] - 1) * (rate[i] - 1);
            LEAT_TRY(windows(x.dim[1 + i], window, stride[i], same, &out[i]));
        }
    leat_infer_out(c, 0, leat_shape(x.dim[0], out[0], out[1], depth));
    return NULL;
}

static leat_out dim_of(leat_out shape, int i)
{
    leat_graph *graph = leat_node_graph(shape.node);
    return leat_gather(shape, leat_scalar(graph, LEAT_INT32, i), leat_scalar(graph, LEAT_INT32, 0));
}

/* Patches of an image of indices tell from which pixel each element of a patch was taken; 0 is the
 * padding. The gradients of each pixel are added. */
static leat_status patches_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    leat_graph *graph = leat_grad_graph(g);
    int count;
    const int64_t *ksizes = leat_node_ints(n, "ksizes", &count);
    leat_out one = leat_scalar(graph, LEAT_INT32, 1);
    leat_out in = leat_shape_of(leat_grad_input(g, 0));
    leat_out batch = dim_of(in, 0), rows = dim_of(in, 1), columns = dim_of(in, 2);
    leat_out channels = dim_of(in, 3), pixels = leat_add(leat_mul(rows, columns), one);
    leat_out image[] = {one, rows, columns, one};
    leat_out index = LEAT_OP1(
        "ExtractImagePatches", leat_reshape(leat_range(one, pixels, one), leat_pack(image, 4, 0)),
        leat_attr_ints("ksizes", ksizes, count),
        leat_attr_ints("strides", leat_node_ints(n, "strides", &count), count),
        leat_attr_ints("rates", leat_node_ints(n, "rates", &count), count),
        leat_attr_string("padding", leat_node_string(n, "padding")));
    leat_out flat = leat_reshape(index, leat_ints(graph, -1));
    leat_out by_batch[] = {batch, leat_size_of(flat), channels};
    leat_out dy = leat_transpose(leat_reshape(leat_grad_out(g, 0), leat_pack(by_batch, 3, 0)),
                                 leat_ints(graph, 1, 0, 2));
    leat_out sums = leat_unsorted_segment_sum(dy, flat, pixels);
    leat_out inner = leat_slice(sums, leat_ints(graph, 1, 0, 0), leat_ints(graph, -1, -1, -1));
    leat_out spread[] = {rows, columns, batch, channels};
    return leat_grad_in(
        g, 0,
        leat_transpose(leat_reshape(inner, leat_pack(spread, 4, 0)), leat_ints(graph, 2, 0, 1, 3)));
}

#define IMAGES "uint8, uint16, int8, int16, int32, int64, half, float, double"

const leat_op_def leat_ops_image_crop[] = {
    {.name = "CropAndResize",
     .inputs = "image: T, boxes: float, box_ind: int32, crop_size: int32",
     .outputs = "crops: float",
     .attrs = "T: {" IMAGES "}; method: {'bilinear', 'nearest'} = 'bilinear'; "
              "extrapolation_value: float = 0",
     .shape = crop_shape,
     .grad = crop_grad},
    {.name = "CropAndResizeGradImage",
     .inputs = "grads: float, boxes: float, box_ind: int32, image_size: int32",
     .outputs = "output: T",
     .attrs = "T: {float, half, double}; method: {'bilinear', 'nearest'} = 'bilinear'",
     .shape = crop_image_shape,
     .grad = leat_grad_missing},
    {.name = "CropAndResizeGradBoxes",
     .inputs = "grads: float, image: T, boxes: float, box_ind: int32",
     .outputs = "output: float",
     .attrs = "T: {" IMAGES "}; method: {'bilinear'} = 'bilinear'",
     .shape = crop_boxes_shape,
     .grad = leat_grad_missing},
    {.name = "RandomCrop",
     .inputs = "image: T, size: int64",
     .outputs = "output: T",
     .attrs = "T: {uint8, int8, int16, int32, int64, float, double}; seed: int = 0; "
              "seed2: int = 0",
     .shape = random_crop_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "ExtractGlimpse",
     .inputs = "input: float, size: int32, offsets: float",
     .outputs = "glimpse: float",
     .attrs = "centered: bool = true; normalized: bool = true; uniform_noise: bool = true; "
              "noise: string = 'uniform'",
     .shape = glimpse_shape,
     .grad = leat_grad_none},
    {.name = "ExtractImagePatches",
     .inputs = "images: T",
     .outputs = "patches: T",
     .attrs = "ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; "
              "T: realnumbertype; padding: {'SAME', 'VALID'}",
     .shape = patches_shape,
     .grad = patches_grad},
    {0},
};
