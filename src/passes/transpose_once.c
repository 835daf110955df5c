/* transpose_once.c -- several products of few rows whose right matrix is the same one, transposed,
 * use a transposed copy of it instead: each of them would transpose it again, which takes longer
 * than to multiply a few rows by it. So it is with the gradient that goes back through the steps of
 * an unrolled sequence, each of which has the weights of the others. Sums keep their order. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

enum { MOST_ROWS = 64, LEAST_PRODUCTS = 3 };

typedef struct finder {
    leat_compile *c;
    const bool *below_flow;
    int *products;      /* by the id of a right matrix: how many such products use it */
    leat_node **copies; /* its transposed copy, or NULL */
} finder;

static bool eligible(const finder *f, const leat_node *n)
{
    if (n->dead || leat_node_role(n) != LEAT_ROLE_PRODUCT || !leat_node_is_pure(n) ||
        f->below_flow[n->id] || n->in[1].index != 0 || !leat_node_has(n, "transpose_b") ||
        leat_node_bool(n, "transpose_a") || !leat_node_bool(n, "transpose_b") ||
        strcmp(n->device, n->in[1].node->device) != 0)
        return false;
    const leat_shape a = leat_out_shape(n->in[0]), b = leat_out_shape(n->in[1]);
    return a.rank == 2 && b.rank == 2 && a.dim[0] > 1 && a.dim[0] <= MOST_ROWS &&
           leat_shape_known(&b) && leat_shape_count(&b) > 0;
}

static leat_status add(leat_graph *g, const leat_node *like, const char *op, const char *name,
                       const leat_out *in, int n_in, const leat_attr *attrs, int n_attrs,
                       leat_node **out)
{
    const leat_node_spec spec = {
        .op = op,
        .name = leat_arena_printf(&g->arena, "%s/_transposed%s", like->name, name),
        .in = in,
        .n_in = n_in,
        .attrs = attrs,
        .n_attrs = n_attrs,
        .device = like->device,
        .at = like->at,
        .exact_name = true};
    return leat_graph_add(g, &spec, out);
}

/* Makes the transposed copy of the first output of b. */
static leat_status make_copy(finder *f, leat_node *b, leat_node **out)
{
    leat_graph *g = f->c->graph;
    leat_tensor *order;
    leat_node *perm;
    LEAT_TRY(leat_tensor_copy_of(LEAT_INT32, leat_shape(2), (const int32_t[]){1, 0}, &order));
    const leat_attr value[] = {{.name = "dtype", .kind = LEAT_ARG_TYPE, .i = LEAT_INT32},
                               {.name = "value", .kind = LEAT_ARG_TENSOR, .tensor = order}};
    leat_status s = add(g, b, "Const", "/perm", NULL, 0, value, 2, &perm);
    leat_tensor_unref(order);
    const leat_out in[] = {{b, 0}, {perm, 0}};
    return s ? s : add(g, b, "Transpose", "", in, 2, NULL, 0, out);
}

static leat_status use_copy(finder *f, leat_node *n)
{
    leat_node *b = n->in[1].node, **copy = &f->copies[b->id];
    if (!*copy)
        LEAT_TRY(make_copy(f, b, copy));
    n->in[1] = (leat_out){*copy, 0};
    leat_node_attr(n, "transpose_b")->i = false;
    return NULL;
}

leat_status leat_pass_transpose_once(leat_compile *c)
{
    leat_graph *g = c->graph;
    const int n = g->n_nodes;
    bool *below_flow = leat_pass_below_flow(g);
    finder f = {.c = c,
                .below_flow = below_flow,
                .products = leat_new_array(int, n + 1),
                .copies = leat_new_array(leat_node *, n + 1)};
    leat_status s = NULL;
    for (int i = 0; i < n; i++)
        if (eligible(&f, g->nodes[i]))
            f.products[g->nodes[i]->in[1].node->id]++;
    for (int i = 0; i < n && !s && !(s = leat_pass_stopped(c, i)); i++)
        if (eligible(&f, g->nodes[i]) && f.products[g->nodes[i]->in[1].node->id] >= LEAST_PRODUCTS)
            s = use_copy(&f, g->nodes[i]);
    free(below_flow);
    free(f.products);
    free(f.copies);
    return s;
}
