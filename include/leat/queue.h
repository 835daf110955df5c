/* queue.h -- queues of tuples of tensors, and accumulators of gradients.
 *
 *     leat_out q = leat_fifo_queue(g, 32, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape(784)},
 *                                                         {LEAT_INT32, leat_shape()}));
 *     leat_out put = leat_enqueue(q, image, label);
 *     leat_out batch = leat_dequeue_many(q, 100);        -- images; leat_output(batch, 1): labels
 *
 * A queue lives on its device from the first run that uses it; one with a shared_name is the same
 * for all graphs and sessions there. A run that waits at a queue or an accumulator occupies no
 * thread meanwhile; it ends with CANCELLED when it is cancelled or its session closed, with
 * DEADLINE_EXCEEDED when its timeout passes. Ops without outputs are run as targets.
 */
#ifndef LEAT_QUEUE_H
#define LEAT_QUEUE_H

#include <leat/ops.h>
#include <leat/session.h>

/* ---- Queues ---- */
typedef struct leat_component {
    leat_dtype dtype;
    /* Unknown for all components: elements of any shape, which cannot be batched. */
    leat_shape shape;
} leat_component;
typedef struct leat_components {
    const leat_component *v;
    int n;
} leat_components;
#define LEAT_COMPONENTS(...) LEAT_LIST(leat_components, leat_component, __VA_ARGS__)

typedef struct leat_queue_options {
    leat_given given; /* set by the macro */
    /* Of a shuffling queue. Default: from the graph's seed, or random if that is not set either. */
    int64_t seed;
    const char *container; /* "" is the default container */
    const char *shared_name;
    const char *name; /* "fifo_queue" ... */
} leat_queue_options;
/* Each gives a queue's handle. capacity is in elements; below 1: no limit. An enqueue into a full
 * queue waits. */
LEAT_API leat_out leat_queue_at(leat_loc at, leat_graph *g, const char *op, int64_t capacity,
                                int64_t min_after_dequeue, leat_components components,
                                const leat_queue_options *options);
/* First in, first out. */
#define leat_fifo_queue(g, capacity, components, ...)                                              \
    leat_queue_at(LEAT_AT, g, "FIFOQueueV2", capacity, 0, components,                              \
                  LEAT_GIVEN_OPTIONS(leat_queue_options, __VA_ARGS__))
/* First in, first out; dimensions of -1 in the shapes may differ between elements, and a batch is
 * padded with zeros. */
#define leat_padding_fifo_queue(g, capacity, components, ...)                                      \
    leat_queue_at(LEAT_AT, g, "PaddingFIFOQueueV2", capacity, 0, components,                       \
                  LEAT_GIVEN_OPTIONS(leat_queue_options, __VA_ARGS__))
/* Each element gets a further component in front, an int64 scalar: the least is dequeued first. */
#define leat_priority_queue(g, capacity, components, ...)                                          \
    leat_queue_at(LEAT_AT, g, "PriorityQueueV2", capacity, 0, components,                          \
                  LEAT_GIVEN_OPTIONS(leat_queue_options, __VA_ARGS__))
/* A random element is dequeued, as soon as more than min_after_dequeue are in the queue or the
 * queue is closed. */
#define leat_random_shuffle_queue(g, capacity, min_after_dequeue, components, ...)                 \
    leat_queue_at(LEAT_AT, g, "RandomShuffleQueueV2", capacity, min_after_dequeue, components,     \
                  LEAT_GIVEN_OPTIONS(leat_queue_options, __VA_ARGS__))

/* Adds one element, a tensor for each component; the _many form adds each row of the tensors as an
 * element. */
#define leat_enqueue(q, ...)                                                                       \
    leat_enqueue_at(LEAT_AT, q, LEAT_ARRAY(leat_out, __VA_ARGS__),                                 \
                    LEAT_COUNT(leat_out, __VA_ARGS__), false)
#define leat_enqueue_many(q, ...)                                                                  \
    leat_enqueue_at(LEAT_AT, q, LEAT_ARRAY(leat_out, __VA_ARGS__),                                 \
                    LEAT_COUNT(leat_out, __VA_ARGS__), true)
LEAT_API leat_out leat_enqueue_at(leat_loc at, leat_out q, const leat_out *x, int n, bool many);
/* Dequeues an element and gives component 0; leat_output(x, i) is component i. A closed and empty
 * queue gives OUT_OF_RANGE. */
#define leat_dequeue(q) leat_dequeue_at(LEAT_AT, q)
LEAT_API leat_out leat_dequeue_at(leat_loc at, leat_out q);
/* Dequeues a batch of n elements. If a closed queue has fewer, leat_dequeue_many gives OUT_OF_RANGE
 * and leat_dequeue_up_to gives those that are there. */
