/* simplify.c -- removes nodes whose output is their input, bit for bit: Identity, x * 1, a
 * Transpose that is the inverse of the one before, a Reshape to the same shape.
 *
 * First such a node is replaced by an Identity with control inputs for its other inputs' control
 * inputs; then Identities and similar ops are removed. Those that read a reference stay: they are
 * where a variable is read.
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

/* Whether the output of a binary node has the shape of its input i. */
static bool keeps_shape(const leat_node *n, int i, const leat_tensor *other)
{
    leat_shape x = leat_out_shape(n->in[i]), y = n->out_shapes[0];
    return other->shape.rank == 0 || (leat_shape_known(&x) && leat_shape_equal(&x, &y));
}

/* The input x of x * 1, x / 1, x - 0, x + 0, or -1. For floats, -0 + 0 is 0, and so is -0 - -0: so
 * only -0 may be added, and only 0 subtracted. */
static int neutral(const leat_node *n)
{
    static const struct {
        bool known;
        double v;
        bool both; /* the constant may be on either side */
    } rows[] = {[LEAT_ROLE_MUL] = {true, 1, true},
                [LEAT_ROLE_DIV] = {true, 1, false},
                [LEAT_ROLE_SUB] = {true, 0, false},
                [LEAT_ROLE_ADD] = {true, -0.0, true}};
    const size_t r = leat_node_role(n);
    if (r >= sizeof(rows) / sizeof(*rows) || !rows[r].known)
        return -1;
    double v = rows[r].v == 0 && !is_float(n->out_types[0]) ? 0.0 : rows[r].v;
    for (int i = 1; i >= (rows[r].both ? 0 : 1); i--) {
        const leat_tensor *t = leat_pass_value(n->in[i]);
        if (t && all_are(t, v) && keeps_shape(n, 1 - i, t))
            return 1 - i;
    }
    return -1;
}

/* The shapes are the same, though at most one size may be unknown. */
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

/* Whether dtype b can represent every value of dtype a. */
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

/* Whether the permutation q after p is the identity. */
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

/* The tensor that n's output is equal to: one of its inputs, or the input of its input, *past.
 * {NULL} if there is none. */
static leat_out gives_back(const leat_node *n, leat_node **past)
{
    const leat_out none = {0};
    if (n->op->def->pairwise && n->n_in == 1)
        return n->in[0];
    int i = neutral(n);
    if (i >= 0)
        return n->in[i];
    if (leat_node_flag(n, LEAT_OP_RESHAPES)) {
        for (int k = 1; k < n->n_in; k++)
            if (!leat_pass_value(n->in[k]))
                return none;
        leat_shape x = leat_out_shape(n->in[0]);
        return same_shape(&x, &n->out_shapes[0]) ? n->in[0] : none;
    }
    if (leat_node_is(n, "Cast") && n->out_types[0] == leat_out_dtype(n->in[0]))
        return n->in[0];
    leat_node *before = n->in[0].node;
    if (before->op != n->op || !leat_node_is_pure(before))
        return none;
    *past = before;
    if (leat_node_flag(n, LEAT_OP_INVOLUTION) &&
        (n->out_types[0] == LEAT_BOOL || leat_types_has(LEAT_TYPES_INTEGER, n->out_types[0])))
        return before->in[0];
    if (leat_node_is(n, "Transpose") &&
        undoes(leat_pass_value(before->in[1]), leat_pass_value(n->in[1])))
        return before->in[0];
    if (leat_node_is(n, "Cast") && n->out_types[0] == leat_out_dtype(before->in[0]) &&
        within(n->out_types[0], before->out_types[0]))
        return before->in[0];
    return none;
}

/* The node gets the control inputs of its constant inputs. */
static void take_controls(leat_node *n, const leat_node *of)
{
    leat_control_adder a = leat_control_adder_of(n);
    for (int i = 0; i < of->n_in; i++)
        if (leat_is_const(of->in[i].node))
            for (int j = 0; j < of->in[i].node->n_controls; j++)
                leat_control_adder_add(&a, of->in[i].node->controls[j]);
}

static void make_identity(leat_node *n, leat_out x, const leat_node *past)
{
    take_controls(n, n);
    if (past) {
        take_controls(n, past);
        leat_take_controls(n, past);
    }
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

/* ---- Removing Identities ---- */

static bool used_by_flow(const leat_uses *u, const leat_node *n)
{
    for (int i = u->at[n->id]; i < u->at[n->id + 1]; i++)
        if (leat_node_is_flow(u->v[i].node))
            return true;
    return false;
}

/* Whether consumers of the Identity n can use its input instead, and wait for its control
 * inputs. */
static bool can_go(const leat_uses *u, const leat_node *n)
{
    const leat_node *from = n->in[0].node;
    int uses = u->at[n->id + 1] - u->at[n->id], waiting = 0;
    if (n->wanted || leat_dtype_is_ref(leat_out_dtype(n->in[0])) ||
        strcmp(n->device, from->device) != 0)
        return false;
    for (int i = u->at[n->id]; i < u->at[n->id + 1]; i++)
        waiting += u->v[i].input < 0;
    /* A control edge from a Switch does not depend on a branch, unlike one from an Identity of its
     * output. */
    if (waiting && leat_node_is_flow(from))
        return false;
    if (!n->n_controls)
        return true;
    return !used_by_flow(u, n) && !leat_used_elsewhere(u, n) &&
           (int64_t)n->n_controls * uses <= (int64_t)n->n_controls + uses;
}

leat_status leat_pass_simplify(leat_compile *c)
{
    leat_graph *g = c->graph;
    leat_uses u = leat_uses_of(g);
    leat_replacement *replaced = leat_replacements_new(g);
    int count;
    leat_node **order = leat_pass_order(g, &count);
    leat_status s = NULL;
    for (int i = 0; i < count && !(s = leat_pass_stopped(c, i)); i++) {
        leat_node *n = order[i];
        leat_node *past = NULL;
        leat_replace_inputs(replaced, n);
        leat_out x = leat_node_is_pure(n) && n->n_in ? gives_back(n, &past) : (leat_out){0};
        if (x.node)
            make_identity(n, x, past);
        if (leat_node_flag(n, LEAT_OP_IDENTITY) && can_go(&u, n))
            replaced[n->id] =
                (leat_replacement){.by = n->in[0], .waits = n->n_controls > 0, .is_gone = true};
    }
    leat_replacements_end(replaced, g);
    free(order);
    leat_uses_free(&u);
    return s;
}
