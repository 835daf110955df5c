/* stage.c -- staging areas: Stage puts a tuple of tensors, Unstage takes the oldest one, StagePeek
 * reads one. They wait without a thread (waiter.h), Stage for room, the others for a tuple. Each
 * waiter is served as soon as it can be, in the order of arrival. */
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/any/resource_op.h"
#include "kernels/any/waiter.h"

typedef struct tuple {
    leat_tensor **v; /* owned */
    int n;
    size_t bytes;
} tuple;

typedef struct area {
    leat_resource base;
    int64_t capacity, memory_limit; /* tuples, bytes; 0: no limit */
    pthread_mutex_t lock;           /* guards what follows; a step's lock is taken under it */
    tuple *items;                   /* oldest first */
    int64_t n, cap;
    size_t bytes;
    leat_waiters waiters; /* a list of attempt */
} area;

typedef enum attempt_kind { PUT, TAKE, PEEK } attempt_kind;

typedef struct attempt {
    leat_waiter base;
    attempt_kind kind;
    int64_t index; /* of PEEK */
    tuple t;       /* to be put, or taken */
} attempt;

static void tuple_free(tuple *t)
{
    for (int i = 0; i < t->n; i++)
        leat_tensor_unref(t->v[i]);
    free(t->v);
    *t = (tuple){0};
}

static void area_clear(area *a)
{
    for (int64_t i = 0; i < a->n; i++)
        tuple_free(&a->items[i]);
    a->n = 0;
    a->bytes = 0;
}

static void area_free(void *resource)
{
    area *a = resource;
    area_clear(a);
    pthread_mutex_destroy(&a->lock);
    free(a->items);
    free(a);
}

static const leat_resource_type area_type = {"N10tensorflow12_GLOBAL__N_16BufferE", area_free};

static leat_status area_new(void *arg, leat_resource **out)
{
    const leat_node *n = leat_kernel_node(arg);
    area *a = leat_new(area);
    leat_resource_init(&a->base, &area_type);
    pthread_mutex_init(&a->lock, NULL);
    a->capacity = leat_node_int(n, "capacity");
    a->memory_limit = leat_node_int(n, "memory_limit");
    *out = &a->base;
    return NULL;
}

/* The area that k's node names; made if it is not there. Shared. */
static leat_status area_of(leat_kernel *k, area **out)
{
    leat_resource_place p = {0};
    leat_resource *r = NULL;
    LEAT_TRY(leat_resource_place_of(k, &p));
    LEAT_TRY(
        leat_resources_find_or_make(p.where, p.container, p.name, &area_type, area_new, k, &r));
    *out = (area *)r;
    return NULL;
}

/* ---- Serving; the lock is held ---- */

static bool has_room(const area *a, const tuple *t)
{
    return (!a->capacity || a->n < a->capacity) &&
           (!a->memory_limit || a->bytes + t->bytes <= (size_t)a->memory_limit);
}

static bool serve_one(area *a, attempt *x)
{
    if (x->kind == PUT) {
        if (!has_room(a, &x->t))
            return false;
        leat_grow(a->items, a->n, a->cap);
        a->items[a->n++] = x->t;
        a->bytes += x->t.bytes;
        x->t = (tuple){0};
        return true;
    }
    if (x->index >= a->n)
        return false;
    tuple *from = &a->items[x->index];
    if (x->kind == TAKE) {
        x->t = *from;
        a->bytes -= from->bytes;
        memmove(from, from + 1, sizeof(*from) * (size_t)--a->n);
        return true;
    }
    x->t = (tuple){leat_new_array(leat_tensor *, from->n), from->n, from->bytes};
    for (int i = 0; i < from->n; i++)
        x->t.v[i] = leat_tensor_ref(from->v[i]);
    return true;
}

/* Serves those that can be served, until nothing changes. */
static void serve(area *a, leat_waiters *finished)
{
    for (bool again = true; again;) {
        again = false;
        for (leat_waiter *w = a->waiters.first, *next; w; w = next) {
            next = w->next;
            if (!serve_one(a, (attempt *)w))
                continue;
            leat_waiters_remove(&a->waiters, w);
            leat_waiters_done(finished, w);
            again = true;
        }
    }
}

static void cancel_locked(area *a, leat_waiter *w, leat_waiters *finished)
{
    leat_waiters_remove(&a->waiters, w);
    w->status = leat_error(CANCELLED, "Staging operation was cancelled");
    leat_waiters_done(finished, w);
}

/* ---- The functions of a waiter; the lock is released ---- */

static leat_status check_outputs(leat_kernel *k, const tuple *t)
{
    const leat_node *n = leat_kernel_node(k);
    LEAT_REQUIRE(t->n == n->n_out, INVALID_ARGUMENT, "Mismatch stage/unstage: %d vs. %d", t->n,
                 n->n_out);
    for (int i = 0; i < t->n; i++)
        LEAT_REQUIRE(t->v[i]->dtype == n->out_types[i], INVALID_ARGUMENT,
                     "Mismatch stage/unstage: tensor %d is %s, not %s", i,
                     leat_dtype_name(t->v[i]->dtype), leat_dtype_name(n->out_types[i]));
    return NULL;
}

