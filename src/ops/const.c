/* const.c -- Const, Placeholder, PlaceholderWithDefault. */
#include <leat/extend.h>

#include "core/buffer.h"
#include "graph/graph_int.h"

static leat_status const_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const leat_tensor *t = leat_node_tensor(n, "value");
    LEAT_REQUIRE(t && t->dtype == leat_node_type(n, "dtype"), INVALID_ARGUMENT,
                 "Inconsistent value %s and dtype %s in attr of Const",
                 t ? leat_dtype_name(t->dtype) : "none",
                 leat_dtype_name(leat_node_type(n, "dtype")));
    leat_infer_out(c, 0, t->shape);
    return NULL;
}

static leat_status placeholder_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    leat_shape s = leat_node_shape(n, "shape");
    if (s.rank == 0 && leat_node_graph(n)->producer < 24)
        s = leat_shape_unknown(); /* in old graphs, a missing shape means that it is unknown */
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status placeholder_default_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), out = leat_node_shape(leat_infer_node(c), "shape"), both;
    LEAT_TRY(leat_shape_merge(&in, &out, &both));
    /* The fed value may differ from the default where `shape` has unknown dimensions. */
    leat_infer_out(c, 0, out);
    return NULL;
}

static leat_status pass_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_grad_out(g, 0));
}

const leat_op_def leat_ops_const[] = {
    {.name = "Const",
     .outputs = "output: dtype",
     .attrs = "value: tensor; dtype: type",
     .shape = const_shape,
     .grad = leat_grad_none,
     .role = LEAT_ROLE_CONST},
    {.name = "Placeholder",
     .outputs = "output: dtype",
     .attrs = "dtype: type; shape: shape = {unknown_rank: true}",
     .shape = placeholder_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_PLACEHOLDER},
    {.name = "PlaceholderWithDefault",
     .inputs = "input: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: type; shape: shape",
     .shape = placeholder_default_shape,
     .grad = pass_grad,
     .flags = LEAT_OP_PLACEHOLDER | LEAT_OP_IDENTITY},
    {0},
};
