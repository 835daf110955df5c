/* infer.c -- shape inference: the functions that shape functions call. The values of constant
 * inputs are known, and those of inputs that are computed from shapes as far as those are known
 * (const_shape.c). */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "graph/graph_int.h"
#include "graph/infer_int.h"

const leat_node *leat_infer_node(leat_infer *c)
{
    return c->node;
}

int leat_infer_inputs(leat_infer *c)
{
    return c->node->n_in;
}

int leat_infer_outputs(leat_infer *c)
{
    return c->node->n_out;
}

leat_shape leat_infer_in(leat_infer *c, int i)
{
    return i < c->node->n_in ? leat_out_shape(c->node->in[i]) : leat_shape_unknown();
}

/* The value of a vector that is computed from shapes, if all of it is known. */
static const leat_tensor *computed_value(leat_infer *c, leat_out x)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    leat_shape shape = leat_out_shape(x), s;
    if ((t != LEAT_INT32 && t != LEAT_INT64) || shape.rank != 1 || c->n_values == LEAT_INFER_VALUES)
        return NULL;
    leat_status bad = leat_const_shape(x, c->depth, &s);
    leat_status_free(bad);
    if (bad || !leat_shape_known(&s))
        return NULL;
    leat_tensor *v;
    bad = leat_tensor_new(t, leat_shape(s.rank), &v);
    leat_status_free(bad);
    if (bad)
        return NULL;
    for (int i = 0; i < s.rank; i++) {
        if (t == LEAT_INT64)
            ((int64_t *)v->data)[i] = s.dim[i];
        else
            ((int32_t *)v->data)[i] = (int32_t)s.dim[i];
    }
    c->values[c->n_values++] = v;
    return v;
}

const leat_tensor *leat_infer_value(leat_infer *c, int i)
{
    if (i >= c->node->n_in || !c->node->in[i].node)
        return NULL;
    const leat_tensor *t = leat_const_value(c->node->in[i]);
    return t || c->depth < LEAT_INFER_DEPTH ? t : computed_value(c, c->node->in[i]);
}

leat_status leat_infer_value_shape(leat_infer *c, int i, leat_shape *out)
{
    if (i >= c->node->n_in || !c->node->in[i].node) {
        *out = leat_shape_unknown();
        return NULL;
    }
    return leat_const_shape(c->node->in[i], c->depth, out);
}

leat_status leat_infer_known(leat_infer *c, int i, leat_shape *out)
{
    if (i >= c->node->n_in || !c->node->in[i].node) {
        *out = leat_shape_unknown();
        return NULL;
    }
    return leat_const_known(c->node->in[i], c->depth, out);
}

void leat_infer_out(leat_infer *c, int i, leat_shape s)
{
    if (i < c->node->n_out)
        c->node->out_shapes[i] = s;
}

bool leat_infer_in_handle(leat_infer *c, int i, leat_dtype *t, leat_shape *s)
{
    leat_out x = c->node->in[i];
    leat_handle_info *h = x.node && x.node->out_handles ? x.node->out_handles[x.index] : NULL;
    *t = h ? h->dtype : LEAT_INVALID;
    *s = h ? h->shape : leat_shape_unknown();
    return h != NULL;
}

void leat_infer_out_handle(leat_infer *c, int i, leat_dtype t, leat_shape s)
{
    leat_node *n = c->node;
    leat_arena *a = &n->graph->arena;
    if (!n->out_handles)
        n->out_handles = leat_arena_array(a, leat_handle_info *, n->n_out);
    if (!n->out_handles[i])
        n->out_handles[i] = leat_arena_new(a, leat_handle_info);
    *n->out_handles[i] = (leat_handle_info){t, s};
}

leat_status leat_infer_rank(leat_infer *c, int i, int rank, leat_shape *out)
{
    leat_shape s = leat_infer_in(c, i);
    LEAT_REQUIRE(s.rank < 0 || s.rank == rank, INVALID_ARGUMENT,
                 "Shape must be rank %d but is rank %d", rank, s.rank);
    *out = s.rank < 0 ? leat_shape_unknown_dims(rank) : s;
    return NULL;
}

