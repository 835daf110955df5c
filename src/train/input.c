/* input.c -- producers and batches (leat/input.h), built as TensorFlow's client builds them: from
 * queues, queue runners and, for a limit of epochs, a local counter. */
#include <leat/input.h>

#include <leat/control.h>
#include <leat/coordinator.h>
#include <leat/summary.h>
#include <leat/variable.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/given.h"
#include "graph/graph_int.h"
#include "train/train_int.h"

enum { CAPACITY = 32 }; /* default */

/* A summary of how full a queue is: its size divided by `by`. */
static void summarize(leat_out size, const char *name, double by)
{
    leat_graph *g = leat_graph_of(size);
    leat_scalar_summary(name,
                        leat_mul(leat_cast(size, LEAT_FLOAT), leat_scalar(g, LEAT_FLOAT, 1 / by)));
}

/* ---- Producers ---- */

/* x, as often as num_epochs says; then OUT_OF_RANGE. */
static leat_out limit_epochs(leat_out x, int64_t num_epochs)
{
    leat_graph *g = leat_graph_of(x);
    leat_out y = {0};
    leat_with_name(g, "limit_epochs")
    {
        leat_out epochs = leat_local_variable(g, "epochs", leat_scalar(g, LEAT_INT64, 0));
        leat_out count = LEAT_OP1("CountUpTo", leat_variable_ref(epochs),
                                  leat_attr_int("limit", num_epochs), leat_name("CountUpTo"));
        y = leat_identity(x, leat_after(leat_done(count)));
    }
    return y;
}

static leat_status row_shape(leat_out x, leat_shape *out)
{
    leat_shape s = leat_out_shape(x);
    LEAT_REQUIRE(s.rank != 0, INVALID_ARGUMENT,
                 "A producer needs a tensor of rows, but %s is a scalar", leat_node_name(x.node));
    bool known = s.rank > 0;
    for (int i = 1; i < s.rank; i++)
        known &= s.dim[i] >= 0;
    LEAT_REQUIRE(known, INVALID_ARGUMENT,
                 "The shape of the rows of %s must be known, but its shape is %s",
                 leat_node_name(x.node), leat_shape_show(&s).s);
    s.rank--;
    memmove(s.dim, s.dim + 1, sizeof(*s.dim) * (size_t)s.rank);
    *out = s;
    return NULL;
}

/* The rows that an epoch consists of. */
static leat_out rows_of(const char *kind, leat_out x)
{
    leat_graph *g = leat_graph_of(x);
    if (strcmp(kind, "range_input_producer") == 0)
        return leat_range(leat_scalar(g, LEAT_INT32, 0), x, leat_scalar(g, LEAT_INT32, 1));
    if (strcmp(kind, "string_input_producer") != 0)
        return x;
    leat_out some = leat_greater(leat_size_of(x), leat_scalar(g, LEAT_INT32, 0));
    leat_out error = leat_string_const(g, "string_input_producer requires a non-null input tensor");
    leat_out check = leat_op(g, "Assert", leat_in(some), leat_ins(&error, 1));
    return leat_identity(x, leat_after(leat_done(check)));
}

