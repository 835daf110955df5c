/* exchange_serve.c -- waits in the exchange of a step until tensors are there that other processes
 * get: by the reply to their call of RecvTensor or RecvTensors, or by SendTensors. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/exchange_int.h"
#include "cluster/messages/messages.h"
#include "core/alloc.h"
#include "runtime/step.h"

/* A call of another process that waits for tensors of a step, or a push that waits for them. */
typedef struct leat_serving {
    /* A RecvTensor or RecvTensors call; lives while the leat_serving is in x->servings. NULL: the
     * tensors are pushed, with the arguments of leat_exchange_push. */
    leat_server_call *call;
    leat_peer *peer;
    leat_rendezvous_group *group; /* A reference. */
    leat_step *step;
    const atomic_bool *over;
    struct leat_serving *next, *prev;
    int64_t begin_ns; /* When the call came (CLOCK_MONOTONIC). */
    leat_exchange *x; /* A reference. */
    bool many;        /* True for RecvTensors, false for RecvTensor. */
    int n;
    atomic_int left; /* Tensors that are not there yet, plus 1 until `serve` has asked for all. */
    pthread_mutex_t lock; /* Guards status. */
    leat_status status;   /* The first error. */
    struct awaited {
        struct leat_serving *s;
        leat_rendezvous_key key;
        atomic_bool came; /* The tensor, or an error. */
        leat_tensor *tensor;
        bool dead;
    } v[];
} serving;

