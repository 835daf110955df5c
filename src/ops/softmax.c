/* softmax.c -- Softmax and LogSoftmax over the last dimension; cross entropy of softmax with labels
 * that are distributions or classes. The latter two give their gradient as a second output. */
#include <leat/extend.h>
#include <leat/nn.h>

static leat_status softmax_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

/* Logits and labels have one shape, or are broadcast to one. */
static leat_status xent_shape(leat_infer *c)
{
    leat_shape x = leat_infer_in(c, 0), y = leat_infer_in(c, 1), s = x;
    if (s.rank < 0)
        s = leat_shape_unknown_dims(2);
    leat_status differ = s.rank == 2 ? leat_shape_merge(&s, &y, &s) : NULL;
    if (s.rank != 2 || differ) {
        leat_status_free(differ);
        LEAT_TRY(leat_shape_broadcast(&x, &y, &s));
        LEAT_REQUIRE(s.rank >= 0, INVALID_ARGUMENT,
                     "Shape must be broadcasted with rank 2, but is rank is unknown.");
        LEAT_REQUIRE(s.rank == 2, INVALID_ARGUMENT,
                     "Shape must be broadcasted with rank 2, but is rank %d", s.rank);
    }
    leat_infer_out(c, 0, leat_shape(s.dim[0]));
    leat_infer_out(c, 1, s);
    return NULL;
}

static leat_status sparse_xent_shape(leat_infer *c)
{
    leat_shape x, labels;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &labels));
    LEAT_TRY(leat_dim_merge(x.dim[0], labels.dim[0], &x.dim[0]));
    leat_infer_out(c, 0, leat_shape(x.dim[0]));
    leat_infer_out(c, 1, x);
    return NULL;
}

static leat_out sum_last(leat_out x)
{
    leat_out axis = leat_scalar(leat_node_graph(x.node), LEAT_INT32, -1);
    return leat_sum(x, axis, leat_attr_bool("keep_dims", true));
}

static leat_status softmax_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), y = leat_grad_output(g, 0);
    return leat_grad_in(g, 0, leat_mul(leat_sub(dy, sum_last(leat_mul(dy, y))), y));
}

static leat_status log_softmax_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), softmax = leat_exp(leat_grad_output(g, 0));
    return leat_grad_in(g, 0, leat_sub(dy, leat_mul(sum_last(dy), softmax)));
}

/* d is (batch), m is (batch, classes). */
static leat_out scale_rows(leat_out d, leat_out m)
{
    leat_out axis = leat_scalar(leat_node_graph(d.node), LEAT_INT32, -1);
    return leat_mul(leat_expand_dims(d, axis), m);
}

static leat_status xent_grad(leat_grad *g)
{
    leat_out d = leat_grad_out(g, 0), logits = leat_grad_input(g, 0);
    leat_out dx = scale_rows(d, leat_grad_output(g, 1));
    /* The gradient output was used itself: its derivative is that of softmax. */
    if (leat_grad_has_out(g, 1)) {
        leat_out dd = leat_grad_out(g, 1), y = leat_softmax(logits);
        dx = leat_add(dx, leat_mul(leat_sub(dd, sum_last(leat_mul(dd, y))), y));
    }
    LEAT_TRY(leat_grad_in(g, 0, dx));
    return leat_grad_in(g, 1, scale_rows(d, leat_neg(leat_log_softmax(logits))));
}

static leat_status sparse_xent_grad(leat_grad *g)
{
    leat_out back = leat_prevent_gradient(
        leat_grad_output(g, 1),
        leat_attr_string("message", "Currently there is no way to take the second derivative of "
                                    "sparse_softmax_cross_entropy_with_logits due to the fused "
                                    "implementation's interaction with tf.gradients()"));
    return leat_grad_in(g, 0, scale_rows(leat_grad_out(g, 0), back));
}

static leat_status rows_shape(leat_infer *c)
{
    leat_infer_out(c, 0,
                   leat_node_bool(leat_infer_node(c), "scalar") ? leat_shape() : leat_shape(1));
    return NULL;
}

#define FLOATS "T: {half, bfloat16, float, double}"

const leat_op_def leat_ops_softmax[] = {
    {.name = "Softmax",
     .inputs = "logits: T",
     .outputs = "softmax: T",
     .attrs = FLOATS,
     .shape = softmax_shape,
     .grad = softmax_grad},
    {.name = "LogSoftmax",
     .inputs = "logits: T",
     .outputs = "logsoftmax: T",
     .attrs = FLOATS,
     .shape = softmax_shape,
     .grad = log_softmax_grad},
    {.name = "SoftmaxCrossEntropyWithLogits",
     .inputs = "features: T, labels: T",
     .outputs = "loss: T, backprop: T",
     .attrs = FLOATS,
     .shape = xent_shape,
     .grad = xent_grad,
     .role = LEAT_ROLE_CROSS_ENTROPY,
     .fused = "_ScaledSoftmaxCrossEntropyWithLogits"},
    {.name = "SparseSoftmaxCrossEntropyWithLogits",
     .inputs = "features: T, labels: Tlabels",
     .outputs = "loss: T, backprop: T",
     .attrs = FLOATS "; Tlabels: {int32, int64} = DT_INT64",
     .shape = sparse_xent_shape,
     .grad = sparse_xent_grad,
     .role = LEAT_ROLE_CROSS_ENTROPY,
     .fused = "_ScaledSparseSoftmaxCrossEntropyWithLogits"},
    /* Made by passes/fuse_xent.c: each row of the gradient is multiplied by `scale`. */
    {.name = "_ScaledSoftmaxCrossEntropyWithLogits",
     .inputs = "features: T, labels: T, scale: T",
     .outputs = "loss: T, backprop: T",
     .attrs = FLOATS,
     .shape = xent_shape,
     .grad = leat_grad_missing},
    {.name = "_ScaledSparseSoftmaxCrossEntropyWithLogits",
     .inputs = "features: T, labels: Tlabels, scale: T",
     .outputs = "loss: T, backprop: T",
     .attrs = FLOATS "; Tlabels: {int32, int64} = DT_INT64",
     .shape = sparse_xent_shape,
     .grad = leat_grad_missing},
    /* A further output: the number of losses, as a vector of one element or a scalar. */
    {.name = "_CrossEntropyRows",
     .inputs = "features: T, labels: Tlabels",
     .outputs = "output: out_type",
     .attrs = FLOATS "; Tlabels: type; out_type: {int32, int64} = DT_INT32; scalar: bool = false",
     .shape = rows_shape,
     .grad = leat_grad_missing},
    {0},
};
