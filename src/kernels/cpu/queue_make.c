/* queue_make.c -- FIFOQueue and the others: makes a queue from a node's attributes, or checks that
 * the existing queue of that name fits the node. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/queue.h"

static const struct {
    const char *op; /* op name, which may be followed by V2 */
    leat_queue_kind kind;
} kinds[] = {
    {"FIFOQueue", LEAT_QUEUE_FIFO},
    {"PaddingFIFOQueue", LEAT_QUEUE_PADDING},
    {"PriorityQueue", LEAT_QUEUE_PRIORITY},
    {"RandomShuffleQueue", LEAT_QUEUE_SHUFFLE},
};

static leat_queue_kind kind_of(const leat_node *n)
{
    size_t i = 0;
    while (i < 3 && strncmp(leat_node_op(n), kinds[i].op, strlen(kinds[i].op)) != 0)
        i++;
    return kinds[i].kind;
}

/* The queue that a node describes; the first component of a priority queue, int64 scalars, is
 * added. */
typedef struct wish {
    leat_queue_kind kind;
    int n, n_shapes;
    leat_dtype *types;
    leat_shape *shapes;
    int64_t capacity, min_after_take, seed, seed2;
} wish;

static void read_wish(const leat_node *n, wish *w)
{
    int n_types = 0, n_shapes = 0;
    const leat_dtype *types = leat_node_types(n, "component_types", &n_types);
    const leat_shape *shapes = leat_node_shapes(n, "shapes", &n_shapes);
    *w = (wish){.kind = kind_of(n), .capacity = leat_node_int(n, "capacity")};
    if (w->capacity < 0)
        w->capacity = INT32_MAX;
    if (w->kind == LEAT_QUEUE_SHUFFLE) {
        w->min_after_take = leat_node_int(n, "min_after_dequeue");
        w->seed = leat_node_int(n, "seed");
        w->seed2 = leat_node_int(n, "seed2");
    }
    w->types = leat_new_array(leat_dtype, n_types + 1);
    w->shapes = leat_new_array(leat_shape, n_shapes + 1);
    if (w->kind == LEAT_QUEUE_PRIORITY) {
        w->types[w->n++] = LEAT_INT64;
        w->n_shapes += n_shapes > 0;
    }
    memcpy(w->types + w->n, types, sizeof(*types) * (size_t)n_types);
    memcpy(w->shapes + w->n_shapes, shapes, sizeof(*shapes) * (size_t)n_shapes);
    w->n += n_types;
    w->n_shapes += n_shapes;
}

static void wish_release(wish *w)
{
    free(w->types);
    free(w->shapes);
}

/* ---- Texts of lists, in TensorFlow's spelling ---- */

static char *types_text(const leat_dtype *t, int n)
{
    leat_strbuf b = {0};
    for (int i = 0; i < n; i++)
        leat_strbuf_printf(&b, "%s%s", i ? ", " : "", leat_dtype_name(t[i]));
    return leat_strbuf_take(&b);
}

static char *shapes_text(const leat_shape *s, int n)
{
    leat_strbuf b = {0};
    leat_strbuf_putc(&b, '[');
    for (int i = 0; i < n; i++)
        leat_strbuf_printf(&b, "%s%s", i ? ", " : "", leat_shape_show(&s[i]).s);
    leat_strbuf_putc(&b, ']');
    return leat_strbuf_take(&b);
}

/* ---- Making ---- */

static leat_status check_shapes(const wish *w)
{
    if (w->kind == LEAT_QUEUE_PADDING)
        LEAT_REQUIRE(w->n == w->n_shapes, INVALID_ARGUMENT,
                     "Shapes must be provided for all components, but received %d dtypes and %d "
                     "shapes.",
                     w->n, w->n_shapes);
    if (w->n_shapes && w->n != w->n_shapes) {
        char *types = types_text(w->types, w->n), *shapes = shapes_text(w->shapes, w->n_shapes);
        leat_status s = leat_error(INVALID_ARGUMENT,
                                   "Different number of component types.  Types: %s, Shapes: %s",
                                   types, shapes);
        free(types);
        free(shapes);
        return s;
    }
    for (int i = 0; i < w->n_shapes; i++) {
        const leat_shape *s = &w->shapes[i];
        if (w->kind == LEAT_QUEUE_PADDING)
            LEAT_REQUIRE(s->rank >= 0, INVALID_ARGUMENT, "shape %s must have known rank.",
                         leat_shape_show(s).s);
        else
            LEAT_REQUIRE(leat_shape_known(s), INVALID_ARGUMENT,
                         "The shape %s of component %d is not fully known: only a "
                         "PaddingFIFOQueue takes such shapes",
                         leat_shape_show(s).s, i);
    }
    return NULL;
}

static leat_status check_wish(const wish *w)
{
    LEAT_REQUIRE(w->n > 0, INVALID_ARGUMENT, "No component types provided.");
    LEAT_TRY(check_shapes(w));
    LEAT_REQUIRE(w->min_after_take >= 0, INVALID_ARGUMENT, "min_after_dequeue %lld must be >= 0",
                 (long long)w->min_after_take);
    LEAT_REQUIRE(w->kind != LEAT_QUEUE_SHUFFLE || w->min_after_take < w->capacity, INVALID_ARGUMENT,
                 "min_after_dequeue %lld must be < capacity %lld", (long long)w->min_after_take,
                 (long long)w->capacity);
    return NULL;
}

