/* fuse_products.c -- a sum of products whose left matrices are transposed becomes one product,
 * _SumOfProducts: that of all left matrices, one below the other, and all right ones. The gradient
 * of a weight that each step of an unrolled sequence uses is such a sum; by one product it is
 * written to memory once, not once a step. Terms are added in the order of the sum's inputs, but
 * the product rounds at other places than the sum does.
 *
 * Nodes that waited for one of the products wait for its inputs instead: gradients that are made
 * together wait for each other, and the sum may need some that come later. */
#include <string.h>

#include "passes/pass.h"

/* Whether the node's value is used once. */
static bool is_used_once(const leat_uses *uses, const leat_node *n)
{
    int count = 0;
    for (int i = uses->at[n->id]; i < uses->at[n->id + 1]; i++)
        count += uses->v[i].input >= 0;
    return count == 1;
}

/* Whether x is such a product of matrices, of the sum's shape, which is not used elsewhere. */
static bool is_term(const leat_uses *uses, leat_out x, const leat_node *sum)
{
    const leat_node *n = x.node;
    const leat_shape s = leat_out_shape(x);
    return !n->dead && leat_node_role(n) == LEAT_ROLE_PRODUCT && leat_node_is_pure(n) &&
           !n->wanted && is_used_once(uses, n) && n->out_types[0] == LEAT_FLOAT &&
           leat_shape_equal(&s, &sum->out_shapes[0]) && leat_out_shape(n->in[0]).rank == 2 &&
           leat_out_shape(n->in[1]).rank == 2 && leat_node_has(n, "transpose_a") &&
           leat_node_bool(n, "transpose_a") && !leat_node_bool(n, "transpose_b") &&
           strcmp(n->device, sum->device) == 0;
}

/* Makes the product a NoOp that waits for the product's inputs. */
static void make_no_op(leat_node *n)
{
    leat_control_adder a = leat_control_adder_of(n);
    for (int i = 0; i < n->n_in; i++)
        leat_control_adder_add(&a, n->in[i].node);
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    n->op = leat_op_find("NoOp");
    n->n_in = n->n_out = n->n_attrs = 0;
}

static bool fuse(const leat_compile *c, const leat_uses *uses, leat_node *n)
{
    const leat_target *d = leat_pass_device(c, n);
    const leat_shape *s = &n->out_shapes[0];
    if (n->n_in < 2 || !leat_node_is_pure(n) || s->rank != 2 || !leat_shape_known(s) || !d)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (!is_term(uses, n->in[i], n))
            return false;
    leat_arena *a = &n->graph->arena;
    const leat_attr attrs[] = {{.name = "N", .kind = LEAT_ARG_INT, .i = n->n_in},
                               {.name = "T", .kind = LEAT_ARG_TYPE, .i = LEAT_FLOAT}};
    leat_node made = *n;
    made.op = leat_op_find("_SumOfProducts");
    made.attrs = leat_arena_memdup(a, attrs, sizeof(attrs));
    made.n_attrs = sizeof(attrs) / sizeof(*attrs);
    made.n_in = 2 * n->n_in;
    made.in = leat_arena_array(a, leat_out, made.n_in);
    for (int i = 0; i < n->n_in; i++) {
        made.in[i] = n->in[i].node->in[0];
        made.in[n->n_in + i] = n->in[i].node->in[1];
    }
    if (!c->has_kernel(&made, d->parsed.type))
        return false;
    leat_node **terms = leat_arena_array(a, leat_node *, n->n_in);
    const int n_terms = n->n_in;
    for (int i = 0; i < n_terms; i++)
        terms[i] = n->in[i].node;
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    *n = made;
    leat_control_adder controls = leat_control_adder_of(n);
    for (int i = 0; i < n_terms; i++)
        for (int k = 0; k < terms[i]->n_controls; k++)
            leat_control_adder_add(&controls, terms[i]->controls[k]);
    for (int i = 0; i < n_terms; i++)
        make_no_op(terms[i]);
    return true;
}

leat_status leat_pass_fuse_products(leat_compile *c)
{
    leat_graph *g = c->graph;
    leat_uses uses = leat_uses_of(g);
    leat_status s = NULL;
    bool any = false;
    for (int i = 0; i < g->n_nodes && !(s = leat_pass_stopped(c, i)); i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op->def->pairwise)
            any |= fuse(c, &uses, g->nodes[i]);
    leat_uses_free(&uses);
    return s || !any ? s : leat_pass_sweep(c);
}
