/* batch_norm.c -- batch normalisation: FusedBatchNorm (V1 to V3),
 * BatchNormWithGlobalNormalization, and the ops that their gradients add.
 *
 * y = (x - mean) / sqrt(variance + epsilon) * scale + offset, for each channel of x. While
 * training, mean and variance are those of x itself. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static bool channels_first(const leat_node *n)
{
    return strcmp(leat_node_string(n, "data_format"), "NCHW") == 0;
}

/* Inputs [from, to) are vectors with an element for each channel. */
static leat_status merge_channels(leat_infer *c, int from, int to, int64_t *channels)
{
    for (int i = from; i < to; i++) {
        leat_shape v;
        LEAT_TRY(leat_infer_rank(c, i, 1, &v));
        LEAT_TRY(leat_dim_merge(*channels, v.dim[0], channels));
    }
    return NULL;
}

static leat_status norm_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const int at = channels_first(n) ? 1 : 3;
    leat_shape x;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    LEAT_TRY(merge_channels(c, 1, leat_node_bool(n, "is_training") ? 3 : 5, &x.dim[at]));
    leat_infer_out(c, 0, x);
    for (int i = 1; i < 5; i++)
        leat_infer_out(c, i, leat_shape(x.dim[at]));
    return NULL;
}

static leat_status norm_grad_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const int at = channels_first(n) ? 1 : 3;
    leat_shape dy, x;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &dy));
    LEAT_TRY(leat_infer_rank(c, 1, 4, &x));
    LEAT_TRY(leat_dim_merge(dy.dim[at], x.dim[at], &dy.dim[at]));
    LEAT_TRY(merge_channels(c, 2, 5, &dy.dim[at]));
    leat_infer_out(c, 0, dy);
    for (int i = 1; i < 3; i++)
        leat_infer_out(c, i, leat_shape(dy.dim[at]));
    for (int i = 3; i < 5; i++)
        leat_infer_out(c, i, leat_shape(leat_node_bool(n, "is_training") ? 0 : dy.dim[at]));
    return NULL;
}

/* ---- Gradients ---- */

static leat_out to_last(leat_out x)
{
    return leat_transpose(x, leat_ints(leat_node_graph(x.node), 0, 2, 3, 1));
}

/* While training the gradient needs the statistics that the op has saved, otherwise those that it
 * was given. */
static leat_status norm_grad(leat_grad *g, const char *op, int inputs)
{
    const leat_node *n = leat_grad_node(g);
    const bool training = leat_node_bool(n, "is_training"), first = channels_first(n);
    const bool turn = first && !training; /* as in TensorFlow */
    leat_out x = leat_grad_input(g, 0), dy = leat_grad_out(g, 0);
    const leat_out in[] = {
        turn ? to_last(dy) : dy,
        turn ? to_last(x) : x,
        leat_grad_input(g, 1),
        training ? leat_grad_output(g, 3) : leat_grad_input(g, 3),
        training ? leat_grad_output(g, 4) : leat_grad_input(g, 4),
        inputs > 5 ? leat_grad_output(g, 5) : x,
    };
    leat_out d = LEAT_OPN(op, in, inputs, leat_attr_float("epsilon", leat_node_float(n, "epsilon")),
                          leat_attr_string("data_format", first && !turn ? "NCHW" : "NHWC"),
                          leat_attr_bool("is_training", training));
    leat_out dx = turn ? leat_transpose(d, leat_ints(leat_grad_graph(g), 0, 3, 1, 2)) : d;
    LEAT_TRY(leat_grad_in(g, 0, dx));
    LEAT_TRY(leat_grad_in(g, 1, leat_output(d, 1)));
    return leat_grad_in(g, 2, leat_output(d, 2));
}

static leat_status norm_v1_grad(leat_grad *g)
{
    return norm_grad(g, "FusedBatchNormGrad", 5);
}

static leat_status norm_v2_grad(leat_grad *g)
{
    return norm_grad(g, "FusedBatchNormGradV2", 5);
}

