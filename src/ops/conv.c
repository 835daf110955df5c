/* conv.c -- convolutions: Conv2D, DepthwiseConv2dNative, Conv3D, and of each the two ops that its
 * gradient adds, the gradient by the input and the one by the filter. The gradient by the input is
 * also the transposed convolution. Images are NHWC, NCHW, NDHWC or NCDHW by data_format, filters
 * are (height, width, in, out), or (depth, height, width, in, out). */
#include <leat/ops.h>

#include "ops/window.h"

/* ---- Shapes ---- */

/* Where dimension i of space is in an image; -1 and -2 are not asked for. */
static int space(bool channels_first, int i)
{
    return i + (channels_first ? 2 : 1);
}

static leat_status four_or_five(const char *op, const char *what, int rank, int count)
{
    LEAT_REQUIRE(count == rank, INVALID_ARGUMENT,
                 "%s requires the %s attribute to contain %d values, but got: %d", op, what, rank,
                 count);
    return NULL;
}

/* Conv2D and Conv3D: `n` dimensions of space. TensorFlow 1.15 takes the rates of the last two
 * dimensions of Conv3D for each other; they are not exchanged here. */
static leat_status conv_shape_of(leat_infer *c, int n)
{
    const leat_node *node = leat_infer_node(c);
    const bool first = leat_channels_first(node);
    const int channel = first ? 1 : n + 1;
    leat_shape x, w, y;
    const int64_t *rate, *stride, *pads = NULL;
    int count, pad_count = 0;
    LEAT_TRY(leat_infer_rank(c, 0, n + 2, &x));
    LEAT_TRY(leat_infer_rank(c, 1, n + 2, &w));
    LEAT_TRY(leat_window_attr(node, "dilations", &rate, &count));
    LEAT_TRY(four_or_five(n == 2 ? "Conv2D" : "Conv3D", "dilation", n + 2, count));
    LEAT_TRY(leat_window_attr(node, "strides", &stride, &count));
    LEAT_TRY(four_or_five(n == 3  ? "Conv3D"
                          : first ? "Conv2D on data format NCHW"
                                  : "Conv2D on data format NHWC",
                          "stride", n + 2, count));
    LEAT_TRY(leat_window_check_depths(x.dim[channel], w.dim[n], w.dim[n + 1]));
    const leat_padding padding = leat_padding_of(node);
    if (leat_node_has(node, "explicit_paddings")) {
        pads = leat_node_ints(node, "explicit_paddings", &pad_count);
        LEAT_TRY(leat_window_check_pads(padding, pads, pad_count, n + 2, channel));
    }
    y = leat_shape_unknown_dims(n + 2);
    y.dim[0] = x.dim[0];
    y.dim[channel] = w.dim[n + 1];
    for (int i = 0; i < n; i++) {
        const int d = space(first, i);
        int64_t both = 0;
        if (padding == LEAT_PADDING_EXPLICIT)
            LEAT_TRY(leat_dim_add(pads[2 * d], pads[2 * d + 1], &both));
        LEAT_TRY(
            leat_window_count(x.dim[d], w.dim[i], rate[d], stride[d], padding, both, &y.dim[d]));
    }
    leat_infer_out(c, 0, y);
    return NULL;
}

static leat_status conv2d_shape(leat_infer *c)
{
    return conv_shape_of(c, 2);
}

static leat_status conv3d_shape(leat_infer *c)
{
    return conv_shape_of(c, 3);
}

/* Its dilations are not looked at, by TensorFlow's kernels neither. */
static leat_status depthwise_shape(leat_infer *c)
{
    const leat_node *node = leat_infer_node(c);
    const bool first = leat_channels_first(node);
    const int channel = first ? 1 : 3;
    leat_shape x, w, y = leat_shape_unknown_dims(4);
    const int64_t *stride;
    int count;
    int64_t depth;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 4, &w));
    LEAT_TRY(leat_window_attr(node, "strides", &stride, &count));
    LEAT_TRY(four_or_five("DepthwiseConv2D", "stride", 4, count));
    LEAT_TRY(leat_dim_merge(x.dim[channel], w.dim[2], &depth));
    LEAT_TRY(leat_dim_mul(depth, w.dim[3], &y.dim[channel]));
    y.dim[0] = x.dim[0];
    for (int i = 0; i < 2; i++) {
        const int d = space(first, i);
        LEAT_TRY(leat_window_count(x.dim[d], w.dim[i], 1, stride[d], leat_padding_of(node), 0,
                                   &y.dim[d]));
    }
    leat_infer_out(c, 0, y);
    return NULL;
}

