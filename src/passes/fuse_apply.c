/* fuse_apply.c -- a dense training op, AssignAdd or AssignSub is fused with the tree of
 * element-wise ops that computes its gradient (a sum of towers' gradients, a scale, a weight decay,
 * a moving average's difference), so that the gradient is never written to memory. Runs after
 * fuse_cwise.c, which has made one _FusedCwise of the tree. */
#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"

bool leat_pass_is_gradient(const leat_uses *uses, const leat_node *n)
{
    const leat_use *use = &uses->v[uses->at[n->id]];
    return uses->at[n->id + 1] - uses->at[n->id] == 1 && use->input > 0 &&
           use->input == use->node->op->gradient && strcmp(n->device, use->node->device) == 0;
}

static int count_variables(const leat_node *n)
{
    int count = 0;
    while (count < n->op->n_in &&
           (n->op->in[count].is_ref || n->op->in[count].type == LEAT_RESOURCE))
        count++;
    return count;
}

/* The fused op cannot have scalars of other dtypes, such as a count of steps. */
static bool is_of_one_type(const leat_node *n, int vars, int grad)
{
    for (int i = vars; i < n->n_in; i++)
        if (leat_out_dtype(n->in[i]) != leat_out_dtype(n->in[grad]))
            return false;
    return true;
}

static void fuse(const leat_compile *c, const leat_uses *uses, leat_node *n, int grad)
{
    leat_node *tree = n->in[grad].node;
    const leat_target *d = leat_pass_device(c, n);
    if (!leat_node_is(tree, "_FusedCwise") || tree->wanted || !d ||
        !leat_pass_is_gradient(uses, tree))
        return;
    const int vars = count_variables(n), others = n->n_in - 1;
    if (!is_of_one_type(n, vars, grad))
        return;
    leat_arena *a = &n->graph->arena;
    const char *op = n->op->def->name;
    const leat_attr attrs[] = {
        {.name = "op", .kind = LEAT_ARG_STRING, .s = op, .n = (int)strlen(op)},
        {.name = "flag",
         .kind = LEAT_ARG_BOOL,
         .i = leat_node_bool(n, "use_nesterov") || leat_node_bool(n, "update_slots")},
        *leat_node_attr(tree, "T"),
        {.name = "num_vars", .kind = LEAT_ARG_INT, .i = vars},
        {.name = "num_scalars", .kind = LEAT_ARG_INT, .i = others - vars},
        *leat_node_attr(tree, "num_args"),
        *leat_node_attr(tree, "ops"),
        *leat_node_attr(tree, "operands"),
        *leat_node_attr(tree, "names"),
    };
    leat_node made = *n;
    made.op = leat_op_find(n->op->in[0].is_ref ? "_FusedApply" : "_FusedResourceApply");
    made.n_attrs = sizeof(attrs) / sizeof(*attrs);
    made.attrs = leat_arena_memdup(a, attrs, sizeof(attrs));
    made.n_in = others + tree->n_in;
    made.in = leat_arena_array(a, leat_out, made.n_in);
    for (int i = 0, at = 0; i < n->n_in; i++)
        if (i != grad)
            made.in[at++] = n->in[i];
    memcpy(made.in + others, tree->in, sizeof(*made.in) * (size_t)tree->n_in);
    if (!c->has_kernel(&made, d->parsed.type))
        return;
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    tree->dead = true;
    *n = made;
    leat_take_controls(n, tree);
}

leat_status leat_pass_fuse_apply(leat_compile *c)
{
    int n;
    leat_node **order = leat_pass_order(c->graph, &n);
    leat_uses uses = leat_uses_of(c->graph);
    for (int i = 0; i < n; i++) {
        const int grad = order[i]->op->gradient;
        if (grad > 0)
            fuse(c, &uses, order[i], grad);
    }
    leat_uses_free(&uses);
    free(order);
    return NULL;
}
