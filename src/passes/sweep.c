/* sweep.c -- removes what nobody needs any more: nodes from which no way leads to a fetch, to a
 * target, or to a node whose running can be noticed. */
#include <stdlib.h>

#include "core/alloc.h"
#include "passes/pass.h"

leat_status leat_pass_sweep(leat_compile *c)
{
    leat_graph *g = c->graph;
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
    return NULL;
}
