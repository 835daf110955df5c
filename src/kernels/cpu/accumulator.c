/* accumulator.c -- the kernels of accumulators: making one, adding gradients, taking the mean. */
#include "kernels/cpu/accumulator.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/log.h"

/* ---- Making ---- */

static void accumulator_free(void *resource)
{
    leat_accumulator *a = resource;
    leat_tensor_unref(a->sum);
    leat_tensor_unref(a->last);
    free(a->indices);
    free(a->counts);
    pthread_mutex_destroy(&a->lock);
    free(a->name);
    free(a->dropped_of);
    free(a);
}

static const leat_resource_type accumulator_type = {"N10tensorflow26ConditionalAccumulatorBaseE",
                                                    accumulator_free};

static leat_status make(leat_kernel *k, const char *name, leat_resource **out)
{
    const leat_node *n = leat_kernel_node(k);
    leat_accumulator *a = leat_new(leat_accumulator);
    leat_resource_init(&a->base, &accumulator_type);
    pthread_mutex_init(&a->lock, NULL);
    a->dtype = leat_node_type(n, "dtype");
    a->shape = leat_node_shape(n, "shape");
    a->sparse = leat_node_is(n, "SparseConditionalAccumulator");
    a->mean = strcmp(leat_node_string(n, "reduction_type"), "MEAN") == 0;
    a->name = leat_xstrdup(name);
    *out = &a->base;
    return NULL;
}

static leat_status accumulator_run(leat_kernel *k)
{
    static const leat_resource_maker maker = {&accumulator_type, make, NULL};
    return leat_resource_op_run(k, &maker);
}

/* The accumulator behind input 0; shared. */
static leat_status accumulator_of(leat_kernel *k, leat_accumulator **out)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, 0, &accumulator_type, &r));
    *out = (leat_accumulator *)r;
    return NULL;
}

/* ---- Taking ---- */

typedef struct taker {
    leat_waiter base;
    int32_t required;
} taker;

/* The lock is held. */
static void serve(leat_accumulator *a, leat_waiters *finished)
{
    for (taker *t; (t = (taker *)a->takers.first) && a->count >= t->required;) {
        t->base.status = leat_accumulator_give(a, t->base.kernel);
        if (!t->base.status) {
            a->count = 0;
            a->step++;
        }
        leat_waiters_remove(&a->takers, &t->base);
        leat_waiters_done(finished, &t->base);
    }
}

static void cancel_locked(leat_accumulator *a, leat_waiter *w, leat_waiters *finished)
{
    leat_waiters_remove(&a->takers, w);
    w->status = leat_error(CANCELLED, "TakeGrad operation was cancelled");
    leat_waiters_done(finished, w);
    serve(a, finished);
}

static void cancelled(leat_waiter *w)
{
    leat_accumulator *a = (leat_accumulator *)w->resource;
    leat_waiters finished = {0};
    pthread_mutex_lock(&a->lock);
    if (w->waiting)
        cancel_locked(a, w, &finished);
    pthread_mutex_unlock(&a->lock);
    leat_waiters_finish(&finished);
}

static void given(leat_waiter *w)
{
    (void)w; /* the outputs were set when the waiter was served */
}

static const leat_waiter_ops taker_ops = {
    .size = sizeof(taker), .give = given, .cancelled = cancelled};

static leat_status check_take(const leat_accumulator *a, leat_kernel *k)
{
    static const leat_dtype number[] = {LEAT_INT32};
    leat_dtype dense[] = {a->dtype}, rows[] = {LEAT_INT64, a->dtype, LEAT_INT64};
    LEAT_TRY(leat_kernel_signature(k, number, 1, a->sparse ? rows : dense, a->sparse ? 3 : 1));
    const leat_tensor *n = leat_kernel_in(k, 1);
    LEAT_REQUIRE(n->shape.rank == 0, INVALID_ARGUMENT,
                 "Argument num_required must be scalar, but had bad shape %s",
                 leat_shape_show(&n->shape).s);
    LEAT_REQUIRE(AT(int32_t, n)[0] > 0, INVALID_ARGUMENT,
                 "Argument num_required must be positive, but was %d", AT(int32_t, n)[0]);
    return NULL;
}

static void take(leat_kernel *k)
{
    leat_accumulator *a = NULL;
    leat_status s = accumulator_of(k, &a);
    if (!s)
        s = check_take(a, k);
    if (s) {
        leat_resource_unref(a ? &a->base : NULL);
        leat_kernel_done(k, s);
        return;
    }
    taker *t = leat_waiter_new(&taker_ops, k, &a->base);
    t->required = AT(int32_t, leat_kernel_in(k, 1))[0];
    leat_waiters finished = {0};
    pthread_mutex_lock(&a->lock);
    leat_waiters_add(&a->takers, &t->base);
    serve(a, &finished);
    if (t->base.waiting && !leat_waiter_watch(&t->base))
        cancel_locked(a, &t->base, &finished);
    pthread_mutex_unlock(&a->lock);
    leat_waiters_finish(&finished);
}

/* ---- Adding gradients ---- */

static leat_status check_apply(const leat_accumulator *a, leat_kernel *k)
{
    leat_dtype dense[] = {LEAT_INT64, a->dtype};
    leat_dtype rows[] = {LEAT_INT64, LEAT_INT64, a->dtype, LEAT_INT64};
    int n_out = leat_kernel_node(k)->n_out;
    static const leat_dtype accepted[] = {LEAT_BOOL};
    LEAT_TRY(
        leat_kernel_signature(k, a->sparse ? rows : dense, a->sparse ? 4 : 2, accepted, n_out));
    const leat_tensor *step = leat_kernel_in(k, 1);
    LEAT_REQUIRE(step->shape.rank == 0, INVALID_ARGUMENT,
                 "Argument local_step must be scalar, but had bad shape %s",
                 leat_shape_show(&step->shape).s);
    return NULL;
}

