/* fuse_lstm.c -- the nodes of a step of a basic LSTM cell, as TensorFlow's client and Leat's cells
 * make them, become one _LSTMStep, those of its gradient one _LSTMStepGrad (ops/lstm_step.c):
 *
 *     i, j, f, o = Split(1, BiasAdd(MatMul(xh, w), b))
 *     c = c_prev * Sigmoid(f + forget_bias) + Sigmoid(i) * Tanh(j);  h = Tanh(c) * Sigmoid(o)
 *
 * All values that other nodes may use are outputs of the new node, but for the two products whose
 * sum is c, whose nodes stay if they are used elsewhere. The gates before their functions must not
 * be used elsewhere. Shapes must be known, so that nothing is broadcast.
 *
 * No cycle can arise. depth gives each node a number above those of the nodes that it depends on. A
 * step counts as deep as its Split, a gradient as the gradient of c: all nodes that use their
 * outputs are deeper, and the pass checks that all that they depend on are less deep.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

enum { I, J, F, O, GATES };                                          /* outputs of the Split */
enum { OUT_I, OUT_CI, OUT_F, OUT_O, OUT_C, OUT_CO, OUT_H, OUTPUTS }; /* of a step */

typedef struct finder {
    leat_compile *c;
    leat_uses uses;
    int *depth; /* by id */
    leat_replacement *replaced;
    bool any;
} finder;

static int *depths_of(const leat_graph *g)
{
    int n, *depth = leat_new_array(int, g->n_nodes + 1);
    leat_node **order = leat_pass_order(g, &n);
    for (int i = 0; i < n; i++) {
        const leat_node *x = order[i];
        int most = 0;
        for (int j = 0; j < x->n_in + x->n_controls; j++) {
            const leat_node *from = j < x->n_in ? x->in[j].node : x->controls[j - x->n_in];
            const int d = from ? depth[from->id] + 1 : 0; /* A back edge's node has depth 0 yet. */
            most = d > most ? d : most;
        }
        depth[x->id] = most;
    }
    free(order);
    return depth;
}

static bool same(leat_out a, leat_out b)
{
    return a.node == b.node && a.index == b.index;
}

/* Whether n can become part of a node on the device of `with`. */
static bool usable(const finder *f, const leat_node *n, const leat_node *with)
{
    return !n->dead && !f->replaced[n->id].is_gone && leat_node_is_pure(n) &&
           n->out_types[0] == LEAT_FLOAT && strcmp(n->device, with->device) == 0;
}

/* The same, and n waits for nothing but its inputs. */
static bool is_free(const finder *f, const leat_node *n, const leat_node *with)
{
    return usable(f, n, with) && !n->n_controls;
}

/* The same, and the node can go: it is not a target itself. */
static bool can_go(const finder *f, const leat_node *n, const leat_node *with)
{
    return is_free(f, n, with) && !n->wanted;
}

/* The only user of output `index` of n, if it uses the output once, has this role and can go; n's
 * control edges count for output -1. */
static leat_node *only_user(const finder *f, const leat_node *n, int index, leat_role role)
{
    leat_node *found = NULL;
    for (int i = f->uses.at[n->id]; i < f->uses.at[n->id + 1]; i++) {
        const leat_use *u = &f->uses.v[i];
        if (u->output != index)
            continue;
        if (found || leat_node_role(u->node) != role || !can_go(f, u->node, n))
            return NULL;
        found = u->node;
    }
    return found;
}

static bool has_control_users(const finder *f, const leat_node *n)
{
    for (int i = f->uses.at[n->id]; i < f->uses.at[n->id + 1]; i++)
        if (f->uses.v[i].input < 0)
            return true;
    return false;
}

/* The other operand of a node with two, one of which is x; {NULL} if none is. */
static leat_out other(const leat_node *n, leat_out x)
{
    if (n->n_in == 2 && same(n->in[0], x))
        return n->in[1];
    return n->n_in == 2 && same(n->in[1], x) ? n->in[0] : (leat_out){0};
}

