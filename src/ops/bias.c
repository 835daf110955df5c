/* bias.c -- BiasAdd: a vector added along the channels, which are the last dimension (NHWC) or
 * dimension 1 (NCHW); BiasAddGrad, the op that its gradient adds. */
#include <leat/extend.h>
#include <leat/nn.h>
#include <string.h>

static bool is_nchw(const leat_node *n)
{
    return strcmp(leat_node_string(n, "data_format"), "NCHW") == 0;
}

static leat_status bias_shape(leat_infer *c)
{
    bool nchw = is_nchw(leat_infer_node(c));
    leat_shape x, bias;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, nchw ? 3 : 2, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &bias));
    if (x.rank > 0) {
        int64_t *channels = &x.dim[nchw ? 1 : x.rank - 1];
        LEAT_TRY(leat_dim_merge(*channels, bias.dim[0], channels));
    }
    leat_infer_out(c, 0, x);
    return NULL;
}

static leat_status bias_grad_shape(leat_infer *c)
{
    bool nchw = is_nchw(leat_infer_node(c));
    leat_shape x;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, nchw ? 3 : 2, &x));
    leat_infer_out(c, 0, leat_shape(x.rank < 0 ? -1 : x.dim[nchw ? 1 : x.rank - 1]));
    return NULL;
}

static leat_status bias_grad(leat_grad *g)
{
    const char *format = leat_node_string(leat_grad_node(g), "data_format");
    leat_out dy = leat_grad_out(g, 0);
    LEAT_TRY(leat_grad_in(g, 0, dy));
    return leat_grad_in(g, 1, leat_bias_add_grad(dy, leat_attr_string("data_format", format)));
}

/* All dimensions but the last are summed. */
static leat_status bias_v1_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0);
    leat_out zero = leat_scalar(leat_grad_graph(g), LEAT_INT32, 0);
    leat_out one = leat_scalar(leat_grad_graph(g), LEAT_INT32, 1);
    leat_out axes = leat_range(zero, leat_sub(leat_rank_of(dy), one), one);
    LEAT_TRY(leat_grad_in(g, 0, dy));
    return leat_grad_in(g, 1, leat_sum(dy, axes));
}

/* The gradient of BiasAddGrad, which is a sum: broadcast over the dimensions that were summed. */
static leat_status bias_grad_grad(leat_grad *g)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out d = leat_grad_out(g, 0), shape = leat_shape_of(leat_grad_input(g, 0));
    if (is_nchw(leat_grad_node(g))) {
        leat_out inner = leat_slice(shape, leat_ints(graph, 2), leat_ints(graph, -1));
        leat_out parts[] = {leat_shape_of(d), leat_ones_like(inner)};
        d = leat_reshape(d, leat_concat(parts, 2, leat_scalar(graph, LEAT_INT32, 0)));
    }
    return leat_grad_in(g, 0, leat_broadcast_to(d, shape));
}

#define FORMAT "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'"

const leat_op_def leat_ops_bias[] = {
    {.name = "BiasAdd",
     .inputs = "value: T, bias: T",
     .outputs = "output: T",
     .attrs = FORMAT,
     .shape = bias_shape,
     .grad = bias_grad,
     .role = LEAT_ROLE_BIAS_ADD},
    {.name = "BiasAddV1",
     .inputs = "value: T, bias: T",
     .outputs = "output: T",
     .attrs = "T: numbertype",
     .shape = bias_shape,
     .grad = bias_v1_grad},
    {.name = "BiasAddGrad",
     .inputs = "out_backprop: T",
     .outputs = "output: T",
     .attrs = FORMAT,
     .shape = bias_grad_shape,
     .grad = bias_grad_grad},
    {0},
};
