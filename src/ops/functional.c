/* functional.c -- calls of functions that are named in attributes: plain ones, conds and loops.
 * Before a graph runs, they are replaced by what they call where that can be done
 * (graph/function_calls.c). */
#include <leat/extend.h>

#include "graph/function.h"

#define CALL(op, f)                                                                                \
    {                                                                                              \
        .name = op, .inputs = "args: Tin", .outputs = "output: Tout",                              \
        .attrs = "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; "     \
                 "config_proto: string = ''; executor_type: string = ''",                          \
        .shape = leat_call_shape, .grad = leat_call_grad, .flags = f                               \
    }

/* dL/dx has the dtype and shape of x. */
static leat_status gradient_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_outputs(c) && i < leat_infer_inputs(c); i++)
        if (leat_out_dtype(leat_node_input(leat_infer_node(c), i)) != LEAT_RESOURCE)
            leat_infer_out(c, i, leat_infer_in(c, i));
    return NULL;
}

/* The shapes that the attribute gives; else unknown (If), or those of the inputs (While). */
static leat_status flow_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    int count, outputs = leat_infer_outputs(c);
    const leat_shape *shapes = leat_node_shapes(n, "output_shapes", &count);
    LEAT_REQUIRE(count == 0 || count == outputs, INVALID_ARGUMENT,
                 "`output_shapes` must be the same length as num outputs (%d vs. %d", count,
                 outputs);
    bool loop = leat_node_has(n, "body");
    for (int i = 0; i < outputs && (count || loop); i++)
        leat_infer_out(c, i, count ? shapes[i] : leat_infer_in(c, i));
    return NULL;
}

#define IF(op, f)                                                                                  \
    {                                                                                              \
        .name = op, .inputs = "cond: Tcond, input: Tin", .outputs = "output: Tout",                \
        .attrs = "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; "   \
                 "else_branch: func; output_shapes: list(shape) = []",                             \
        .shape = flow_shape, .grad = leat_grad_missing, .flags = f, .role = LEAT_ROLE_IF           \
    }
#define WHILE(op, f)                                                                               \
    {                                                                                              \
        .name = op, .inputs = "input: T", .outputs = "output: T",                                  \
        .attrs = "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; "   \
                 "parallel_iterations: int = 10",                                                  \
        .shape = flow_shape, .grad = leat_grad_missing, .flags = f, .role = LEAT_ROLE_WHILE        \
    }

const leat_op_def leat_ops_functional[] = {
    IF("If", LEAT_OP_STATEFUL),
    IF("StatelessIf", 0),
    {.name = "Case",
     .inputs = "branch_index: int32, input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1; "
              "output_shapes: list(shape) = []",
     .shape = flow_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL,
     .role = LEAT_ROLE_CASE},
    WHILE("While", LEAT_OP_STATEFUL),
    WHILE("StatelessWhile", 0),
    CALL("PartitionedCall", 0),
    CALL("StatefulPartitionedCall", LEAT_OP_STATEFUL),
    {.name = "For",
     .inputs = "start: int32, limit: int32, delta: int32, input: T",
     .outputs = "output: T",
     .attrs = "T: list(type) >= 0; body: func",
     .shape = leat_shape_any,
     .grad = leat_grad_missing},
    {.name = "RemoteCall",
     .inputs = "target: string, args: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
     .shape = leat_shape_any,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "SymbolicGradient",
     .inputs = "input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
     .shape = gradient_shape,
     .grad = leat_grad_missing},
    {0},
};
