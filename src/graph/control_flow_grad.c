/* control_flow_grad.c -- gradients of the flow ops. */
#include "graph/control_flow.h"

#include "graph/graph_int.h"

leat_status leat_switch_grad(leat_grad *g)
{
    return leat_error(UNIMPLEMENTED, "Gradients of control flow");
}

leat_status leat_merge_grad(leat_grad *g)
{
    return leat_error(UNIMPLEMENTED, "Gradients of control flow");
}

leat_status leat_enter_grad(leat_grad *g)
{
    return leat_error(UNIMPLEMENTED, "Gradients of control flow");
}

leat_status leat_exit_grad(leat_grad *g)
{
    return leat_error(UNIMPLEMENTED, "Gradients of control flow");
}

leat_status leat_next_iteration_grad(leat_grad *g)
{
    return leat_error(UNIMPLEMENTED, "Gradients of control flow");
}

leat_status leat_control_ctx_added(leat_control_ctx *ctx, leat_node *n)
{
    return NULL;
}
