/* assign.c -- assigning to variables, by reference or by handle. */
#include "train/train_int.h"

leat_out leat_variable_assign_at(leat_loc at, const char *op, leat_out v, leat_out x)
{
    leat_variable_nodes n;
    if (!v.node || !leat_out_ok(v))
        return v;
    leat_graph *g = leat_graph_of(v);
    if (!leat_variable_find(v, &n))
        return leat_graph_fail(g, at,
                               leat_error(INVALID_ARGUMENT, "%s: %s (%s) is not a variable", op,
                                          v.node->name, leat_node_op(v.node)));
    const leat_out in[2] = {{n.self, 0}, x};
    if (n.resource)
        op = leat_arena_printf(&g->arena, "%sVariableOp", op);
    return leat_op_of(at, op, in, 2, LEAT_ARGS());
}
