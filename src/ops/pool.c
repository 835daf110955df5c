/* pool.c -- pooling over windows of images and volumes: MaxPool, MaxPoolV2, MaxPoolWithArgmax,
 * AvgPool, MaxPool3D, AvgPool3D, and the ops that their gradients add. */
#include <leat/ops.h>

#include "ops/window.h"

static bool channels_first(const leat_node *n)
{
    return leat_node_has(n, "data_format") &&
           strncmp(leat_node_string(n, "data_format"), "NC", 2) == 0;
}

static bool is_same(const leat_node *n)
{
    return strcmp(leat_node_string(n, "padding"), "SAME") == 0;
}

/* Input i, a vector of four int32; *known is false if it is not constant. */
static leat_status four(leat_infer *c, int i, int64_t *out, bool *known)
{
    leat_shape s, want = leat_shape(4);
    LEAT_TRY(leat_infer_rank(c, i, 1, &s));
    LEAT_TRY(leat_shape_merge(&s, &want, &s));
    const leat_tensor *t = leat_infer_value(c, i);
    for (int d = 0; t && d < 4; d++)
        out[d] = leat_int_at(t, d);
    *known = *known && t;
    return NULL;
}

/* The shape that a pooling of input 0 gives, over `dims` dimensions and, if `depth`, over the
 * channels. The words stand in error messages. */
static leat_status pooled(leat_infer *c, int dims, bool depth, const char *strides_words,
                          const char *size_words, leat_shape *out)
{
    const leat_node *n = leat_infer_node(c);
    const bool first = channels_first(n), same = is_same(n);
    const bool vect = first && !strcmp(leat_node_string(n, "data_format"), "NCHW_VECT_C");
    int64_t size[5], stride[5];
    bool known = true;
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, dims + 2 + vect, &s));
    LEAT_REQUIRE(!vect || s.dim[4] < 0 || s.dim[4] == 4, INVALID_ARGUMENT,
                 "VECT_C dimension must be 4, but is %" PRId64, s.dim[4]);
    if (leat_node_has(n, "ksize")) {
        LEAT_TRY(leat_infer_int32s(c, "strides", strides_words, dims + 2, stride));
        LEAT_TRY(leat_infer_int32s(c, "ksize", size_words, dims + 2, size));
    } else {
        LEAT_TRY(four(c, leat_infer_inputs(c) - 2, size, &known));
        LEAT_TRY(four(c, leat_infer_inputs(c) - 1, stride, &known));
    }
    *out = leat_shape_unknown();
    if (!known)
        return NULL;
    const int channels = first ? 1 : dims + 1;
    for (int d = 1; d < dims + 2; d++)
        if (d != channels || depth)
            LEAT_TRY(leat_dim_windows(s.dim[d], size[d], stride[d], same, &s.dim[d]));
    *out = s;
    return NULL;
}

static leat_status max_pooled(leat_infer *c, leat_shape *out)
{
    return pooled(c, 2, true, "MaxPool requires the stride", "MaxPool requires the ksize", out);
}

static leat_status pooled_3d(leat_infer *c, leat_shape *out)
{
    return pooled(c, 3, false, "Pool3D ops require the stride", "Pool3D requires the ksize", out);
}

static leat_status max_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(max_pooled(c, &s));
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, s); /* of MaxPoolWithArgmax, the indices too */
    return NULL;
}

