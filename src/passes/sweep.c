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
    leat_control_adder a = leat_control_adder_of(n);
    for (int i = 0; i < n->n_in; i++) {
        leat_node *from = n->in[i].node;
        s->data_uses[from->id]--;
        if (!leat_is_const(from) || from->n_controls)
            leat_control_adder_add(&a, from);
    }
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    n->op = leat_op_find("NoOp");
    n->n_in = n->n_out = n->n_attrs = 0;
}

/* Whether control edges from n can be replaced by edges from n's own control inputs: if that does
 * not make more edges. Across devices it would: n is one edge that crosses. */
static bool may_bypass(const leat_uses *u, const leat_node *n)
{
    const int64_t users = u->at[n->id + 1] - u->at[n->id];
    return !n->wanted && n->n_controls * users <= n->n_controls + users &&
           !leat_used_elsewhere(u, n);
}

/* Replaces NoOps by their control inputs. */
static leat_status bypass_no_ops(const leat_compile *c, sweeper *s, leat_node **order, int count)
{
    leat_graph *g = c->graph;
    leat_replacement *replaced = leat_replacements_new(g);
    leat_status stopped = NULL;
    s->uses = leat_uses_of(g);
    for (int i = 0; i < count && !(stopped = leat_pass_stopped(c, i)); i++) {
        const leat_node *n = order[i];
        leat_replace_inputs(replaced, order[i]);
        if (leat_node_role(n) == LEAT_ROLE_NO_OP && !s->below_flow[n->id] &&
            may_bypass(&s->uses, n))
            replaced[n->id] = (leat_replacement){.waits = true, .is_gone = true};
    }
    leat_replacements_end(replaced, g);
    leat_uses_free(&s->uses);
    return stopped;
}

static leat_status drop_values(const leat_compile *c)
{
    leat_graph *g = c->graph;
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
    leat_status stopped = bypass_no_ops(c, &s, order, count);
    free(order);
    free(s.data_uses);
    free(s.below_flow);
    return stopped;
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
    LEAT_TRY(drop_values(c));
    drop_unreached(c->graph);
    return NULL;
}
