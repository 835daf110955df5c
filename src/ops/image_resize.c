/* image_resize.c -- ops that change the size of images: ResizeBilinear, ResizeNearestNeighbor,
 * ResizeBicubic, ResizeArea, QuantizedResizeBilinear, ScaleAndTranslate, and the ops that their
 * gradients add. Images are (batch, height, width, channels). */
#include "ops/image_util.h"

static leat_status resize_shape(leat_infer *c)
{
    leat_shape x;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    return leat_infer_sized_image(c, x.dim[0], 1, x.dim[3]);
}

static leat_status quantized_shape(leat_infer *c)
{
    LEAT_TRY(resize_shape(c));
    LEAT_TRY(leat_infer_scalars(c, 2, 4));
    leat_infer_out(c, 1, leat_shape());
    leat_infer_out(c, 2, leat_shape());
    return NULL;
}

/* The gradient has the shape of input 1, the original image. */
static leat_status like_original(leat_infer *c)
{
    leat_infer_out(c, 0, leat_infer_in(c, 1));
    return NULL;
}

static leat_arg bool_attr(leat_grad *g, const char *name)
{
    return leat_attr_bool(name, leat_node_bool(leat_grad_node(g), name));
}
#define CORNERS(g) bool_attr(g, "align_corners"), bool_attr(g, "half_pixel_centers")

static leat_status bilinear_grad(leat_grad *g)
{
    return leat_grad_in(
        g, 0,
        LEAT_OP2("ResizeBilinearGrad", leat_grad_out(g, 0), leat_grad_input(g, 0), CORNERS(g)));
}

/* ResizeBicubicGrad is for float and double only: other images get no gradient. */
static leat_status bicubic_grad(leat_grad *g)
{
    const leat_dtype t = leat_dtype_base(leat_out_dtype(leat_grad_input(g, 0)));
    if (t != LEAT_FLOAT && t != LEAT_DOUBLE)
        return NULL;
    return leat_grad_in(
        g, 0,
        LEAT_OP2("ResizeBicubicGrad", leat_grad_out(g, 0), leat_grad_input(g, 0), CORNERS(g)));
}

static leat_status nearest_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    const leat_shape s = leat_out_shape(leat_grad_input(g, 0));
    leat_out size;
    if (s.rank == 4 && s.dim[1] >= 0 && s.dim[2] >= 0)
        size = leat_ints(graph, s.dim[1], s.dim[2]);
    else
        size = leat_slice(leat_shape_of(leat_grad_input(g, 0)), leat_ints(graph, 1),
                          leat_ints(graph, 2));
    return leat_grad_in(
        g, 0, LEAT_OP2("ResizeNearestNeighborGrad", leat_grad_out(g, 0), size, CORNERS(g)));
}

static leat_status scale_grad(leat_grad *g)
{
    return leat_grad_in(
        g, 0,
        LEAT_OP4(
            "ScaleAndTranslateGrad", leat_grad_out(g, 0), leat_grad_input(g, 0),
            leat_grad_input(g, 2), leat_grad_input(g, 3),
            leat_attr_string("kernel_type", leat_node_string(leat_grad_node(g), "kernel_type")),
            bool_attr(g, "antialias")));
}

#define SOME "int8, uint8, int16, uint16, int32, int64, half, float, double"
#define ALL "int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double"
#define ALIGN "; align_corners: bool = false"
#define ALIGN_HALF ALIGN "; half_pixel_centers: bool = false"
#define KERNEL "; kernel_type: string = 'lanczos3'; antialias: bool = true"

const leat_op_def leat_ops_image_resize[] = {
    {.name = "ResizeArea",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: float",
     .attrs = "T: {" SOME "}" ALIGN,
     .shape = resize_shape,
     .grad = leat_grad_missing},
    {.name = "ResizeBicubic",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: float",
     .attrs = "T: {" SOME "}" ALIGN_HALF,
     .shape = resize_shape,
     .grad = bicubic_grad},
    {.name = "ResizeBicubicGrad",
     .inputs = "grads: float, original_image: T",
     .outputs = "output: T",
     .attrs = "T: {float, double}" ALIGN_HALF,
     .shape = like_original,
     .grad = leat_grad_missing},
    {.name = "ResizeBilinear",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: float",
     .attrs = "T: {" ALL "}" ALIGN_HALF,
     .shape = resize_shape,
     .grad = bilinear_grad},
    {.name = "ResizeBilinearGrad",
     .inputs = "grads: float, original_image: T",
     .outputs = "output: T",
     .attrs = "T: {float, bfloat16, half, double}" ALIGN_HALF,
     .shape = like_original,
     .grad = leat_grad_missing},
    {.name = "ResizeNearestNeighbor",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: T",
     .attrs = "T: {" SOME "}" ALIGN_HALF,
     .shape = resize_shape,
     .grad = nearest_grad},
    {.name = "ResizeNearestNeighborGrad",
     .inputs = "grads: T, size: int32",
     .outputs = "output: T",
     .attrs = "T: {uint8, int8, int32, half, float, double}" ALIGN_HALF,
     .shape = resize_shape,
     .grad = leat_grad_missing},
    {.name = "QuantizedResizeBilinear",
     .inputs = "images: T, size: int32, min: float, max: float",
     .outputs = "resized_images: T, out_min: float, out_max: float",
     .attrs = "T: {quint8, qint32, float}" ALIGN_HALF,
     .shape = quantized_shape,
     .grad = leat_grad_missing},
    {.name = "ScaleAndTranslate",
     .inputs = "images: T, size: int32, scale: float, translation: float",
     .outputs = "resized_images: float",
     .attrs = "T: {" ALL "}" KERNEL,
     .shape = resize_shape,
     .grad = scale_grad},
    {.name = "ScaleAndTranslateGrad",
     .inputs = "grads: T, original_image: T, scale: float, translation: float",
     .outputs = "output: T",
     .attrs = "T: {float}" KERNEL,
     .shape = like_original,
     .grad = leat_grad_missing},
    {0},
};