/* If the node sets a seed, the order is TensorFlow's. */
static leat_status seed(leat_queue *q)
{
    uint64_t s[2] = {(uint64_t)q->seed, (uint64_t)q->seed2};
    if (!s[0] && !s[1])
        LEAT_REQUIRE(getrandom(s, sizeof(s), 0) == sizeof(s), INTERNAL,
                     "The system gives no random numbers: %s", strerror(errno));
    q->philox = leat_philox_of(s[0], s[1]);
    q->random = (leat_philox_single){.gen = &q->philox, .used = 4};
    return NULL;
}

static void queue_free(void *resource)
{
    leat_queue *q = resource;
    leat_queue_clear(q);
    pthread_mutex_destroy(&q->lock);
    free(q->types);
    free(q->shapes);
    free(q->name);
    free(q);
}

const leat_resource_type leat_queue_type = {"N10tensorflow14QueueInterfaceE", queue_free};

static leat_status make(leat_kernel *k, const char *name, leat_resource **out)
{
    wish w;
    read_wish(leat_kernel_node(k), &w);
    leat_status s = check_wish(&w);
    if (s) {
        wish_release(&w);
        return s;
    }
    leat_queue *q = leat_new(leat_queue);
    leat_resource_init(&q->base, &leat_queue_type);
    pthread_mutex_init(&q->lock, NULL);
    q->kind = w.kind;
    q->name = leat_xstrdup(name);
    q->n = w.n;
    q->types = w.types;
    q->shapes = w.n_shapes ? w.shapes : NULL;
    if (!w.n_shapes)
        free(w.shapes);
    q->capacity = w.capacity;
    q->min_after_take = w.min_after_take;
    q->seed = w.seed;
    q->seed2 = w.seed2;
    s = q->kind == LEAT_QUEUE_SHUFFLE ? seed(q) : NULL;
    if (s)
        queue_free(q);
    else
        *out = &q->base;
    return s;
}

/* ---- The queue exists already ---- */

static leat_status other_lists(const leat_queue *q, const char *what, char *has, char *asked)
{
    leat_status s = leat_error(INVALID_ARGUMENT,
                               "Shared queue '%s' has component %s %s but requested component "
                               "%s were %s",
                               q->name, what, has, what, asked);
    free(has);
    free(asked);
    return s;
}

static bool same_shapes(const leat_queue *q, const wish *w)
{
    if (w->n_shapes != (q->shapes ? q->n : 0))
        return false;
    for (int i = 0; i < w->n_shapes; i++)
        if (q->kind == LEAT_QUEUE_PADDING ? !leat_shape_compatible(&q->shapes[i], &w->shapes[i])
                                          : !leat_shape_equal(&q->shapes[i], &w->shapes[i]))
            return false;
    return true;
}

static leat_status check_numbers(const leat_queue *q, const wish *w)
{
    LEAT_REQUIRE(w->capacity == q->capacity, INVALID_ARGUMENT,
                 "Shared queue '%s' has capacity %lld but requested capacity was %lld", q->name,
                 (long long)q->capacity, (long long)w->capacity);
    LEAT_REQUIRE(w->min_after_take == q->min_after_take, INVALID_ARGUMENT,
                 "Shared queue '%s' has min_after_dequeue %lld but requested min_after_dequeue was "
                 "%lld.",
                 q->name, (long long)q->min_after_take, (long long)w->min_after_take);
    LEAT_REQUIRE(
        (!w->seed && !w->seed2) || (w->seed == q->seed && w->seed2 == q->seed2), INVALID_ARGUMENT,
        "Shared queue '%s' has random seeds (%lld, %lld) but requested seeds are (%lld, "
        "%lld).",
        q->name, (long long)q->seed, (long long)q->seed2, (long long)w->seed, (long long)w->seed2);
    return NULL;
}

static leat_status check_lists(const leat_queue *q, const wish *w)
{
    if (w->n != q->n || memcmp(w->types, q->types, sizeof(*w->types) * (size_t)w->n) != 0)
        return other_lists(q, "types", types_text(q->types, q->n), types_text(w->types, w->n));
    if (!same_shapes(q, w))
        return other_lists(q, "shapes", shapes_text(q->shapes, q->shapes ? q->n : 0),
                           shapes_text(w->shapes, w->n_shapes));
    return NULL;
}

static leat_status check(const leat_node *n, const leat_resource *r)
{
    const leat_queue *q = (const leat_queue *)r;
    LEAT_REQUIRE(q->kind == kind_of(n), INVALID_ARGUMENT, "Expected %s, found %s",
                 kinds[q->kind].op, leat_node_op(n));
    wish w;
    read_wish(n, &w);
    leat_status s = check_numbers(q, &w);
    if (!s)
        s = check_lists(q, &w);
    wish_release(&w);
    return s;
}

const leat_resource_maker leat_queue_maker = {&leat_queue_type, make, check};
