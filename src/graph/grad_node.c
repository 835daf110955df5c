/* grad_node.c -- the functions that gradient functions call (extend.h). */
#include "graph/gradients_int.h"

leat_status leat_grad_none(leat_grad *g)
{
    return NULL; /* identified by its address; no gradient flows back */
}

leat_status leat_grad_missing(leat_grad *g)
{
    return leat_error(NOT_FOUND, "No gradient defined for operation '%s' (op type: %s)",
                      g->node->name, g->node->op->def->name);
}

leat_graph *leat_grad_graph(leat_grad *g)
{
    return g->b->g;
}

const leat_node *leat_grad_node(leat_grad *g)
{
    return g->node;
}

leat_out leat_grad_input(leat_grad *g, int i)
{
    return leat_node_input(g->node, i);
}

leat_out leat_grad_output(leat_grad *g, int i)
{
    return (leat_out){g->node, i};
}

bool leat_grad_has_out(leat_grad *g, int i)
{
    return i >= 0 && i < g->node->n_out && leat_grad_some(g->out[i]);
}

bool leat_grad_wants(leat_grad *g, int i)
{
    const leat_node *n = i >= 0 && i < g->node->n_in ? g->node->in[i].node : NULL;
    return n && leat_grad_state_of(g->b, n)->reached;
}

leat_grad_value leat_grad_out_value(leat_grad *g, int i)
{
    return i >= 0 && i < g->node->n_out ? g->out[i] : (leat_grad_value){0};
}

leat_out leat_grad_out(leat_grad *g, int i)
{
    if (i < 0 || i >= g->node->n_out)
        return (leat_out){g->b->g->poison, 0};
    if (!leat_grad_some(g->out[i]))
        g->out[i] = leat_grad_tensor(leat_grad_zeros(g->b, g->node, i));
    else if (g->out[i].indices.node)
        g->out[i] = leat_grad_tensor(leat_grad_dense(g->out[i]));
    return g->out[i].value;
}

leat_status leat_grad_in_value(leat_grad *g, int i, leat_grad_value dx)
{
    LEAT_REQUIRE(i >= 0 && i < g->node->n_in, INTERNAL, "Node %s has no input %d", g->node->name,
                 i);
    g->in[i] = dx;
    return NULL;
}

leat_status leat_grad_in(leat_grad *g, int i, leat_out dx)
{
    return leat_grad_in_value(g, i, leat_grad_tensor(dx));
}
