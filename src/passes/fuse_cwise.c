/* fuse_cwise.c -- trees of element-wise ops become one _FusedCwise, which passes over the memory
 * once; also a single op, if fuse_apply.c can fuse it further. Operands that are broadcast must be
 * single elements; values between the ops must have no other consumer. Ranks must be known,
 * dimensions need not (a batch of any size): the kernel checks them and computes one op after
 * another if they need more broadcasting. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

enum { MOST = 4096, DEPTH = 8 }; /* limit of steps; limit of operands on the stack */

/* The tree that is being built: its nodes in the order of execution, and its arguments. */
typedef struct tree {
    const leat_compile *c;
    leat_uses uses;
    bool *inside; /* by id: the node is already in a tree */
    leat_node **nodes;
    leat_out *args;
    int n, n_args, cap, cap_args;
    int n_steps;  /* of the nodes, and of those that are going to join */
    int *arg_at;  /* by id: 1 + the argument that is the node's first output, or 0 */
    int *step_of; /* by id: 1 + the step that computes a node of the tree, or 0 */
    const leat_node *root;
} tree;

/* Whether s may be equal to the whole shape; a 1 where the whole shape is not known might be
 * broadcast. */
static bool alike(const leat_shape *s, const leat_shape *whole)
{
    for (int i = 0; i < whole->rank && s->rank == whole->rank; i++)
        if (s->dim[i] != whole->dim[i] && s->dim[i] >= 0)
            return false;
    return s->rank == whole->rank;
}

static bool fits(const leat_shape *s, const leat_shape *whole)
{
    return alike(s, whole) ||
           (leat_shape_known(s) && leat_shape_count(s) == 1 && s->rank <= whole->rank);
}

static bool eligible(const leat_node *n)
{
    const bool sum = n->op->def->pairwise != NULL;
    if ((!sum && !leat_node_flag(n, LEAT_OP_CWISE)) || n->dead || !leat_node_is_pure(n) ||
        (n->out_types[0] != LEAT_FLOAT && n->out_types[0] != LEAT_DOUBLE))
        return false;
    const leat_shape *whole = &n->out_shapes[0];
    const bool known = leat_shape_known(whole);
    if (whole->rank < 0 || (known && leat_shape_count(whole) == 0) ||
        /* The shapes of a sum's inputs must be known to be the same, because the fused op does not
         * check that. */
        (sum && (!known || n->n_in < 2)))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        leat_shape s = leat_out_shape(n->in[i]);
        if (!fits(&s, whole) || leat_dtype_is_ref(leat_out_dtype(n->in[i])) ||
            (sum && !leat_shape_equal(&s, whole)))
            return false;
    }
    return true;
}

static bool joins(const tree *t, const leat_node *n, const leat_node *user)
{
    return !t->inside[n->id] && !n->wanted && eligible(n) &&
           t->uses.at[n->id + 1] - t->uses.at[n->id] == 1 &&
           t->uses.v[t->uses.at[n->id]].input >= 0 && strcmp(n->device, user->device) == 0 &&
           alike(&n->out_shapes[0], &t->root->out_shapes[0]);
}

static void add_node(tree *t, leat_node *n)
{
    leat_grow(t->nodes, t->n, t->cap);
    t->nodes[t->n++] = n;
    t->inside[n->id] = true;
}

/* A sum of n inputs is n - 1 steps. */
static int steps_of(const leat_node *n)
{
    return n->n_in > 2 ? n->n_in - 1 : 1;
}

/* Nodes are collected from the root down, second operands first; the reverse is the order of
 * execution in which the operands of each node are on top of the stack. waiting counts operands
 * that are on the stack while a deeper one is computed. */
