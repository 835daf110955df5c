/* iteration.c -- see iteration.h. */
#include "kernels/dataset/iteration.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/variant.h"
#include "kernels/dataset/optional.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"
#include "runtime/callable_int.h"
#include "runtime/session_int.h"

/* ---- Seeds ---- */

leat_seeds *leat_seeds_new(int64_t seed, int64_t seed2)
{
    leat_seeds *s = leat_new(leat_seeds);
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    s->seed = seed;
    s->seed2 = seed2;
    return s;
}

leat_seeds *leat_seeds_ref(leat_seeds *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void leat_seeds_unref(leat_seeds *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void leat_seeds_draw(leat_seeds *s, int64_t *seed, int64_t *seed2)
{
    pthread_mutex_lock(&s->lock);
    *seed = leat_data_random(s->seed, s->seed2, s->drawn++);
    *seed2 = leat_data_random(s->seed, s->seed2, s->drawn++);
    pthread_mutex_unlock(&s->lock);
}

/* ---- Opening and closing ---- */

void leat_iteration_idle(leat_iteration *in)
{
    if (atomic_fetch_sub_explicit(&in->busy, 1, memory_order_acq_rel) == 1)
        leat_event_set(&in->quiet);
}

void leat_iteration_cancel(leat_iteration *in)
{
    atomic_store(&in->closed, true);
    leat_cancel_runs(in->closing);
}

static void iteration_free(void *resource)
{
    leat_iteration *in = resource;
    leat_iteration_cancel(in);
    leat_iteration_idle(in);
    leat_pool_wait(in->pool, &in->quiet, 0);
    leat_iterator_free(in->root);
    while (in->shared) {
        leat_shared *x = in->shared;
        in->shared = x->next;
        x->free(x->object);
        free(x);
    }
    while (in->own) {
        leat_own_callables *x = in->own;
        in->own = x->next;
        leat_callables_unref(x->set);
        free(x);
    }
    leat_pull_release(&in->pull);
    leat_cancellation_free(in->closing);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

static const leat_resource_type iteration_type = {"Iteration", iteration_free};

void leat_iteration_unref(leat_iteration *in)
{
    if (in)
        leat_resource_unref(&in->base);
}

static void pulled(leat_pull *p);

static leat_iteration *iteration_new(leat_pool *pool, leat_kernel *kernel)
{
    leat_iteration *in = leat_new(leat_iteration);
    leat_resource_init(&in->base, &iteration_type);
    in->pool = pool;
    in->kernel = kernel;
    in->closing = leat_cancellation_new();
    atomic_init(&in->busy, 1);
    leat_event_init(&in->quiet);
    pthread_mutex_init(&in->lock, NULL);
    in->pull = (leat_pull){.iteration = in, .done = pulled, .done_arg = in};
    return in;
}

leat_status leat_iteration_new(leat_pool *pool, leat_kernel *kernel, leat_dataset *d,
                               leat_iteration **out)
{
    leat_iteration *in = iteration_new(pool, kernel);
    leat_status s = leat_iterator_new(in, d, NULL, 0, &in->root);
    if (s)
        leat_iteration_unref(in);
    else
        *out = in;
    return s;
}

static leat_status restore(leat_iteration *in, leat_dataset *d, leat_state_reader *r)
{
    LEAT_TRY(leat_iterator_new(in, d, NULL, 0, &in->root));
    LEAT_TRY(leat_state_get_iterator(r, in, d, NULL, 0, &in->root));
    LEAT_REQUIRE(in->root, DATA_LOSS, "The saved position is damaged: it has no iterator");
    LEAT_TRY(leat_state_get_bool(r, &in->held));
    if (in->held) {
        LEAT_TRY(leat_state_get_bool(r, &in->pull.end));
        if (in->pull.end)
            LEAT_TRY(leat_state_get_element(r, &in->pull.element));
        else
            LEAT_TRY(leat_state_get_element_of(r, d->n, d->types, &in->pull.element));
    }
    return leat_state_end(r);
}

leat_status leat_iteration_restore(leat_pool *pool, leat_dataset *d, const char *bytes, size_t n,
                                   leat_iteration **out)
{
    leat_iteration *in = iteration_new(pool, NULL);
    leat_state_reader r = {.bytes = bytes, .n = n};
    leat_status s = restore(in, d, &r);
    if (s)
        leat_iteration_unref(in);
    else
        *out = in;
    return s;
}

void *leat_iterator_shared(const leat_iterator *it, void *(*make)(void *arg), void *arg,
                           void (*free_fn)(void *object))
{
    leat_iteration *in = it->iteration;
    pthread_mutex_lock(&in->lock);
    leat_shared *x = in->shared;
    while (x && (x->of != it->d || x->path != it->path))
        x = x->next;
    if (!x) {
        x = leat_new(leat_shared);
        *x = (leat_shared){in->shared, it->d, it->path, make(arg), free_fn};
        in->shared = x;
    }
    pthread_mutex_unlock(&in->lock);
    return x->object;
}

leat_status leat_iteration_function(leat_iteration *in, leat_callable *f, leat_callable **out)
{
    *out = f;
    if (!leat_callable_seeded(f))
        return NULL;
    pthread_mutex_lock(&in->lock);
    leat_own_callables *x = in->own;
    while (x && x->from != f->set && x->set != f->set)
        x = x->next;
    if (!x) {
        x = leat_new(leat_own_callables);
        *x = (leat_own_callables){in->own, f->set, leat_callables_again(f->set)};
        in->own = x;
    }
    pthread_mutex_unlock(&in->lock);
    /* A function that makes datasets runs with kernels of the iteration: so do theirs. */
    return x->set == f->set ? NULL
                            : leat_callables_get(x->set, f->f.func, f->gradient, f->device, out);
}

/* ---- Kernels that wait for an element ---- */

typedef struct request {
    leat_waiter base;
    enum { ELEMENT, OPTIONAL, POSITION } wants;
    leat_element element;
    bool end;
    leat_tensor *position;
} request;

leat_status leat_iteration_give(leat_kernel *k, leat_element *e)
{
    leat_status s = NULL;
    int n;
    const leat_node *node = leat_kernel_node(k);
    const leat_shape *shapes =
        leat_node_has(node, "output_shapes") ? leat_node_shapes(node, "output_shapes", &n) : NULL;
    if (e->n != k->n_out)
        s = leat_error(INVALID_ARGUMENT, "The element has %d components, expected %d.", e->n,
                       k->n_out);
    for (int i = 0; i < e->n && !s; i++) {
        if (e->v[i]->dtype != leat_kernel_out_dtype(k, i))
            s = leat_error(INVALID_ARGUMENT,
                           "The element does not match the expected type for component %d. "
                           "Expected: %s. Actual: %s.",
                           i, leat_dtype_name(leat_kernel_out_dtype(k, i)),
                           leat_dtype_name(e->v[i]->dtype));
        else if (shapes && i < n && !leat_shape_compatible(&shapes[i], &e->v[i]->shape))
            s = leat_error(INVALID_ARGUMENT,
                           "The element does not match the expected shape for component %d. "
                           "Expected: %s. Actual: %s.",
                           i, leat_shape_show(&shapes[i]).s, leat_shape_show(&e->v[i]->shape).s);
    }
    for (int i = 0; i < e->n && !s; i++)
        leat_kernel_set(k, i, leat_tensor_ref(e->v[i]));
    leat_element_clear(e);
    return s;
}

static leat_status give_optional(leat_kernel *k, request *r)
{
    leat_optional *o = leat_optional_new(r->end ? 0 : r->element.n);
    for (int i = 0; i < o->n; i++)
        o->v[i] = leat_tensor_ref(r->element.v[i]);
    return leat_variant_give(k, 0, (leat_variant){&leat_optional_type, o});
}

static void give(leat_waiter *w)
{
    request *r = (request *)w;
    leat_kernel *k = w->kernel;
    if (!w->status && r->wants == POSITION) {
        leat_kernel_set(k, 0, r->position);
        r->position = NULL;
    } else if (!w->status && r->wants == OPTIONAL) {
        w->status = give_optional(k, r);
    } else if (!w->status && r->end) {
        w->status = leat_error(OUT_OF_RANGE, "End of sequence");
    } else if (!w->status) {
        w->status = leat_iteration_give(k, &r->element);
    }
    leat_element_clear(&r->element);
    leat_tensor_unref(r->position);
}

static void serve(leat_iteration *in);

static void cancelled(leat_waiter *w)
{
    leat_iteration *in = (leat_iteration *)w->resource;
    leat_waiters finished = {0};
    pthread_mutex_lock(&in->lock);
    if (w->waiting) {
        leat_waiters_remove(&in->waiting, w);
        w->status = leat_error(CANCELLED, "The wait for an element of the iterator was cancelled");
        leat_waiters_done(&finished, w);
    }
    pthread_mutex_unlock(&in->lock);
    leat_waiters_finish(&finished);
}

static const leat_waiter_ops request_ops = {
    .size = sizeof(request), .give = give, .cancelled = cancelled};

/* With the lock held: gives what the pull holds to the first kernel that waits for an element. */
static void hand_over(leat_iteration *in, leat_waiters *finished)
{
    request *r = (request *)in->waiting.first;
    if (!in->held || !r || r->wants == POSITION)
        return;
    leat_waiters_remove(&in->waiting, &r->base);
    r->base.status = in->pull.status;
    in->pull.status = NULL;
    r->end = in->pull.end;
    r->element = leat_element_take(&in->pull.element);
    in->held = false;
    leat_waiters_done(finished, &r->base);
}

/* The pull has ended: nothing of the iteration is under way for kernels any more. */
static void settle(leat_iteration *in)
{
    leat_waiters finished = {0};
    pthread_mutex_lock(&in->lock);
    in->occupied = false;
    in->held = true;
    hand_over(in, &finished);
    leat_resource *more = in->waiting.first ? &in->base : NULL;
    if (more)
        leat_resource_ref(more);
    pthread_mutex_unlock(&in->lock);
    leat_iteration_idle(in);
    leat_waiters_finish(&finished);
    if (more)
        serve(in);
    leat_resource_unref(more);
}

static void pulled(leat_pull *p)
{
    settle(p->iteration);
}

/* ---- Saving ---- */

typedef struct saving {
    leat_iteration *in;
    request *r;
} saving;

leat_status leat_iteration_position(leat_iteration *in, leat_state_writer *w)
{
    LEAT_TRY(leat_state_put_iterator(w, in->root));
    leat_status failed = in->held ? in->pull.status : NULL;
    LEAT_REQUIRE(!failed, FAILED_PRECONDITION,
                 "The iterator has an error that no step has got yet: %s",
                 leat_status_message(failed));
    leat_state_put_int(w, in->held);
    if (in->held) {
        leat_state_put_int(w, in->pull.end);
        LEAT_TRY(leat_state_put_element(w, &in->pull.element));
    }
    return leat_strbuf_check(&w->bytes);
}

static leat_status position_of(leat_iteration *in, leat_state_writer *w, leat_tensor **out)
{
    LEAT_TRY(leat_iteration_position(in, w));
    LEAT_TRY(leat_tensor_new(LEAT_VARIANT, leat_shape(), out));
    LEAT_REQUIRE(
        leat_position_variant(leat_strbuf_text(&w->bytes), w->bytes.n, AT(leat_variant, *out)),
        RESOURCE_EXHAUSTED, "OOM when copying the position of an iterator, %zu bytes", w->bytes.n);
    return NULL;
}

static void save(void *arg)
{
    saving *x = arg;
    leat_iteration *in = x->in;
    request *r = x->r;
    free(x);
    leat_state_writer w = {.bytes = {.checked = true}, .kernel = r->base.kernel};
    r->base.status = position_of(in, &w, &r->position);
    leat_strbuf_release(&w.bytes);
    leat_waiters finished = {0};
    leat_waiters_done(&finished, &r->base);
    leat_resource_ref(&in->base);
    pthread_mutex_lock(&in->lock);
    in->occupied = false;
    pthread_mutex_unlock(&in->lock);
    leat_iteration_idle(in);
    leat_waiters_finish(&finished);
    serve(in);
    leat_iteration_unref(in);
}

/* ---- The list of kernels ---- */

/* Does what the kernels in the list want, as far as that needs no waiting. The caller has a
 * reference. */
static void serve(leat_iteration *in)
{
    for (;;) {
        leat_waiters finished = {0};
        request *to_save = NULL;
        bool pull = false;
        pthread_mutex_lock(&in->lock);
        request *r = (request *)in->waiting.first;
        if (r && !in->occupied) {
            if (r->wants == POSITION) {
                to_save = r;
                leat_waiters_remove(&in->waiting, &r->base);
            } else if (in->held) {
                hand_over(in, &finished);
            } else {
                pull = true;
            }
            in->occupied = to_save || pull;
            if (in->occupied)
                leat_iteration_busy(in);
        }
        pthread_mutex_unlock(&in->lock);
        if (to_save) {
            saving *x = leat_new(saving);
            *x = (saving){in, to_save};
            if (leat_pool_submit_blocking(in->pool, save, x) != 0)
                save(x); /* No thread can be started: this one blocks. */
            return;
        }
        if (finished.first) {
            leat_waiters_finish(&finished);
            continue;
        }
        if (!pull || !leat_pull_start(&in->pull, in->root))
            return;
        pthread_mutex_lock(&in->lock);
        in->occupied = false;
        in->held = true;
        hand_over(in, &finished);
        pthread_mutex_unlock(&in->lock);
        leat_iteration_idle(in);
        leat_waiters_finish(&finished);
    }
}

static void ask(leat_iteration *in, leat_kernel *k, int wants)
{
    request *r = leat_waiter_new(&request_ops, k, &in->base);
    r->wants = wants;
    leat_resource_ref(&in->base);
    leat_waiters finished = {0};
    pthread_mutex_lock(&in->lock);
    leat_waiters_add(&in->waiting, &r->base);
    if (!leat_waiter_watch(&r->base)) {
        leat_waiters_remove(&in->waiting, &r->base);
        r->base.status = leat_error(CANCELLED, "The step was cancelled");
        leat_waiters_done(&finished, &r->base);
    }
    pthread_mutex_unlock(&in->lock);
    leat_waiters_finish(&finished);
    serve(in);
    leat_iteration_unref(in);
}

void leat_iteration_get(leat_iteration *in, leat_kernel *k, bool optional)
{
    ask(in, k, optional ? OPTIONAL : ELEMENT);
}

void leat_iteration_save(leat_iteration *in, leat_kernel *k)
{
    ask(in, k, POSITION);
}
