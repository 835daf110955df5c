/* queue.c -- constructors of queues' nodes, with the names and checks of TensorFlow's client. */
#include <leat/queue.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/md5.h"
#include "core/strbuf.h"
#include "graph/given.h"
#include "graph/graph_int.h"

/* "FIFOQueueV2" -> "fifo_queue" */
static const struct {
    const char *op, *name;
} default_names[] = {
    {"FIFOQueueV2", "fifo_queue"},
    {"PaddingFIFOQueueV2", "padding_fifo_queue"},
    {"PriorityQueueV2", "priority_queue"},
    {"RandomShuffleQueueV2", "random_shuffle_queue"},
};

static const char *default_name(const char *op)
{
    for (size_t i = 0; i < sizeof(default_names) / sizeof(*default_names); i++)
        if (strcmp(op, default_names[i].op) == 0)
            return default_names[i].name;
    return NULL;
}

/* As in TensorFlow's client: if only the graph's seed is set, the second seed of a shared queue
 * does not depend on the number of nodes. */
static void shuffle_seeds(const leat_graph *g, const leat_queue_options *o, int64_t *seed,
                          int64_t *seed2)
{
    bool own = leat_is_given(&o->given, "seed", o->seed != 0);
    leat_graph_seeds(g, own ? &o->seed : NULL, seed, seed2);
    if (own || !g->has_seed || !o->shared_name || !o->shared_name[0])
        return;
    uint8_t d[16];
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%lld%s", (long long)*seed, o->shared_name);
    leat_md5(b.s, b.n, d);
    leat_strbuf_release(&b);
    *seed2 = (int64_t)(d[0] & 0x7f) << 24 | d[1] << 16 | d[2] << 8 | d[3];
}

leat_out leat_queue_at(leat_loc at, leat_graph *g, const char *op, int64_t capacity,
                       int64_t min_after_dequeue, leat_components c,
                       const leat_queue_options *options)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_dtype *types = leat_new_array(leat_dtype, c.n + 1);
    leat_shape *shapes = leat_new_array(leat_shape, c.n + 1);
    int known = 0;
    for (int i = 0; i < c.n; i++) {
        types[i] = c.v[i].dtype;
        shapes[i] = c.v[i].shape;
        known += shapes[i].rank >= 0;
    }
    int64_t seed = 0, seed2 = 0;
    bool shuffles = strcmp(op, "RandomShuffleQueueV2") == 0;
    if (shuffles)
        shuffle_seeds(g, options, &seed, &seed2);
    leat_arg skip = {.kind = LEAT_ARG_SKIP};
    leat_out q = leat_op_at(
        at, g, op,
        LEAT_ARGS(leat_attr_types("component_types", types, c.n),
                  leat_attr_shapes("shapes", shapes, known ? c.n : 0),
                  leat_attr_int("capacity", capacity > 0 ? capacity : -1),
                  leat_attr_string("container", options->container),
                  leat_attr_string("shared_name", options->shared_name),
                  leat_name(options->name ? options->name : default_name(op)),
                  shuffles ? leat_attr_int("min_after_dequeue", min_after_dequeue) : skip,
                  shuffles ? leat_attr_int("seed", seed) : skip,
                  shuffles ? leat_attr_int("seed2", seed2) : skip));
    free(types);
    free(shapes);
    return q;
}

/* ---- What is known of a queue while building ---- */

typedef struct declared {
    leat_node *node;
    bool priority; /* there is an int64 scalar in front of the components */
    const leat_dtype *types;
    const leat_shape *shapes; /* NULL: any */
    int n;                    /* including the priority */
} declared;

static leat_status look_at(leat_out q, declared *d)
{
    int n_shapes = 0;
    *d = (declared){.node = q.node};
    LEAT_REQUIRE(default_name(leat_node_op(q.node)), INVALID_ARGUMENT,
                 "%s is not a queue: it is the output of a %s", leat_node_name(q.node),
                 leat_node_op(q.node));
    d->types = leat_node_types(q.node, "component_types", &d->n);
    d->shapes = leat_node_shapes(q.node, "shapes", &n_shapes);
    d->priority = leat_node_is(q.node, "PriorityQueueV2");
    if (n_shapes != d->n)
        d->shapes = NULL;
    d->n += d->priority;
    return NULL;
}

static leat_dtype component_type(const declared *d, int i)
{
    return d->priority && i == 0 ? LEAT_INT64 : d->types[i - d->priority];
}

