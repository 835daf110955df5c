/* fuse_xent.c -- the gradient of a softmax cross entropy is its second output, multiplied row by
 * row by the gradient of the loss: Mul(g, xent:1), g a column. If g does not depend on the values
 * of the cross entropy (usually it is one over the batch size), the product is computed while the
 * row is in the cache. If the batch size is not known, g is computed from the loss's shape; such
 * Shape and Size nodes then use the cross entropy's inputs instead. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

enum { MOST_VISITED = 4096 }; /* limit of the nodes that one search looks at */

typedef struct fuser {
    leat_compile *c;
    leat_uses uses;
    int *seen; /* by id: the last search that has seen the node */
    int search;
    const leat_node *stack[MOST_VISITED + 1];
    const leat_node *shapes[MOST_VISITED + 1]; /* nodes that use the shape of the losses */
    int n_shapes;
} fuser;

static const char *scaled_form(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_CROSS_ENTROPY ? n->op->def->fused : NULL;
}

/* Whether x is the losses, one for each row, perhaps reshaped to the same shape. */
static bool is_loss(leat_out x, const leat_node *xent)
{
    while (x.node != xent && leat_node_flag(x.node, LEAT_OP_RESHAPES | LEAT_OP_IDENTITY) &&
           leat_out_shape(x).rank == 1)
        x = x.node->in[0];
    return x.node == xent && x.index == 0;
}

static bool uses_shape(const leat_node *n, const leat_node *xent)
{
    const leat_role role = leat_node_role(n);
    return (role == LEAT_ROLE_SHAPE || role == LEAT_ROLE_SIZE) && n->n_in == 1 &&
           is_loss(n->in[0], xent) && leat_out_shape(n->in[0]).rank == 1;
}

/* Whether x may depend on n by more than the shape of the losses; if not, f->shapes has the nodes
 * that use that shape. */
static bool may_depend(fuser *f, const leat_node *x, const leat_node *n)
{
    int top = 0, visited = 1;
    f->search++;
    f->n_shapes = 0;
    f->stack[top++] = x;
    f->seen[x->id] = f->search;
    while (top) {
        const leat_node *at = f->stack[--top];
        bool shape = uses_shape(at, n);
        if (at == n)
            return true;
        if (shape)
            f->shapes[f->n_shapes++] = at;
        for (int i = shape ? at->n_in : 0; i < at->n_in + at->n_controls; i++) {
            const leat_node *from = i < at->n_in ? at->in[i].node : at->controls[i - at->n_in];
            if (!from || f->seen[from->id] == f->search)
                continue;
            if (++visited > MOST_VISITED)
                return true;
            f->seen[from->id] = f->search;
            f->stack[top++] = from;
        }
    }
    return false;
}

/* The product that is the only consumer of xent:1, or NULL. */
static leat_node *product_of(const leat_uses *u, const leat_node *xent)
{
    leat_node *found = NULL;
    for (int i = u->at[xent->id]; i < u->at[xent->id + 1]; i++) {
        const leat_use *use = &u->v[i];
        if (use->output != 1)
            continue;
        if (found || leat_node_role(use->node) != LEAT_ROLE_MUL)
            return NULL;
        found = use->node;
    }
    return found;
}

/* Whether x has, as far as is known, one element for each row that it is multiplied with, or one
 * element for all. */
static bool is_column(leat_out x, const leat_shape *rows)
{
    leat_shape s = leat_out_shape(x);
    return s.rank == 2 && s.dim[1] == 1 && rows->rank == 2 && s.dim[0] != 0 &&
           (s.dim[0] < 0 || rows->dim[0] < 0 || s.dim[0] == rows->dim[0] || s.dim[0] == 1);
}

/* Replaces a Shape or Size of the losses by one that uses the rows of logits and labels. */
static void use_inputs(leat_node *n, const leat_node *xent)
{
    leat_arena *a = &n->graph->arena;
    const leat_attr attrs[] = {
        {.name = "T", .kind = LEAT_ARG_TYPE, .i = xent->out_types[0]},
        {.name = "Tlabels",
         .kind = LEAT_ARG_TYPE,
         .i = leat_dtype_base(leat_out_dtype(xent->in[1]))},
        {.name = "out_type", .kind = LEAT_ARG_TYPE, .i = n->out_types[0]},
        {.name = "scalar", .kind = LEAT_ARG_BOOL, .i = leat_node_role(n) == LEAT_ROLE_SIZE},
    };
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    n->op = leat_op_find("_CrossEntropyRows");
    n->attrs = leat_arena_memdup(a, attrs, sizeof(attrs));
    n->n_attrs = sizeof(attrs) / sizeof(*attrs);
    n->in = leat_arena_memdup(a, xent->in, sizeof(*n->in) * 2);
    n->n_in = 2;
}

static void fuse(fuser *f, leat_node *xent, leat_replacement *replaced)
{
    leat_compile *c = f->c;
    const leat_uses *u = &f->uses;
    leat_node *mul = product_of(u, xent);
    const leat_target *d = leat_pass_device(c, xent);
    if (!mul || replaced[mul->id].is_gone || mul->n_controls || mul->wanted || !d ||
        strcmp(mul->device, xent->device) != 0 || !leat_node_is_pure(xent))
        return;
    int other = mul->in[0].node == xent && mul->in[0].index == 1 ? 1 : 0;
    leat_out g = mul->in[other];
    if (!is_column(g, &xent->out_shapes[1]) || may_depend(f, g.node, xent))
        return;
    leat_node made = *xent;
    made.op = leat_op_find(scaled_form(xent));
    made.n_in = 3;
    made.in = leat_arena_array(&c->graph->arena, leat_out, 3);
    memcpy(made.in, xent->in, sizeof(*made.in) * 2);
    made.in[2] = g;
    if (!c->has_kernel(&made, d->parsed.type))
        return;
    for (int i = 0; i < f->n_shapes; i++)
        use_inputs(c->graph->nodes[f->shapes[i]->id], xent);
    *xent = made;
    replaced[mul->id] = (leat_replacement){.by = {xent, 1}, .is_gone = true};
}

leat_status leat_pass_fuse_xent(leat_compile *c)
{
    leat_graph *g = c->graph;
    bool any = false;
    for (int i = 0; i < g->n_nodes; i++)
        any |= !g->nodes[i]->dead && scaled_form(g->nodes[i]);
    if (!any)
        return NULL;
    fuser *f = leat_new(fuser);
    f->c = c;
    f->uses = leat_uses_of(g);
    f->seen = leat_new_array(int, g->n_nodes + 1);
    leat_replacement *replaced = leat_replacements_new(g);
    leat_status s = NULL;
    for (int i = 0; i < g->n_nodes && !(s = leat_pass_stopped(c, i)); i++)
        if (!g->nodes[i]->dead && scaled_form(g->nodes[i]))
            fuse(f, g->nodes[i], replaced);
    leat_replacements_end(replaced, g);
    leat_uses_free(&f->uses);
    free(f->seen);
    free(f);
    return s;
}
