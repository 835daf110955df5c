/* const_shape.c -- integer vectors that stand for shapes, and scalars that stand for one dimension,
 * followed through the ops that compute them: constants, identities, and ops whose definition has a
 * `value` function (Shape, Pack, ConcatV2, StridedSlice ...). */
#include <string.h>

#include "core/buffer.h"
#include "graph/graph_int.h"
#include "graph/infer_int.h"

/* The tensor of which x is an unchanged copy. */
static leat_out source_of(leat_out x)
{
    for (int i = 0; i < LEAT_INFER_DEPTH && leat_is_identity(x.node) && x.node->in[0].node; i++)
        x = x.node->in[0];
    return x;
}

const leat_tensor *leat_const_value(leat_out x)
{
    x = source_of(x);
    return leat_is_const(x.node) ? leat_node_tensor(x.node, "value") : NULL;
}

/* What x's op knows of its value; out is not changed if that is nothing. */
static leat_status computed(leat_out x, int depth, leat_shape *out)
{
    leat_node *n = x.node;
    if (depth <= 0 || !n->op->def->value)
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i].node)
            return NULL;
    leat_infer c = {.node = n, .depth = depth - 1};
    return n->op->def->value(&c, x.index, out);
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

leat_status leat_const_shape(leat_out x, int depth, leat_shape *out)
{
    const leat_tensor *t = leat_const_value(x);
    if (t)
        return from_tensor(t, out);
    x = source_of(x);
    leat_shape shape = leat_out_shape(x);
    *out = shape.rank == 1 && shape.dim[0] >= 0 && shape.dim[0] <= LEAT_MAX_RANK
               ? leat_shape_unknown_dims((int)shape.dim[0])
               : leat_shape_unknown();
    return shape.rank == 0 ? NULL : computed(x, depth, out);
}

leat_status leat_const_known(leat_out x, int depth, leat_shape *out)
{
    const leat_tensor *t = leat_const_value(x);
    leat_shape shape = leat_out_shape(x);
    if (shape.rank != 0)
        return leat_const_shape(x, depth, out);
    /* -1 if it is not known; a value of -1 means an unknown dimension anyway. */
    *out = leat_shape(t && t->count == 1 ? (int64_t)leat_tensor_at(t, 0) : -1);
    return t ? NULL : computed(source_of(x), depth, out);
}