/* The output has the shape that input i gives. */
static leat_status sized_by(leat_infer *c, int i, int rank)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, i, &s));
    LEAT_TRY(leat_shape_with_rank(&s, rank, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status input_shape_2d(leat_infer *c)
{
    return sized_by(c, 0, 4);
}

static leat_status filter_shape_2d(leat_infer *c)
{
    return sized_by(c, 1, 4);
}

static leat_status input_shape_3d(leat_infer *c)
{
    return sized_by(c, 0, 5);
}

static leat_status filter_shape_3d(leat_infer *c)
{
    return sized_by(c, 1, 5);
}

/* The first versions of these ops get a tensor of the shape instead. */
static leat_status like_input_3d(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 5, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status like_filter_3d(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 1, 5, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

/* ---- Gradients ---- */

typedef struct family {
    const char *forward, *by_input, *by_filter;
} family;

static const family families[] = {
    {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
    {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
     "DepthwiseConv2dNativeBackpropFilter"},
    {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"},
};

static const family *family_of(leat_grad *g)
{
    const char *op = leat_node_op(leat_grad_node(g));
    const family *f = families;
    while (strcmp(op, f->forward) && strcmp(op, f->by_input) && strcmp(op, f->by_filter))
        f++;
    return f;
}

static leat_arg ints_attr(const leat_node *n, const char *name)
{
    int count;
    const int64_t *v = leat_node_ints(n, name, &count);
    return leat_attr_ints(name, v, count);
}

/* Windows and data format as those of the node that is differentiated. */
#define WINDOWS(n)                                                                                 \
    ints_attr(n, "strides"), ints_attr(n, "dilations"),                                            \
        leat_attr_string("padding", leat_node_string(n, "padding")),                               \
        leat_attr_string("data_format", leat_node_string(n, "data_format"))
#define WINDOWS_2D(n)                                                                              \
    WINDOWS(n), ints_attr(n, "explicit_paddings"),                                                 \
        leat_attr_bool("use_cudnn_on_gpu", leat_node_bool(n, "use_cudnn_on_gpu"))

static leat_out op_of_2(leat_grad *g, const char *op, leat_out a, leat_out b)
{
    const leat_node *n = leat_grad_node(g);
    return leat_node_has(n, "explicit_paddings") ? LEAT_OP2(op, a, b, WINDOWS_2D(n))
                                                 : LEAT_OP2(op, a, b, WINDOWS(n));
}

static leat_out op_of_3(leat_grad *g, const char *op, leat_out a, leat_out b, leat_out c)
{
    const leat_node *n = leat_grad_node(g);
    return leat_node_has(n, "explicit_paddings") ? LEAT_OP3(op, a, b, c, WINDOWS_2D(n))
                                                 : LEAT_OP3(op, a, b, c, WINDOWS(n));
}

static leat_status conv_grad(leat_grad *g)
{
    const family *f = family_of(g);
    leat_out x = leat_grad_input(g, 0), w = leat_grad_input(g, 1), dy = leat_grad_out(g, 0);
    if (leat_grad_wants(g, 0))
        LEAT_TRY(leat_grad_in(g, 0, op_of_3(g, f->by_input, leat_shape_of(x), w, dy)));
    if (leat_grad_wants(g, 1))
        LEAT_TRY(leat_grad_in(g, 1, op_of_3(g, f->by_filter, x, leat_shape_of(w), dy)));
    return NULL;
}

/* Of dx(w, dy), whose gradient d has the shape of an image. */
static leat_status by_input_grad(leat_grad *g)
{
    const family *f = family_of(g);
    leat_out w = leat_grad_input(g, 1), dy = leat_grad_input(g, 2), d = leat_grad_out(g, 0);
    if (leat_grad_wants(g, 1))
        LEAT_TRY(leat_grad_in(g, 1, op_of_3(g, f->by_filter, d, leat_shape_of(w), dy)));
    if (leat_grad_wants(g, 2))
        LEAT_TRY(leat_grad_in(g, 2, op_of_2(g, f->forward, d, w)));
    return NULL;
}

/* Of dw(x, dy), whose gradient d has the shape of a filter. */
static leat_status by_filter_grad(leat_grad *g)
{
    const family *f = family_of(g);
    leat_out x = leat_grad_input(g, 0), dy = leat_grad_input(g, 2), d = leat_grad_out(g, 0);
    if (leat_grad_wants(g, 0))
        LEAT_TRY(leat_grad_in(g, 0, op_of_3(g, f->by_input, leat_shape_of(x), d, dy)));
    if (leat_grad_wants(g, 2))
        LEAT_TRY(leat_grad_in(g, 2, op_of_2(g, f->forward, x, d)));
    return NULL;
}

#define TYPES "T: {half, bfloat16, float, double}"
#define OLD_TYPES "T: {half, float, double}"
#define WINDOW_2D WINDOW_2D_OF(TYPES)
#define WINDOW_2D_OF(types)                                                                        \
    types "; strides: list(int); use_cudnn_on_gpu: bool = true; "                                  \
          "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "            \
          "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]"
#define WINDOW_DEPTHWISE                                                                           \
    TYPES "; strides: list(int); padding: {'SAME', 'VALID'}; "                                     \
          "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]"
#define WINDOW_3D_OLD                                                                              \
    "; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; "                                      \
    "dilations: list(int) = [1, 1, 1, 1, 1]"
#define WINDOW_3D                                                                                  \
    TYPES "; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; "                                \
          "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]"

#define FORWARD(name_, attrs_, shape_)                                                             \
    {                                                                                              \
        .name = name_, .inputs = "input: T, filter: T", .outputs = "output: T", .attrs = attrs_,   \
        .shape = shape_, .grad = conv_grad                                                         \
    }
#define BY_INPUT(name_, sizes, attrs_, shape_, grad_)                                              \
    {                                                                                              \
        .name = name_, .inputs = sizes ", filter: T, out_backprop: T", .outputs = "output: T",     \
        .attrs = attrs_, .shape = shape_, .grad = grad_                                            \
    }
#define BY_FILTER(name_, sizes, attrs_, shape_, grad_)                                             \
    {                                                                                              \
        .name = name_, .inputs = "input: T, " sizes ", out_backprop: T", .outputs = "output: T",   \
        .attrs = attrs_, .shape = shape_, .grad = grad_                                            \
    }

const leat_op_def leat_ops_conv[] = {
    {.name = "Conv2D",
     .inputs = "input: T, filter: T",
     .outputs = "output: T",
     .attrs = WINDOW_2D,
     .shape = conv2d_shape,
     .grad = conv_grad,
     .role = LEAT_ROLE_PRODUCT,
     .fused = "_FusedConv2D"},
    /* Made by the fuse pass from a Conv2D, a BiasAdd and an activation. */
    {.name = "_FusedConv2D",
     .inputs = "input: T, filter: T, args: num_args * T",
     .outputs = "output: T",
     .attrs = WINDOW_2D_OF("T: {float}") "; num_args: int >= 0; fused_ops: list(string) = []; "
                                         "epsilon: float = 0.0001",
     .shape = conv2d_shape,
     .grad = leat_grad_missing},
    BY_INPUT("Conv2DBackpropInput", "input_sizes: int32", WINDOW_2D, input_shape_2d, by_input_grad),
    BY_FILTER("Conv2DBackpropFilter", "filter_sizes: int32", WINDOW_2D, filter_shape_2d,
              by_filter_grad),
    FORWARD("DepthwiseConv2dNative", WINDOW_DEPTHWISE, depthwise_shape),
    BY_INPUT("DepthwiseConv2dNativeBackpropInput", "input_sizes: int32", WINDOW_DEPTHWISE,
             input_shape_2d, by_input_grad),
    BY_FILTER("DepthwiseConv2dNativeBackpropFilter", "filter_sizes: int32", WINDOW_DEPTHWISE,
              filter_shape_2d, by_filter_grad),
    FORWARD("Conv3D", WINDOW_3D, conv3d_shape),
    BY_INPUT("Conv3DBackpropInput", "input: T", OLD_TYPES WINDOW_3D_OLD, like_input_3d,
             leat_grad_missing),
    BY_FILTER("Conv3DBackpropFilter", "filter: T", OLD_TYPES WINDOW_3D_OLD, like_filter_3d,
              leat_grad_missing),
    BY_INPUT("Conv3DBackpropInputV2", "input_sizes: Tshape",
             WINDOW_3D "; Tshape: {int32, int64} = DT_INT32", input_shape_3d, by_input_grad),
    BY_FILTER("Conv3DBackpropFilterV2", "filter_sizes: int32", WINDOW_3D, filter_shape_3d,
              by_filter_grad),
    {0},
};
