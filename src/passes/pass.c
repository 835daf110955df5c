/* pass.c -- helpers by which the optimising passes inspect and change nodes. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

leat_status leat_pass_stopped(const leat_compile *c, int i)
{
    enum { EVERY = 4096 };
    return i % EVERY == EVERY - 1 ? leat_stop_check(&c->stop) : NULL;
}

bool leat_node_is_flow(const leat_node *n)
{
    return leat_node_role(n) >= LEAT_ROLE_SWITCH && leat_node_role(n) <= LEAT_ROLE_LOOP_COND;
}

bool leat_node_has_effects(const leat_node *n)
{
    if (leat_node_flag(n, LEAT_OP_NO_EFFECTS) || leat_node_is_flow(n))
        return false;
    if (leat_node_flag(n, LEAT_OP_STATEFUL))
        return true;
    for (int i = 0; i < n->op->n_in; i++)
        if (n->op->in[i].is_ref)
            return true;
    return false;
}

bool leat_node_is_pure(const leat_node *n)
{
    if (!n->n_out || leat_node_flag(n, LEAT_OP_STATEFUL) || leat_node_is_flow(n) ||
        (!n->n_in && leat_node_flag(n, LEAT_OP_PLACEHOLDER)))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (leat_dtype_is_ref(leat_out_dtype(n->in[i])))
            return false; /* the variable that it reads can change */
    for (int i = 0; i < n->n_out; i++)
        if (leat_dtype_is_ref(n->out_types[i]))
            return false;
    return true;
}

bool *leat_pass_below_flow(const leat_graph *g)
{
    bool *below = leat_new_array(bool, g->n_nodes + 1);
    int n;
    leat_node **order = leat_pass_order(g, &n);
    for (int i = 0; i < n; i++) {
        const leat_node *x = order[i];
        bool b = leat_node_is_flow(x);
        for (int j = 0; j < x->n_in; j++)
            b |= below[x->in[j].node->id];
        for (int j = 0; j < x->n_controls; j++)
            b |= below[x->controls[j]->id];
        below[x->id] = b;
    }
    free(order);
    return below;
}

const leat_tensor *leat_pass_value(leat_out x)
{
    return leat_is_const(x.node) ? leat_node_tensor(x.node, "value") : NULL;
}

void leat_pass_make_const(leat_node *n, leat_tensor *t)
{
    leat_arena *a = &n->graph->arena;
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    n->op = leat_op_find("Const");
    n->n_attrs = n->op->n_attrs;
    n->attrs = leat_arena_array(a, leat_attr, n->n_attrs);
    for (int i = 0; i < n->n_attrs; i++) {
        leat_attr v = {.name = n->op->attrs[i].name, .kind = LEAT_ARG_TYPE, .i = t->dtype};
        if (strcmp(v.name, "value") == 0)
            v = (leat_attr){.name = v.name, .kind = LEAT_ARG_TENSOR, .tensor = t};
        n->attrs[i] = leat_attr_copy(a, &v);
    }
    n->n_in = 0;
    n->n_out = 1;
    n->out_types[0] = t->dtype;
    n->out_shapes[0] = t->shape;
}

void leat_take_controls(leat_node *n, const leat_node *of)
{
    leat_control_adder a = leat_control_adder_of(n);
    for (int i = 0; i < of->n_controls; i++)
        leat_control_adder_add(&a, of->controls[i]);
}
