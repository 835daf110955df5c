/* fused_cwise.c -- _FusedCwise, which passes/fuse_cwise.c makes: a tree of element-wise ops run as
 * one. Step i applies ops[i] to operands[2i] and, if it is not -1, operands[2i + 1]; an operand
 * below num_args is an input, others are the results of earlier steps. names[i] is the node that
 * step i comes from, for messages. */
#include <leat/extend.h>

static leat_status shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    for (int i = 1; i < leat_infer_inputs(c); i++) {
        leat_shape x = leat_infer_in(c, i);
        LEAT_TRY(leat_shape_broadcast(&s, &x, &s));
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

const leat_op_def leat_ops_fused_cwise[] = {
    {.name = "_FusedCwise",
     .inputs = "args: num_args * T",
     .outputs = "y: T",
     .attrs = "T: {float, double}; num_args: int >= 1; ops: list(string); operands: list(int); "
              "names: list(string) = []",
     .shape = shape,
     .grad = leat_grad_missing},
    {0},
};