static leat_out produce(leat_loc at, const char *kind, leat_out x, const leat_producer_options *o)
{
    leat_graph *g = leat_graph_of(x);
    const bool limited = leat_is_given(&o->given, "num_epochs", (double)o->num_epochs);
    const int64_t capacity = leat_given_int_or(&o->given, "capacity", o->capacity, CAPACITY);
    leat_shape shape;
    if (limited && o->num_epochs <= 0)
        return leat_graph_fail(g, at,
                               leat_error(INVALID_ARGUMENT, "num_epochs must be > 0 not %lld.",
                                          (long long)o->num_epochs));
    leat_out rows = rows_of(kind, x);
    if (!leat_out_ok(rows))
        return rows;
    leat_status s = row_shape(rows, &shape);
    if (s)
        return leat_graph_fail(g, at, s);
    if (leat_given_int_or(&o->given, "shuffle", o->shuffle, 1)) {
        const leat_random_options r = {
            .given = leat_is_given(&o->given, "seed", (double)o->seed) ? o->given : (leat_given){0},
            .seed = o->seed};
        rows = leat_random_shuffle_at(at, rows, &r);
    }
    if (limited)
        rows = limit_epochs(rows, o->num_epochs);
    const leat_component c = {leat_dtype_base(leat_out_dtype(rows)), shape};
    const leat_queue_options q = {.shared_name = o->shared_name};
    leat_out queue = leat_queue_at(at, g, "FIFOQueueV2", capacity, 0, (leat_components){&c, 1}, &q);
    leat_out put = leat_enqueue_at(at, queue, &rows, 1, true);
    if (!leat_out_ok(put))
        return put;
    leat_queue_runner_at(at, queue, &put, 1, &(leat_queue_runner_options){0});
    char name[64];
    snprintf(name, sizeof(name), "fraction_of_%lld_full", (long long)capacity);
    summarize(leat_queue_size(queue), name, (double)capacity);
    return queue;
}

leat_out leat_producer_at(leat_loc at, const char *kind, leat_out x, const leat_producer_options *o)
{
    if (!leat_out_ok(x))
        return x;
    leat_graph *g = leat_graph_of(x);
    leat_loc outer = leat_at_enter(g, at);
    leat_out queue = {0};
    leat_with_name(g, o->name ? o->name : "input_producer") queue = produce(at, kind, x, o);
    leat_at_leave(g, outer);
    return queue;
}

void leat_slice_input_producer_at(leat_loc at, leat_outs xs, leat_out *outs,
                                  const leat_producer_options *o)
{
    for (int i = 0; i < xs.n; i++)
        outs[i] = xs.v[i];
    for (int i = 0; i < xs.n; i++)
        if (!leat_out_ok(xs.v[i])) {
            outs[0] = xs.v[i];
            return;
        }
    if (xs.n < 1)
        return;
    leat_graph *g = leat_graph_of(xs.v[0]);
    leat_loc outer = leat_at_enter(g, at);
    leat_with_name(g, o->name ? o->name : "input_producer")
    {
        leat_producer_options inner = *o;
        inner.name = NULL;
        leat_out zero = leat_scalar(g, LEAT_INT32, 0);
        leat_out rows = leat_gather(leat_shape_of(xs.v[0]), zero, zero);
        leat_out queue = leat_producer_at(at, "range_input_producer", rows, &inner);
        leat_out index = leat_dequeue_at(at, queue);
        for (int i = 0; i < xs.n; i++)
            outs[i] = leat_out_ok(index) ? leat_gather(xs.v[i], index, zero) : index;
    }
    leat_at_leave(g, outer);
}

/* ---- Batches ---- */

typedef struct batching {
    leat_loc at;
    leat_graph *g;
    const char *kind;
    const leat_outs *lists;
    int n_lists;
    const leat_batch_options *o;
    leat_out queue;
    leat_component *components;
} batching;

/* The shape of component i that all lists agree on. */
static leat_status merged_shape(const batching *b, int i, leat_shape *out)
{
    *out = leat_out_shape(b->lists[0].v[i]);
    for (int l = 0; l < b->n_lists; l++) {
        const leat_shape s = leat_out_shape(b->lists[l].v[i]);
        LEAT_REQUIRE(s.rank >= 0, INVALID_ARGUMENT, "Cannot infer Tensor's rank: %s",
                     leat_node_name(b->lists[l].v[i].node));
        LEAT_TRY(leat_shape_merge(out, &s, out));
    }
    if (!b->o->enqueue_many)
        return NULL;
    LEAT_REQUIRE(out->rank > 0, INVALID_ARGUMENT,
                 "With enqueue_many, tensors have a row for each example, but %s is a scalar",
                 leat_node_name(b->lists[0].v[i].node));
    out->rank--;
    memmove(out->dim, out->dim + 1, sizeof(*out->dim) * (size_t)out->rank);
    return NULL;
}

