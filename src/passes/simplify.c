/* simplify.c -- nodes that give back what they got, bit for bit, are left out: Identity, x * 1,
 * a Transpose that undoes the one before it, a Reshape to the shape that is there already.
 *
 * First such a node is made an Identity that waits for what its other inputs waited for; then
 * Identities go. Those that read a reference stay: they are where a variable is read.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

/* ---- Nodes that are Identities ---- */

static bool all_are(const leat_tensor *t, double v)
{
    switch (t->dtype) {
    case LEAT_FLOAT:
    case LEAT_DOUBLE:
    case LEAT_INT8:
    case LEAT_INT16:
    case LEAT_INT32:
    case LEAT_INT64:
    case LEAT_UINT8:
    case LEAT_UINT16:
    case LEAT_HALF:
    case LEAT_BFLOAT16:
        break;
    default:
        return false;
    }
    if (t->count < 1 || t->count > 4096)
        return false;
    for (int64_t i = 0; i < t->count; i++) {
        double x = leat_tensor_at(t, i);
        if (x != v || (v == 0 && __builtin_signbit(x) != __builtin_signbit(v)))
            return false;
    }
    return true;
}

static bool is_float(leat_dtype t)
{
    return t == LEAT_FLOAT || t == LEAT_DOUBLE || t == LEAT_HALF || t == LEAT_BFLOAT16;
}

/* A binary node has the shape of its input i, whatever that is. */
static bool keeps_shape(const leat_node *n, int i, const leat_tensor *other)
{
    leat_shape x = leat_out_shape(n->in[i]), y = n->out_shapes[0];
    return other->shape.rank == 0 || (leat_shape_known(&x) && leat_shape_equal(&x, &y));
}

/* The input that x * 1, x / 1, x - 0, x + 0 gives back, or -1. Of floats, -0 + 0 is 0, and
 * -0 - -0 too; so what is added must be -0, and what is taken away 0. */
static int neutral(const leat_node *n)
{
    static const struct {
        const char *op;
        double v;
        bool both; /* either side */
    } rows[] = {{"Mul", 1, true},  {"RealDiv", 1, false}, {"Div", 1, false},
                {"Sub", 0, false}, {"Add", -0.0, true},   {"AddV2", -0.0, true}};
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        if (!leat_node_is(n, rows[r].op))
            continue;
        double v = rows[r].v == 0 && !is_float(n->out_types[0]) ? 0.0 : rows[r].v;
        for (int i = 1; i >= (rows[r].both ? 0 : 1); i--) {
            const leat_tensor *t = leat_pass_value(n->in[i]);
            if (t && all_are(t, v) && keeps_shape(n, 1 - i, t))
                return 1 - i;
        }
    }
    return -1;
}

/* The shapes are the same, though one size may not be known. */
static bool same_shape(const leat_shape *a, const leat_shape *b)
{
    int open = 0;
    if (a->rank < 0 || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i] || a->dim[i] == 0)
            return false;
        open += a->dim[i] < 0;
    }
    return open <= 1;
}

static int bits_of(leat_dtype t)
{
    return 8 * (int)leat_dtype_size(t);
}

/* Every value of a is one of b. */
static bool within(leat_dtype a, leat_dtype b)
{
    bool ia = leat_types_has(LEAT_TYPES_INTEGER, a), ib = leat_types_has(LEAT_TYPES_INTEGER, b);
    bool ua = leat_types_has(LEAT_TYPES_UNSIGNED, a), ub = leat_types_has(LEAT_TYPES_UNSIGNED, b);
    if (a == b)
        return true;
    if (ia && ib)
        return ub ? ua && bits_of(b) >= bits_of(a) : bits_of(b) >= bits_of(a) + ua;
    if (ia && (b == LEAT_FLOAT || b == LEAT_DOUBLE))
        return bits_of(a) <= (b == LEAT_FLOAT ? 24 : 53);
    return (b == LEAT_FLOAT && (a == LEAT_HALF || a == LEAT_BFLOAT16)) ||
           (b == LEAT_DOUBLE && is_float(a));
}

/* q after p leaves everything where it was. */
static bool undoes(const leat_tensor *p, const leat_tensor *q)
{
    if (!p || !q || p->count != q->count || p->count > LEAT_MAX_RANK)
        return false;
    for (int64_t i = 0; i < q->count; i++) {
        int64_t at = (int64_t)leat_tensor_at(q, i);
        at += at < 0 ? p->count : 0;
        if (at < 0 || at >= p->count)
            return false;
        int64_t from = (int64_t)leat_tensor_at(p, at);
        if (from + (from < 0 ? p->count : 0) != i)
            return false;
    }
    return true;
}

/* What n gives back: one of its inputs, or the input of its input, *past. {NULL} if it does
 * something. */