static bool has_shape(leat_out x, const leat_shape *s)
{
    const leat_shape is = leat_out_shape(x);
    return leat_out_dtype(x) == LEAT_FLOAT && leat_shape_equal(&is, s);
}

/* Whether n has the role, and its result the shape; nothing is broadcast by its operands. */
static bool is_plain(const leat_node *n, leat_role role, const leat_shape *s)
{
    if (leat_node_role(n) != role)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (!has_shape(n->in[i], s))
            return false;
    return has_shape((leat_out){(leat_node *)n, 0}, s);
}

/* A user of x with this role, one operand of which is y. The first that there is. */
static leat_node *user_with(const finder *f, leat_out x, leat_role role, leat_out y)
{
    for (int i = f->uses.at[x.node->id]; i < f->uses.at[x.node->id + 1]; i++) {
        const leat_use *u = &f->uses.v[i];
        if (u->output == x.index && leat_node_role(u->node) == role && usable(f, u->node, x.node) &&
            same(other(u->node, x), y))
            return u->node;
    }
    return NULL;
}

/* Whether x is the last of two dimensions. */
static bool is_last_of_two(leat_out x)
{
    const leat_tensor *t = leat_pass_value(x);
    return t && t->count == 1 && (leat_tensor_at(t, 0) == 1 || leat_tensor_at(t, 0) == -1);
}

/* Makes n a node of this op in place, which keeps its control inputs. False if there is no kernel.
 */
static bool become(const finder *f, leat_node *n, const char *op, const leat_out *in, int n_in,
                   const leat_shape *shapes, int n_out, const leat_attr *attr)
{
    leat_arena *a = &n->graph->arena;
    const leat_target *d = leat_pass_device(f->c, n);
    const leat_attr attrs[] = {*attr, {.name = "T", .kind = LEAT_ARG_TYPE, .i = LEAT_FLOAT}};
    leat_node made = *n;
    made.op = leat_op_find(op);
    made.attrs = leat_arena_memdup(a, attrs, sizeof(attrs));
    made.n_attrs = sizeof(attrs) / sizeof(*attrs);
    made.in = leat_arena_memdup(a, in, sizeof(*in) * (size_t)n_in);
    made.n_in = n_in;
    made.out_types = leat_arena_array(a, leat_dtype, n_out);
    for (int i = 0; i < n_out; i++)
        made.out_types[i] = LEAT_FLOAT;
    made.out_shapes = leat_arena_memdup(a, shapes, sizeof(*shapes) * (size_t)n_out);
    made.out_handles = NULL;
    made.n_out = n_out;
    if (!d || !f->c->has_kernel(&made, d->parsed.type))
        return false;
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    *n = made;
    return true;
}

static void replace(finder *f, const leat_node *n, leat_node *by, int output)
{
    f->replaced[n->id] = (leat_replacement){.by = {by, output}, .is_gone = true};
}

/* ---- A step ---- */
typedef struct step {
    leat_node *product, *bias, *split, *forget; /* forget: adds forget_bias, or NULL */
    leat_node *value[OUTPUTS];                  /* the node of each output */
    leat_out c_prev;
    double forget_bias;
    leat_shape shape; /* of the state */
} step;

static bool find_product(const finder *f, leat_node *split, step *s)
{
    s->split = split;
    s->shape = split->out_shapes[0];
    if (split->n_out != GATES || !can_go(f, split, split) || has_control_users(f, split) ||
        s->shape.rank != 2 || !leat_shape_known(&s->shape) || !is_last_of_two(split->in[0]))
        return false;
    s->bias = split->in[1].node;
    if (leat_node_role(s->bias) != LEAT_ROLE_BIAS_ADD || !can_go(f, s->bias, split) ||
        has_control_users(f, s->bias) || only_user(f, s->bias, 0, LEAT_ROLE_SPLIT) != split ||
        strcmp(leat_node_string(s->bias, "data_format"), "NCHW") == 0)
        return false;
    s->product = s->bias->in[0].node;
    return leat_node_role(s->product) == LEAT_ROLE_PRODUCT && can_go(f, s->product, split) &&
           !has_control_users(f, s->product) &&
           only_user(f, s->product, 0, LEAT_ROLE_BIAS_ADD) == s->bias &&
           leat_out_shape(s->product->in[0]).rank == 2 &&
           leat_node_has(s->product, "transpose_a") && !leat_node_bool(s->product, "transpose_a") &&
           !leat_node_bool(s->product, "transpose_b");
}