static leat_status find_components(const batching *b)
{
    const leat_outs *first = &b->lists[0];
    LEAT_REQUIRE(first->n > 0, INVALID_ARGUMENT, "Expected at least one tensor in %s().", b->kind);
    for (int l = 0; l < b->n_lists; l++)
        LEAT_REQUIRE(b->lists[l].n == first->n, INVALID_ARGUMENT,
                     "Expected the same number of tensors in all lists of %s(): %d vs. %d", b->kind,
                     first->n, b->lists[l].n);
    for (int i = 0; i < first->n; i++) {
        leat_component *c = &b->components[i];
        c->dtype = leat_dtype_base(leat_out_dtype(first->v[i]));
        for (int l = 1; l < b->n_lists; l++) {
            const leat_dtype t = leat_dtype_base(leat_out_dtype(b->lists[l].v[i]));
            LEAT_REQUIRE(t == c->dtype, INVALID_ARGUMENT,
                         "Expected types to be consistent: %s vs. %s.", leat_dtype_name(c->dtype),
                         leat_dtype_name(t));
        }
        if (b->o->shapes)
            c->shape = b->o->shapes[i];
        else
            LEAT_TRY(merged_shape(b, i, &c->shape));
    }
    return NULL;
}

static leat_status check_keep(const batching *b)
{
    const leat_out keep = b->o->keep_input;
    if (!keep.node)
        return NULL;
    const leat_shape s = leat_out_shape(keep);
    LEAT_REQUIRE(leat_dtype_base(leat_out_dtype(keep)) == LEAT_BOOL, INVALID_ARGUMENT,
                 "`keep_input` must be bool, but is %s", leat_dtype_name(leat_out_dtype(keep)));
    LEAT_REQUIRE(s.rank >= 0, INVALID_ARGUMENT,
                 "`keep_input` dimensions must be known at graph construction.");
    LEAT_REQUIRE(s.rank != 1 || b->o->enqueue_many, INVALID_ARGUMENT,
                 "`keep_input` cannot be a vector when `enqueue_many=False`.");
    LEAT_REQUIRE(s.rank <= 1, INVALID_ARGUMENT, "`keep_input` must be 0 or 1 dimensions.");
    return NULL;
}

typedef struct enqueuing {
    const batching *b;
    const leat_out *x;
    int n;
} enqueuing;

static void enqueue_branch(leat_graph *g, void *arg, leat_out *outs)
{
    const enqueuing *e = arg;
    (void)g;
    outs[0] = leat_done(leat_enqueue_at(e->b->at, e->b->queue, e->x, e->n, e->b->o->enqueue_many));
}

static void skip_branch(leat_graph *g, void *arg, leat_out *outs)
{
    (void)arg;
    outs[0] = leat_done(leat_op(g, "NoOp", leat_name("NoOp")));
}

/* The op that enqueues the examples of a list, where keep_input is true. */
static leat_out enqueue(const batching *b, const leat_outs *xs)
{
    const leat_out keep = b->o->keep_input;
    if (!keep.node)
        return leat_enqueue_at(b->at, b->queue, xs->v, xs->n, b->o->enqueue_many);
    if (leat_out_shape(keep).rank == 0) {
        enqueuing e = {b, xs->v, xs->n};
        leat_out done = {0};
        leat_cond_at(b->at, keep, enqueue_branch, skip_branch, &e, &done, 1,
                     &(leat_cond_options){0});
        return done;
    }
    leat_out *kept = leat_new_array(leat_out, xs->n);
    leat_out which = leat_cast(keep, LEAT_INT32);
    for (int i = 0; i < xs->n; i++)
        kept[i] = leat_output(
            LEAT_OP2("DynamicPartition", xs->v[i], which, leat_attr_int("num_partitions", 2)), 1);
    leat_out put = leat_enqueue_at(b->at, b->queue, kept, xs->n, true);
    free(kept);
    return put;
}

