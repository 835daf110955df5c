/* gather_nd.c -- GatherNd, slices at positions in several dimensions, and its counterparts
 * ScatterNd, TensorScatterUpdate, TensorScatterAdd, TensorScatterSub, ScatterNdNonAliasingAdd. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status picked_shape(leat_infer *c, leat_shape p)
{
    leat_shape ix;
    LEAT_TRY(leat_infer_rank_at_least(c, 1, 1, &ix));
    if (p.rank < 0 || ix.rank < 0 || ix.dim[ix.rank - 1] < 0)
        return NULL;
    int64_t depth = ix.dim[ix.rank - 1];
    LEAT_REQUIRE(depth <= p.rank, INVALID_ARGUMENT,
                 "indices.shape[-1] must be <= params.rank, but saw indices shape: %s and params "
                 "shape: %s",
                 leat_shape_show(&ix).s, leat_shape_show(&p).s);
    ix.rank--;
    leat_infer_out(c, 0, leat_shape_concat(&ix, &p, (int)depth));
    return NULL;
}

static leat_status gather_shape(leat_infer *c)
{
    return picked_shape(c, leat_infer_in(c, 0));
}

static leat_status resource_gather_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape var;
    leat_infer_in_handle(c, 0, &t, &var);
    return picked_shape(c, var);
}

static leat_status gather_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), indices = leat_grad_input(g, 1), dy = leat_grad_out(g, 0);
    leat_shape s = leat_out_shape(indices);
    leat_dtype t = leat_dtype_base(leat_out_dtype(indices));
    bool handle = leat_out_dtype(x) == LEAT_RESOURCE;
    leat_out shape = handle ? LEAT_OP1("VariableShape", x, leat_attr_type("out_type", t))
                            : leat_shape_of(x, leat_attr_type("out_type", t));
    if (s.rank != 2 || s.dim[1] != 1)
        return leat_grad_in(g, 0, LEAT_OP3("ScatterNd", indices, dy, shape));
    leat_out rows = leat_squeeze(indices, leat_attr_ints("squeeze_dims", ((int64_t[]){-1}), 1));
    return leat_grad_in_value(
        g, 0, (leat_grad_value){.value = dy, .indices = rows, .dense_shape = shape});
}

/* Checks that updates fit indices and the tensor that is updated. */
static leat_status check(leat_infer *c, int indices, int updates, const leat_shape *to)
{
    leat_shape ix, u;
    LEAT_TRY(leat_infer_rank_at_least(c, indices, 1, &ix));
    LEAT_TRY(leat_infer_rank_at_least(c, updates, 1, &u));
    LEAT_REQUIRE(leat_shape_count(to) != 0 ||
                     (leat_shape_count(&ix) <= 0 && leat_shape_count(&u) <= 0),
                 INVALID_ARGUMENT, "Indices and updates specified for empty output shape");
    LEAT_TRY(leat_shape_scatter_nd(to, &ix, &u));
    leat_infer_out(c, 0, *to);
    return NULL;
}

static leat_status scatter_shape(leat_infer *c)
{
    leat_shape to;
    LEAT_TRY(leat_infer_rank(c, 2, 1, &to));
    LEAT_TRY(leat_infer_value_shape(c, 2, &to));
    return check(c, 0, 1, &to);
}

static leat_status tensor_scatter_shape(leat_infer *c)
{
    leat_shape to = leat_infer_in(c, 0);
    return check(c, 1, 2, &to);
}

static leat_status scatter_grad(leat_grad *g)
{
    return leat_grad_in(g, 1, leat_gather_nd(leat_grad_out(g, 0), leat_grad_input(g, 0)));
}

static leat_status update_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), indices = leat_grad_input(g, 1);
    LEAT_TRY(leat_grad_in(g, 0,
                          LEAT_OP3("TensorScatterUpdate", leat_identity(dy), indices,
                                   leat_zeros_like(leat_grad_input(g, 2)))));
    return leat_grad_in(g, 2, leat_gather_nd(dy, indices));
}

static leat_status add_grad(leat_grad *g)
{
    LEAT_TRY(leat_grad_in(g, 0, leat_grad_out(g, 0)));
    return leat_grad_in(g, 2, leat_gather_nd(leat_grad_out(g, 0), leat_grad_input(g, 1)));
}

static leat_status sub_grad(leat_grad *g)
{
    LEAT_TRY(leat_grad_in(g, 0, leat_grad_out(g, 0)));
    return leat_grad_in(g, 2, leat_neg(leat_gather_nd(leat_grad_out(g, 0), leat_grad_input(g, 1))));
}

#define TENSOR_SCATTER(op, gradient)                                                               \
    {                                                                                              \
        .name = op, .inputs = "tensor: T, indices: Tindices, updates: T", .outputs = "output: T",  \
        .attrs = "T: type; Tindices: {int32, int64}", .shape = tensor_scatter_shape,               \
        .grad = gradient                                                                           \
    }

const leat_op_def leat_ops_gather_nd[] = {
    {.name = "GatherNd",
     .inputs = "params: Tparams, indices: Tindices",
     .outputs = "output: Tparams",
     .attrs = "Tparams: type; Tindices: {int32, int64}",
     .shape = gather_shape,
     .grad = gather_grad},
    {.name = "ResourceGatherNd",
     .inputs = "resource: resource, indices: Tindices",
     .outputs = "output: dtype",
     .attrs = "dtype: type; Tindices: {int32, int64}",
     .shape = resource_gather_shape,
     .grad = gather_grad,
     .flags = LEAT_OP_STATEFUL},
    {.name = "ScatterNd",
     .inputs = "indices: Tindices, updates: T, shape: Tindices",
     .outputs = "output: T",
     .attrs = "T: type; Tindices: {int32, int64}",
     .shape = scatter_shape,
     .grad = scatter_grad},
    TENSOR_SCATTER("TensorScatterUpdate", update_grad),
    TENSOR_SCATTER("TensorScatterAdd", add_grad),
    TENSOR_SCATTER("TensorScatterSub", sub_grad),
    {.name = "ScatterNdNonAliasingAdd",
     .inputs = "input: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: {numbertype, bool}; Tindices: {int32, int64}",
     .shape = tensor_scatter_shape,
     .grad = add_grad},
    {0},
};
