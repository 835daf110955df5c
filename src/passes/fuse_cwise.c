/* fuse_cwise.c -- trees of element-wise ops become one _FusedCwise, which passes over the memory
 * once. Only where all shapes are known and nothing broadcasts but single elements, so that no step
 * can fail; values between the ops must have no other user. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

enum { MOST = 4096, DEPTH = 8 }; /* steps; operands that wait on the stack */

static const char *const ops[] = {
    "Abs",
    "Neg",
    "Square",
    "Sqrt",
    "Rsqrt",
    "Exp",
    "Log",
    "Tanh",
    "Sigmoid",
    "Reciprocal",
    "Inv",
    "Sign",
    "Floor",
    "Ceil",
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "RealDiv",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "TanhGrad",
    "SigmoidGrad",
    "SqrtGrad",
    "RsqrtGrad",
    "ReciprocalGrad",
    "InvGrad",
};

/* A tree in the making: its nodes in the order of execution, and what comes from outside. */
typedef struct tree {
    const leat_compile *c;
    leat_uses uses;
    bool *inside; /* by id: is in a tree already */
    leat_node **nodes;
    leat_out *args;
    int n, n_args, cap, cap_args;
    const leat_node *root;
} tree;

static bool fits(const leat_shape *s, const leat_shape *whole)
{
    return leat_shape_known(s) &&
           (leat_shape_equal(s, whole) || (leat_shape_count(s) == 1 && s->rank <= whole->rank));
}

static bool eligible(const leat_node *n)
{
    bool listed = false;
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops) && !listed; i++)
        listed = leat_node_is(n, ops[i]);
    if (!listed || n->dead || !leat_node_is_pure(n) || !leat_shape_known(&n->out_shapes[0]) ||
        (n->out_types[0] != LEAT_FLOAT && n->out_types[0] != LEAT_DOUBLE) ||
        leat_shape_count(&n->out_shapes[0]) == 0)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        leat_shape s = leat_out_shape(n->in[i]);
        if (!fits(&s, &n->out_shapes[0]) || leat_dtype_is_ref(leat_out_dtype(n->in[i])))
            return false;
    }
    return true;
}

static bool joins(const tree *t, const leat_node *n, const leat_node *user)
{
    return !t->inside[n->id] && !n->wanted && eligible(n) && n->n_controls == 0 &&
           t->uses.at[n->id + 1] - t->uses.at[n->id] == 1 &&
           t->uses.v[t->uses.at[n->id]].input >= 0 && strcmp(n->device, user->device) == 0 &&
           leat_shape_equal(&n->out_shapes[0], &t->root->out_shapes[0]);
}

static void add_node(tree *t, leat_node *n)
{
    leat_grow(t->nodes, t->n, t->cap);
    t->nodes[t->n++] = n;
    t->inside[n->id] = true;
}

/* Nodes are collected from the root down, second operands first; reversed, that is the order of
 * execution in which the operands of each are on top of the stack. waiting counts operands that
 * are there while a deeper one is computed. */
static void collect(tree *t, leat_node *root)
{
    struct pending {
        leat_node *node;
        int waiting;
    } *stack = leat_new_array(struct pending, MOST + 2);
    int n = 0;
    stack[n++] = (struct pending){root, 0};
    while (n) {
        struct pending p = stack[--n];
        add_node(t, p.node);
        int waiting = p.waiting;
        /* The last pushed is taken first: the second operand. The first one is executed before
         * it, and waits meanwhile. */
        leat_node *join[2] = {NULL, NULL};
        for (int i = 0; i < p.node->n_in && i < 2; i++) {
            leat_node *from = p.node->in[i].node;
            if (t->n + n < MOST && joins(t, from, p.node))
                join[i] = from;
        }
        if (join[0] && join[1] && waiting + 1 >= DEPTH)
            join[1] = NULL;
        if (join[0])
            stack[n++] = (struct pending){join[0], waiting};
        if (join[1])
            stack[n++] = (struct pending){join[1], waiting + (join[0] != NULL)};
    }
    free(stack);
    for (int i = 0, j = t->n - 1; i < j; i++, j--) {
        leat_node *x = t->nodes[i];
        t->nodes[i] = t->nodes[j];
        t->nodes[j] = x;
    }
}

