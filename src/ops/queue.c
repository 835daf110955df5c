/* queue.c -- queues of tuples of tensors: FIFO, shuffling, padding, by priority. The first versions
 * of the ops take a reference to a string vector [container, name], the V2 ones a resource handle;
 * they are the same otherwise. Dequeued tensors have the shapes that the queue declares, if the
 * queue is in the same graph. */
#include <string.h>

#include "ops/infer_util.h"

static leat_status pair_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_shape(2));
    return NULL;
}

/* The input is [container, name]; outputs, if there are any, are scalars. */
static leat_status of_pair_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &s));
    LEAT_REQUIRE(s.dim[0] < 0 || s.dim[0] == 2, INVALID_ARGUMENT,
                 "Dimension must be 2 but is %" PRId64, s.dim[0]);
    return leat_shape_scalar(c);
}

/* The declared shape of component i of the queue behind input 0, as far as it is known. */
static leat_shape component(leat_infer *c, int i)
{
    const leat_node *q = leat_node_input(leat_infer_node(c), 0).node;
    int types = 0, n = 0;
    if (!q || !leat_node_types(q, "component_types", &types))
        return leat_shape_unknown();
    const leat_shape *shapes = leat_node_shapes(q, "shapes", &n);
    /* The first component of a priority queue is the priority, which is not declared. */
    int first = strncmp(leat_node_op(q), "PriorityQueue", 13) == 0;
    if (i < first)
        return leat_shape();
    return n == types && n + first == leat_infer_outputs(c) ? shapes[i - first]
                                                            : leat_shape_unknown();
}

static leat_status dequeue_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, component(c, i));
    return NULL;
}

static void batches(leat_infer *c, int64_t n)
{
    leat_shape prefix = leat_shape_unknown_dims(1);
    prefix.dim[0] = n;
    for (int i = 0; i < leat_infer_outputs(c); i++) {
        leat_shape s = component(c, i);
        leat_infer_out(c, i, leat_shape_concat(&prefix, &s, 0));
    }
}

static leat_status dequeue_many_shape(leat_infer *c)
{
    int64_t n = -1;
    if (leat_infer_int(c, 1, &n))
        LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "Input 'n' must be >= 0, but is %" PRId64, n);
    batches(c, n);
    return NULL;
}

static leat_status dequeue_up_to_shape(leat_infer *c)
{
    batches(c, -1);
    return NULL;
}

#define SHARED "container: string = ''; shared_name: string = ''"
#define COMPONENTS "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; "
#define FIFO COMPONENTS "capacity: int = -1; " SHARED
#define PRIORITY                                                                                   \
    "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; capacity: int = -1; " SHARED
#define SHUFFLE                                                                                    \
    COMPONENTS                                                                                     \
    "capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; " SHARED
#define IN "Tcomponents: list(type) >= 1; timeout_ms: int = -1"
#define OUT "component_types: list(type) >= 1; timeout_ms: int = -1"

/* Both forms of an op that makes a queue. */
#define QUEUE(op, how)                                                                             \
    {.name = op,                                                                                   \
     .outputs = "handle: Ref(string)",                                                             \
     .attrs = how,                                                                                 \
     .shape = pair_shape,                                                                          \
     .grad = leat_grad_none,                                                                       \
     .flags = LEAT_OP_STATEFUL,                                                                    \
     .role = LEAT_ROLE_QUEUE},                                                                     \
    {                                                                                              \
        .name = op "V2", .outputs = "handle: resource", .attrs = how, .shape = leat_shape_scalar,  \
        .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL, .role = LEAT_ROLE_QUEUE,                \
        .save_position = "_QueueState", .restore_position = "_QueueSetState"                       \
    }

/* Both forms of an op that uses a queue. */
#define ON_QUEUE(op, in, out, how, shape1, shape2)                                                 \
    {.name = op,                                                                                   \
     .inputs = "handle: Ref(string)" in,                                                           \
     .outputs = out,                                                                               \
     .attrs = how,                                                                                 \
     .shape = shape1,                                                                              \
     .grad = leat_grad_none},                                                                      \
    {                                                                                              \
        .name = op "V2", .inputs = "handle: resource" in, .outputs = out, .attrs = how,            \
        .shape = shape2, .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                         \
    }

const leat_op_def leat_ops_queue[] = {
    QUEUE("FIFOQueue", FIFO),
    QUEUE("PaddingFIFOQueue", FIFO),
    QUEUE("PriorityQueue", PRIORITY),
    QUEUE("RandomShuffleQueue", SHUFFLE),
    ON_QUEUE("QueueEnqueue", ", components: Tcomponents", "", IN, leat_shape_none, leat_shape_none),
    ON_QUEUE("QueueEnqueueMany", ", components: Tcomponents", "", IN, leat_shape_none,
             leat_shape_none),
    ON_QUEUE("QueueDequeue", "", "components: component_types", OUT, dequeue_shape, dequeue_shape),
    ON_QUEUE("QueueDequeueMany", ", n: int32", "components: component_types", OUT,
             dequeue_many_shape, dequeue_many_shape),
    ON_QUEUE("QueueDequeueUpTo", ", n: int32", "components: component_types", OUT,
             dequeue_up_to_shape, dequeue_up_to_shape),
    ON_QUEUE("QueueClose", "", "", "cancel_pending_enqueues: bool = false", of_pair_shape,
             leat_shape_none),
    ON_QUEUE("QueueIsClosed", "", "is_closed: bool", "", leat_shape_scalar, leat_shape_scalar),
    ON_QUEUE("QueueSize", "", "size: int32", "", of_pair_shape, leat_shape_unchanged),
    {0},
};
