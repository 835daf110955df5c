/* accumulator.c -- accumulators of gradients: they sum gradients that are applied to them, dense or
 * rows, and give the mean or the sum once there are enough. A gradient whose step is before the
 * accumulator's is dropped. The ops whose names begin with "_" are Leat's own: they tell a worker
 * whether its gradients were dropped. */
#include <leat/extend.h>

static leat_status pair_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_shape(2));
    return NULL;
}

/* Input 1, a step or a number, is a scalar; so is the output, if its shape is known. */
static leat_status scalar_in_shape(leat_infer *c)
{
    leat_shape unused;
    return leat_infer_rank(c, 1, 0, &unused);
}

static leat_status try_apply_shape(leat_infer *c)
{
    LEAT_TRY(scalar_in_shape(c));
    return leat_shape_scalar(c);
}

/* The declared shape of the accumulator, if it is in the same graph. */
static leat_status take_shape(leat_infer *c)
{
    LEAT_TRY(scalar_in_shape(c));
    const leat_node *a = leat_node_input(leat_infer_node(c), 0).node;
    if (a && leat_node_has(a, "reduction_type"))
        leat_infer_out(c, 0, leat_node_shape(a, "shape"));
    return NULL;
}

static leat_status sparse_take_shape(leat_infer *c)
{
    return scalar_in_shape(c);
}

#define ACCUMULATOR                                                                                \
    "dtype: numbertype; shape: shape; container: string = ''; shared_name: string = ''; "          \
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"

/* The form for references and the form for resource handles. */
#define ON_ACCUMULATOR(op, in, out, how, fn)                                                       \
    {.name = op,                                                                                   \
     .inputs = "handle: Ref(string)" in,                                                           \
     .outputs = out,                                                                               \
     .attrs = how,                                                                                 \
     .shape = fn,                                                                                  \
     .grad = leat_grad_none},                                                                      \
    {                                                                                              \
        .name = "Resource" op, .inputs = "handle: resource" in, .outputs = out, .attrs = how,      \
        .shape = fn, .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                             \
    }

#define OURS(op, in, out, how, fn)                                                                 \
    {                                                                                              \
        .name = op, .inputs = in, .outputs = out, .attrs = how, .shape = fn,                       \
        .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                                          \
    }

const leat_op_def leat_ops_accumulator[] = {
    {.name = "ConditionalAccumulator",
     .outputs = "handle: Ref(string)",
     .attrs = ACCUMULATOR,
     .shape = pair_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "ResourceConditionalAccumulator",
     .outputs = "handle: resource",
     .attrs = ACCUMULATOR,
     .shape = pair_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "SparseConditionalAccumulator",
     .outputs = "handle: Ref(string)",
     .attrs = ACCUMULATOR,
     .shape = pair_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    ON_ACCUMULATOR("AccumulatorApplyGradient", ", local_step: int64, gradient: dtype", "",
                   "dtype: numbertype", scalar_in_shape),
    ON_ACCUMULATOR("AccumulatorTakeGradient", ", num_required: int32", "average: dtype",
                   "dtype: numbertype", take_shape),
    ON_ACCUMULATOR("AccumulatorSetGlobalStep", ", new_global_step: int64", "", "", scalar_in_shape),
    ON_ACCUMULATOR("AccumulatorNumAccumulated", "", "num_accumulated: int32", "",
                   leat_shape_scalar),
    {.name = "SparseAccumulatorApplyGradient",
     .inputs = "handle: Ref(string), local_step: int64, gradient_indices: int64, "
               "gradient_values: dtype, gradient_shape: int64",
     .attrs = "dtype: numbertype; has_known_shape: bool",
     .shape = scalar_in_shape,
     .grad = leat_grad_none},
    {.name = "SparseAccumulatorTakeGradient",
     .inputs = "handle: Ref(string), num_required: int32",
     .outputs = "indices: int64, values: dtype, shape: int64",
     .attrs = "dtype: numbertype",
     .shape = sparse_take_shape,
     .grad = leat_grad_none},
    OURS("_AccumulatorTryApplyGradient", "handle: Ref(string), local_step: int64, gradient: dtype",
         "accepted: bool", "dtype: numbertype", try_apply_shape),
    OURS("_ResourceAccumulatorTryApplyGradient",
         "handle: resource, local_step: int64, gradient: dtype", "accepted: bool",
         "dtype: numbertype", try_apply_shape),
    OURS("_SparseAccumulatorTryApplyGradient",
         "handle: Ref(string), local_step: int64, gradient_indices: int64, "
         "gradient_values: dtype, gradient_shape: int64",
         "accepted: bool", "dtype: numbertype; has_known_shape: bool", try_apply_shape),
    OURS("_AccumulatorNumDropped", "handle: Ref(string)", "num_dropped: int64", "",
         leat_shape_scalar),
    OURS("_ResourceAccumulatorNumDropped", "handle: resource", "num_dropped: int64", "",
         leat_shape_scalar),
    {0},
};
