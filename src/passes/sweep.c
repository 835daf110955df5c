/* sweep.c -- removes nodes that are not needed any more: values that are not used, then nodes from
 * which no path leads to a fetch, to a target, or to a node with side effects.
 *
 * A pure node with outgoing control edges only becomes a NoOp with control edges from the node's
 * inputs, and small NoOps are replaced by their control inputs. So the gradients that tuples of
 * gradients hold together, but nobody asked for, are not computed.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "passes/pass.h"

typedef struct sweeper {
    leat_uses uses;
    int *data_uses; /* by id */
    bool *below_flow;
} sweeper;

static void make_no_op(sweeper *s, leat_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        leat_node *from = n->in[i].node;
        s->data_uses[from->id]--;
        if (!leat_is_const(from) || from->n_controls)
            leat_node_add_control(n, from);
    }
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    n->op = leat_op_find("NoOp");
    n->n_in = n->n_out = n->n_attrs = 0;
}

/* Control edges from n are replaced by edges from n's own control inputs, if that does not make
 * more edges. Across devices it would: n is one edge that crosses. */
static void bypass(const leat_uses *u, leat_node *n)
{
    int users = u->at[n->id + 1] - u->at[n->id];
    if (n->wanted || n->n_controls * users > n->n_controls + users || leat_used_elsewhere(u, n))
        return;
    for (int i = u->at[n->id]; i < u->at[n->id + 1]; i++) {
        leat_node *to = u->v[i].node;
        int kept = 0;
        for (int j = 0; j < to->n_controls; j++)
            if (to->controls[j] != n)
                to->controls[kept++] = to->controls[j];
        to->n_controls = kept;
        for (int j = 0; j < n->n_controls; j++)
            leat_node_add_control(to, n->controls[j]);
    }
    n->dead = true;
}

static void drop_values(leat_graph *g)
{
    sweeper s = {.data_uses = leat_new_array(int, g->n_nodes + 1),
                 .below_flow = leat_pass_below_flow(g)};
    int count;
    leat_node **order = leat_pass_order(g, &count);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < order[i]->n_in; j++)
            s.data_uses[order[i]->in[j].node->id]++;
    for (int i = count - 1; i >= 0; i--) {
        leat_node *n = order[i];
        if (!s.data_uses[n->id] && !n->wanted && !s.below_flow[n->id] && leat_node_is_pure(n) &&
            !leat_node_flag(n, LEAT_OP_CHECKS))
            make_no_op(&s, n);
    }
    /* The nodes that wait for a NoOp do not change while the NoOps before it are replaced. */
    s.uses = leat_uses_of(g);
    for (int i = 0; i < count; i++)
        if (leat_node_role(order[i]) == LEAT_ROLE_NO_OP && !s.below_flow[order[i]->id])
            bypass(&s.uses, order[i]);
    leat_uses_free(&s.uses);
    free(order);
    free(s.data_uses);
    free(s.below_flow);
}

static void drop_unreached(leat_graph *g)
{
    bool *needed = leat_new_array(bool, g->n_nodes + 1);
    leat_node **stack = leat_new_array(leat_node *, g->n_nodes + 1);
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        leat_node *x = g->nodes[i];
        if (!x->dead && (x->wanted || leat_node_has_effects(x))) {
            needed[i] = true;
            stack[n++] = x;
        }
    }
    while (n) {
        const leat_node *x = stack[--n];
        for (int i = 0; i < x->n_in + x->n_controls; i++) {
            leat_node *from = i < x->n_in ? x->in[i].node : x->controls[i - x->n_in];
            if (needed[from->id])
                continue;
            needed[from->id] = true;
            stack[n++] = from;
        }
    }
    for (int i = 0; i < g->n_nodes; i++)
        g->nodes[i]->dead |= !needed[i];
    free(needed);
    free(stack);
}

leat_status leat_pass_sweep(leat_compile *c)
{
    drop_values(c->graph);
    drop_unreached(c->graph);
    return NULL;
}
