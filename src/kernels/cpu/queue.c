/* queue.c -- the kernels of queues. Those that may have to wait are asynchronous: see queue.h. */
#include "kernels/cpu/queue.h"

static leat_status queue_run(leat_kernel *k)
{
    return leat_resource_op_run(k, &leat_queue_maker);
}

/* The queue behind input 0; shared. */
static leat_status queue_of(leat_kernel *k, leat_queue **out)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, 0, &leat_queue_type, &r));
    *out = (leat_queue *)r;
    return NULL;
}

static leat_status no_timeout(const leat_node *n, void *state)
{
    (void)state;
    LEAT_REQUIRE(leat_node_int(n, "timeout_ms") == -1, INVALID_ARGUMENT,
                 "Timeout not supported yet.");
    return NULL;
}

/* ---- Enqueue ---- */

static leat_status check_put(const leat_queue *q, leat_kernel *k, bool many, int64_t *n_out)
{
    LEAT_TRY(leat_kernel_signature(k, q->types, q->n, NULL, 0));
    *n_out = 1;
    return many ? leat_queue_check_many(q, k, n_out) : leat_queue_check_one(q, k);
}

static void put(leat_kernel *k, bool many)
{
    leat_queue *q = NULL;
    int64_t n = 0;
    leat_status s = queue_of(k, &q);
    if (!s)
        s = check_put(q, k, many, &n);
    if (s || n == 0) {
        leat_resource_unref(q ? &q->base : NULL);
        leat_kernel_done(k, s);
        return;
    }
    leat_queue_attempt(q, k, many ? LEAT_PUT_MANY : LEAT_PUT, n);
}

static void enqueue(leat_kernel *k)
{
    put(k, false);
}

static void enqueue_many(leat_kernel *k)
{
    put(k, true);
}

/* ---- Dequeue ---- */

static leat_status check_batch(const leat_queue *q, leat_kernel *k, const char *op, int64_t *n_out)
{
    static const leat_dtype count[] = {LEAT_INT32};
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "n must be a scalar, but has shape %s",
                 leat_shape_show(&t->shape).s);
    int32_t n = AT(int32_t, t)[0];
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "%s requested %d < 0 elements", op, n);
    LEAT_TRY(leat_kernel_signature(k, count, 1, q->types, q->n));
    LEAT_REQUIRE(q->shapes || q->kind != LEAT_QUEUE_PRIORITY, INVALID_ARGUMENT,
                 "PriorityQueue's DequeueMany requires the components to have specified shapes.");
    LEAT_REQUIRE(q->shapes, INVALID_ARGUMENT,
                 "%s's DequeueMany and DequeueUpTo require the components to have specified "
                 "shapes.",
                 q->kind == LEAT_QUEUE_SHUFFLE ? "RandomShuffleQueue" : "FIFOQueue");
    *n_out = n;
    return NULL;
}

static void take(leat_kernel *k, leat_attempt_kind kind, const char *op)
{
    leat_queue *q = NULL;
    int64_t n = 1;
    leat_status s = queue_of(k, &q);
    if (!s)
        s = kind == LEAT_TAKE ? leat_kernel_signature(k, NULL, 0, q->types, q->n)
                              : check_batch(q, k, op, &n);
    if (!s && n > 0) {
        leat_queue_attempt(q, k, kind, n);
        return;
    }
    if (!s)
        s = leat_queue_batch(q, k, NULL, 0);
    leat_resource_unref(q ? &q->base : NULL);
    leat_kernel_done(k, s);
}

static void dequeue(leat_kernel *k)
{
    take(k, LEAT_TAKE, "DequeueOp");
}

static void dequeue_many(leat_kernel *k)
{
    take(k, LEAT_TAKE_MANY, "DequeueManyOp");
}

static void dequeue_up_to(leat_kernel *k)
{
    take(k, LEAT_TAKE_UP_TO, "DequeueUpToOp");
}

/* ---- Close, size ---- */

static void close_queue(leat_kernel *k)
{
    leat_queue *q;
    leat_status s = queue_of(k, &q);
    if (!s && !leat_node_bool(leat_kernel_node(k), "cancel_pending_enqueues")) {
        leat_queue_attempt(q, k, LEAT_CLOSE, 0);
        return;
    }
    if (!s) {
        leat_queue_close_now(q);
        leat_resource_unref(&q->base);
    }
    leat_kernel_done(k, s);
}

/* Sets output 0, a scalar, by read, which is called with the queue's lock held. */
static leat_status scalar(leat_kernel *k, void (*read)(const leat_queue *q, leat_tensor *y))
{
    leat_queue *q;
    leat_tensor *y;
    leat_shape shape = {0};
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    LEAT_TRY(queue_of(k, &q));
    pthread_mutex_lock(&q->lock);
    read(q, y);
    pthread_mutex_unlock(&q->lock);
    leat_resource_unref(&q->base);
    return NULL;
}

static void read_size(const leat_queue *q, leat_tensor *y)
{
    AT(int32_t, y)[0] = (int32_t)q->count;
}

static void read_closed(const leat_queue *q, leat_tensor *y)
{
    AT(bool, y)[0] = q->closed;
}

static leat_status size(leat_kernel *k)
{
    return scalar(k, read_size);
}

static leat_status is_closed(leat_kernel *k)
{
    return scalar(k, read_closed);
}

#define MAKES(name)                                                                                \
    {.op = name,                                                                                   \
     .run = queue_run,                                                                             \
     .state_size = sizeof(leat_resource_op),                                                       \
     .release = leat_resource_op_release},                                                         \
    {                                                                                              \
        .op = name "V2", .run = queue_run, .state_size = sizeof(leat_resource_op),                 \
        .release = leat_resource_op_release                                                        \
    }
#define WAITS(name, fn)                                                                            \
    {.op = name, .run_async = fn, .state_size = 1, .init = no_timeout},                            \
    {                                                                                              \
        .op = name "V2", .run_async = fn, .state_size = 1, .init = no_timeout                      \
    }

const leat_kernel_def leat_cpu_queue[] = {
    MAKES("FIFOQueue"),
    MAKES("PaddingFIFOQueue"),
    MAKES("PriorityQueue"),
    MAKES("RandomShuffleQueue"),
    WAITS("QueueEnqueue", enqueue),
    WAITS("QueueEnqueueMany", enqueue_many),
    WAITS("QueueDequeue", dequeue),
    WAITS("QueueDequeueMany", dequeue_many),
    WAITS("QueueDequeueUpTo", dequeue_up_to),
    {.op = "QueueClose", .run_async = close_queue},
    {.op = "QueueCloseV2", .run_async = close_queue},
    {.op = "QueueSize", .run = size},
    {.op = "QueueSizeV2", .run = size},
    {.op = "QueueIsClosed", .run = is_closed},
    {.op = "QueueIsClosedV2", .run = is_closed},
    {0},
};