static void fill_by_threads(const batching *b)
{
    const bool join = b->n_lists > 1 || strstr(b->kind, "_join");
    const int64_t threads =
        join ? b->n_lists : leat_given_int_or(&b->o->given, "num_threads", b->o->num_threads, 1);
    if (threads < 1 || threads > 10000) {
        leat_graph_fail(
            b->g, b->at,
            leat_error(INVALID_ARGUMENT, "num_threads must be > 0 not %lld", (long long)threads));
        return;
    }
    leat_out *ops = leat_new_array(leat_out, threads), first = enqueue(b, &b->lists[0]);
    for (int i = 0; i < threads; i++)
        ops[i] = !join || i == 0 ? first : enqueue(b, &b->lists[i]);
    leat_queue_runner_at(b->at, b->queue, ops, (int)threads, &(leat_queue_runner_options){0});
    free(ops);
}

static leat_out batch(batching *b, int batch_size, int64_t capacity, int64_t min_after_dequeue)
{
    const leat_batch_options *o = b->o;
    const bool shuffles = strncmp(b->kind, "shuffle", 7) == 0;
    if (!shuffles)
        capacity = leat_given_int_or(&o->given, "capacity", o->capacity, CAPACITY);
    leat_status s = check_keep(b);
    if (!s)
        s = find_components(b);
    if (!s && shuffles && capacity <= min_after_dequeue)
        s = leat_error(INVALID_ARGUMENT,
                       "capacity %lld must be bigger than min_after_dequeue %lld.",
                       (long long)capacity, (long long)min_after_dequeue);
    if (s)
        return leat_graph_fail(b->g, b->at, s);
    const leat_queue_options q = {
        .given = o->given, .seed = o->seed, .shared_name = o->shared_name};
    const char *op = shuffles         ? "RandomShuffleQueueV2"
                     : o->dynamic_pad ? "PaddingFIFOQueueV2"
                                      : "FIFOQueueV2";
    b->queue = leat_queue_at(b->at, b->g, op, capacity, min_after_dequeue,
                             (leat_components){b->components, b->lists[0].n}, &q);
    if (!leat_out_ok(b->queue))
        return b->queue;
    fill_by_threads(b);
    char name[80];
    leat_out size = leat_queue_size(b->queue);
    if (shuffles) {
        leat_out over = leat_sub(size, leat_scalar(b->g, LEAT_INT32, (double)min_after_dequeue));
        size = leat_maximum(leat_scalar(b->g, LEAT_INT32, 0), over);
        snprintf(name, sizeof(name), "fraction_over_%lld_of_%lld_full",
                 (long long)min_after_dequeue, (long long)(capacity - min_after_dequeue));
    } else {
        snprintf(name, sizeof(name), "fraction_of_%lld_full", (long long)capacity);
    }
    summarize(size, name, (double)(capacity - (shuffles ? min_after_dequeue : 0)));
    return leat_dequeue_batch_at(
        b->at, b->queue, o->allow_smaller_final_batch ? "QueueDequeueUpToV2" : "QueueDequeueManyV2",
        batch_size);
}

void leat_batch_at(leat_loc at, const char *kind, const leat_outs *lists, int n_lists,
                   int batch_size, int64_t capacity, int64_t min_after_dequeue, leat_out *outs,
                   const leat_batch_options *o)
{
    if (n_lists < 1 || lists[0].n < 1)
        return; /* there is no tensor, hence no graph to hold the mistake, and no outs */
    for (int l = 0; l < n_lists; l++)
        for (int i = 0; i < lists[l].n; i++)
            if (!leat_out_ok(lists[l].v[i])) {
                for (int j = 0; j < lists[0].n; j++)
                    outs[j] = lists[l].v[i];
                return;
            }
    leat_graph *g = leat_graph_of(lists[0].v[0]);
    leat_loc outer = leat_at_enter(g, at);
    batching b = {.at = at, .g = g, .kind = kind, .lists = lists, .n_lists = n_lists, .o = o};
    b.components = leat_new_array(leat_component, lists[0].n);
    leat_out first = {0};
    leat_with_name(g, o->name ? o->name : kind) first =
        batch(&b, batch_size, capacity, min_after_dequeue);
    for (int i = 0; i < lists[0].n; i++)
        outs[i] = leat_out_ok(first) ? leat_output(first, i) : first;
    free(b.components);
    leat_at_leave(g, outer);
}
