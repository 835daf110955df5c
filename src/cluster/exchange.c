/* exchange.c -- the exchanges of a process, and its replies to RecvTensor and RecvTensors. */
#include "cluster/exchange.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/exchange_int.h"
#include "cluster/messages/messages.h"
#include "core/alloc.h"
#include "core/map.h"

/* ---- As a rendezvous ---- */

/* Returns the device of this process whose name, followed by ';', begins the text, or NULL if the
 * device belongs to another process. */
static const leat_device *own_device(const leat_exchanges *all, const char *text)
{
    for (int i = 0; i < all->n_devices; i++) {
        size_t n = all->name_sizes[i];
        if (strncmp(text, all->devices[i]->name, n) == 0 && text[n] == ';')
            return all->devices[i];
    }
    return NULL;
}

static leat_status x_send(leat_rendezvous *r, const leat_rendezvous_key *key, leat_tensor *t,
                          bool dead)
{
    leat_exchange *x = (leat_exchange *)r;
    const char *semi = strchr(key->text, ';'), *to = semi ? strchr(semi + 1, ';') : NULL;
    if (to && !own_device(x->all, to + 1))
        atomic_fetch_add(&x->kept, 1);
    return x->table->ops->send(x->table, key, t, dead);
}

static void x_recv(leat_rendezvous *r, const leat_rendezvous_key *key, leat_recv_fn fn, void *arg)
{
    leat_exchange *x = (leat_exchange *)r;
    if (key->grouped || own_device(x->all, key->text)) {
        x->table->ops->recv(x->table, key, fn, arg);
        return;
    }
    leat_peer *peer = leat_peers_find(x->all->peers, key->text);
    if (peer)
        leat_exchange_fetch_one(x, peer, key->text, fn, arg);
    else
        fn(arg, leat_error(INVALID_ARGUMENT, "No task of this cluster sends %s", key->text), NULL,
           false);
}

static void x_expect(leat_rendezvous *r, leat_rendezvous_group *g)
{
    leat_exchange_fetch_group((leat_exchange *)r, g);
}

/* The table is aborted with the cause s before the calls are cancelled, because a cancelled call
 * aborts the table, too, with an error that would hide the cause. */
static void x_abort(leat_rendezvous *r, leat_status s)
{
    leat_exchange *x = (leat_exchange *)r;
    atomic_fetch_add(&x->refs, 1); /* Receivers that the table calls may end the step. */
    pthread_mutex_lock(&x->lock);
    x->dropped = true; /* From here on no call is made. */
    pthread_mutex_unlock(&x->lock);
    x->table->ops->abort(x->table, s);
    pthread_mutex_lock(&x->lock);
    for (leat_recv_call *a = x->recv_calls; a; a = a->next)
        if (a->call)
            leat_call_cancel(a->call);
    pthread_mutex_unlock(&x->lock);
    leat_exchange_unref(x);
}

static const leat_rendezvous_ops x_ops = {
    .send = x_send, .recv = x_recv, .abort = x_abort, .expect = x_expect};

/* ---- By step ---- */

