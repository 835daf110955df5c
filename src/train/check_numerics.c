/* check_numerics.c -- nodes that check all floats on the way to some tensors, as TensorFlow's
 * add_check_numerics_ops does for a whole graph: the first op that gives a NaN or an infinity is
 * named. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "train/train_int.h"

/* Marks the nodes on which the marked ones depend. What is inside of a loop or branch stays
 * unmarked: it does not run once in a step. */
static void mark_inputs(const leat_graph *g, bool *needed)
{
    for (int i = g->n_nodes - 1; i >= 0; i--) {
        const leat_node *n = g->nodes[i];
        const leat_role role = n->op->def->role;
        const bool flow = role >= LEAT_ROLE_SWITCH && role <= LEAT_ROLE_LOOP_COND;
        for (int k = 0; needed[i] && !flow && k < n->n_in; k++)
            needed[n->in[k].node->id] = true;
    }
}

/* References are checked where they are read, constants where they are used. */
static bool wants_check(const leat_node *n, int output)
{
    return !n->ctx && n->op->def->role != LEAT_ROLE_CONST &&
           !leat_dtype_is_ref(n->out_types[output]) &&
           leat_types_has(LEAT_TYPES_FLOATING, n->out_types[output]);
}

/* A check of x on its device, which runs after `last`, if there is one. */
static leat_out check(leat_out x, leat_out last)
{
    leat_graph *g = leat_graph_of(x);
    leat_strbuf message = {0};
    leat_out y = {0};
    leat_loc outer = g->at_override;
    leat_strbuf_printf(&message, "%s:%d", x.node->name, x.index);
    g->at_override = x.node->at;
    leat_colocate_only_enter(g, x);
    y = leat_check_numerics(x, leat_strbuf_text(&message),
                            last.node ? leat_after(last) : (leat_arg){0});
    leat_colocate_leave(g);
    g->at_override = outer;
    leat_strbuf_release(&message);
    return y;
}

leat_out leat_add_check_numerics_at(leat_loc at, const leat_out *xs, int n)
{
    leat_out last = {0}, all = {0};
    leat_graph *g = NULL;
    for (int i = 0; i < n && !g; i++)
        g = xs[i].node ? leat_graph_of(xs[i]) : NULL;
    if (!g)
        return last;
    const int nodes = g->n_nodes;
    bool *needed = leat_new_array(bool, nodes + 1);
    for (int i = 0; i < n; i++)
        if (xs[i].node && leat_out_ok(xs[i]))
            needed[xs[i].node->id] = true;
    mark_inputs(g, needed);
    leat_loc outer = leat_at_enter(g, at);
    for (int i = 0; i < nodes; i++)
        for (int k = 0; needed[i] && k < g->nodes[i]->n_out; k++)
            if (wants_check(g->nodes[i], k))
                last = check((leat_out){g->nodes[i], k}, last);
    all = last.node ? leat_no_op(g, leat_after(last)) : leat_no_op(g);
    leat_at_leave(g, outer);
    free(needed);
    return all;
}
