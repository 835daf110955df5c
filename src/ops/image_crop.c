/* image_crop.c -- ops that take parts of images: CropAndResize and the ops that its gradient adds,
 * RandomCrop, ExtractGlimpse. Images are (batch, height, width, channels). */
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
    {0},
};