leat_exchanges *leat_exchanges_new(const char *task, leat_device *const *devices, int n_devices,
                                   leat_peers *peers)
{
    leat_exchanges *all = leat_new(leat_exchanges);
    all->task = task;
    all->devices = devices;
    all->n_devices = n_devices;
    all->name_sizes = leat_new_array(size_t, n_devices + 1);
    for (int i = 0; i < n_devices; i++)
        all->name_sizes[i] = strlen(devices[i]->name);
    all->peers = peers;
    all->by_step = leat_new(leat_map);
    leat_rpc_log_init(&all->log);
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

leat_rpc_log *leat_exchanges_log(leat_exchanges *all)
{
    return &all->log;
}

void leat_exchanges_free(leat_exchanges *all)
{
    if (!all)
        return;
    leat_status why = leat_error(CANCELLED, "The server is stopping");
    leat_exchange_drop_all(all, why);
    leat_status_free(why);
    leat_map_release(all->by_step);
    free(all->by_step);
    free(all->name_sizes);
    leat_rpc_log_release(&all->log);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

leat_exchange *leat_exchange_get(leat_exchanges *all, int64_t step)
{
    pthread_mutex_lock(&all->lock);
    leat_exchange *x = leat_map_get_n(all->by_step, &step, sizeof(step));
    if (!x) {
        x = leat_new(leat_exchange);
        x->base.ops = &x_ops;
        x->all = all;
        x->step = step;
        x->table = leat_local_rendezvous_new();
        atomic_init(&x->refs, 1);
        atomic_init(&x->kept, 1);
        pthread_mutex_init(&x->lock, NULL);
        leat_map_put_n(all->by_step, &step, sizeof(step), x);
    }
    atomic_fetch_add(&x->refs, 1);
    pthread_mutex_unlock(&all->lock);
    return x;
}

void leat_exchange_unref(leat_exchange *x)
{
    if (atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    x->table->ops->free(x->table);
    for (int i = 0; i < x->n_texts; i++)
        free(x->texts[i]);
    free(x->texts);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

leat_rendezvous *leat_exchange_claim(leat_exchange *x)
{
    atomic_store(&x->claimed, true);
    return &x->base;
}

void leat_exchange_drop(leat_exchanges *all, int64_t step, leat_status why)
{
    pthread_mutex_lock(&all->lock);
    leat_exchange *x = leat_map_get_n(all->by_step, &step, sizeof(step));
    if (x)
        leat_map_remove_n(all->by_step, &step, sizeof(step));
    pthread_mutex_unlock(&all->lock);
    if (!x)
        return;
    x_abort(&x->base, why);
    leat_exchange_unref(x);
}

static void forget(leat_exchange *x)
{
    pthread_mutex_lock(&x->all->lock);
    leat_exchange *found = leat_map_get_n(x->all->by_step, &x->step, sizeof(x->step));
    if (found == x)
        leat_map_remove_n(x->all->by_step, &x->step, sizeof(x->step));
    pthread_mutex_unlock(&x->all->lock);
    if (found == x)
        leat_exchange_unref(x);
}

void leat_exchange_close(leat_exchange *x)
{
    if (atomic_fetch_sub(&x->kept, 1) == 1)
        forget(x);
}

static const char *keep_text(leat_exchange *x, char *text)
{
    pthread_mutex_lock(&x->lock);
    leat_grow(x->texts, x->n_texts, x->cap_texts);
    x->texts[x->n_texts++] = text;
    pthread_mutex_unlock(&x->lock);
    return text;
}

leat_status leat_exchange_put(leat_exchange *x, const char *key, leat_tensor *t)
{
    leat_rendezvous_key k = leat_rendezvous_key_of(keep_text(x, leat_xstrdup(key)));
    return x->table->ops->send(x->table, &k, leat_tensor_ref(t), false);
}

typedef struct taken {
    leat_tensor *t;
    leat_status s;
    bool came;
} taken;

static void take_now(void *arg, leat_status s, leat_tensor *t, bool dead)
{
    *(taken *)arg = (taken){t, s, true};
}

/* Called after the step has ended: a tensor that is not in the table now never comes. The abort
 * below makes the table call take_now with an error, so that the table keeps no pointer to k. */
leat_status leat_exchange_take(leat_exchange *x, const char *key, leat_tensor **out)
{
    taken k = {0};
    leat_rendezvous_key rk = leat_rendezvous_key_of(keep_text(x, leat_xstrdup(key)));
    x->table->ops->recv(x->table, &rk, take_now, &k);
    if (!k.came) {
        leat_status why = leat_error(INTERNAL, "The step ended without %s", key);
        x->table->ops->abort(x->table, why);
        leat_status_free(why);
    }
    LEAT_TRY(k.s);
    LEAT_REQUIRE(k.t, INVALID_ARGUMENT, "The tensor returned for %s was not valid.", key);
    *out = k.t;
    return NULL;
}

void leat_exchange_drop_all(leat_exchanges *all, leat_status why)
{
    for (;;) {
        size_t i = 0;
        const char *key;
        void *x;
        pthread_mutex_lock(&all->lock);
        bool any = leat_map_next(all->by_step, &i, &key, &x);
        int64_t step = any ? ((leat_exchange *)x)->step : 0;
        pthread_mutex_unlock(&all->lock);
        if (!any)
            return;
        leat_exchange_drop(all, step, why);
    }
}

/* ---- Replies ---- */

/* A RecvTensor or RecvTensors call of another process that waits for tensors of a step. */
typedef struct serving {
    leat_server_call *call;
    leat_exchange *x; /* A reference. */
    bool many;        /* True for RecvTensors, false for RecvTensor. */
    int n;
    atomic_int left; /* Tensors that are not there yet, plus 1 until `serve` has asked for all. */
    pthread_mutex_t lock; /* Guards status. */
    leat_status status;   /* The first error. */
    struct awaited {
        struct serving *s;
        leat_rendezvous_key key;
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

static void serving_end(serving *s)
{
    if (atomic_fetch_sub(&s->left, 1) != 1)
        return;
    leat_outgoing o = {0};
    leat_status status = s->status;
    if (!status)
        status = s->many ? put_many(&o, s) : put_one(&o, &s->v[0]);
    if (!status)
        status = check_size(s, &o);
    for (int i = 0; i < s->n && !status; i++)
        leat_exchange_close(s->x);               /* Decrements x->kept for tensor i. */
    leat_server_call_reply(s->call, status, &o); /* From here on x->all may be freed. */
    for (int i = 0; i < s->n; i++)
        leat_tensor_unref(s->v[i].tensor);
    leat_exchange_unref(s->x);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void came(void *arg, leat_status status, leat_tensor *t, bool dead)
{
    struct awaited *a = arg;
    a->tensor = t;
    a->dead = dead;
    if (status) {
        pthread_mutex_lock(&a->s->lock);
        a->s->status = leat_status_first(a->s->status, status);
        pthread_mutex_unlock(&a->s->lock);
    }
    serving_end(a->s);
}

/* Called when the connection to the calling task broke or the call was cancelled: the step cannot
 * succeed any more. If the step runs in this process, its master cancels it with an error that
 * names the cause, so this function does nothing. */
static void caller_gone(void *arg)
{
    leat_exchange *x = arg;
    if (atomic_load(&x->claimed))
        return;
    leat_status why = leat_error(CANCELLED,
                                 "Step %" PRId64 ": a task that waited for a tensor "
                                 "of it has gone",
                                 x->step);
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
    const leat_device *d = own_device(all, key);
    LEAT_REQUIRE(d, NOT_FOUND, "%s has no device %.*s, from which a tensor is wanted", all->task,
                 (int)(semi - key), key);
    LEAT_REQUIRE(d->incarnation == incarnation, ABORTED,
                 "RecvTensor expects a different device incarnation: %" PRIu64 " vs. %" PRIu64
                 ". Your worker job (\"%s\") was probably restarted. Check your worker job for "
                 "the reason why it was restarted.",
                 incarnation, d->incarnation, all->task);
    return NULL;
}

static void serve(leat_exchanges *all, leat_server_call *a, int64_t step, char **keys, int n,
                  bool many)
{
    leat_exchange *x = leat_exchange_get(all, step);
    serving *s = leat_xcalloc(1, sizeof(*s) + sizeof(s->v[0]) * (size_t)n);
    *s = (serving){.call = a, .x = x, .many = many, .n = n};
    atomic_init(&s->left, n + 1);
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < n; i++) {
        s->v[i].s = s;
        s->v[i].key = leat_rendezvous_key_of(keys[i]);
    }
    for (int i = 0; i < n; i++)
        keep_text(x, keys[i]);
    if (!leat_server_call_on_cancel(a, caller_gone, x))
        caller_gone(x);
    for (int i = 0; i < n; i++)
        x->table->ops->recv(x->table, &s->v[i].key, came, &s->v[i]);
    serving_end(s);
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
