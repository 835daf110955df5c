/* functional.c -- calls of functions that are named in an attribute. They have no kernels: before a
 * graph runs, they are replaced by what they call (graph/function_inline.c). */
#include <leat/extend.h>

#include "graph/function.h"

#define CALL(op, f)                                                                                \
    {                                                                                              \
        .name = op, .inputs = "args: Tin", .outputs = "output: Tout",                              \
        .attrs = "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; "     \
                 "config_proto: string = ''; executor_type: string = ''",                          \
        .shape = leat_call_shape, .grad = leat_call_grad, .flags = f                               \
    }

/* What is known of x is known of dL/dx. */
static leat_status gradient_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_outputs(c) && i < leat_infer_inputs(c); i++)
        if (leat_out_dtype(leat_node_input(leat_infer_node(c), i)) != LEAT_RESOURCE)
            leat_infer_out(c, i, leat_infer_in(c, i));
    return NULL;
}

const leat_op_def leat_ops_functional[] = {
    CALL("PartitionedCall", 0),
    CALL("StatefulPartitionedCall", LEAT_OP_STATEFUL),
    {.name = "SymbolicGradient",
     .inputs = "input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
     .shape = gradient_shape,
     .grad = leat_grad_missing},
    {0},
};
