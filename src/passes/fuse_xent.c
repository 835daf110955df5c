/* fuse_xent.c -- the gradient of a softmax cross entropy is its second output times the gradient
 * that comes from above, row by row: Mul(g, xent:1), g a column. Where g does not depend on the
 * cross entropy itself (it seldom does: most often it is one over the batch), the product is made
 * while the row is at hand. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

static const char *scaled_form(const leat_node *n)
{
    if (leat_node_is(n, "SoftmaxCrossEntropyWithLogits"))
        return "_ScaledSoftmaxCrossEntropyWithLogits";
    return leat_node_is(n, "SparseSoftmaxCrossEntropyWithLogits")
               ? "_ScaledSparseSoftmaxCrossEntropyWithLogits"
               : NULL;
}

/* n is above x, or x itself. */
static bool depends(const leat_graph *g, const leat_node *x, const leat_node *n)
{
    bool *seen = leat_new_array(bool, g->n_nodes + 1), found = false;
    const leat_node **stack = leat_new_array(const leat_node *, g->n_nodes + 1);
    int top = 0;
    stack[top++] = x;
    seen[x->id] = true;
    while (top && !found) {
        const leat_node *at = stack[--top];
        found = at == n;
        for (int i = 0; i < at->n_in + at->n_controls; i++) {
            const leat_node *from = i < at->n_in ? at->in[i].node : at->controls[i - at->n_in];
            if (from && !seen[from->id]) {
                seen[from->id] = true;
                stack[top++] = from;
            }
        }
    }
    free(seen);
    free(stack);
    return found;
}

/* The product that is the only user of xent:1, or NULL. */
static leat_node *product_of(const leat_uses *u, const leat_node *xent)
{
    leat_node *found = NULL;
    for (int i = u->at[xent->id]; i < u->at[xent->id + 1]; i++) {
        const leat_use *use = &u->v[i];
        if (use->output != 1)
            continue;
        if (found || !leat_node_is(use->node, "Mul"))
            return NULL;
        found = use->node;
    }
    return found;
}

/* x has one element for each row of what it is multiplied with, or one for all. */
static bool is_column(leat_out x, const leat_shape *rows)
{
    leat_shape s = leat_out_shape(x);
    return s.rank == 2 && s.dim[1] == 1 && rows->rank == 2 && s.dim[0] > 0 &&
           (s.dim[0] == rows->dim[0] || s.dim[0] == 1);
}

static void fuse(leat_compile *c, const leat_uses *u, leat_node *xent)
{
    leat_node *mul = product_of(u, xent);
    const leat_target *d = leat_pass_device(c, xent);
    if (!mul || mul->dead || mul->n_controls || mul->wanted || !d ||
        strcmp(mul->device, xent->device) != 0 || !leat_node_is_pure(xent))
        return;
    int other = mul->in[0].node == xent && mul->in[0].index == 1 ? 1 : 0;
    leat_out g = mul->in[other];
    if (!is_column(g, &xent->out_shapes[1]) || depends(c->graph, g.node, xent))
        return;
    leat_node made = *xent;
    made.op = leat_op_find(scaled_form(xent));
    made.n_in = 3;
    made.in = leat_arena_array(&c->graph->arena, leat_out, 3);
    memcpy(made.in, xent->in, sizeof(*made.in) * 2);
    made.in[2] = g;
    if (!c->has_kernel(&made, d->parsed.type))
        return;
    *xent = made;
    leat_replace_uses(u, (leat_out){mul, 0}, (leat_out){xent, 1});
    leat_replace_controls(u, mul, xent);
    mul->dead = true;
}

leat_status leat_pass_fuse_xent(leat_compile *c)
{
    for (int i = 0; i < c->graph->n_nodes; i++) {
        leat_node *n = c->graph->nodes[i];
        if (n->dead || !scaled_form(n))
            continue;
        leat_uses u = leat_uses_of(c->graph);
        fuse(c, &u, n);
        leat_uses_free(&u);
    }
    return NULL;
}
