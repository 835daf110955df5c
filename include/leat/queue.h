/* queue.h -- queues of tuples of tensors, and accumulators of gradients.
 *
 *     leat_out q = leat_fifo_queue(g, 32, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape(784)},
 *                                                         {LEAT_INT32, leat_shape()}));
 *     leat_out put = leat_enqueue(q, image, label);
 *     leat_out batch = leat_dequeue_many(q, 100);        -- images; leat_output(batch, 1): labels
 *
 * A queue lives on its device from the first run that uses it; one with a shared_name is the same
 * for all graphs and sessions there. A run that has to wait at a queue or an accumulator holds no
 * thread; it ends with CANCELLED when it is cancelled or its session closed, with
 * DEADLINE_EXCEEDED when its time is over. Ops that give nothing are targets of a run.
 */
#ifndef LEAT_QUEUE_H
#define LEAT_QUEUE_H

#include <leat/ops.h>
#include <leat/session.h>

/* ---- Queues ---- */
typedef struct leat_component {
    leat_dtype dtype;
    leat_shape shape; /* unknown for all components: elements of any shapes, one at a time */
} leat_component;
typedef struct leat_components {
    const leat_component *v;
    int n;
} leat_components;
#define LEAT_COMPONENTS(...) LEAT_LIST(leat_components, leat_component, __VA_ARGS__)

typedef struct leat_queue_options {
    int64_t seed;          /* of a shuffling queue; 0: from the graph's, else by chance; unless */
    bool has_seed;         /* that 0 is meant */
    const char *container; /* "": the default one */
    const char *shared_name;
    const char *name; /* "fifo_queue" ... */
} leat_queue_options;
/* Gives a handle. capacity: elements, below 1 for no limit; who puts more has to wait. */
LEAT_API leat_out leat_queue_at(leat_loc at, leat_graph *g, const char *op, int64_t capacity,
                                int64_t min_after_dequeue, leat_components components,
                                const leat_queue_options *options);
/* First in, first out. */
#define leat_fifo_queue(g, capacity, components, ...)                                              \
    leat_queue_at(LEAT_AT, g, "FIFOQueueV2", capacity, 0, components,                              \
                  &(const leat_queue_options){__VA_ARGS__})
/* The same; sizes of -1 in shapes may differ, and a batch is filled up with zeros. */
#define leat_padding_fifo_queue(g, capacity, components, ...)                                      \
    leat_queue_at(LEAT_AT, g, "PaddingFIFOQueueV2", capacity, 0, components,                       \
                  &(const leat_queue_options){__VA_ARGS__})
/* A component in front, an int64 scalar, is added: the least comes out first. */
#define leat_priority_queue(g, capacity, components, ...)                                          \
    leat_queue_at(LEAT_AT, g, "PriorityQueueV2", capacity, 0, components,                          \
                  &(const leat_queue_options){__VA_ARGS__})
/* A random one comes out, while more than min_after_dequeue are there, or the queue is closed. */
#define leat_random_shuffle_queue(g, capacity, min_after_dequeue, components, ...)                 \
    leat_queue_at(LEAT_AT, g, "RandomShuffleQueueV2", capacity, min_after_dequeue, components,     \
                  &(const leat_queue_options){__VA_ARGS__})

/* One element, a tensor for each component; with _many, each row of the tensors. */
#define leat_enqueue(q, ...)                                                                       \
    leat_enqueue_at(LEAT_AT, q, (const leat_out[]){__VA_ARGS__},                                   \
                    (int)(sizeof((const leat_out[]){__VA_ARGS__}) / sizeof(leat_out)), false)
#define leat_enqueue_many(q, ...)                                                                  \
    leat_enqueue_at(LEAT_AT, q, (const leat_out[]){__VA_ARGS__},                                   \
                    (int)(sizeof((const leat_out[]){__VA_ARGS__}) / sizeof(leat_out)), true)