static void collect(tree *t, leat_node *root)
{
    struct pending {
        leat_node *node;
        int waiting;
    } *stack = leat_new_array(struct pending, MOST + 2);
    int n = 0;
    stack[n++] = (struct pending){root, 0};
    t->n_steps = steps_of(root);
    while (n) {
        struct pending p = stack[--n];
        add_node(t, p.node);
        int waiting = p.waiting;
        /* The last one pushed is taken first: the second operand. The first operand is executed
         * before it, and stays on the stack meanwhile. */
        leat_node *join[2] = {NULL, NULL};
        for (int i = 0; i < p.node->n_in && i < 2; i++) {
            leat_node *from = p.node->in[i].node;
            if (t->n_steps + steps_of(from) < MOST && joins(t, from, p.node))
                join[i] = from;
        }
        if (join[0] && join[1] && waiting + 1 >= DEPTH)
            join[1] = NULL;
        for (int i = 0; i < 2; i++)
            t->n_steps += join[i] ? steps_of(join[i]) : 0;
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
    int *first = &t->arg_at[x.node->id];
    if (x.index == 0 && *first)
        return *first - 1;
    for (int i = 0; x.index > 0 && i < t->n_args; i++)
        if (t->args[i].node == x.node && t->args[i].index == x.index)
            return i;
    leat_grow(t->args, t->n_args, t->cap_args);
    t->args[t->n_args] = x;
    if (x.index == 0)
        *first = t->n_args + 1;
    return t->n_args++;
}

static void fill_operands(tree *t, int64_t *operands)
{
    /* First the arguments, because operands are numbered after them. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0, at = 0; i < t->n; i++) {
            const leat_node *n = t->nodes[i];
            for (int k = 0; k < steps_of(n); k++, at++)
                for (int o = 0; o < 2; o++) {
                    int in = k + o, from = in < n->n_in ? t->step_of[n->in[in].node->id] : 0;
                    int64_t *to = &operands[2 * at + o];
                    if (k > 0 && o == 0)
                        *to = t->n_args + at - 1; /* the sum so far */
                    else if (in >= n->n_in)
                        *to = -1;
                    else
                        *to = from ? t->n_args + from - 1 : arg_of(t, n->in[in]);
                }
        }
}

static void make_fused(tree *t)
{
    leat_node *last = t->nodes[t->n - 1];
    leat_arena *a = &last->graph->arena;
    const int n_steps = t->n_steps;
    int64_t *operands = leat_arena_array(a, int64_t, 2 * n_steps);
    const char **list = leat_arena_array(a, const char *, 2 * n_steps), **names = list + n_steps;
    int *sizes = leat_arena_array(a, int, 2 * n_steps), *name_sizes = sizes + n_steps;
    for (int i = 0, at = 0; i < t->n; i++) {
        for (int k = 0; k < steps_of(t->nodes[i]); k++, at++) {
            const leat_op_def *op = t->nodes[i]->op->def;
            list[at] = op->pairwise ? op->pairwise : op->name;
            sizes[at] = (int)strlen(list[at]);
            names[at] = t->nodes[i]->name;
            name_sizes[at] = (int)strlen(names[at]);
        }
        t->step_of[t->nodes[i]->id] = at;
    }
    fill_operands(t, operands);
    const leat_attr attrs[] = {
        {.name = "T", .kind = LEAT_ARG_TYPE, .i = last->out_types[0]},
        {.name = "num_args", .kind = LEAT_ARG_INT, .i = t->n_args},
        {.name = "ops", .kind = LEAT_ARG_STRINGS, .n = n_steps, .strings = list, .sizes = sizes},
        {.name = "operands", .kind = LEAT_ARG_INTS, .n = 2 * n_steps, .ints = operands},
        {.name = "names",
         .kind = LEAT_ARG_STRINGS,
         .n = n_steps,
         .strings = names,
         .sizes = name_sizes},
    };
    for (int i = 0; i < t->n; i++)
        t->step_of[t->nodes[i]->id] = 0;
    for (int i = 0; i < t->n_args; i++)
        t->arg_at[t->args[i].node->id] = 0;
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
    leat_control_adder controls = leat_control_adder_of(last);
    for (int i = 0; i + 1 < t->n; i++)
        for (int k = 0; k < t->nodes[i]->n_controls; k++)
            leat_control_adder_add(&controls, t->nodes[i]->controls[k]);
}

leat_status leat_pass_fuse_cwise(leat_compile *c)
{
    int n;
    leat_graph *g = c->graph;
    leat_node **order = leat_pass_order(g, &n);
    tree t = {.c = c, .uses = leat_uses_of(g), .inside = leat_new_array(bool, g->n_nodes + 1)};
    t.arg_at = leat_new_array(int, g->n_nodes + 1);
    t.step_of = leat_new_array(int, g->n_nodes + 1);
    leat_status s = NULL;
    for (int i = n - 1; i >= 0 && !(s = leat_pass_stopped(c, i)); i--) {
        leat_node *root = order[i];
        if (t.inside[root->id] || !eligible(root))
            continue;
        t.n = t.n_args = 0;
        t.root = root;
        collect(&t, root);
        if (t.n > 1 || leat_pass_is_gradient(&t.uses, root))
            make_fused(&t);
    }
    free(t.step_of);
    free(t.arg_at);
    free(order);
    free(t.inside);
    free(t.nodes);
    free(t.args);
    leat_uses_free(&t.uses);
    return s;
}
