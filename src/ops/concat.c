/* concat.c -- Concat, ConcatV2, ConcatOffset; Pack, which adds a dimension. */
#include <stdlib.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "graph/graph_int.h"
#include "ops/infer_util.h"

/* All values have the same rank, which is all that is known without the axis. */
static leat_status concat_rank(leat_infer *c, int first, int end)
{
    int rank = -1;
    leat_shape s;
    for (int i = first; rank < 0 && i < end; i++)
        rank = leat_infer_in(c, i).rank;
    LEAT_REQUIRE(rank != 0, INVALID_ARGUMENT, "Can't concatenate scalars (use tf.stack instead)");
    for (int i = first; rank > 0 && i < end; i++)
        LEAT_TRY(leat_infer_rank(c, i, rank, &s));
    leat_infer_out(c, 0, leat_shape_unknown_dims(rank));
    return NULL;
}

/* Merges dimensions [begin, end) of x into those of s, which must agree. */
static leat_status merge_dims(const leat_shape *x, int begin, int end, leat_shape *s)
{
    leat_shape a = leat_shape_make(end - begin, x->dim + begin),
               b = leat_shape_make(end - begin, s->dim + begin);
    LEAT_TRY(leat_shape_merge(&a, &b, &a));
    memcpy(s->dim + begin, a.dim, sizeof(*a.dim) * (size_t)(end - begin));
    return NULL;
}

/* Values are inputs [first, end); the axis is input `at`. */
static leat_status concat_inputs(leat_infer *c, int first, int end, int at)
{
    leat_shape out = leat_shape_unknown(), s;
    int64_t given, sum = 0;
    LEAT_TRY(leat_infer_rank(c, at, 0, &s));
    LEAT_TRY(concat_rank(c, first, end));
    if (!leat_infer_int(c, at, &given))
        return NULL;
    int64_t least = leat_axis_rank(given);
    for (int i = end - 1; i >= first; i--) {
        s = leat_infer_in(c, i);
        LEAT_REQUIRE(s.rank < 0 || s.rank >= least, INVALID_ARGUMENT,
                     "Shape must be at least rank %" PRId64 " but is rank %d", least, s.rank);
        if (s.rank < 0) {
            sum = -1;
            continue;
        }
        int axis = (int)(given < 0 ? given + s.rank : given);
        out = out.rank < 0 ? leat_shape_unknown_dims(s.rank) : out;
        LEAT_TRY(merge_dims(&s, 0, axis, &out));
        LEAT_TRY(merge_dims(&s, axis + 1, s.rank, &out));
        if (s.dim[axis] < 0 || sum < 0)
            sum = -1;
        else
            LEAT_TRY(leat_dim_add(sum, s.dim[axis], &sum));
    }
    if (out.rank >= 0)
        out.dim[given < 0 ? given + out.rank : given] = sum;
    leat_infer_out(c, 0, out);
    return NULL;
}

static leat_status concat_shape(leat_infer *c)
{
    return concat_inputs(c, 1, leat_infer_inputs(c), 0);
}

static leat_status concat_v2_shape(leat_infer *c)
{
    int n = leat_infer_inputs(c) - 1;
    return concat_inputs(c, 0, n, n);
}

static leat_status offset_shape(leat_infer *c)
{
    for (int i = 1; i < leat_infer_inputs(c); i++)
        leat_infer_out(c, i - 1, leat_infer_in(c, i));
    return NULL;
}

static leat_status pack_shape(leat_infer *c)
{
    leat_shape s = leat_shape_unknown();
    for (int i = leat_infer_inputs(c) - 1; i >= 0; i--) {
        leat_shape x = leat_infer_in(c, i);
        leat_status bad = leat_shape_merge(&x, &s, &s);
        if (bad)
            return leat_status_suffix(bad, "\n\tFrom merging shape %d with other shapes.", i);
    }
    if (s.rank < 0)
        return NULL;
    int64_t axis = leat_node_int(leat_infer_node(c), "axis");
    LEAT_REQUIRE(axis >= -s.rank - 1 && axis <= s.rank, INVALID_ARGUMENT,
                 "Invalid axis: %" PRId64 "; must be in [%d,%d)", axis, -s.rank - 1, s.rank + 1);
    axis += axis < 0 ? s.rank + 1 : 0;
    if (s.rank == LEAT_MAX_RANK)
        return NULL;
    leat_shape front = leat_shape_make((int)axis, s.dim);
    front.dim[front.rank++] = leat_infer_inputs(c);
    leat_infer_out(c, 0, leat_shape_concat(&front, &s, (int)axis));
    return NULL;
}