static leat_status norm_v3_grad(leat_grad *g)
{
    return norm_grad(g, "FusedBatchNormGradV3", 6);
}

/* (1, channels, 1, 1) where channels come first. */
static leat_out along_channels(leat_out v, bool first)
{
    return first ? leat_reshape(v, leat_ints(leat_node_graph(v.node), 1, -1, 1, 1)) : v;
}

static leat_out average(leat_out x, leat_out axes, bool keep)
{
    return leat_mean(x, axes, leat_attr_bool("keep_dims", keep));
}

/* What FusedBatchNormGrad computes, from ops that have gradients: out is dx, dscale, doffset. */
static void grad_of_ops(const leat_node *n, leat_out dy, leat_out x, leat_out scale, leat_out mean,
                        leat_out variance, leat_out out[3])
{
    const bool first = channels_first(n);
    leat_graph *graph = leat_node_graph(x.node);
    leat_out axes = first ? leat_ints(graph, 0, 2, 3) : leat_ints(graph, 0, 1, 2);
    leat_out eps = leat_scalar(graph, LEAT_FLOAT, leat_node_float(n, "epsilon"));
    leat_out factor = along_channels(scale, first);
    if (!leat_node_bool(n, "is_training")) {
        leat_out root = leat_rsqrt(leat_add(along_channels(variance, first), eps));
        leat_out centered = leat_sub(x, along_channels(mean, first));
        out[0] = leat_mul(leat_mul(dy, factor), root);
        out[1] = leat_sum(leat_mul(leat_mul(dy, centered), root), axes);
        out[2] = leat_sum(dy, axes);
        return;
    }
    leat_out mean_x = average(x, axes, true), centered = leat_sub(x, mean_x);
    leat_out var_x = average(leat_squared_difference(x, leat_stop_gradient(mean_x)), axes, true);
    leat_out wide = leat_add(var_x, eps), root = leat_rsqrt(wide);
    leat_out product = leat_mul(dy, centered);
    leat_out along =
        leat_mul(leat_mul(leat_reciprocal(wide), average(product, axes, true)), centered);
    out[0] =
        leat_mul(leat_mul(factor, root), leat_sub(leat_sub(dy, average(dy, axes, true)), along));
    out[1] = leat_mul(leat_reshape(root, leat_ints(graph, -1)), leat_sum(product, axes));
    out[2] = leat_sum(dy, axes);
}

/* The gradient of the gradient is that of the ops which compute the same. */
static leat_status norm_grad_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    leat_dtype t = leat_out_dtype(leat_grad_input(g, 1));
    leat_out in[3], ys[3], dys[3];
    leat_grad_value d[3];
    for (int i = 0; i < 3; i++)
        in[i] = leat_cast(leat_identity(leat_grad_input(g, i)), LEAT_FLOAT);
    grad_of_ops(n, in[0], in[1], in[2], leat_grad_input(g, 3), leat_grad_input(g, 4), ys);
    for (int i = 0; i < 3; i++)
        dys[i] = leat_cast(leat_grad_out(g, i), LEAT_FLOAT);
    LEAT_TRY(leat_gradients(ys, 3, in, 3, d, .grad_ys = dys));
    for (int i = 0; i < 3; i++)
        if (d[i].value.node)
            LEAT_TRY(leat_grad_in(g, i, leat_cast(leat_grad_dense(d[i]), i < 2 ? t : LEAT_FLOAT)));
    return NULL;
}

/* ---- BatchNormWithGlobalNormalization ---- */

static leat_status global_shape(leat_infer *c)
{
    leat_shape x;
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    LEAT_TRY(merge_channels(c, 1, 5, &x.dim[3]));
    leat_infer_out(c, 0, x);
    return NULL;
}

