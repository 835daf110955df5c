/* queue_state.c -- the elements of a queue as a string, for checkpoints: the number of components,
 * the random generator's state, the elements. Whether the queue is closed is not part of it: the
 * threads that fill a queue close it again. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/queue.h"
#include "kernels/dataset/state.h"

enum { GENERATOR = 11 }; /* numbers of a generator's state */

/* The queue behind input 0; shared. */
static leat_status queue_of(leat_kernel *k, leat_queue **out)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, 0, &leat_queue_type, &r));
    *out = (leat_queue *)r;
    return NULL;
}

/* ---- Saving ---- */

static void save_generator(const leat_queue *q, int64_t *to)
{
    for (int i = 0; i < 4; i++) {
        to[i] = q->philox.counter[i];
        to[4 + i] = q->random.sample[i];
    }
    to[8] = q->philox.key[0];
    to[9] = q->philox.key[1];
    to[10] = q->random.used;
}

/* References to the tensors of all elements, in their order; free with free(). */
static leat_status elements_of(leat_queue *q, leat_tensor ***out, int64_t *n, int64_t *generator)
{
    leat_tensor **v = NULL;
    pthread_mutex_lock(&q->lock);
    leat_status s = leat_try_array(q->count * q->n + 1, &v);
    for (int64_t i = 0; i < q->count && !s; i++)
        for (int c = 0; c < q->n; c++)
            v[i * q->n + c] = leat_tensor_ref(leat_queue_element(q, i)[c]);
    *n = q->count;
    save_generator(q, generator);
    pthread_mutex_unlock(&q->lock);
    *out = v;
    return s;
}

static leat_status write_state(leat_queue *q, leat_state_writer *w)
{
    leat_tensor **v;
    int64_t n, generator[GENERATOR];
    LEAT_TRY(elements_of(q, &v, &n, generator));
    leat_state_put_int(w, q->n);
    for (int i = 0; i < GENERATOR; i++)
        leat_state_put_int(w, generator[i]);
    leat_state_put_int(w, n);
    leat_status s = NULL;
    for (int64_t i = 0; i < n * q->n; i++) {
        if (!s)
            s = leat_state_put_tensor(w, v[i]);
        leat_tensor_unref(v[i]);
    }
    free(v);
    return s ? s : leat_strbuf_check(&w->bytes);
}

static leat_status state_run(leat_kernel *k)
{
    leat_queue *q;
    leat_tensor *y;
    leat_state_writer w = {.bytes = {.checked = true}};
    LEAT_TRY(queue_of(k, &q));
    leat_status s = write_state(q, &w);
    leat_resource_unref(&q->base);
    if (!s)
        s = leat_tensor_of_string(w.bytes.s, w.bytes.n, &y);
    leat_strbuf_release(&w.bytes);
    if (!s)
        leat_kernel_set(k, 0, y);
    return s;
}

/* ---- Restoring ---- */

static leat_status restore_generator(const int64_t *from, leat_philox *p, leat_philox_single *one)
{
    for (int i = 0; i < 4; i++) {
        p->counter[i] = (uint32_t)from[i];
        one->sample[i] = (uint32_t)from[4 + i];
    }
    p->key[0] = (uint32_t)from[8];
    p->key[1] = (uint32_t)from[9];
    LEAT_REQUIRE(from[10] >= 0 && from[10] <= 4, DATA_LOSS,
                 "The saved state of the queue's random numbers is damaged");
    one->used = (int)from[10];
    return NULL;
}