static bool find_gates(const finder *f, step *s)
{
    static const int outputs[GATES] = {[I] = OUT_I, [J] = OUT_CI, [F] = OUT_F, [O] = OUT_O};
    const leat_node *from = s->split;
    int at = F;
    s->forget = only_user(f, from, F, LEAT_ROLE_ADD);
    if (s->forget) {
        const leat_tensor *t = leat_pass_value(other(s->forget, (leat_out){s->split, F}));
        if (!t || t->dtype != LEAT_FLOAT || t->shape.rank || has_control_users(f, s->forget))
            return false;
        s->forget_bias = leat_tensor_at(t, 0);
        from = s->forget;
        at = 0;
    }
    for (int g = 0; g < GATES; g++) {
        leat_node *n = only_user(f, g == F ? from : s->split, g == F ? at : g,
                                 g == J ? LEAT_ROLE_TANH : LEAT_ROLE_SIGMOID);
        if (!n)
            return false;
        s->value[outputs[g]] = n;
    }
    return true;
}

/* c_prev * f, among the operands of the sum c, whose other operand is i * ci. */
static bool is_state(const finder *f, step *s, leat_node *c, leat_out in)
{
    const leat_out kept = other(c, in), forget = {s->value[OUT_F], 0};
    if (!kept.node || !is_plain(c, LEAT_ROLE_ADD, &s->shape) || !can_go(f, c, s->split) ||
        !is_plain(kept.node, LEAT_ROLE_MUL, &s->shape) || !is_free(f, kept.node, s->split))
        return false;
    s->c_prev = other(kept.node, forget);
    s->value[OUT_C] = c;
    return s->c_prev.node && f->depth[s->c_prev.node->id] < f->depth[s->split->id];
}

static bool find_state(const finder *f, step *s)
{
    const leat_out i = {s->value[OUT_I], 0}, ci = {s->value[OUT_CI], 0};
    leat_node *in = user_with(f, i, LEAT_ROLE_MUL, ci);
    if (!in || in->n_controls)
        return false;
    for (int k = f->uses.at[in->id]; k < f->uses.at[in->id + 1]; k++)
        if (f->uses.v[k].input >= 0 && is_state(f, s, f->uses.v[k].node, (leat_out){in, 0}))
            return true;
    return false;
}

/* h = tanh(c) * o; c may be used by other Tanhs, too. */
static bool find_output(const finder *f, step *s)
{
    const leat_node *c = s->value[OUT_C];
    const leat_out o = {s->value[OUT_O], 0};
    for (int k = f->uses.at[c->id]; k < f->uses.at[c->id + 1]; k++) {
        leat_node *t = f->uses.v[k].node;
        if (f->uses.v[k].input < 0 || leat_node_role(t) != LEAT_ROLE_TANH ||
            !can_go(f, t, s->split))
            continue;
        leat_node *h = user_with(f, (leat_out){t, 0}, LEAT_ROLE_MUL, o);
        if (!h || !can_go(f, h, s->split))
            continue;
        s->value[OUT_CO] = t;
        s->value[OUT_H] = h;
        return true;
    }
    return false;
}

static void fuse_step(finder *f, leat_node *split)
{
    step s = {0};
    if (!find_product(f, split, &s) || !find_gates(f, &s) || !find_state(f, &s) ||
        !find_output(f, &s))
        return;
    const leat_out in[] = {s.product->in[0], s.product->in[1], s.bias->in[1], s.c_prev};
    const leat_attr bias = {.name = "forget_bias", .kind = LEAT_ARG_FLOAT, .f = s.forget_bias};
    leat_shape shapes[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++)
        shapes[i] = s.shape;
    if (!become(f, split, "_LSTMStep", in, 4, shapes, OUTPUTS, &bias))
        return;
    for (int i = 0; i < OUTPUTS; i++)
        replace(f, s.value[i], split, i);
    s.product->dead = s.bias->dead = true;
    if (s.forget)
        s.forget->dead = true;
    f->any = true;
}