static leat_status avg_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(pooled(c, 2, false, "AvgPool requires the stride", "AvgPool requires the ksize", &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status shape_3d(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(pooled_3d(c, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

/* The gradient has the shape of the image or volume, input 0. */
static leat_status like_input(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, leat_node_has(leat_infer_node(c), "TInput") ? 5 : 4, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

/* Input 0 is the shape of the image or volume. */
static leat_status shape_given(leat_infer *c, int rank)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 0, &s));
    LEAT_TRY(leat_shape_with_rank(&s, rank, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status avg_grad_shape(leat_infer *c)
{
    return shape_given(c, 4);
}

static leat_status avg_grad_shape_3d(leat_infer *c)
{
    return shape_given(c, 5);
}

/* For gradients of gradients: input `image` has the shape of input 0, input `small` and the output
 * have the shape s of what was pooled. */
static leat_status second_order(leat_infer *c, int image, int small, leat_shape s)
{
    leat_shape unused, x = leat_infer_in(c, 0), dx = leat_infer_in(c, image);
    const leat_shape y = leat_infer_in(c, small);
    LEAT_TRY(leat_shape_merge(&x, &dx, &unused));
    LEAT_TRY(leat_shape_merge(&y, &s, &unused));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status grad_grad_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(max_pooled(c, &s));
    return second_order(c, 2, 1, s);
}

static leat_status grad_grad_argmax_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(max_pooled(c, &s));
    return second_order(c, 1, 2, s);
}

static leat_status grad_grad_shape_3d(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(pooled_3d(c, &s));
    return second_order(c, 2, 1, s);
}

/* ---- Gradients ---- */

static leat_arg ints_attr(leat_grad *g, const char *name)
{
    int n;
    const int64_t *v = leat_node_ints(leat_grad_node(g), name, &n);
    return leat_attr_ints(name, v, n);
}

static leat_arg string_attr(leat_grad *g, const char *name)
{
    return leat_attr_string(name, leat_node_string(leat_grad_node(g), name));
}

#define WINDOWS(g) ints_attr(g, "ksize"), ints_attr(g, "strides"), string_attr(g, "padding")

/* For ops with the inputs (x, y, dy): only dy has a gradient that is not zero. */
static leat_status last_of_three(leat_grad *g, leat_out ddy)
{
    LEAT_TRY(leat_grad_in(g, 0, leat_zeros_like(leat_grad_input(g, 0))));
    LEAT_TRY(leat_grad_in(g, 1, leat_zeros_like(leat_grad_input(g, 1))));
    return leat_grad_in(g, 2, ddy);
}

#define X leat_grad_input(g, 0)
#define Y leat_grad_output(g, 0)
#define DY leat_grad_out(g, 0)
#define FORMAT string_attr(g, "data_format")

/* Of a pooling: the op `op` of x, y and dy. */
#define MAX_GRAD(name, op)                                                                         \
    static leat_status name(leat_grad *g)                                                          \
    {                                                                                              \
        return leat_grad_in(g, 0, LEAT_OP3(op, X, Y, DY, WINDOWS(g), FORMAT));                     \
    }
MAX_GRAD(max_grad, "MaxPoolGrad")
MAX_GRAD(max_grad_3d, "MaxPool3DGrad")

/* Of a gradient, or of the gradient of one: the op `op` of x, y and what comes back. */
#define SECOND_GRAD(name, op)                                                                      \
    static leat_status name(leat_grad *g)                                                          \
    {                                                                                              \
        return last_of_three(g, LEAT_OP3(op, X, leat_grad_input(g, 1), DY, WINDOWS(g), FORMAT));   \
    }
SECOND_GRAD(max_grad_grad, "MaxPoolGradGrad")
SECOND_GRAD(max_grad_grad_grad, "MaxPoolGrad")
SECOND_GRAD(max_grad_grad_3d, "MaxPool3DGradGrad")
SECOND_GRAD(max_grad_grad_grad_3d, "MaxPool3DGrad")

/* The same with sizes and strides as inputs. */
static leat_out of_five(leat_grad *g, const char *op, leat_out y, int size)
{
    const leat_out in[] = {X, y, DY, leat_grad_input(g, size), leat_grad_input(g, size + 1)};
    return LEAT_OPN(op, in, 5, string_attr(g, "padding"), FORMAT);
}

static leat_status max_v2_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, of_five(g, "MaxPoolGradV2", Y, 1));
}

static leat_status max_v2_grad_grad(leat_grad *g)
{
    return last_of_three(g, of_five(g, "MaxPoolGradGradV2", leat_grad_input(g, 1), 3));
}

static leat_status argmax_grad(leat_grad *g)
{
    return leat_grad_in(
        g, 0,
        LEAT_OP3("MaxPoolGradWithArgmax", X, DY, leat_grad_output(g, 1), WINDOWS(g),
                 leat_attr_bool("include_batch_in_index",
                                leat_node_bool(leat_grad_node(g), "include_batch_in_index"))));
}

#define AVG_GRAD(name, op)                                                                         \
    static leat_status name(leat_grad *g)                                                          \
    {                                                                                              \
        return leat_grad_in(g, 0, LEAT_OP2(op, leat_shape_of(X), DY, WINDOWS(g), FORMAT));         \
    }
AVG_GRAD(avg_grad, "AvgPoolGrad")
AVG_GRAD(avg_grad_3d, "AvgPool3DGrad")

#define AVG_GRAD_GRAD(name, op)                                                                    \
    static leat_status name(leat_grad *g)                                                          \
    {                                                                                              \
        return leat_grad_in(g, 1, LEAT_OP1(op, DY, WINDOWS(g), FORMAT));                           \
    }
AVG_GRAD_GRAD(avg_grad_grad, "AvgPool")
AVG_GRAD_GRAD(avg_grad_grad_3d, "AvgPool3D")

/* ---- Definitions ---- */

#define PADDING "padding: {'SAME', 'VALID'}; "
#define SIZES_2D "ksize: list(int) >= 4; strides: list(int) >= 4; "
#define SIZES_3D "ksize: list(int) >= 5; strides: list(int) >= 5; " PADDING
#define FORMAT_2D "data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
#define FORMAT_3D "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; "
#define FORMAT_VECT "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
#define INDEXED "include_batch_in_index: bool = false; "
#define MAX_TYPES                                                                                  \
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = "       \
    "DT_FLOAT; "
#define FLOATS "T: {half, bfloat16, float, double}"
#define THREE "orig_input: T, orig_output: T, grad: T"
#define POOL(name_, inputs_, attrs_, shape_, grad_)                                                \
    {                                                                                              \
        .name = name_, .inputs = inputs_, .outputs = "output: T", .attrs = attrs_,                 \
        .shape = shape_, .grad = grad_                                                             \
    }

const leat_op_def leat_ops_pool[] = {
    POOL("MaxPool", "input: T", MAX_TYPES SIZES_2D PADDING FORMAT_VECT, max_shape, max_grad),
    POOL("MaxPoolV2", "input: T, ksize: int32, strides: int32", MAX_TYPES PADDING FORMAT_VECT,
         max_shape, max_v2_grad),
    POOL("MaxPoolGrad", THREE, SIZES_2D PADDING FORMAT_2D "T: realnumbertype = DT_FLOAT",
         like_input, max_grad_grad),
    POOL("MaxPoolGradV2", THREE ", ksize: int32, strides: int32",
         PADDING FORMAT_2D "T: realnumbertype = DT_FLOAT", like_input, max_v2_grad_grad),
    POOL("MaxPoolGradGrad", THREE, SIZES_2D PADDING FORMAT_2D "T: realnumbertype", grad_grad_shape,
         max_grad_grad_grad),
    POOL("MaxPoolGradGradV2", THREE ", ksize: int32, strides: int32",
         PADDING FORMAT_2D "T: realnumbertype", grad_grad_shape, leat_grad_missing),
    {.name = "MaxPoolWithArgmax",
     .inputs = "input: T",
     .outputs = "output: T, argmax: Targmax",
     .attrs = SIZES_2D "Targmax: {int32, int64} = DT_INT64; " PADDING INDEXED "T: realnumbertype",
     .shape = max_shape,
     .grad = argmax_grad},
    POOL("MaxPoolGradWithArgmax", "input: T, grad: T, argmax: Targmax",
         SIZES_2D PADDING INDEXED "Targmax: {int32, int64}; T: realnumbertype", like_input,
         leat_grad_missing),
    POOL("MaxPoolGradGradWithArgmax", "input: T, grad: T, argmax: Targmax",
         SIZES_2D PADDING INDEXED "Targmax: {int32, int64}; T: realnumbertype",
         grad_grad_argmax_shape, leat_grad_missing),
    POOL("AvgPool", "value: T", SIZES_2D PADDING FORMAT_2D FLOATS, avg_shape, avg_grad),
    POOL("AvgPoolGrad", "orig_input_shape: int32, grad: T", SIZES_2D PADDING FORMAT_2D FLOATS,
         avg_grad_shape, avg_grad_grad),
    POOL("MaxPool3D", "input: T", SIZES_3D FORMAT_3D "T: {half, bfloat16, float}", shape_3d,
         max_grad_3d),
    POOL("MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T",
         SIZES_3D FORMAT_3D "T: {half, bfloat16, float} = DT_FLOAT; "
                            "TInput: {half, bfloat16, float} = DT_FLOAT",
         like_input, max_grad_grad_3d),
    POOL("MaxPool3DGradGrad", THREE, SIZES_3D FORMAT_3D "T: realnumbertype", grad_grad_shape_3d,
         max_grad_grad_grad_3d),
    POOL("AvgPool3D", "input: T", SIZES_3D FORMAT_3D FLOATS, shape_3d, avg_grad_3d),
    POOL("AvgPool3DGrad", "orig_input_shape: int32, grad: T", SIZES_3D FORMAT_3D FLOATS,
         avg_grad_shape_3d, avg_grad_grad_3d),
    {0},
};