static void give(leat_waiter *w)
{
    attempt *x = (attempt *)w;
    if (!w->status && x->kind != PUT)
        w->status = check_outputs(w->kernel, &x->t);
    for (int i = 0; !w->status && i < x->t.n; i++)
        leat_kernel_set(w->kernel, i, leat_tensor_ref(x->t.v[i]));
    tuple_free(&x->t);
}

static void cancelled(leat_waiter *w)
{
    area *a = (area *)w->resource;
    leat_waiters finished = {0};
    pthread_mutex_lock(&a->lock);
    if (w->waiting)
        cancel_locked(a, w, &finished);
    pthread_mutex_unlock(&a->lock);
    leat_waiters_finish(&finished);
}

static const leat_waiter_ops ops = {.size = sizeof(attempt), .give = give, .cancelled = cancelled};

/* Takes the reference to a, and the tuple. */
static void begin(area *a, leat_kernel *k, attempt_kind kind, int64_t index, tuple t)
{
    attempt *x = leat_waiter_new(&ops, k, &a->base);
    x->kind = kind;
    x->index = index;
    x->t = t;
    leat_waiters finished = {0};
    pthread_mutex_lock(&a->lock);
    leat_waiters_add(&a->waiters, &x->base);
    serve(a, &finished);
    if (x->base.waiting && !leat_waiter_watch(&x->base))
        cancel_locked(a, &x->base, &finished);
    pthread_mutex_unlock(&a->lock);
    leat_waiters_finish(&finished);
}

/* ---- Kernels ---- */

static size_t tensor_bytes(const leat_tensor *t)
{
    size_t bytes = (size_t)t->count * leat_dtype_size(t->dtype);
    for (int64_t i = 0; t->dtype == LEAT_STRING && i < t->count; i++)
        bytes += AT(leat_string, t)[i].size;
    return bytes;
}

static void stage(leat_kernel *k)
{
    area *a = NULL;
    leat_status s = area_of(k, &a);
    tuple t = {.n = leat_kernel_inputs(k)};
    for (int i = 0; i < t.n; i++)
        t.bytes += tensor_bytes(leat_kernel_in(k, i));
    if (!s && a->memory_limit && t.bytes > (size_t)a->memory_limit)
        s = leat_error(RESOURCE_EXHAUSTED,
                       "Attempted to insert tensors with combined size of '%zu' bytes into Staging "
                       "Area with a memory limit of '%lld'.",
                       t.bytes, (long long)a->memory_limit);
    if (s) {
        leat_resource_unref(a ? &a->base : NULL);
        leat_kernel_done(k, s);
        return;
    }
    t.v = leat_new_array(leat_tensor *, t.n);
    for (int i = 0; i < t.n; i++)
        t.v[i] = leat_tensor_ref(leat_kernel_in(k, i));
    begin(a, k, PUT, 0, t);
}

static void unstage(leat_kernel *k)
{
    area *a;
    leat_status s = area_of(k, &a);
    if (s)
        leat_kernel_done(k, s);
    else
        begin(a, k, TAKE, 0, (tuple){0});
}

static void peek(leat_kernel *k)
{
    const leat_tensor *index = leat_kernel_in(k, 0);
    area *a = NULL;
    leat_status s = area_of(k, &a);
    if (!s && (index->count != 1 || AT(int32_t, index)[0] < 0))
        s = leat_error(INVALID_ARGUMENT, "index must be a scalar that is not negative");
    if (!s) {
        begin(a, k, PEEK, AT(int32_t, index)[0], (tuple){0});
        return;
    }
    leat_resource_unref(a ? &a->base : NULL);
    leat_kernel_done(k, s);
}

static leat_status size(leat_kernel *k)
{
    area *a;
    leat_tensor *y;
    const leat_shape scalar = {0};
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    LEAT_TRY(area_of(k, &a));
    pthread_mutex_lock(&a->lock);
    AT(int32_t, y)[0] = (int32_t)a->n;
    pthread_mutex_unlock(&a->lock);
    leat_resource_unref(&a->base);
    return NULL;
}

static leat_status clear(leat_kernel *k)
{
    area *a;
    leat_waiters finished = {0};
    LEAT_TRY(area_of(k, &a));
    pthread_mutex_lock(&a->lock);
    area_clear(a);
    serve(a, &finished);
    pthread_mutex_unlock(&a->lock);
    leat_waiters_finish(&finished);
    leat_resource_unref(&a->base);
    return NULL;
}

const leat_kernel_def leat_cpu_stage[] = {
    {.op = "Stage", .run_async = stage},    {.op = "Unstage", .run_async = unstage},
    {.op = "StagePeek", .run_async = peek}, {.op = "StageSize", .run = size},
    {.op = "StageClear", .run = clear},     {0},
};