/* ---- Its gradient ---- */
enum { GRAD_I, GRAD_CI, GRAD_F, GRAD_O, GRAD_CO, GRAD_C_PREV, GRAD_DH, GRAD_DC, GRAD_INPUTS };

enum { MOST_INNER = 16 };
typedef struct gradient {
    leat_node *join; /* of the gates' gradients */
    leat_out in[GRAD_INPUTS];
    int n_in;
    leat_out dc; /* the gradient of c */
    leat_shape shape;
    leat_node *inner[MOST_INNER]; /* the nodes that the new one does the work of */
    int n_inner;
} gradient;

/* Whether n can become part of the gradient; if so, it is one of its inner nodes. */
static bool take(const finder *f, gradient *x, leat_node *n)
{
    x->inner[x->n_inner++] = n;
    return usable(f, n, x->join);
}

static bool take_plain(const finder *f, gradient *x, leat_node *n, leat_role role)
{
    return is_plain(n, role, &x->shape) && take(f, x, n);
}

/* Gate g: the gradient of its function, y, and dy, which is a product. */
static bool gate_of(const finder *f, gradient *x, int g, leat_out *y, leat_node **dy)
{
    leat_node *n = x->join->in[g].node;
    *dy = n->n_in == 2 ? n->in[1].node : NULL;
    *y = n->n_in == 2 ? n->in[0] : (leat_out){0};
    return take_plain(f, x, n, g == J ? LEAT_ROLE_TANH_GRAD : LEAT_ROLE_SIGMOID_GRAD) &&
           take_plain(f, x, *dy, LEAT_ROLE_MUL);
}

/* Whether x is the part of c's gradient that comes from h: TanhGrad(co, dh * o). dy_o is co * dh.
 */
static bool is_from_output(const finder *f, gradient *x, leat_out part, const leat_node *dy_o)
{
    const int n_inner = x->n_inner;
    leat_node *n = part.node;
    if (take_plain(f, x, n, LEAT_ROLE_TANH_GRAD) &&
        take_plain(f, x, n->in[1].node, LEAT_ROLE_MUL)) {
        x->in[GRAD_CO] = n->in[0];
        x->in[GRAD_DH] = other(n->in[1].node, x->in[GRAD_O]);
        if (x->in[GRAD_DH].node && same(other(dy_o, x->in[GRAD_CO]), x->in[GRAD_DH]))
            return true;
    }
    x->n_inner = n_inner;
    return false;
}

/* Whether n adds two tensors of the shape. */
static bool is_sum(const leat_node *n, const gradient *x)
{
    return n->n_in == 2 && (leat_node_role(n) == LEAT_ROLE_ADD || n->op->def->pairwise) &&
           has_shape(n->in[0], &x->shape) && has_shape(n->in[1], &x->shape);
}

static bool find_state_gradient(const finder *f, gradient *x, const leat_node *dy_o)
{
    leat_node *sum = x->dc.node;
    x->n_in = GRAD_DC;
    if (is_from_output(f, x, x->dc, dy_o))
        return true;
    if (!is_sum(sum, x) || !take(f, x, sum))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!is_from_output(f, x, sum->in[i], dy_o))
            continue;
        x->in[GRAD_DC] = sum->in[1 - i];
        x->n_in = GRAD_INPUTS;
        return true;
    }
    return false;
}

/* Whether a node that waits for `before` may wait for it before it computes the gradient: it is one
 * of the inner nodes, or none that depends on them. */
static bool may_wait_for(const finder *f, const gradient *x, const leat_node *before)
{
    for (int i = 0; i < x->n_inner; i++)
        if (x->inner[i] == before)
            return true;
    return f->depth[before->id] < f->depth[x->dc.node->id];
}