static leat_out gives_back(const leat_node *n, leat_node **past)
{
    const leat_out none = {0};
    if (leat_node_is(n, "StopGradient") || leat_node_is(n, "PreventGradient") ||
        leat_node_is(n, "PlaceholderWithDefault") || leat_node_is(n, "Snapshot") ||
        (leat_node_is(n, "AddN") && n->n_in == 1))
        return n->in[0];
    int i = neutral(n);
    if (i >= 0)
        return n->in[i];
    if (leat_node_is(n, "Reshape") && leat_pass_value(n->in[1])) {
        leat_shape x = leat_out_shape(n->in[0]);
        return same_shape(&x, &n->out_shapes[0]) ? n->in[0] : none;
    }
    if (leat_node_is(n, "Cast") && n->out_types[0] == leat_out_dtype(n->in[0]))
        return n->in[0];
    leat_node *before = n->in[0].node;
    if (before->op != n->op || !leat_node_is_pure(before))
        return none;
    *past = before;
    if (leat_node_is(n, "LogicalNot") ||
        (leat_node_is(n, "Neg") && !is_float(n->out_types[0]))) /* Neg of 0.0 is 0.0 */
        return before->in[0];
    if (leat_node_is(n, "Transpose") &&
        undoes(leat_pass_value(before->in[1]), leat_pass_value(n->in[1])))
        return before->in[0];
    if (leat_node_is(n, "Cast") && n->out_types[0] == leat_out_dtype(before->in[0]) &&
        within(n->out_types[0], before->out_types[0]))
        return before->in[0];
    return none;
}

/* The node waits for what the constants that it had as inputs waited for. */
static void take_controls(leat_node *n, const leat_node *of)
{
    for (int i = 0; i < of->n_in; i++)
        if (leat_node_is(of->in[i].node, "Const"))
            for (int j = 0; j < of->in[i].node->n_controls; j++)
                leat_node_add_control(n, of->in[i].node->controls[j]);
}

static void make_identity(leat_node *n, leat_out x, const leat_node *past)
{
    take_controls(n, n);
    if (past)
        take_controls(n, past);
    for (int i = 0; past && i < past->n_controls; i++)
        leat_node_add_control(n, past->controls[i]);
    leat_arena *a = &n->graph->arena;
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    n->op = leat_op_find("Identity");
    n->attrs = leat_arena_array(a, leat_attr, 1);
    n->attrs[0] =
        (leat_attr){.name = n->op->attrs[0].name, .kind = LEAT_ARG_TYPE, .i = n->out_types[0]};
    n->n_attrs = 1;
    n->n_in = 1;
    n->in[0] = x;
}

/* ---- Identities go ---- */

static bool used_by_flow(const leat_uses *u, const leat_node *n)
{
    for (int i = u->at[n->id]; i < u->at[n->id + 1]; i++)
        if (leat_node_is_flow(u->v[i].node))
            return true;
    return false;
}

/* Whoever used the Identity n can use its input and wait for its controls. */
static bool can_go(const leat_uses *u, const leat_node *n)
{
    const leat_node *from = n->in[0].node;
    int uses = u->at[n->id + 1] - u->at[n->id], waiting = 0;
    if (n->wanted || leat_dtype_is_ref(leat_out_dtype(n->in[0])) ||
        strcmp(n->device, from->device) != 0)
        return false;
    for (int i = u->at[n->id]; i < u->at[n->id + 1]; i++)
        waiting += u->v[i].input < 0;
    /* Who waits for a Switch does not wait for one of its branches. */
    if (waiting && leat_node_is_flow(from))
        return false;
    if (!n->n_controls)
        return true;
    return !used_by_flow(u, n) && !leat_used_elsewhere(u, n) &&
           n->n_controls * uses <= n->n_controls + uses;
}

static void remove_identity(const leat_uses *u, leat_node *n)
{
    for (int i = u->at[n->id]; i < u->at[n->id + 1]; i++)
        for (int j = 0; j < n->n_controls; j++)
            leat_node_add_control(u->v[i].node, n->controls[j]);
    leat_replace_uses(u, (leat_out){n, 0}, n->in[0]);
    leat_replace_controls(u, n, n->in[0].node);
    n->dead = true;
}

leat_status leat_pass_simplify(leat_compile *c)
{
    leat_uses u = leat_uses_of(c->graph);
    int count;
    leat_node **order = leat_pass_order(c->graph, &count);
    for (int i = 0; i < count; i++) {
        leat_node *n = order[i];
        leat_node *past = NULL;
        leat_out x = leat_node_is_pure(n) && n->n_in ? gives_back(n, &past) : (leat_out){0};
        if (x.node)
            make_identity(n, x, past);
        if (leat_node_is(n, "Identity") && can_go(&u, n))
            remove_identity(&u, n);
    }
    free(order);
    leat_uses_free(&u);
    return NULL;
}
