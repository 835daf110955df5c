/* const_shape.c -- integer vectors that stand for shapes, followed through the ops that compute
 * them: Const, Shape, Pack, ConcatV2, Cast, Identity, StridedSlice, Range. */
#include <string.h>

#include "core/buffer.h"
#include "graph/graph_int.h"
#include "graph/infer_int.h"

enum { DEPTH = 16 }; /* how far back to look */

const leat_tensor *leat_const_value(leat_out x)
{
    for (int i = 0; i < DEPTH && leat_node_is(x.node, "Identity") && x.node->n_in; i++) {
        if (!x.node->in[0].node)
            return NULL;
        x = x.node->in[0];
    }
    return leat_node_is(x.node, "Const") ? leat_node_tensor(x.node, "value") : NULL;
}

static leat_status shape_of(leat_out x, int depth, leat_shape *out);

/* A scalar integer; -1 if it is not known (or is -1 itself, which a shape reads the same). */
static int64_t scalar_of(leat_out x, int depth)
{
    if (!x.node || depth <= 0)
        return -1;
    const leat_tensor *t = leat_const_value(x);
    if (t)
        return t->count == 1 ? (int64_t)leat_tensor_at(t, 0) : -1;
    const leat_node *n = x.node;
    if (leat_node_is(n, "Cast") || leat_node_is(n, "Identity"))
        return scalar_of(n->in[0], depth - 1);
    if (leat_node_is(n, "Rank"))
        return leat_out_shape(n->in[0]).rank;
    if (leat_node_is(n, "Size")) {
        leat_shape s = leat_out_shape(n->in[0]);
        return leat_shape_count(&s);
    }
    if (leat_node_is(n, "StridedSlice") && leat_node_int(n, "shrink_axis_mask") == 1) {
        const leat_tensor *begin = leat_const_value(n->in[1]);
        leat_shape s;
        leat_status bad = shape_of(n->in[0], depth - 1, &s);
        leat_status_free(bad);
        if (bad || !begin || begin->count != 1 || s.rank < 0)
            return -1;
        int64_t i = (int64_t)leat_tensor_at(begin, 0);
        i += i < 0 ? s.rank : 0;
        return i >= 0 && i < s.rank ? s.dim[i] : -1;
    }
    return -1;
}

static leat_status from_tensor(const leat_tensor *t, leat_shape *out)
{
    LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT, "Shape must be rank 1 but is rank %d",
                 t->shape.rank);
    if (t->shape.rank == 0) {
        LEAT_REQUIRE(leat_tensor_at(t, 0) == -1, INVALID_ARGUMENT,
                     "Input tensor must be rank 1, or if its rank 0 it must have value -1 "
                     "(representing an unknown shape). Saw value: %lld",
                     (long long)leat_tensor_at(t, 0));
        *out = leat_shape_unknown();
        return NULL;
    }
    LEAT_REQUIRE(t->count <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "Shapes of more than %d dimensions are not supported, got %lld", LEAT_MAX_RANK,
                 (long long)t->count);
    leat_shape s = leat_shape_unknown_dims((int)t->count);
    for (int i = 0; i < s.rank; i++) {
        int64_t v = t->dtype == LEAT_INT32 ? ((int32_t *)t->data)[i] : ((int64_t *)t->data)[i];
        LEAT_REQUIRE(v >= -1, INVALID_ARGUMENT, "Invalid value in tensor used for shape: %lld",
                     (long long)v);
        s.dim[i] = v;
    }
    *out = s;
    return NULL;
}

static leat_status of_concat(const leat_node *n, int depth, leat_shape *out)
{
    leat_shape s = leat_shape();
    for (int i = 0; i + 1 < n->n_in; i++) {
        leat_shape part;
        LEAT_TRY(shape_of(n->in[i], depth, &part));
        if (part.rank < 0 || s.rank + part.rank > LEAT_MAX_RANK) {
            *out = leat_shape_unknown();
            return NULL;
        }
        memcpy(s.dim + s.rank, part.dim, sizeof(*s.dim) * (size_t)part.rank);
        s.rank += part.rank;
    }
    *out = s;
    return NULL;
}

/* x[begin:end] with stride 1 of a vector that stands for a shape. */
static leat_status of_slice(const leat_node *n, int depth, leat_shape *out)
{
    *out = leat_shape_unknown();
    const leat_tensor *b = leat_const_value(n->in[1]), *e = leat_const_value(n->in[2]),
                      *stride = leat_const_value(n->in[3]);
    if (!b || !e || !stride || b->count != 1 || leat_tensor_at(stride, 0) != 1 ||
        leat_node_int(n, "shrink_axis_mask") || leat_node_int(n, "new_axis_mask") ||
        leat_node_int(n, "ellipsis_mask"))
        return NULL;
    leat_shape s;
    LEAT_TRY(shape_of(n->in[0], depth, &s));
    if (s.rank < 0)
        return NULL;
    int64_t from = leat_node_int(n, "begin_mask") & 1 ? 0 : (int64_t)leat_tensor_at(b, 0);
    int64_t to = leat_node_int(n, "end_mask") & 1 ? s.rank : (int64_t)leat_tensor_at(e, 0);
    from += from < 0 ? s.rank : 0;
    to += to < 0 ? s.rank : 0;
    from = from < 0 ? 0 : from > s.rank ? s.rank : from;
    to = to < from ? from : to > s.rank ? s.rank : to;
    *out = leat_shape_make((int)(to - from), s.dim + from);
    return NULL;
}

/* Range(start, limit, 1), as reductions over all dimensions have it. */
static void of_range(const leat_node *n, int depth, leat_shape *out)
{
    int64_t from = scalar_of(n->in[0], depth), to = scalar_of(n->in[1], depth);
    if (from < 0 || to < from || to - from > LEAT_MAX_RANK || scalar_of(n->in[2], depth) != 1)
        return;
    *out = leat_shape_unknown_dims((int)(to - from));
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = from + i;
}

static leat_status shape_of(leat_out x, int depth, leat_shape *out)
{
    const leat_tensor *t = leat_const_value(x);
    if (t)
        return from_tensor(t, out);
    const leat_node *n = x.node;
    leat_shape shape = leat_out_shape(x);
    *out = shape.rank == 1 && shape.dim[0] >= 0 && shape.dim[0] <= LEAT_MAX_RANK
               ? leat_shape_unknown_dims((int)shape.dim[0])
               : leat_shape_unknown();
    if (depth <= 0)
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i].node)
            return NULL;
    if (leat_node_is(n, "Shape"))
        *out = leat_out_shape(n->in[0]);
    else if (leat_node_is(n, "ShapeN"))
        *out = leat_out_shape(n->in[x.index]);
    else if (leat_node_is(n, "Cast") || leat_node_is(n, "Identity"))
        return shape_of(n->in[0], depth - 1, out);
    else if (leat_node_is(n, "ConcatV2"))
        return of_concat(n, depth - 1, out);
    else if (leat_node_is(n, "StridedSlice"))
        return of_slice(n, depth - 1, out);
    else if (leat_node_is(n, "Range"))
        of_range(n, depth - 1, out);
    else if (leat_node_is(n, "Pack") && n->n_in <= LEAT_MAX_RANK)
        for (int i = 0; i < n->n_in; i++)
            out->dim[i] = scalar_of(n->in[i], depth - 1);
    return NULL;
}

leat_status leat_const_shape(leat_out x, leat_shape *out)
{
    return shape_of(x, DEPTH, out);
}
