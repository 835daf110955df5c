/* assign.c -- assigning to variables, by reference or by handle. */
#include "train/train_int.h"

static leat_out assign(leat_out v, leat_out x, const char *by_ref, const char *by_handle)
{
    leat_variable_nodes n;
    if (!leat_variable_find(v, &n)) {
        if (!v.node || !leat_out_ok(v))
            return v;
        return leat_graph_fail(leat_graph_of(v), (leat_loc){0},
                               leat_error(INVALID_ARGUMENT, "%s: %s (%s) is not a variable", by_ref,
                                          v.node->name, leat_node_op(v.node)));
    }
    return n.resource ? LEAT_OP2(by_handle, ((leat_out){n.self, 0}), x)
                      : LEAT_OP2(by_ref, ((leat_out){n.self, 0}), x);
}

leat_out leat_variable_assign(leat_out v, leat_out x)
{
    return assign(v, x, "Assign", "AssignVariableOp");
}

leat_out leat_variable_assign_add(leat_out v, leat_out x)
{
    return assign(v, x, "AssignAdd", "AssignAddVariableOp");
}

leat_out leat_variable_assign_sub(leat_out v, leat_out x)
{
    return assign(v, x, "AssignSub", "AssignSubVariableOp");
}