static leat_status global_grad_shape(leat_infer *c)
{
    leat_shape x, dy = leat_infer_in(c, 4);
    LEAT_TRY(leat_infer_rank(c, 0, 4, &x));
    LEAT_TRY(leat_shape_merge(&x, &dy, &x));
    LEAT_TRY(merge_channels(c, 1, 4, &x.dim[3]));
    leat_infer_out(c, 0, x);
    for (int i = 1; i < 5; i++)
        leat_infer_out(c, i, leat_shape(x.dim[3]));
    return NULL;
}

static leat_status global_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g);
    const leat_out in[] = {leat_grad_input(g, 0), leat_grad_input(g, 1), leat_grad_input(g, 2),
                           leat_grad_input(g, 4), leat_grad_out(g, 0)};
    leat_out d =
        LEAT_OPN("BatchNormWithGlobalNormalizationGrad", in, 5,
                 leat_attr_float("variance_epsilon", leat_node_float(n, "variance_epsilon")),
                 leat_attr_bool("scale_after_normalization",
                                leat_node_bool(n, "scale_after_normalization")));
    LEAT_TRY(leat_grad_in(g, 0, d));
    for (int i = 1; i < 5; i++)
        LEAT_TRY(leat_grad_in(g, i, leat_output(d, i)));
    return NULL;
}

#define EPSILON                                                                                    \
    "epsilon: float = 0.0001; data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true"
#define SMALL "T: {half, bfloat16, float}; U: {float}; "
#define IN(U) "x: T, scale: " U ", offset: " U ", mean: " U ", variance: " U
#define OUT(U)                                                                                     \
    "y: T, batch_mean: " U ", batch_variance: " U ", reserve_space_1: " U ", reserve_space_2: " U
#define GRAD_IN(S, U)                                                                              \
    "y_backprop: T, x: T, scale: " S ", reserve_space_1: " U ", reserve_space_2: " U
#define GRAD_OUT(U, a, b)                                                                          \
    "x_backprop: T, scale_backprop: " U ", offset_backprop: " U ", reserve_space_" a ": " U        \
    ", reserve_space_" b ": " U
#define NORM(name_, inputs_, outputs_, attrs_, shape_, grad_)                                      \
    {                                                                                              \
        .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_, .shape = shape_,   \
        .grad = grad_                                                                              \
    }

const leat_op_def leat_ops_batch_norm[] = {
    NORM("FusedBatchNorm", IN("T"), OUT("T"), "T: {float}; " EPSILON, norm_shape, norm_v1_grad),
    NORM("FusedBatchNormV2", IN("U"), OUT("U"), SMALL EPSILON, norm_shape, norm_v2_grad),
    NORM("FusedBatchNormV3", IN("U"), OUT("U") ", reserve_space_3: U", SMALL EPSILON, norm_shape,
         norm_v3_grad),
    NORM("FusedBatchNormGrad", GRAD_IN("T", "T"), GRAD_OUT("T", "3", "4"), "T: {float}; " EPSILON,
         norm_grad_shape, norm_grad_grad),
    NORM("FusedBatchNormGradV2", GRAD_IN("float", "U"), GRAD_OUT("U", "3", "4"), SMALL EPSILON,
         norm_grad_shape, norm_grad_grad),
    NORM("FusedBatchNormGradV3", GRAD_IN("float", "U") ", reserve_space_3: U",
         GRAD_OUT("U", "4", "5"), SMALL EPSILON, norm_grad_shape, norm_grad_grad),
    NORM("BatchNormWithGlobalNormalization", "t: T, m: T, v: T, beta: T, gamma: T", "result: T",
         "T: numbertype; variance_epsilon: float; scale_after_normalization: bool", global_shape,
         global_grad),
    NORM("BatchNormWithGlobalNormalizationGrad", "t: T, m: T, v: T, gamma: T, backprop: T",
         "dx: T, dm: T, dv: T, db: T, dg: T",
         "T: numbertype; variance_epsilon: float; scale_after_normalization: bool",
         global_grad_shape, leat_grad_missing),
    {0},
};
