/* gather.c -- Gather, GatherV2 and ResourceGather: slices along one axis, selected by indices. */
#include <leat/ops.h>

#include "graph/graph_int.h"
#include "ops/infer_util.h"
#include "ops/resource_variable.h"

/* params[:axis] + indices[batch:] + params[axis + 1:] */
static leat_status picked(leat_infer *c, leat_shape p, int64_t axis, int64_t batch)
{
    leat_shape ix = leat_infer_in(c, 1);
    int64_t least = leat_axis_rank(axis);
    LEAT_REQUIRE(p.rank < 0 || p.rank >= least, INVALID_ARGUMENT,
                 "Shape must be at least rank %" PRId64 " but is rank %d", least, p.rank);
    least = leat_axis_rank(batch);
    LEAT_REQUIRE(p.rank < 0 || p.rank >= least, INVALID_ARGUMENT,
                 "Shape must be at least rank %" PRId64 " but is rank %d", least, p.rank);
    if (p.rank < 0 || ix.rank < 0)
        return NULL;
    axis += axis < 0 ? p.rank : 0;
    batch += batch < 0 ? ix.rank : 0;
    LEAT_REQUIRE(batch >= 0 && batch <= ix.rank && batch <= axis, INVALID_ARGUMENT,
                 "batch_dims (%" PRId64 ") must be less than or equal to axis (%" PRId64
                 ") and to rank(indices) (%d).",
                 batch, axis, ix.rank);
    leat_shape out = leat_shape_make((int)axis, p.dim);
    for (int i = 0; i < batch; i++)
        LEAT_TRY(leat_dim_merge(out.dim[i], ix.dim[i], &out.dim[i]));
    out = leat_shape_concat(&out, &ix, (int)batch);
    leat_infer_out(c, 0, leat_shape_concat(&out, &p, (int)axis + 1));
    return NULL;
}

static leat_status gather_shape(leat_infer *c)
{
    leat_shape p;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &p));
    return picked(c, leat_infer_in(c, 0), 0, 0);
}

static leat_status gather_v2_shape(leat_infer *c)
{
    leat_shape p, ix = leat_infer_in(c, 1), unused;
    int64_t axis, batch = leat_node_int(leat_infer_node(c), "batch_dims");
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &p));
    LEAT_TRY(leat_infer_rank(c, 2, 0, &unused));
    if (leat_infer_int(c, 2, &axis))
        return picked(c, p, axis, batch);
    batch += batch < 0 ? ix.rank : 0;
    if (p.rank >= 0 && ix.rank >= 0 && batch >= 0 && batch <= ix.rank)
        leat_infer_out(c, 0, leat_shape_unknown_dims(p.rank + ix.rank - 1 - (int)batch));
    return NULL;
}

static leat_status resource_gather_shape(leat_infer *c)
{
    leat_shape var;
    LEAT_TRY(leat_infer_variable(c, &var));
    int64_t batch = leat_node_int(leat_infer_node(c), "batch_dims");
    LEAT_REQUIRE(batch >= 0, INVALID_ARGUMENT, "batch_dims is negative (%" PRId64 ")", batch);
    return picked(c, var, batch, batch);
}

/* The gradient of params along axis 0: the rows of dy at indices. */
static leat_status rows_at_indices(leat_grad *g, leat_out shape)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out indices = leat_grad_input(g, 1), zero = leat_scalar(graph, LEAT_INT32, 0);
    leat_out size = leat_expand_dims(leat_size_of(indices), zero);
    leat_out tail = leat_slice(shape, leat_ints(graph, 1), leat_ints(graph, -1));
    leat_out values_shape = leat_concat(((leat_out[]){size, tail}), 2, zero);
    leat_grad_value rows = {.value = leat_reshape(leat_grad_out(g, 0), values_shape),
                            .indices = leat_reshape(indices, size),
                            .dense_shape = shape};
    return leat_grad_in_value(g, 0, rows);
}

static leat_status rows_grad(leat_grad *g)
{
    return rows_at_indices(g, leat_shape_of(leat_grad_input(g, 0)));
}

static leat_status resource_gather_grad(leat_grad *g)
{
    return rows_at_indices(g, LEAT_OP1("VariableShape", leat_grad_input(g, 0)));
}

/* x[from:from + n] of a vector; a NULL node as n: to the end. */
static leat_out part_of(leat_out x, leat_out from, leat_out n)
{
    leat_graph *graph = leat_node_graph(x.node);
    leat_out zero = leat_scalar(graph, LEAT_INT32, 0);
    return leat_slice(x, leat_expand_dims(from, zero),
                      n.node ? leat_expand_dims(n, zero) : leat_ints(graph, -1));
}

/* Sums the rows of values (batch dims, indices, rest) into (batch dims, dim, rest). Rows are
 * numbered through all batches: dim rows in each. */