LEAT_API leat_out leat_enqueue_at(leat_loc at, leat_out q, const leat_out *x, int n, bool many);
/* Component 0 of an element; leat_output(x, i) is component i. A closed queue that is empty gives
 * OUT_OF_RANGE. */
#define leat_dequeue(q) leat_dequeue_at(LEAT_AT, q)
LEAT_API leat_out leat_dequeue_at(leat_loc at, leat_out q);
/* Batches of n elements. A closed queue that has fewer gives OUT_OF_RANGE; _up_to gives them. */
#define leat_dequeue_many(q, n) leat_dequeue_batch_at(LEAT_AT, q, "QueueDequeueManyV2", n)
#define leat_dequeue_up_to(q, n) leat_dequeue_batch_at(LEAT_AT, q, "QueueDequeueUpToV2", n)
LEAT_API leat_out leat_dequeue_batch_at(leat_loc at, leat_out q, const char *op, int n);

typedef struct leat_queue_close_options {
    bool cancel_pending_enqueues; /* not set: what waits to be put is put first */
} leat_queue_close_options;
/* Nothing more can be put: that gives CANCELLED. */
#define leat_queue_close(q, ...)                                                                   \
    leat_queue_close_at(LEAT_AT, q, &(const leat_queue_close_options){__VA_ARGS__})
LEAT_API leat_out leat_queue_close_at(leat_loc at, leat_out q, const leat_queue_close_options *o);
#define leat_queue_size(q) LEAT_OP1("QueueSizeV2", q)          /* int32 */
#define leat_queue_is_closed(q) LEAT_OP1("QueueIsClosedV2", q) /* bool */

/* ---- Accumulators: gradients are applied, with the step they were computed at; those of steps
 * before the accumulator's are dropped. Taking waits for enough of them, gives their mean, and
 * begins the accumulator's next step. ---- */
typedef struct leat_accumulator_options {
    bool sum; /* not the mean */
    const char *container, *shared_name;
    const char *name; /* "conditional_accumulator" */
} leat_accumulator_options;
LEAT_API leat_out leat_accumulator_at(leat_loc at, leat_graph *g, const char *op, leat_dtype t,
                                      leat_shape shape, const leat_accumulator_options *options);
#define leat_accumulator(g, dtype, shape, ...)                                                     \
    leat_accumulator_at(LEAT_AT, g, "ResourceConditionalAccumulator", dtype, shape,                        \
                        &(const leat_accumulator_options){__VA_ARGS__})
/* Of rows (leat_grad_value with indices); shape is the whole tensor's. */
#define leat_sparse_accumulator(g, dtype, shape, ...)                                              \
    leat_accumulator_at(LEAT_AT, g, "SparseConditionalAccumulator", dtype, shape,                  \
                        &(const leat_accumulator_options){__VA_ARGS__})
/* local_step: an int64 scalar. */
#define leat_accumulator_apply(acc, gradient, local_step)                                          \
    leat_accumulator_apply_at(LEAT_AT, acc, (leat_grad_value){.value = (gradient)}, local_step,    \
                              false)
#define leat_accumulator_apply_rows(acc, rows, local_step)                                         \
    leat_accumulator_apply_at(LEAT_AT, acc, rows, local_step, false)
/* Leat's own, which TensorFlow does not run: gives a bool, false if the gradient was dropped. */
#define leat_accumulator_try_apply(acc, gradient, local_step)                                      \
    leat_accumulator_apply_at(LEAT_AT, acc, (leat_grad_value){.value = (gradient)}, local_step,    \
                              true)
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
    leat_accumulator_op_at(LEAT_AT, acc, "AccumulatorNumAccumulated", (leat_out){0})
/* Gradients dropped since the accumulator was made; int64. Leat's own. */
#define leat_accumulator_num_dropped(acc)                                                          \
    leat_accumulator_op_at(LEAT_AT, acc, "_AccumulatorNumDropped", (leat_out){0})
/* The form of the op for this accumulator: with handles its name begins with "Resource". */
LEAT_API leat_out leat_accumulator_op_at(leat_loc at, leat_out acc, const char *op, leat_out x);

#endif