static leat_shape component_shape(const declared *d, int i, bool many)
{
    if (!d->shapes && !(d->priority && i == 0))
        return leat_shape_unknown();
    leat_shape s = d->priority && i == 0 ? leat_shape() : d->shapes[i - d->priority];
    if (!many || s.rank < 0 || s.rank == LEAT_MAX_RANK)
        return many ? leat_shape_unknown() : s;
    memmove(s.dim + 1, s.dim, sizeof(*s.dim) * (size_t)s.rank);
    s.dim[0] = -1;
    s.rank++;
    return s;
}

static leat_status check_put(const declared *d, const leat_out *x, int n, bool many)
{
    LEAT_REQUIRE(n == d->n, INVALID_ARGUMENT,
                 "Wrong number of components in tuple. Expected %d, got %d", d->n, n);
    for (int i = 0; i < n; i++) {
        leat_dtype t = leat_dtype_base(leat_out_dtype(x[i]));
        LEAT_REQUIRE(t == component_type(d, i), INVALID_ARGUMENT,
                     "Type mismatch in tuple component %d. Expected %s, got %s", i,
                     leat_dtype_name(component_type(d, i)), leat_dtype_name(t));
        leat_shape want = component_shape(d, i, many), got = leat_out_shape(x[i]);
        LEAT_REQUIRE(leat_shape_compatible(&want, &got), INVALID_ARGUMENT,
                     "Shape mismatch in tuple component %d. Expected %s, got %s", i,
                     leat_shape_show(&want).s, leat_shape_show(&got).s);
    }
    return NULL;
}

/* The name of an op on a queue: "fifo_queue_enqueue", in the queue's own scope as in TensorFlow. */
static const char *name_of(const leat_node *q, const char *suffix)
{
    const char *slash = strrchr(q->name, '/');
    return leat_arena_printf(&q->graph->arena, "%s%s", slash ? slash + 1 : q->name, suffix);
}

leat_out leat_enqueue_at(leat_loc at, leat_out q, const leat_out *x, int n, bool many)
{
    declared d;
    for (int i = 0; i < n; i++)
        if (!leat_out_ok(x[i]))
            return x[i];
    if (!leat_out_ok(q))
        return q;
    leat_status s = look_at(q, &d);
    if (!s)
        s = check_put(&d, x, n, many);
    if (s)
        return leat_graph_fail(q.node->graph, at, s);
    return leat_op_at(at, q.node->graph, many ? "QueueEnqueueManyV2" : "QueueEnqueueV2",
                      LEAT_ARGS(leat_in(q), leat_ins(x, n),
                                leat_name(name_of(q.node, many ? "_EnqueueMany" : "_enqueue"))));
}

static leat_out dequeue(leat_loc at, leat_out q, const char *op, const char *suffix, leat_arg n)
{
    declared d;
    if (!leat_out_ok(q))
        return q;
    leat_status s = look_at(q, &d);
    if (s)
        return leat_graph_fail(q.node->graph, at, s);
    leat_dtype *types = leat_new_array(leat_dtype, d.n + 1);
    for (int i = 0; i < d.n; i++)
        types[i] = component_type(&d, i);
    leat_out x = leat_op_at(at, q.node->graph, op,
                            LEAT_ARGS(leat_in(q), n, leat_attr_types("component_types", types, d.n),
                                      leat_name(name_of(q.node, suffix))));
    free(types);
    return x;
}

leat_out leat_dequeue_at(leat_loc at, leat_out q)
{
    return dequeue(at, q, "QueueDequeueV2", "_Dequeue", (leat_arg){.kind = LEAT_ARG_SKIP});
}

leat_out leat_dequeue_batch_at(leat_loc at, leat_out q, const char *op, int n)
{
    if (!leat_out_ok(q))
        return q;
    leat_out count = leat_scalar_at(at, q.node->graph, LEAT_INT32, n);
    bool all = strcmp(op, "QueueDequeueManyV2") == 0;
    return dequeue(at, q, op, all ? "_DequeueMany" : "_DequeueUpTo", leat_in(count));
}

leat_out leat_queue_close_at(leat_loc at, leat_out q, const leat_queue_close_options *o)
{
    if (!leat_out_ok(q))
        return q;
    return leat_op_at(
        at, q.node->graph, "QueueCloseV2",
        LEAT_ARGS(leat_in(q), leat_attr_bool("cancel_pending_enqueues", o->cancel_pending_enqueues),
                  leat_name(name_of(q.node, "_Close"))));
}
