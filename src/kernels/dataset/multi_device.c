/* multi_device.c -- MultiDeviceIterator: the elements of one dataset are dealt out to shards in
 * turn, one shard for each device, and each shard has a buffer.
 *
 * 1. A resource has one `dealer` at a time, which goes through the dataset once. Initialising the
 *    resource again closes the dealer and makes one with the next incarnation id.
 * 2. References to a dealer are held by the resource and by each kernel that waits for an element.
 *    The last one to be dropped frees it, after the work in the background has ended.
 * 3. Work in the background (`pulling`) holds no reference but counts as busy in the iteration. It
 *    begins when the first kernel asks, and pauses while the buffer of the shard whose turn it is
 *    is full. Once it is not busy any more it does not touch the dealer.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/any/resource_op.h"
#include "kernels/dataset/handles.h"
#include "kernels/dataset/iteration.h"

/* What a pull has given to a shard for which no kernel waited. */
typedef struct result {
    struct result *next;
    leat_status status;
    leat_element element;
} result;

typedef struct shard {
    result *first, *last;
    int64_t n;            /* results */
    leat_waiters waiting; /* kernels; none while there are results */
} shard;

typedef struct dealer {
    leat_resource base;
    leat_iteration *in;
    int64_t id;           /* of the incarnation */
    int64_t most;         /* results of a shard */
    leat_pull pull;       /* used by the work in the background */
    pthread_mutex_t lock; /* guards what follows */
    bool pulling;         /* work is under way in the background */
    bool ended;           /* the dataset has */
    bool closed;          /* another incarnation has begun, or the resource has ended */
    int turn;             /* the shard that gets the next element */
    int n_shards;         /* does not change */
    shard *shards;
} dealer;

typedef struct leat_multi_device {
    leat_resource base;
    leat_element_spec spec; /* does not change */
    int n_devices;          /* does not change */
    pthread_mutex_t lock;   /* guards what follows */
    int64_t id;             /* of the last incarnation */
    dealer *now;            /* NULL until the resource was initialised */
} resource;

/* ---- Kernels that wait ---- */

typedef struct request {
    leat_waiter base;
    shard *at;
    leat_element element;
} request;

static void give(leat_waiter *w)
{
    request *r = (request *)w;
    if (!w->status)
        w->status = leat_iteration_give(w->kernel, &r->element);
    leat_element_clear(&r->element);
}

static void cancelled(leat_waiter *w)
{
    dealer *d = (dealer *)w->resource;
    leat_waiters finished = {0};
    pthread_mutex_lock(&d->lock);
    if (w->waiting) {
        leat_waiters_remove(&((request *)w)->at->waiting, w);
        w->status = leat_error(CANCELLED, "The wait for an element of the iterator was cancelled");
        leat_waiters_done(&finished, w);
    }
    pthread_mutex_unlock(&d->lock);
    leat_waiters_finish(&finished);
}

static const leat_waiter_ops request_ops = {
    .size = sizeof(request), .give = give, .cancelled = cancelled};

/* ---- Dealing, with the lock held ---- */

static bool wanted(const dealer *d)
{
    return !d->closed && !d->ended && d->shards[d->turn].n < d->most;
}

/* Ends all kernels that wait: the data have ended, or the dealer is closed. */
static void end_waiting(dealer *d, leat_waiters *finished)
{
    for (int i = 0; i < d->n_shards; i++)
        for (leat_waiter *w; (w = d->shards[i].waiting.first);) {
            leat_waiters_remove(&d->shards[i].waiting, w);
            w->status = d->ended ? leat_error(OUT_OF_RANGE, "End of sequence")
                                 : leat_error(CANCELLED, "Cancelled and buffer not filled.");
            leat_waiters_done(finished, w);
        }
}

/* The pull has ended: its result goes to the shard whose turn it is. */
static void deal(dealer *d, leat_waiters *finished)
{
    leat_pull *p = &d->pull;
    if (p->end || d->closed) {
        d->ended = p->end;
        end_waiting(d, finished);
        return;
    }
    shard *s = &d->shards[d->turn];
    request *r = (request *)s->waiting.first;
    d->turn = (d->turn + 1) % d->n_shards;
    if (r) {
        leat_waiters_remove(&s->waiting, &r->base);
        r->base.status = p->status;
        r->element = leat_element_take(&p->element);
        leat_waiters_done(finished, &r->base);
    } else {
        result *x = leat_new(result);
        *x = (result){NULL, p->status, leat_element_take(&p->element)};
        if (s->last)
            s->last->next = x;
        else
            s->first = x;
        s->last = x;
        s->n++;
    }
    p->status = NULL;
}

static void take(shard *s, request *r)
{
    result *x = s->first;
    s->first = x->next;
    if (!s->first)
        s->last = NULL;
    s->n--;
    r->base.status = x->status;
    r->element = x->element;
    free(x);
}