static leat_out batch_sum(leat_out values, leat_out indices, leat_out params_shape, int64_t batch,
                          leat_out dim)
{
    leat_graph *graph = leat_node_graph(values.node);
    leat_out flat = leat_ints(graph, -1), zero = leat_scalar(graph, LEAT_INT32, 0);
    if (batch == 0)
        return leat_unsorted_segment_sum(values, leat_reshape(indices, flat), dim);
    leat_dtype t = leat_dtype_base(leat_out_dtype(indices));
    leat_out n_batch = leat_scalar(graph, LEAT_INT32, (double)batch);
    leat_out outer = part_of(params_shape, zero, n_batch), batches = leat_reduce_prod(outer);
    leat_out rest = part_of(leat_shape_of(values),
                            leat_scalar(graph, LEAT_INT32, (double)batch + 1), (leat_out){0});
    leat_out first = leat_mul(leat_range(zero, batches, leat_scalar(graph, LEAT_INT32, 1)), dim);
    leat_out two = leat_pack(((leat_out[]){batches, leat_scalar(graph, LEAT_INT32, -1)}), 2, 0);
    leat_out ids =
        leat_add(leat_reshape(indices, two),
                 leat_cast(leat_expand_dims(first, leat_scalar(graph, LEAT_INT32, 1)), t));
    values = leat_reshape(values, leat_concat(((leat_out[]){flat, rest}), 2, zero));
    leat_out sums =
        leat_unsorted_segment_sum(values, leat_reshape(ids, flat), leat_mul(batches, dim));
    leat_out dims = leat_expand_dims(dim, zero);
    return leat_reshape(sums, leat_concat(((leat_out[]){outer, dims, rest}), 3, zero));
}

/* For another axis: the axis is moved behind the batch dims, the rows summed by index, and the axis
 * moved back. */
static leat_status axis_grad(leat_grad *g, int64_t batch)
{
    leat_graph *graph = leat_grad_graph(g);
    leat_out params = leat_grad_input(g, 0), shape = leat_shape_of(params);
    leat_out zero = leat_scalar(graph, LEAT_INT32, 0), one = leat_scalar(graph, LEAT_INT32, 1);
    leat_out rank = leat_rank_of(params), b = leat_scalar(graph, LEAT_INT32, (double)batch);
    leat_out axis = leat_floor_mod(leat_cast(leat_grad_input(g, 2), LEAT_INT32), rank);
    leat_out after = leat_add(axis, one);
    leat_out batches = leat_range(zero, b, one), middle = leat_range(b, axis, one),
             inner = leat_range(after, rank, one);
    leat_out values_shape =
        leat_concat(((leat_out[]){part_of(shape, zero, axis), leat_ints(graph, -1),
                                  part_of(shape, after, (leat_out){0})}),
                    3, zero);
    leat_out to =
        leat_concat(((leat_out[]){batches, leat_expand_dims(axis, zero), middle, inner}), 4, zero);
    leat_out back = leat_concat(
        ((leat_out[]){batches, leat_add(middle, one), leat_expand_dims(b, zero), inner}), 4, zero);
    leat_out values = leat_transpose(leat_reshape(leat_grad_out(g, 0), values_shape), to);
    leat_out dim =
        leat_reshape(part_of(shape, axis, one), leat_int_vector(graph, ((int64_t[]){0}), 0));
    leat_out sums = batch_sum(values, leat_grad_input(g, 1), shape, batch, dim);
    return leat_grad_in(g, 0, leat_transpose(sums, back));
}

static leat_status gather_v2_grad(leat_grad *g)
{
    const leat_node *n = leat_grad_node(g), *axis = leat_node_input(n, 2).node;
    const leat_tensor *t = leat_is_const(axis) ? leat_node_tensor(axis, "value") : NULL;
    int64_t batch = leat_node_int(n, "batch_dims");
    if (t && t->count == 1 && leat_int_at(t, 0) == 0)
        return rows_grad(g);
    if (batch < 0)
        batch += leat_out_shape(leat_node_input(n, 1)).rank;
    LEAT_REQUIRE(batch >= 0, UNIMPLEMENTED,
                 "The gradient of %s needs the rank of its indices, as batch_dims is negative",
                 leat_node_name(n));
    return axis_grad(g, batch);
}

const leat_op_def leat_ops_gather[] = {
    {.name = "Gather",
     .inputs = "params: Tparams, indices: Tindices",
     .outputs = "output: Tparams",
     .attrs = "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}",
     .shape = gather_shape,
     .grad = rows_grad},
    {.name = "GatherV2",
     .inputs = "params: Tparams, indices: Tindices, axis: Taxis",
     .outputs = "output: Tparams",
     .attrs = "batch_dims: int = 0; Tparams: type; Tindices: {int32, int64}; Taxis: {int32, int64}",
     .shape = gather_v2_shape,
     .grad = gather_v2_grad},
    {.name = "ResourceGather",
     .inputs = "resource: resource, indices: Tindices",
     .outputs = "output: dtype",
     .attrs = "batch_dims: int = 0; validate_indices: bool = true; dtype: type; "
              "Tindices: {int32, int64}",
     .shape = resource_gather_shape,
     .grad = resource_gather_grad,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