static int arg_of(tree *t, leat_out x)
{
    for (int i = 0; i < t->n_args; i++)
        if (t->args[i].node == x.node && t->args[i].index == x.index)
            return i;
    leat_grow(t->args, t->n_args, t->cap_args);
    t->args[t->n_args] = x;
    return t->n_args++;
}

/* step_of: by id, 1 + the step that computes a node of the tree, else 0. */
static void fill_operands(tree *t, const int *step_of, int64_t *operands)
{
    for (int pass = 0; pass < 2; pass++) /* first the arguments, whose number the rest needs */
        for (int i = 0; i < t->n; i++) {
            const leat_node *n = t->nodes[i];
            for (int o = 0; o < 2; o++) {
                int from = o < n->n_in ? step_of[n->in[o].node->id] : -1;
                bool step = from > 0;
                if (o >= n->n_in)
                    operands[2 * i + o] = -1;
                else if (!step)
                    operands[2 * i + o] = arg_of(t, n->in[o]);
                else
                    operands[2 * i + o] = t->n_args + from - 1;
            }
        }
}

static void make_fused(tree *t, int *step_of)
{
    leat_node *last = t->nodes[t->n - 1];
    leat_arena *a = &last->graph->arena;
    int64_t *operands = leat_arena_array(a, int64_t, 2 * t->n);
    const char **names = leat_arena_array(a, const char *, t->n);
    int *sizes = leat_arena_array(a, int, t->n);
    for (int i = 0; i < t->n; i++) {
        step_of[t->nodes[i]->id] = i + 1;
        names[i] = t->nodes[i]->op->def->name;
        sizes[i] = (int)strlen(names[i]);
    }
    fill_operands(t, step_of, operands);
    const leat_attr attrs[] = {
        {.name = "T", .kind = LEAT_ARG_TYPE, .i = last->out_types[0]},
        {.name = "num_args", .kind = LEAT_ARG_INT, .i = t->n_args},
        {.name = "ops", .kind = LEAT_ARG_STRINGS, .n = t->n, .strings = names, .sizes = sizes},
        {.name = "operands", .kind = LEAT_ARG_INTS, .n = 2 * t->n, .ints = operands},
    };
    for (int i = 0; i < t->n; i++)
        step_of[t->nodes[i]->id] = 0;
    leat_node made = *last;
    made.op = leat_op_find("_FusedCwise");
    made.attrs = leat_arena_memdup(a, attrs, sizeof(attrs));
    made.n_attrs = sizeof(attrs) / sizeof(*attrs);
    made.in = leat_arena_memdup(a, t->args, sizeof(*t->args) * (size_t)t->n_args);
    made.n_in = t->n_args;
    const leat_target *d = leat_pass_device(t->c, last);
    if (!d || !t->c->has_kernel(&made, d->parsed.type))
        return;
    for (int i = 0; i + 1 < t->n; i++)
        t->nodes[i]->dead = true;
    for (int i = 0; i < last->n_attrs; i++)
        leat_attr_release(&last->attrs[i]);
    *last = made;
}

leat_status leat_pass_fuse_cwise(leat_compile *c)
{
    int n;
    leat_graph *g = c->graph;
    leat_node **order = leat_pass_order(g, &n);
    tree t = {.c = c, .uses = leat_uses_of(g), .inside = leat_new_array(bool, g->n_nodes + 1)};
    int *step_of = leat_new_array(int, g->n_nodes + 1);
    for (int i = n - 1; i >= 0; i--) {
        leat_node *root = order[i];
        if (t.inside[root->id] || !eligible(root) || root->n_controls)
            continue;
        t.n = t.n_args = 0;
        t.root = root;
        collect(&t, root);
        if (t.n > 1)
            make_fused(&t, step_of);
    }
    free(step_of);
    free(order);
    free(t.inside);
    free(t.nodes);
    free(t.args);
    leat_uses_free(&t.uses);
    return NULL;
}