enum { MAX_REPLICAS = 1 << 16 };

/* The replica that a node belongs to, from its attribute _replica; -1 if it has none. */
static int64_t replica_of(const leat_node *n)
{
    int64_t r = leat_node_has(n, "_replica") ? leat_node_int(n, "_replica") : -1;
    return r >= 0 && r < MAX_REPLICAS ? r : -1;
}

static void count_dropped(leat_accumulator *a, const leat_node *n)
{
    int64_t r = replica_of(n);
    a->dropped++;
    if (r >= a->n_dropped_of) {
        a->dropped_of = leat_xrealloc(a->dropped_of, sizeof(int64_t) * (size_t)(r + 1));
        while (a->n_dropped_of <= r)
            a->dropped_of[a->n_dropped_of++] = 0;
    }
    if (r >= 0)
        a->dropped_of[r]++;
}

static leat_status add(leat_accumulator *a, leat_kernel *k, bool *accepted_out)
{
    leat_waiters finished = {0};
    leat_status s = NULL;
    pthread_mutex_lock(&a->lock);
    bool fresh = AT(int64_t, leat_kernel_in(k, 1))[0] >= a->step;
    if (fresh)
        s = leat_accumulator_add(a, k);
    else
        count_dropped(a, leat_kernel_node(k));
    if (fresh && !s) {
        a->count++;
        serve(a, &finished);
    }
    pthread_mutex_unlock(&a->lock);
    leat_waiters_finish(&finished);
    *accepted_out = fresh;
    return s;
}

static leat_status try_apply(leat_kernel *k, bool *accepted_out)
{
    leat_accumulator *a;
    LEAT_TRY(accumulator_of(k, &a));
    leat_status s = check_apply(a, k);
    if (!s)
        s = add(a, k, accepted_out);
    leat_resource_unref(&a->base);
    return s;
}

static leat_status apply(leat_kernel *k)
{
    bool accepted;
    return try_apply(k, &accepted);
}

static leat_status apply_and_tell(leat_kernel *k)
{
    leat_tensor *y;
    leat_shape scalar = {0};
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    return try_apply(k, &AT(bool, y)[0]);
}

/* ---- Steps and counts ---- */

static leat_status set_step(leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Argument new_global_step must be scalar, but had bad shape %s",
                 leat_shape_show(&t->shape).s);
    int64_t step = AT(int64_t, t)[0];
    leat_accumulator *a;
    LEAT_TRY(accumulator_of(k, &a));
    pthread_mutex_lock(&a->lock);
    int64_t old = a->step;
    a->step = step;
    pthread_mutex_unlock(&a->lock);
    if (step < old)
        LEAT_LOG(WARNING, "The step of accumulator %s goes back from %" PRId64 " to %" PRId64,
                 a->name, old, step);
    leat_resource_unref(&a->base);
    return NULL;
}

static leat_status number(leat_kernel *k, bool dropped)
{
    leat_tensor *y;
    leat_shape scalar = {0};
    leat_accumulator *a;
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    LEAT_TRY(accumulator_of(k, &a));
    const leat_node *n = leat_kernel_node(k);
    int64_t r = replica_of(n);
    pthread_mutex_lock(&a->lock);
    if (dropped)
        AT(int64_t, y)
    [0] = !leat_node_has(n, "_replica")   ? a->dropped
          : r >= 0 && r < a->n_dropped_of ? a->dropped_of[r]
                                          : 0;
    else AT(int32_t, y)[0] = a->count;
    pthread_mutex_unlock(&a->lock);
    leat_resource_unref(&a->base);
    return NULL;
}

static leat_status num_accumulated(leat_kernel *k)
{
    return number(k, false);
}

static leat_status num_dropped(leat_kernel *k)
{
    return number(k, true);
}

#define MAKES(name)                                                                                \
    {                                                                                              \
        .op = name, .where = {{"dtype", LEAT_TYPES_FLOATING}}, .run = accumulator_run,             \
        .state_size = sizeof(leat_resource_op), .release = leat_resource_op_release                \
    }

const leat_kernel_def leat_cpu_accumulator[] = {
    MAKES("ConditionalAccumulator"),
    MAKES("ResourceConditionalAccumulator"),
    MAKES("SparseConditionalAccumulator"),
    {.op = "AccumulatorApplyGradient", .run = apply},
    {.op = "ResourceAccumulatorApplyGradient", .run = apply},
    {.op = "SparseAccumulatorApplyGradient", .run = apply},
    {.op = "_AccumulatorTryApplyGradient", .run = apply_and_tell},
    {.op = "_ResourceAccumulatorTryApplyGradient", .run = apply_and_tell},
    {.op = "_SparseAccumulatorTryApplyGradient", .run = apply_and_tell},
    {.op = "AccumulatorTakeGradient", .run_async = take},
    {.op = "ResourceAccumulatorTakeGradient", .run_async = take},
    {.op = "SparseAccumulatorTakeGradient", .run_async = take},
    {.op = "AccumulatorSetGlobalStep", .run = set_step},
    {.op = "ResourceAccumulatorSetGlobalStep", .run = set_step},
    {.op = "AccumulatorNumAccumulated", .run = num_accumulated},
    {.op = "ResourceAccumulatorNumAccumulated", .run = num_accumulated},
    {.op = "_AccumulatorNumDropped", .run = num_dropped},
    {.op = "_ResourceAccumulatorNumDropped", .run = num_dropped},
    {0},
};
