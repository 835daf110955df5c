/* function_prune.c -- side effects of branches that nobody needs.
 *
 * TensorFlow lowers conditions and loops in the whole of a graph and prunes it for each run after
 * that. So of a branch outside of functions only that runs which leads to a result that is wanted,
 * or to somebody who waits for the condition as such.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "graph/function.h"

static void pass_through(leat_graph *g, const bool *through)
{
    for (int i = 0; i < g->n_nodes; i++) {
        leat_node *n = g->nodes[i];
        if (leat_node_is(n, "_Retval")) /* whoever fetches the node itself wants all of it */
            continue;
        for (int k = 0; k < n->n_in; k++)
            while (n->in[k].node && through[n->in[k].node->id])
                n->in[k] = n->in[k].node->in[n->in[k].index];
    }
}

static void need(leat_node *n, bool *needed, leat_node **stack, int *count)
{
    if (!n || needed[n->id])
        return;
    needed[n->id] = true;
    stack[(*count)++] = n;
}

static void find_needed(const leat_graph *g, bool *needed)
{
    leat_node **stack = leat_new_array(leat_node *, g->n_nodes + 1);
    int count = 0;
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->wanted || leat_node_is(g->nodes[i], "_Retval"))
            need(g->nodes[i], needed, stack, &count);
    while (count) {
        const leat_node *n = stack[--count];
        for (int i = 0; i < n->n_in; i++)
            need(n->in[i].node, needed, stack, &count);
        for (int i = 0; i < n->n_controls; i++)
            need(n->controls[i], needed, stack, &count);
    }
    free(stack);
}

void leat_functions_prune(leat_graph *g, const bool *through)
{
    bool *needed = leat_new_array(bool, g->n_nodes + 1);
    int kept = 0;
    pass_through(g, through);
    find_needed(g, needed);
    for (int i = 0; i < g->n_nodes; i++) {
        leat_node *n = g->nodes[i];
        if (needed[i]) {
            n->id = kept;
            g->nodes[kept++] = n;
            continue;
        }
        for (int k = 0; k < n->n_attrs; k++)
            leat_attr_release(&n->attrs[k]);
        leat_map_remove(&g->by_name, n->name);
    }
    g->n_nodes = kept;
    free(needed);
}
