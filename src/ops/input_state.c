/* input_state.c -- what a checkpoint keeps of an input by queues: the elements of a queue and the
 * position of a reader, as strings. TensorFlow has no such ops; Leat's savers add them to a graph
 * if leat_save_input was called for it. */
#include "ops/infer_util.h"

/* All inputs are scalars; so is the output, if there is one. */
static leat_status scalars_shape(leat_infer *c)
{
    leat_shape unused;
    for (int i = 0; i < leat_infer_inputs(c); i++)
        LEAT_TRY(leat_infer_rank(c, i, 0, &unused));
    return leat_shape_scalar(c);
}

#define ROW(op, ...)                                                                               \
    {                                                                                              \
        .name = op, .shape = scalars_shape, .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL,     \
        __VA_ARGS__                                                                                \
    }

const leat_op_def leat_ops_input_state[] = {
    ROW("_QueueState", .inputs = "handle: resource", .outputs = "state: string"),
    ROW("_QueueSetState", .inputs = "handle: resource, state: string"),
    /* Whether the queue takes elements beyond its capacity. */
    ROW("_QueueSetUnlimited", .inputs = "handle: resource", .attrs = "unlimited: bool"),
    ROW("_ReaderState", .inputs = "handle: resource", .outputs = "state: string"),
    ROW("_ReaderSetState", .inputs = "handle: resource, state: string"),
    {0},
};