/* ---- In the background ---- */

static void work(void *arg);

/* A pull has ended. True if the caller is to pull again; else it does not touch d any more. */
static bool pulled_one(dealer *d)
{
    leat_iteration *in = d->in;
    leat_waiters finished = {0};
    pthread_mutex_lock(&d->lock);
    deal(d, &finished);
    const bool more = d->pulling = wanted(d);
    pthread_mutex_unlock(&d->lock);
    if (more && !finished.first)
        return true;
    /* A kernel that ends may drop the last reference, which waits for what is busy: that must not
     * be this thread. */
    if (more)
        leat_pool_submit(in->pool, work, d);
    else
        leat_iteration_idle(in);
    leat_waiters_finish(&finished);
    return false;
}

static void work(void *arg)
{
    dealer *d = arg;
    while (leat_pull_start(&d->pull, d->in->root))
        if (!pulled_one(d))
            return;
}

static void pulled(leat_pull *p)
{
    if (pulled_one(p->done_arg))
        work(p->done_arg);
}

/* ---- Dealers ---- */

static void dealer_free(void *object)
{
    dealer *d = object;
    leat_iteration_unref(d->in); /* waits until nothing is busy */
    for (int i = 0; i < d->n_shards; i++)
        while (d->shards[i].first) {
            request dropped = {0};
            take(&d->shards[i], &dropped);
            leat_status_free(dropped.base.status);
            leat_element_clear(&dropped.element);
        }
    free(d->shards);
    leat_pull_release(&d->pull);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static const leat_resource_type dealer_type = {"Dealer", dealer_free};

/* Takes in. */
static dealer *dealer_new(leat_iteration *in, int n_shards, int64_t most)
{
    dealer *d = leat_new(dealer);
    leat_resource_init(&d->base, &dealer_type);
    pthread_mutex_init(&d->lock, NULL);
    d->in = in;
    d->most = most;
    d->n_shards = n_shards;
    d->shards = leat_new_array(shard, n_shards);
    d->pull = (leat_pull){.iteration = in, .done = pulled, .done_arg = d};
    return d;
}

/* Ends what is under way and drops the reference; of NULL does nothing. */
static void dealer_close(dealer *d)
{
    if (!d)
        return;
    leat_waiters finished = {0};
    pthread_mutex_lock(&d->lock);
    d->closed = true;
    end_waiting(d, &finished);
    pthread_mutex_unlock(&d->lock);
    leat_iteration_cancel(d->in);
    leat_waiters_finish(&finished);
    leat_resource_unref(&d->base);
}

/* Ends the kernel k with the next element of a shard. Takes the reference to d. */
static void dealer_get(dealer *d, leat_kernel *k, int shard_num)
{
    shard *s = &d->shards[shard_num];
    request *r = leat_waiter_new(&request_ops, k, &d->base);
    leat_waiters finished = {0};
    r->at = s;
    pthread_mutex_lock(&d->lock);
    if (!d->closed && !d->ended && !s->first) {
        leat_waiters_add(&s->waiting, &r->base);
        if (!leat_waiter_watch(&r->base)) {
            leat_waiters_remove(&s->waiting, &r->base);
            r->base.status = leat_error(CANCELLED, "The step was cancelled");
            leat_waiters_done(&finished, &r->base);
        }
    } else {
        if (d->closed)
            r->base.status = leat_error(CANCELLED, "Cancelled Multidevice iterator");
        else if (s->first)
            take(s, r);
        else
            r->base.status = leat_error(OUT_OF_RANGE, "End of sequence");
        leat_waiters_done(&finished, &r->base);
    }
    const bool begin = !d->pulling && wanted(d);
    if (begin) {
        d->pulling = true;
        leat_iteration_busy(d->in);
    }
    leat_pool *pool = d->in->pool;
    pthread_mutex_unlock(&d->lock);
    if (begin)
        leat_pool_submit(pool, work, d);
    leat_waiters_finish(&finished);
}

/* ---- Resources ---- */

static void resource_free(void *object)
{
    resource *r = object;
    dealer_close(r->now);
    pthread_mutex_destroy(&r->lock);
    leat_element_spec_release(&r->spec);
    free(r);
}

static const leat_resource_type multi_device_type = {
    "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE", resource_free};

static leat_status make(leat_kernel *k, const char *name, leat_resource **out)
{
    const leat_node *n = leat_kernel_node(k);
    resource *r = leat_new(resource);
    leat_resource_init(&r->base, &multi_device_type);
    pthread_mutex_init(&r->lock, NULL);
    r->spec = leat_element_spec_of(n);
    leat_node_strings(n, "devices", &r->n_devices);
    *out = &r->base;
    return NULL;
}

static leat_status check(const leat_node *n, const leat_resource *base)
{
    return leat_element_spec_fits(&((const resource *)base)->spec, n);
}

static const leat_resource_maker maker = {
    .type = &multi_device_type, .make = make, .check = check, .by_name = true};

static leat_status iterator_run(leat_kernel *k)
{
    return leat_resource_op_run(k, &maker);
}

static leat_status anonymous_run(leat_kernel *k)
{
    leat_resource *r;
    LEAT_TRY(make(k, "", &r));
    return leat_anonymous_handle(k, 0, "AnonymousMultiDeviceIterator", r);
}

static leat_status delete_run(leat_kernel *k)
{
    leat_anonymous_delete(k, 0);
    return NULL;
}

/* The resource behind input i; shared. */
static leat_status resource_of(leat_kernel *k, int i, resource **out)
{
    leat_resource *r;
    LEAT_TRY(leat_anonymous_resource(k, i, &multi_device_type, &r));
    *out = (resource *)r;
    return NULL;
}

/* *id is that of the new incarnation. */
static leat_status initialise(leat_kernel *k, resource *r, int64_t most, int64_t *id)
{
    leat_dataset *data;
    leat_iteration *in;
    LEAT_REQUIRE(most > 0, INVALID_ARGUMENT, "max_buffer_size is %lld, must be at least 1",
                 (long long)most);
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &data));
    LEAT_TRY(leat_element_spec_fits_dataset(&r->spec, data));
    LEAT_TRY(leat_iteration_new(leat_kernel_device(k)->inter, NULL, data, &in));
    dealer *d = dealer_new(in, r->n_devices, most);
    pthread_mutex_lock(&r->lock);
    dealer *old = r->now;
    *id = d->id = ++r->id;
    r->now = d;
    pthread_mutex_unlock(&r->lock);
    dealer_close(old);
    return NULL;
}