static bool may_join(const finder *f, const gradient *x)
{
    for (int i = 0; i < x->n_in; i++)
        if (!has_shape(x->in[i], &x->shape) || !may_wait_for(f, x, x->in[i].node))
            return false;
    for (int i = 0; i < x->n_inner; i++)
        for (int k = 0; k < x->inner[i]->n_controls; k++)
            if (!may_wait_for(f, x, x->inner[i]->controls[k]))
                return false;
    return true;
}

/* The new node waits for what its inner nodes waited for. */
static void join_controls(const gradient *x)
{
    leat_node **was = x->join->controls;
    const int n_was = x->join->n_controls;
    x->join->controls = NULL;
    x->join->n_controls = x->join->cap_controls = 0;
    leat_control_adder a = leat_control_adder_of(x->join);
    for (int i = 0; i < x->n_inner; i++) {
        const bool root = x->inner[i] == x->join;
        const int n = root ? n_was : x->inner[i]->n_controls;
        for (int k = 0; k < n; k++) {
            leat_node *before = root ? was[k] : x->inner[i]->controls[k];
            bool inner = false;
            for (int j = 0; j < x->n_inner; j++)
                inner |= x->inner[j] == before;
            if (!inner)
                leat_control_adder_add(&a, before);
        }
    }
}

static bool find_gradient(const finder *f, leat_node *join, gradient *x)
{
    *x = (gradient){.join = join, .shape = leat_out_shape(join->in[0])};
    leat_node *dy[GATES];
    if (join->n_in != GATES + 1 || x->shape.rank != 2 || !leat_shape_known(&x->shape) ||
        !take(f, x, join) || !is_last_of_two(join->in[GATES]))
        return false;
    for (int g = 0; g < GATES; g++)
        if (!gate_of(f, x, g, &x->in[g], &dy[g]))
            return false;
    x->dc = other(dy[I], x->in[GRAD_CI]);
    if (!x->dc.node || !same(other(dy[J], x->in[GRAD_I]), x->dc))
        return false;
    x->in[GRAD_C_PREV] = other(dy[F], x->dc);
    return x->in[GRAD_C_PREV].node && find_state_gradient(f, x, dy[O]);
}

static void fuse_gradient(finder *f, leat_node *join)
{
    gradient x;
    if (!find_gradient(f, join, &x))
        return;
    leat_node *before = user_with(f, x.dc, LEAT_ROLE_MUL, x.in[GRAD_F]);
    if (before && (before->wanted || !take(f, &x, before)))
        return;
    if (!may_join(f, &x))
        return;
    const leat_attr count = {.name = "num_dc", .kind = LEAT_ARG_INT, .i = x.n_in - GRAD_DC};
    const leat_shape shapes[] = {join->out_shapes[0], x.shape};
    if (!become(f, join, "_LSTMStepGrad", x.in, x.n_in, shapes, 2, &count))
        return;
    join_controls(&x);
    if (before)
        replace(f, before, join, 1);
    f->any = true;
}

leat_status leat_pass_fuse_lstm(leat_compile *c)
{
    leat_graph *g = c->graph;
    const int n = g->n_nodes;
    finder f = {.c = c, .uses = leat_uses_of(g), .depth = depths_of(g)};
    f.replaced = leat_replacements_new(g);
    leat_status s = NULL;
    for (int i = 0; i < n && !(s = leat_pass_stopped(c, i)); i++) {
        leat_node *x = g->nodes[i];
        if (x->dead || f.replaced[i].is_gone)
            continue;
        if (leat_node_role(x) == LEAT_ROLE_SPLIT)
            fuse_step(&f, x);
        else if (leat_node_role(x) == LEAT_ROLE_CONCAT)
            fuse_gradient(&f, x);
    }
    leat_replacements_end(f.replaced, g);
    leat_uses_free(&f.uses);
    free(f.depth);
    return s || !f.any ? s : leat_pass_sweep(c);
}
