/* add_n.c -- AddN and AccumulateNV2, sums of any number of tensors of one shape; L2Loss. */
#include <leat/extend.h>
#include <leat/ops.h>

static leat_status add_n_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, leat_infer_inputs(c) - 1);
    for (int i = leat_infer_inputs(c) - 2; i >= 0; i--) {
        leat_shape x = leat_infer_in(c, i);
        leat_status bad = leat_shape_merge(&x, &s, &s);
        if (bad)
            return leat_status_suffix(bad, "\n\tFrom merging shape %d with other shapes.", i);
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status accumulate_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_node_shape(leat_infer_node(c), "shape"));
    return NULL;
}

static leat_status add_n_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0);
    for (int i = 0; i < leat_node_inputs(leat_grad_node(g)); i++)
        LEAT_TRY(leat_grad_in(g, i, dy));
    return NULL;
}

static leat_status l2_loss_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_mul(leat_grad_input(g, 0), leat_grad_out(g, 0)));
}

const leat_op_def leat_ops_add_n[] = {
    {.name = "AddN",
     .inputs = "inputs: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1; T: {numbertype, variant}",
     .shape = add_n_shape,
     .grad = add_n_grad,
     .flags = LEAT_OP_COMMUTATIVE | LEAT_OP_AGGREGATE,
     .pairwise = "AddV2"},
    {.name = "AccumulateNV2",
     .inputs = "inputs: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1; T: numbertype; shape: shape",
     .shape = accumulate_shape,
     .grad = add_n_grad,
     .flags = LEAT_OP_COMMUTATIVE | LEAT_OP_AGGREGATE},
    {.name = "L2Loss",
     .inputs = "t: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .shape = leat_shape_scalar,
     .grad = l2_loss_grad},
    {0},
};
