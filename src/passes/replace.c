/* replace.c -- consumers of removed nodes use other nodes instead: see leat_replacement in pass.h.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

leat_replacement *leat_replacements_new(const leat_graph *g)
{
    return leat_new_array(leat_replacement, g->n_nodes + 1);
}

static bool waits_for_removed(const leat_replacement *r, const leat_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].node && r[n->in[i].node->id].is_gone && r[n->in[i].node->id].waits)
            return true;
    for (int i = 0; i < n->n_controls; i++)
        if (r[n->controls[i]->id].is_gone)
            return true;
    return false;
}

static void add_controls_of(leat_control_adder *a, const leat_node *removed)
{
    for (int i = 0; i < removed->n_controls; i++)
        leat_control_adder_add(a, removed->controls[i]);
}

/* Control inputs that stay keep their order and come first. */
static void replace_controls(const leat_replacement *r, leat_node *n)
{
    const int n_was = n->n_controls;
    leat_node **was = leat_new_array(leat_node *, n_was + 1);
    if (n_was)
        memcpy(was, n->controls, sizeof(*was) * (size_t)n_was);
    n->n_controls = 0;
    leat_control_adder a = leat_control_adder_of(n);
    for (int i = 0; i < n_was; i++)
        if (!r[was[i]->id].is_gone)
            leat_control_adder_add(&a, was[i]);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].node && r[n->in[i].node->id].is_gone && r[n->in[i].node->id].waits)
            add_controls_of(&a, n->in[i].node);
    for (int i = 0; i < n_was; i++) {
        const leat_replacement *x = &r[was[i]->id];
        if (x->is_gone && x->waits)
            add_controls_of(&a, was[i]);
        if (x->is_gone && x->by.node)
            leat_control_adder_add(&a, x->by.node);
    }
    free(was);
}

void leat_replace_inputs(const leat_replacement *r, leat_node *n)
{
    if (waits_for_removed(r, n))
        replace_controls(r, n);
    for (int i = 0; i < n->n_in; i++) {
        const leat_replacement *x = n->in[i].node ? &r[n->in[i].node->id] : NULL;
        if (x && x->is_gone)
            n->in[i] = (leat_out){x->by.node, x->by.index + n->in[i].index};
    }
}

void leat_replacements_end(leat_replacement *r, leat_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        if (!g->nodes[i]->dead && !r[i].is_gone)
            leat_replace_inputs(r, g->nodes[i]);
        g->nodes[i]->dead |= r[i].is_gone;
    }
    free(r);
}