#define leat_dequeue_many(q, n) leat_dequeue_batch_at(LEAT_AT, q, "QueueDequeueManyV2", n)
#define leat_dequeue_up_to(q, n) leat_dequeue_batch_at(LEAT_AT, q, "QueueDequeueUpToV2", n)
LEAT_API leat_out leat_dequeue_batch_at(leat_loc at, leat_out q, const char *op, int n);

typedef struct leat_queue_close_options {
    bool cancel_pending_enqueues; /* false: pending enqueues are completed first */
} leat_queue_close_options;
/* Closes the queue: later enqueues give CANCELLED. */
#define leat_queue_close(q, ...)                                                                   \
    leat_queue_close_at(LEAT_AT, q, LEAT_OPTIONS(leat_queue_close_options, __VA_ARGS__))
LEAT_API leat_out leat_queue_close_at(leat_loc at, leat_out q, const leat_queue_close_options *o);
#define leat_queue_size(q) LEAT_OP1("QueueSizeV2", q)          /* int32 */
#define leat_queue_is_closed(q) LEAT_OP1("QueueIsClosedV2", q) /* bool */

/* ---- Accumulators: gradients are added, each with the global step at which it was computed; a
 * gradient whose step is before the accumulator's is dropped. Taking waits until enough gradients
 * were added, gives their mean, and advances the accumulator's step by one. ---- */
typedef struct leat_accumulator_options {
    bool sum; /* give the sum instead of the mean */
    const char *container, *shared_name;
    const char *name; /* "conditional_accumulator" */
} leat_accumulator_options;
LEAT_API leat_out leat_accumulator_at(leat_loc at, leat_graph *g, const char *op, leat_dtype t,
                                      leat_shape shape, const leat_accumulator_options *options);
#define leat_accumulator(g, dtype, shape, ...)                                                     \
    leat_accumulator_at(LEAT_AT, g, "ResourceConditionalAccumulator", dtype, shape,                \
                        LEAT_OPTIONS(leat_accumulator_options, __VA_ARGS__))
/* For gradients that are rows (leat_grad_value with indices); shape is that of the whole tensor. */
#define leat_sparse_accumulator(g, dtype, shape, ...)                                              \
    leat_accumulator_at(LEAT_AT, g, "SparseConditionalAccumulator", dtype, shape,                  \
                        LEAT_OPTIONS(leat_accumulator_options, __VA_ARGS__))
/* local_step: an int64 scalar. */
#define leat_accumulator_apply(acc, gradient, local_step)                                          \
    leat_accumulator_apply_at(LEAT_AT, acc, LEAT_STRUCT(leat_grad_value, .value = (gradient)),     \
                              local_step, false)
#define leat_accumulator_apply_rows(acc, rows, local_step)                                         \
    leat_accumulator_apply_at(LEAT_AT, acc, rows, local_step, false)
/* Leat only, TensorFlow has no such op: gives a bool, false if the gradient was dropped. */
#define leat_accumulator_try_apply(acc, gradient, local_step)                                      \
    leat_accumulator_apply_at(LEAT_AT, acc, LEAT_STRUCT(leat_grad_value, .value = (gradient)),     \
                              local_step, true)
#define leat_accumulator_try_apply_rows(acc, rows, local_step)                                     \
    leat_accumulator_apply_at(LEAT_AT, acc, rows, local_step, true)
LEAT_API leat_out leat_accumulator_apply_at(leat_loc at, leat_out acc, leat_grad_value gradient,
                                            leat_out local_step, bool tell);
/* num_required: an int32 scalar. */
#define leat_accumulator_take(acc, num_required)                                                   \
    leat_accumulator_take_at(LEAT_AT, acc, num_required).value
#define leat_accumulator_take_rows(acc, num_required)                                              \
    leat_accumulator_take_at(LEAT_AT, acc, num_required)
LEAT_API leat_grad_value leat_accumulator_take_at(leat_loc at, leat_out acc, leat_out num_required);
#define leat_accumulator_set_global_step(acc, step)                                                \
    leat_accumulator_op_at(LEAT_AT, acc, "AccumulatorSetGlobalStep", step)
#define leat_accumulator_num_accumulated(acc) /* int32 */                                          \
    leat_accumulator_op_at(LEAT_AT, acc, "AccumulatorNumAccumulated",                              \
                           LEAT_STRUCT(leat_out, NULL, 0))
/* The number of gradients dropped since the accumulator was made; int64. Leat only. */
#define leat_accumulator_num_dropped(acc)                                                          \
    leat_accumulator_op_at(LEAT_AT, acc, "_AccumulatorNumDropped", LEAT_STRUCT(leat_out, NULL, 0))
/* The op's name for this accumulator: with resource handles it begins with "Resource". */
LEAT_API leat_out leat_accumulator_op_at(leat_loc at, leat_out acc, const char *op, leat_out x);

#endif