static leat_status check_tensor(const leat_queue *q, int c, const leat_tensor *t)
{
    LEAT_REQUIRE(t->dtype == q->types[c], INVALID_ARGUMENT,
                 "The saved elements are of another queue: component %d of '%s' is %s, that of an "
                 "element %s",
                 c, q->name, leat_dtype_name(q->types[c]), leat_dtype_name(t->dtype));
    LEAT_REQUIRE(q->kind != LEAT_QUEUE_PRIORITY || c || t->shape.rank == 0, INVALID_ARGUMENT,
                 "The saved elements are of another queue: the priority of an element of '%s' must "
                 "be a scalar, but has shape %s",
                 q->name, leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(!q->shapes || leat_shape_compatible(&q->shapes[c], &t->shape), INVALID_ARGUMENT,
                 "The saved elements are of another queue: component %d of '%s' has shape %s, that "
                 "of an element %s",
                 c, q->name, leat_shape_show(&q->shapes[c]).s, leat_shape_show(&t->shape).s);
    return NULL;
}

static leat_status read_elements(const leat_queue *q, leat_state_reader *r, leat_tensor **v,
                                 int64_t n)
{
    for (int64_t i = 0; i < n * q->n; i++) {
        LEAT_TRY(leat_state_get_tensor(r, &v[i]));
        LEAT_TRY(check_tensor(q, (int)(i % q->n), v[i]));
    }
    return leat_state_end(r);
}

/* Replaces the elements of q by the n in v, whose tensors it takes. */
static void replace(leat_queue *q, leat_tensor **v, int64_t n, const leat_philox *philox,
                    const leat_philox_single *random)
{
    pthread_mutex_lock(&q->lock);
    leat_queue_clear(q);
    for (int64_t i = 0; i < n; i++)
        leat_queue_push(q, v + i * q->n);
    q->philox = *philox;
    q->random = *random;
    q->random.gen = &q->philox;
    pthread_mutex_unlock(&q->lock);
    leat_queue_serve(q);
}

static leat_status read_state(leat_queue *q, leat_state_reader *r)
{
    int64_t components, n, generator[GENERATOR] = {0};
    leat_philox philox;
    leat_philox_single random;
    leat_tensor **v;
    LEAT_TRY(leat_state_get_int(r, &components));
    LEAT_REQUIRE(components == q->n, INVALID_ARGUMENT,
                 "The saved elements are of another queue: they have %lld components, '%s' has %d",
                 (long long)components, q->name, q->n);
    for (int i = 0; i < GENERATOR; i++)
        LEAT_TRY(leat_state_get_int(r, &generator[i]));
    LEAT_TRY(restore_generator(generator, &philox, &random));
    LEAT_TRY(leat_state_get_within(r, 0, (int64_t)((r->n - r->at) / 9) / q->n, &n));
    LEAT_TRY(leat_try_array(n * q->n + 1, &v));
    leat_status s = read_elements(q, r, v, n);
    if (!s)
        replace(q, v, n, &philox, &random);
    for (int64_t i = 0; s && i < n * q->n; i++)
        leat_tensor_unref(v[i]);
    free(v);
    return s;
}

static leat_status set_state_run(leat_kernel *k)
{
    leat_queue *q;
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "state must be a scalar, but has shape %s",
                 leat_shape_show(&t->shape).s);
    const leat_string *x = AT(leat_string, t);
    leat_state_reader r = {.bytes = x->data, .n = x->size};
    LEAT_TRY(queue_of(k, &q));
    leat_status s = read_state(q, &r);
    leat_resource_unref(&q->base);
    return s;
}

/* ---- The limit ---- */

static leat_status set_unlimited_run(leat_kernel *k)
{
    leat_queue *q;
    LEAT_TRY(queue_of(k, &q));
    pthread_mutex_lock(&q->lock);
    q->unlimited = leat_node_bool(leat_kernel_node(k), "unlimited");
    pthread_mutex_unlock(&q->lock);
    leat_queue_serve(q);
    leat_resource_unref(&q->base);
    return NULL;
}

const leat_kernel_def leat_cpu_queue_state[] = {
    {.op = "_QueueState", .run = state_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "_QueueSetState", .run = set_state_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "_QueueSetUnlimited", .run = set_unlimited_run},
    {0},
};
