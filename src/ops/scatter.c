/* scatter.c -- ops on rows of a variable that indices select: ScatterUpdate, ScatterNdUpdate and
 * similar ops, for references and for handles. */
#include <leat/extend.h>
#include <leat/ops.h>

#include "ops/infer_util.h"
#include "ops/resource_variable.h"

/* Dimensions [begin, end) of s; end -1: to the last. Unknown if the rank is. */
static leat_status sub_shape(const leat_shape *s, int begin, int end, leat_shape *out)
{
    if (s->rank < 0) {
        *out = leat_shape_unknown();
        return NULL;
    }
    end = end < 0 ? s->rank : end;
    LEAT_REQUIRE(begin <= s->rank && end <= s->rank, INVALID_ARGUMENT,
                 "Shape must be at least rank %d but is rank %d", begin > end ? begin : end,
                 s->rank);
    *out = leat_shape_make(end - begin, s->dim + begin);
    return NULL;
}

/* updates are indices.shape + var.shape[1:], or a scalar. */
static leat_status check_rows(leat_infer *c, const leat_shape *var)
{
    leat_shape indices = leat_infer_in(c, 1), updates = leat_infer_in(c, 2);
    LEAT_REQUIRE(var->rank != 0, INVALID_ARGUMENT, "Shape must be at least rank 1 but is rank 0");
    leat_shape both = leat_shape_concat(&indices, var, 1);
    return updates.rank == 0 ? NULL : leat_shape_merge(&updates, &both, &both);
}

static leat_status scatter_shape(leat_infer *c)
{
    leat_shape var = leat_infer_in(c, 0);
    LEAT_TRY(check_rows(c, &var));
    leat_infer_out(c, 0, var);
    return NULL;
}

static leat_status resource_scatter_shape(leat_infer *c)
{
    leat_shape var;
    LEAT_TRY(leat_infer_variable(c, &var));
    return check_rows(c, &var);
}

leat_status leat_shape_scatter_nd(const leat_shape *var, const leat_shape *indices,
                                  const leat_shape *updates)
{
    if (indices->rank < 0 || updates->rank < 0 || indices->dim[indices->rank - 1] < 0)
        return NULL;
    int outer = indices->rank - 1;
    int64_t depth = indices->dim[outer];
    leat_shape a, b;
    LEAT_TRY(sub_shape(indices, 0, outer, &a));
    LEAT_TRY(sub_shape(updates, 0, outer, &b));
    leat_status s = leat_shape_merge(&a, &b, &a);
    if (s)
        return leat_status_prefix(s,
                                  "The outer %d dimensions of indices.shape=%s must match the "
                                  "outer %d dimensions of updates.shape=%s: ",
                                  outer, leat_shape_show(indices).s, outer,
                                  leat_shape_show(updates).s);
    if (var->rank < 0)
        return NULL;
    LEAT_REQUIRE(depth <= var->rank, INVALID_ARGUMENT,
                 "Shape must be at least rank %lld but is rank %d", (long long)depth, var->rank);
    LEAT_TRY(sub_shape(var, (int)depth, -1, &a));
    LEAT_TRY(sub_shape(updates, outer, -1, &b));
    s = leat_shape_merge(&a, &b, &a);
    if (s)
        return leat_status_prefix(s,
                                  "The inner %d dimensions of input.shape=%s must match the "
                                  "inner %d dimensions of updates.shape=%s: ",
                                  var->rank - (int)depth, leat_shape_show(var).s,
                                  updates->rank - outer, leat_shape_show(updates).s);
    return NULL;
}

static leat_status check_nd(leat_infer *c, const leat_shape *var)
{
    leat_shape indices, updates;
    LEAT_TRY(leat_infer_rank_at_least(c, 1, 1, &indices));
    LEAT_TRY(leat_infer_rank_at_least(c, 2, 1, &updates));
    LEAT_REQUIRE(leat_shape_count(var) != 0 ||
                     (leat_shape_count(&indices) <= 0 && leat_shape_count(&updates) <= 0),
                 INVALID_ARGUMENT, "Indices and updates specified for empty output shape");
    return leat_shape_scatter_nd(var, &indices, &updates);
}

static leat_status scatter_nd_shape(leat_infer *c)
{
    leat_shape var = leat_infer_in(c, 0);
    LEAT_TRY(check_nd(c, &var));
    leat_infer_out(c, 0, var);
    return NULL;
}

static leat_status resource_scatter_nd_shape(leat_infer *c)
{
    leat_dtype t;
    leat_shape var;
    leat_infer_in_handle(c, 0, &t, &var);
    return var.rank == 0 ? NULL : check_nd(c, &var); /* reported by the kernel */
}

#define SCATTER(op, types, locking, gradient)                                                      \
    {                                                                                              \
        .name = "Scatter" op, .inputs = "ref: Ref(T), indices: Tindices, updates: T",              \
        .outputs = "output_ref: Ref(T)",                                                           \
        .attrs = "T: " types "; Tindices: {int32, int64}; use_locking: bool = " locking,           \
        .shape = scatter_shape, .grad = gradient                                                   \
    }
#define RESOURCE_SCATTER(op, types)                                                                \
    {                                                                                              \
        .name = "ResourceScatter" op,                                                              \
        .inputs = "resource: resource, indices: Tindices, updates: dtype",                         \
        .attrs = "dtype: " types "; Tindices: {int32, int64}", .shape = resource_scatter_shape,    \
        .grad = leat_grad_missing, .flags = LEAT_OP_STATEFUL                                       \
    }
#define SCATTER_ND(op, types, locking)                                                             \
    {.name = "ScatterNd" op,                                                                       \
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",                                       \
     .outputs = "output_ref: Ref(T)",                                                              \
     .attrs = "T: " types "; Tindices: {int32, int64}; use_locking: bool = " locking,              \
     .shape = scatter_nd_shape,                                                                    \
     .grad = leat_grad_none},                                                                      \
    {                                                                                              \
        .name = "ResourceScatterNd" op, .inputs = "ref: resource, indices: Tindices, updates: T",  \
        .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",                    \
        .shape = resource_scatter_nd_shape, .grad = leat_grad_missing, .flags = LEAT_OP_STATEFUL   \
    }

#define ORDERED "{half, bfloat16, float, double, int32, int64}"

const leat_op_def leat_ops_scatter[] = {
    SCATTER("Update", "type", "true", leat_grad_missing),
    SCATTER("Add", "numbertype", "false", leat_grad_none),
    SCATTER("Sub", "numbertype", "false", leat_grad_none),
    SCATTER("Mul", "numbertype", "false", leat_grad_none),
    SCATTER("Div", "numbertype", "false", leat_grad_none),
    SCATTER("Min", ORDERED, "false", leat_grad_missing),
    SCATTER("Max", ORDERED, "false", leat_grad_missing),
    RESOURCE_SCATTER("Update", "type"),
    RESOURCE_SCATTER("Add", "numbertype"),
    RESOURCE_SCATTER("Sub", "numbertype"),
    RESOURCE_SCATTER("Mul", "numbertype"),
    RESOURCE_SCATTER("Div", "numbertype"),
    RESOURCE_SCATTER("Min", "numbertype"),
    RESOURCE_SCATTER("Max", "numbertype"),
    SCATTER_ND("Update", "type", "true"),
    SCATTER_ND("Add", "numbertype", "false"),
    SCATTER_ND("Sub", "numbertype", "false"),
    {0},
};