leat_status leat_infer_rank_at_least(leat_infer *c, int i, int rank, leat_shape *out)
{
    leat_shape s = leat_infer_in(c, i);
    LEAT_REQUIRE(s.rank < 0 || s.rank >= rank, INVALID_ARGUMENT,
                 "Shape must be at least rank %d but is rank %d", rank, s.rank);
    *out = s;
    return NULL;
}

leat_status leat_dim_merge(int64_t a, int64_t b, int64_t *out)
{
    LEAT_REQUIRE(a < 0 || b < 0 || a == b, INVALID_ARGUMENT,
                 "Dimensions must be equal, but are %lld and %lld", (long long)a, (long long)b);
    *out = a < 0 ? b : a;
    return NULL;
}

leat_status leat_shape_merge(const leat_shape *a, const leat_shape *b, leat_shape *out)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = a->rank < 0 ? *b : *a;
        return NULL;
    }
    LEAT_REQUIRE(a->rank == b->rank, INVALID_ARGUMENT,
                 "Shapes must be equal rank, but are %d and %d", a->rank, b->rank);
    leat_shape s = *a;
    for (int i = 0; i < a->rank; i++) {
        LEAT_REQUIRE(a->dim[i] < 0 || b->dim[i] < 0 || a->dim[i] == b->dim[i], INVALID_ARGUMENT,
                     "Dimension %d in both shapes must be equal, but are %lld and %lld. Shapes are "
                     "%s and %s.",
                     i, (long long)a->dim[i], (long long)b->dim[i], leat_shape_show(a).s,
                     leat_shape_show(b).s);
        if (s.dim[i] < 0)
            s.dim[i] = b->dim[i];
    }
    *out = s;
    return NULL;
}

leat_status leat_shape_broadcast(const leat_shape *a, const leat_shape *b, leat_shape *out)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = leat_shape_unknown();
        return NULL;
    }
    leat_shape s = leat_shape_unknown_dims(a->rank > b->rank ? a->rank : b->rank);
    for (int i = 0; i < s.rank; i++) {
        int ia = i - (s.rank - a->rank), ib = i - (s.rank - b->rank);
        int64_t x = ia < 0 ? 1 : a->dim[ia], y = ib < 0 ? 1 : b->dim[ib];
        if (x < 0 || y < 0)
            s.dim[i] = x > 1 ? x : y > 1 ? y : x == 1 ? y : y == 1 ? x : -1;
        else if (x == 1)
            s.dim[i] = y;
        else if (y == 1 || x == y)
            s.dim[i] = x;
        else
            return leat_error(INVALID_ARGUMENT, "Dimensions must be equal, but are %lld and %lld",
                              (long long)x, (long long)y);
    }
    *out = s;
    return NULL;
}

/* ---- Ready-made shape functions ---- */

leat_status leat_shape_unchanged(leat_infer *c)
{
    leat_infer_out(c, 0, leat_infer_in(c, 0));
    return NULL;
}

leat_status leat_shape_scalar(leat_infer *c)
{
    for (int i = 0; i < c->node->n_out; i++)
        leat_infer_out(c, i, leat_shape());
    return NULL;
}

leat_status leat_shape_any(leat_infer *c)
{
    return NULL;
}

leat_status leat_shape_none(leat_infer *c)
{
    return NULL;
}

leat_status leat_shape_broadcast_binary(leat_infer *c)
{
    leat_shape a = leat_infer_in(c, 0), b = leat_infer_in(c, 1), out;
    LEAT_TRY(leat_shape_broadcast(&a, &b, &out));
    leat_infer_out(c, 0, out);
    return NULL;
}

leat_status leat_shape_merged(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    for (int i = 1; i < c->node->n_in; i++) {
        leat_shape x = leat_infer_in(c, i);
        LEAT_TRY(leat_shape_merge(&s, &x, &s));
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

leat_status leat_node_infer(leat_node *n)
{
    leat_infer c = {.node = n, .depth = LEAT_INFER_DEPTH};
    for (int i = 0; i < n->n_out; i++)
        n->out_shapes[i] = leat_shape_unknown();
    leat_status s = n->op->def->shape(&c);
    for (int i = 0; i < c.n_values; i++)
        leat_tensor_unref(c.values[i]);
    if (!s)
        return NULL;
    return leat_status_suffix(s, " for '%s' (op: '%s')", n->name, n->op->def->name);
}