/* The sizes along the axis, if they are known for all values; freed by the caller. */
static int64_t *known_sizes(leat_grad *g, int first, int n, int at)
{
    const leat_node *node = leat_grad_node(g);
    leat_out axis = leat_node_input(node, at);
    const leat_tensor *t = leat_is_const(axis.node) ? leat_node_tensor(axis.node, "value") : NULL;
    if (!t || t->count != 1)
        return NULL;
    int64_t *sizes = leat_new_array(int64_t, n);
    for (int i = 0; i < n; i++) {
        leat_shape s = leat_out_shape(leat_node_input(node, first + i));
        int64_t d = leat_int_at(t, 0) + (leat_int_at(t, 0) < 0 ? s.rank : 0);
        sizes[i] = s.rank > d && d >= 0 ? s.dim[d] : -1;
        if (sizes[i] < 0) {
            free(sizes);
            return NULL;
        }
    }
    return sizes;
}

/* The gradient of each value is its part of dy, taken by one SplitV if all sizes are known. */
static leat_status cut(leat_grad *g, int first, int n, int at)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out dy = leat_grad_out(g, 0), axis = leat_cast(leat_grad_input(g, at), LEAT_INT32);
    int64_t *sizes = known_sizes(g, first, n, at);
    if (sizes) {
        leat_out parts =
            leat_split_v(dy, leat_int_vector_at(LEAT_AT, graph, LEAT_INT64, sizes, n), axis, n);
        free(sizes);
        for (int i = 0; i < n; i++)
            LEAT_TRY(leat_grad_in(g, first + i, leat_output(parts, i)));
        return NULL;
    }
    leat_out *x = leat_new_array(leat_out, n);
    for (int i = 0; i < n; i++)
        x[i] = leat_grad_input(g, first + i);
    axis = leat_floor_mod(axis, leat_rank_of(x[0]));
    leat_out shapes = LEAT_OPN("ShapeN", x, n);
    for (int i = 0; i < n; i++)
        x[i] = leat_output(shapes, i);
    leat_out offsets =
        leat_op_at(LEAT_AT, graph, "ConcatOffset", LEAT_ARGS(leat_in(axis), leat_ins(x, n)));
    leat_status s = NULL;
    for (int i = 0; !s && i < n; i++)
        s = leat_grad_in(g, first + i, leat_slice(dy, leat_output(offsets, i), x[i]));
    free(x);
    return s;
}

static leat_status concat_grad(leat_grad *g)
{
    return cut(g, 1, leat_node_inputs(leat_grad_node(g)) - 1, 0);
}

static leat_status concat_v2_grad(leat_grad *g)
{
    int n = leat_node_inputs(leat_grad_node(g)) - 1;
    return cut(g, 0, n, n);
}

static leat_status pack_grad(leat_grad *g)
{
    int n = leat_node_inputs(leat_grad_node(g));
    leat_out parts = leat_unpack(leat_grad_out(g, 0), n, leat_node_int(leat_grad_node(g), "axis"));
    for (int i = 0; i < n; i++)
        LEAT_TRY(leat_grad_in(g, i, leat_output(parts, i)));
    return NULL;
}

static leat_status concat_v2_value(leat_infer *c, int out_index, leat_shape *out)
{
    leat_shape s = leat_shape();
    for (int i = 0; i + 1 < leat_infer_inputs(c); i++) {
        leat_shape part;
        LEAT_TRY(leat_infer_known(c, i, &part));
        s = leat_shape_concat(&s, &part, 0);
        if (s.rank < 0)
            break;
    }
    *out = s;
    return NULL;
}

static leat_status pack_value(leat_infer *c, int out_index, leat_shape *out)
{
    const int n = leat_infer_inputs(c);
    if (n > LEAT_MAX_RANK || leat_infer_in(c, 0).rank != 0)
        return NULL;
    leat_shape s = leat_shape_unknown_dims(n);
    for (int i = 0; i < n; i++) {
        leat_shape one;
        LEAT_TRY(leat_infer_known(c, i, &one));
        s.dim[i] = one.rank == 1 ? one.dim[0] : -1;
    }
    *out = s;
    return NULL;
}

const leat_op_def leat_ops_concat[] = {
    {.name = "Concat",
     .inputs = "concat_dim: int32, values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 2; T: type",
     .shape = concat_shape,
     .grad = concat_grad},
    {.name = "ConcatV2",
     .inputs = "values: N * T, axis: Tidx",
     .outputs = "output: T",
     .attrs = "N: int >= 2; T: type; Tidx: {int32, int64} = DT_INT32",
     .shape = concat_v2_shape,
     .grad = concat_v2_grad,
     .role = LEAT_ROLE_CONCAT,
     .value = concat_v2_value},
    {.name = "ConcatOffset",
     .inputs = "concat_dim: int32, shape: N * int32",
     .outputs = "offset: N * int32",
     .attrs = "N: int >= 2",
     .shape = offset_shape,
     .grad = leat_grad_none},
    {.name = "Pack",
     .inputs = "values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 1; T: type; axis: int = 0",
     .shape = pack_shape,
     .grad = pack_grad,
     .value = pack_value},
    {0},
};