static int64_t now_micros(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static leat_status put_one(leat_outgoing *o, const struct awaited *a)
{
    return leat_recv_tensor_response_encode(
        o, &(leat_recv_tensor_response){a->tensor, a->dead, now_micros()});
}

static leat_status put_many(leat_outgoing *o, const serving *s)
{
    for (int i = 0; i < s->n; i++)
        LEAT_TRY(leat_recv_tensors_response_add(o, s->v[i].tensor));
    return NULL;
}

/* Fails if the reply is larger than the caller's transport allows. The error names the node and
 * the receiving device, both from the first key, which has the form
 * "from;incarnation;to;edge_NUMBER_NODE;frame". */
static leat_status check_size(const serving *s, const leat_outgoing *o)
{
    int64_t most = leat_server_call_max_reply(s->call);
    size_t size = leat_outgoing_size(o);
    if ((int64_t)size <= most)
        return NULL;
    const char *to = strchr(s->v[0].key.text, ';');
    to = to ? strchr(to + 1, ';') : NULL;
    const char *edge = to ? strchr(to + 1, ';') : NULL, *node = edge ? edge + 1 : "";
    size_t number = strncmp(node, "edge_", 5) == 0 ? 5 + strspn(node + 5, "0123456789") : 0;
    if (number && node[number] == '_')
        node += number + 1;
    return leat_error(RESOURCE_EXHAUSTED,
                      "The output of node %.*s has %zu bytes, more than the %lld that one message "
                      "of gRPC holds, and %.*s (%s), which wants it, is no task of Leat's, which "
                      "would take it in parts. Split it: a partitioned variable, or slices",
                      (int)strcspn(node, ";"), node, size, (long long)most,
                      edge ? (int)(edge - to - 1) : 0, edge ? to + 1 : "",
                      leat_server_call_peer(s->call));
}

static void reply(serving *s)
{
    leat_outgoing o = {0};
    leat_status status = s->status;
    pthread_mutex_lock(&s->x->lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        s->x->servings = s->next;
    if (s->next)
        s->next->prev = s->prev;
    pthread_mutex_unlock(&s->x->lock);
    if (!status)
        status = s->many ? put_many(&o, s) : put_one(&o, &s->v[0]);
    if (!status)
        status = check_size(s, &o);
    for (int i = 0; i < s->n && !status; i++)
        leat_exchange_close(s->x);               /* Decrements x->kept for tensor i. */
    leat_server_call_reply(s->call, status, &o); /* From here on x->all may be freed. */
}

/* If s->status is set, the step has failed, and may have ended. Else the part of the step is
 * running that has made the last tensor. */
static void push(serving *s)
{
    leat_outgoing o = {0};
    leat_status status = NULL;
    if (s->status) {
        leat_status_free(s->status);
        return;
    }
    leat_send_tensors_request_encode(&o, &(leat_send_tensors_request){.step_id = s->x->step});
    for (int i = 0; i < s->n && !status; i++)
        status = leat_send_tensors_request_add(&o, s->v[i].key.text, s->v[i].tensor);
    if (status) {
        leat_outgoing_release(&o);
        leat_step_fail(s->step, status);
        return;
    }
    for (int i = 0; i < s->n; i++)
        leat_exchange_close(s->x);
    leat_exchange_push_now(s->x, s->peer, &o, s->step, s->over);
}

static void serving_end(serving *s)
{
    if (atomic_fetch_sub(&s->left, 1) != 1)
        return;
    if (s->call)
        reply(s);
    else
        push(s);
    for (int i = 0; i < s->n; i++)
        leat_tensor_unref(s->v[i].tensor);
    if (s->group)
        leat_rendezvous_group_unref(s->group);
    leat_exchange_unref(s->x);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

bool leat_exchange_old_wait(leat_exchange *x, int64_t begin_ns, char *out, size_t size)
{
    pthread_mutex_lock(&x->lock);
    serving *s = x->servings;
    while (s && s->begin_ns >= begin_ns)
        s = s->next;
    if (s) {
        int i = 0;
        while (i < s->n - 1 && atomic_load(&s->v[i].came))
            i++;
        snprintf(out, size, "%s waits for tensor %s of step %" PRId64,
                 leat_server_call_peer(s->call), s->v[i].key.text, x->step);
    }
    pthread_mutex_unlock(&x->lock);
    return s != NULL;
}

static void came(void *arg, leat_status status, leat_tensor *t, bool dead)
{
    struct awaited *a = arg;
    a->tensor = t;
    a->dead = dead;
    atomic_store_explicit(&a->came, true, memory_order_relaxed);
    if (status) {
        pthread_mutex_lock(&a->s->lock);
        a->s->status = leat_status_first(a->s->status, status);
        pthread_mutex_unlock(&a->s->lock);
    }
    serving_end(a->s);
}

void leat_exchange_caller_gone(void *arg)
{
    leat_exchange *x = arg;
    if (atomic_load(&x->claimed))
        return;
    leat_status why = leat_error(
        ABORTED, "Step %" PRId64 ": a task that waited for a tensor of it has gone", x->step);
    leat_exchange_drop(x->all, x->step, why);
    leat_status_free(why);
}

/* A key begins with "device;incarnation;", where the incarnation has 16 hexadecimal digits. The
 * device must be one of this process, with its current incarnation: a caller that learned of the
 * device before this process was restarted has an older one. */
static leat_status check_key(const leat_exchanges *all, const char *key)
{
    const char *semi = strchr(key, ';');
    LEAT_REQUIRE(semi && strlen(semi) > 18 && semi[17] == ';', INVALID_ARGUMENT,
                 "Invalid  rendezvous key: %s", key);
    uint64_t incarnation = strtoull(semi + 1, NULL, 16);
    const leat_device *d = leat_exchange_own_device(all, key);
    LEAT_REQUIRE(d, NOT_FOUND, "%s has no device %.*s, from which a tensor is wanted", all->task,
                 (int)(semi - key), key);
    LEAT_REQUIRE(d->incarnation == incarnation, ABORTED,
                 "RecvTensor expects a different device incarnation: %" PRIu64 " vs. %" PRIu64
                 ". Your worker job (\"%s\") was probably restarted. Check your worker job for "
                 "the reason why it was restarted.",
                 incarnation, d->incarnation, all->task);
    return NULL;
}

/* Takes a reference to x. The keys are still to be filled in. */
static serving *serving_new(leat_exchange *x, int n)
{
    serving *s = leat_xcalloc(1, sizeof(*s) + sizeof(s->v[0]) * (size_t)n);
    s->x = x;
    s->n = n;
    atomic_init(&s->left, n + 1);
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < n; i++)
        s->v[i].s = s;
    return s;
}

/* Frees s when all tensors have come. */
static void await_all(serving *s)
{
    leat_rendezvous *table = s->x->table;
    for (int i = 0; i < s->n; i++)
        table->ops->recv(table, &s->v[i].key, came, &s->v[i]);
    serving_end(s);
}

void leat_exchange_push(leat_exchange *x, leat_peer *peer, leat_rendezvous_group *g,
                        leat_step *step, const atomic_bool *over)
{
    atomic_fetch_add(&x->refs, 1);
    atomic_fetch_add(&g->refs, 1);
    serving *s = serving_new(x, g->n);
    s->peer = peer;
    s->group = g;
    s->step = step;
    s->over = over;
    for (int i = 0; i < g->n; i++)
        s->v[i].key = g->keys[i];
    await_all(s);
}

static void serve(leat_exchanges *all, leat_server_call *a, int64_t step, char **keys, int n,
                  bool many)
{
    leat_exchange *x = leat_exchange_get(all, step);
    serving *s = serving_new(x, n);
    s->call = a;
    s->many = many;
    s->begin_ns = leat_now_ns();
    for (int i = 0; i < n; i++)
        s->v[i].key = leat_rendezvous_key_of(keys[i]);
    pthread_mutex_lock(&x->lock);
    for (int i = 0; i < n; i++)
        leat_exchange_keep_text(x, keys[i]);
    s->next = x->servings;
    if (s->next)
        s->next->prev = s;
    x->servings = s;
    pthread_mutex_unlock(&x->lock);
    if (!leat_server_call_on_cancel(a, leat_exchange_caller_gone, x))
        leat_exchange_caller_gone(x);
    await_all(s);
}

static leat_status check_request(const leat_exchanges *all, const leat_names *keys, bool many)
{
    for (int i = 0; i < keys->n; i++)
        LEAT_TRY(check_key(all, keys->v[i]));
    LEAT_REQUIRE(keys->n, INVALID_ARGUMENT, "Invalid  rendezvous key: ");
    LEAT_REQUIRE(many || keys->n == 1, INVALID_ARGUMENT, "RecvTensor has %d keys", keys->n);
    return NULL;
}

static void decode_and_serve(leat_exchanges *all, leat_server_call *a, const leat_incoming *in,
                             bool many)
{
    leat_recv_tensor_request q = {0};
    leat_names *keys = &q.rendezvous_key;
    leat_status s = leat_recv_tensor_request_decode(in, &q);
    if (!s)
        s = check_request(all, keys, many);
    if (s) {
        leat_server_call_reply(a, s, &(leat_outgoing){0});
    } else {
        serve(all, a, q.step_id, keys->v, keys->n, many);
        keys->n = 0; /* The exchange owns the texts now. */
    }
    leat_recv_tensor_request_release(&q);
}

void leat_exchange_serve(leat_exchanges *all, leat_server_call *a, const leat_incoming *in)
{
    decode_and_serve(all, a, in, false);
}

void leat_exchange_serve_many(leat_exchanges *all, leat_server_call *a, const leat_incoming *in)
{
    decode_and_serve(all, a, in, true);
}
