/* accumulator.c -- constructors of accumulators' nodes. */
#include <leat/queue.h>

#include <string.h>

#include "graph/graph_int.h"

leat_out leat_accumulator_at(leat_loc at, leat_graph *g, const char *op, leat_dtype t,
                             leat_shape shape, const leat_accumulator_options *o)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    bool sparse = strcmp(op, "SparseConditionalAccumulator") == 0;
    const char *name = sparse ? "sparse_conditional_accumulator" : "conditional_accumulator";
    return leat_op_at(at, g, op,
                      LEAT_ARGS(leat_attr_type("dtype", t), leat_attr_shape("shape", shape),
                                leat_attr_string("container", o->container),
                                leat_attr_string("shared_name", o->shared_name),
                                leat_attr_string("reduction_type", o->sum ? "SUM" : "MEAN"),
                                leat_name(o->name ? o->name : name)));
}

static bool is_sparse(leat_out acc)
{
    return leat_node_is(acc.node, "SparseConditionalAccumulator");
}

/* "AccumulatorTakeGradient", or "ResourceAccumulatorTakeGradient"; a leading "_" is kept. */
static const char *op_of(leat_out acc, const char *op)
{
    if (leat_out_dtype(acc) != LEAT_RESOURCE)
        return op;
    bool ours = *op == '_';
    return leat_arena_printf(&acc.node->graph->arena, "%sResource%s", ours ? "_" : "", op + ours);
}

leat_out leat_accumulator_op_at(leat_loc at, leat_out acc, const char *op, leat_out x)
{
    if (!leat_out_ok(acc))
        return acc;
    return leat_op_at(
        at, acc.node->graph, op_of(acc, op),
        LEAT_ARGS(leat_in(acc), x.node ? leat_in(x) : (leat_arg){.kind = LEAT_ARG_SKIP}));
}

static leat_out apply_rows(leat_loc at, leat_out acc, leat_grad_value v, leat_out step, bool tell)
{
    leat_graph *g = acc.node->graph;
    if (!v.indices.node)
        return leat_graph_fail(g, at,
                               leat_error(INVALID_ARGUMENT,
                                          "%s accumulates rows, and is given a dense gradient",
                                          leat_node_name(acc.node)));
    bool known = v.dense_shape.node != NULL;
    leat_out shape = known ? leat_cast_at(at, v.dense_shape, LEAT_INT64)
                           : leat_int_vector_at(at, g, LEAT_INT64, NULL, 0);
    return leat_op_at(
        at, g, tell ? "_SparseAccumulatorTryApplyGradient" : "SparseAccumulatorApplyGradient",
        LEAT_ARGS(leat_in(acc), leat_in(step), leat_in(leat_cast_at(at, v.indices, LEAT_INT64)),
                  leat_in(v.value), leat_in(shape), leat_attr_bool("has_known_shape", known)));
}

leat_out leat_accumulator_apply_at(leat_loc at, leat_out acc, leat_grad_value v,
                                   leat_out local_step, bool tell)
{
    if (!leat_out_ok(acc))
        return acc;
    if (is_sparse(acc))
        return apply_rows(at, acc, v, local_step, tell);
    const char *op = tell ? "_AccumulatorTryApplyGradient" : "AccumulatorApplyGradient";
    return leat_op_at(at, acc.node->graph, op_of(acc, op),
                      LEAT_ARGS(leat_in(acc), leat_in(local_step), leat_in(leat_grad_dense(v))));
}

leat_grad_value leat_accumulator_take_at(leat_loc at, leat_out acc, leat_out num_required)
{
    if (!leat_out_ok(acc))
        return (leat_grad_value){.value = acc};
    const char *op = is_sparse(acc) ? "SparseAccumulatorTakeGradient" : "AccumulatorTakeGradient";
    leat_out x = leat_op_at(at, acc.node->graph, op_of(acc, op),
                            LEAT_ARGS(leat_in(acc), leat_in(num_required),
                                      leat_attr_type("dtype", leat_node_type(acc.node, "dtype"))));
    if (!is_sparse(acc) || !leat_out_ok(x))
        return (leat_grad_value){.value = x};
    return (leat_grad_value){
        .indices = x, .value = leat_output(x, 1), .dense_shape = leat_output(x, 2)};
}