static leat_status init_run(leat_kernel *k)
{
    resource *r;
    int64_t most, id = 0;
    leat_tensor *y;
    LEAT_TRY(leat_data_int(k, 2, "max_buffer_size", &most));
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    LEAT_TRY(resource_of(k, 1, &r));
    leat_status s = initialise(k, r, most, &id);
    if (!s)
        *AT(int64_t, y) = id;
    leat_resource_unref(&r->base);
    return s;
}

/* The dealer that a kernel asks; shared. */
static leat_status dealer_of(leat_kernel *k, int *shard_num, dealer **out)
{
    resource *r;
    const leat_tensor *number = leat_kernel_in(k, 1);
    int64_t id;
    LEAT_REQUIRE(number->shape.rank == 0, INVALID_ARGUMENT, "shard_num must be a scalar");
    *shard_num = *AT(int32_t, number);
    LEAT_TRY(leat_data_int(k, 2, "incarnation_id", &id));
    LEAT_TRY(resource_of(k, 0, &r));
    pthread_mutex_lock(&r->lock);
    dealer *d = r->now;
    if (d)
        leat_resource_ref(&d->base);
    pthread_mutex_unlock(&r->lock);
    const int n = r->n_devices;
    leat_resource_unref(&r->base);
    LEAT_REQUIRE(d, FAILED_PRECONDITION,
                 "The multi-device iterator has not been initialized: run MultiDeviceIteratorInit "
                 "before getting the next element.");
    leat_status s = NULL;
    if (d->id != id)
        s = leat_error(INVALID_ARGUMENT, "Invalid incarnation id. Provided: %lld; Expected: %lld",
                       (long long)id, (long long)d->id);
    else if (*shard_num < 0 || *shard_num >= n)
        s = leat_error(INVALID_ARGUMENT, "shard_num is %d, but the iterator has %d devices",
                       *shard_num, n);
    if (s)
        leat_resource_unref(&d->base);
    else
        *out = d;
    return s;
}

static void get_run(leat_kernel *k)
{
    dealer *d = NULL;
    int shard_num = 0;
    leat_status s = dealer_of(k, &shard_num, &d);
    if (s)
        leat_kernel_done(k, s);
    else
        dealer_get(d, k, shard_num);
}

static leat_status to_string_run(leat_kernel *k)
{
    return leat_handle_to_string(k, &multi_device_type);
}

static leat_status from_string_run(leat_kernel *k)
{
    return leat_handle_from_string(k, &multi_device_type, check);
}

const leat_kernel_def leat_data_kernels_multi_device[] = {
    {.op = "MultiDeviceIterator",
     .run = iterator_run,
     .state_size = sizeof(leat_resource_op),
     .release = leat_resource_op_release},
    {.op = "AnonymousMultiDeviceIterator", .run = anonymous_run},
    {.op = "DeleteMultiDeviceIterator", .run = delete_run},
    {.op = "MultiDeviceIteratorInit", .run = init_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "MultiDeviceIteratorGetNextFromShard",
     .run_async = get_run,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "MultiDeviceIteratorToStringHandle", .run = to_string_run},
    {.op = "MultiDeviceIteratorFromStringHandle", .run = from_string_run},
    {0},
};
