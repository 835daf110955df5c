/* pass.c -- what the optimising passes ask about nodes, and how they change them. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

static bool is_one_of(const leat_node *n, const char *const *ops)
{
    for (; *ops; ops++)
        if (leat_node_is(n, *ops))
            return true;
    return false;
}

bool leat_node_is_flow(const leat_node *n)
{
    static const char *const ops[] = {"Switch",        "RefSwitch",        "Merge",    "RefMerge",
                                      "Enter",         "RefEnter",         "Exit",     "RefExit",
                                      "NextIteration", "RefNextIteration", "LoopCond", NULL};
    return is_one_of(n, ops);
}

bool leat_node_has_effects(const leat_node *n)
{
    /* Stateful, since they must not be merged or folded; but nothing happens when they run. */
    static const char *const silent[] = {"VariableV2",     "Variable", "VarHandleOp",
                                         "ReadVariableOp", "_Arg",     "RefIdentity",
                                         "RefSwitch",      NULL};
    if (is_one_of(n, silent) || leat_node_is_flow(n))
        return false;
    if (n->op->def->flags & LEAT_OP_STATEFUL)
        return true;
    for (int i = 0; i < n->op->n_in; i++)
        if (n->op->in[i].is_ref)
            return true;
    return false;
}

bool leat_node_is_pure(const leat_node *n)
{
    static const char *const never[] = {"Placeholder", "NoOp", "ControlTrigger", NULL};
    if (n->op->def->flags & LEAT_OP_STATEFUL || leat_node_is_flow(n) || is_one_of(n, never))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (leat_dtype_is_ref(leat_out_dtype(n->in[i])))
            return false; /* what it reads can change */
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
    return leat_node_is(x.node, "Const") ? leat_node_tensor(x.node, "value") : NULL;
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
    for (int i = 0; i < of->n_controls; i++)
        leat_node_add_control(n, of->controls[i]);
}

void leat_replace_controls(const leat_uses *u, const leat_node *x, leat_node *y)
{
    for (int i = u->at[x->id]; i < u->at[x->id + 1]; i++) {
        leat_node *to = u->v[i].node;
        if (u->v[i].input >= 0)
            continue;
        int n = 0;
        for (int j = 0; j < to->n_controls; j++)
            if (to->controls[j] != x)
                to->controls[n++] = to->controls[j];
        to->n_controls = n;
        leat_node_add_control(to, y);
    }
}
