/* exchange.c -- the exchanges of a task, and its answers to those who ask for tensors. */
#include "cluster/exchange.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/exchange_int.h"
#include "cluster/tensor_wire.h"
#include "core/alloc.h"
#include "core/map.h"

/* ---- As a rendezvous ---- */

static bool of_task(const leat_exchanges *all, const char *device)
{
    return strncmp(device, all->task, all->task_n) == 0 && device[all->task_n] == '/';
}

static leat_status x_send(leat_rendezvous *r, const leat_rendezvous_key *key, leat_tensor *t,
                          bool dead)
{
    leat_exchange *x = (leat_exchange *)r;
    const char *semi = strchr(key->text, ';'), *to = semi ? strchr(semi + 1, ';') : NULL;
    if (to && !of_task(x->all, to + 1))
        atomic_fetch_add(&x->kept, 1);
    return x->table->ops->send(x->table, key, t, dead);
}

static void x_recv(leat_rendezvous *r, const leat_rendezvous_key *key, leat_recv_fn fn, void *arg)
{
    leat_exchange *x = (leat_exchange *)r;
    if (key->grouped || of_task(x->all, key->text)) {
        x->table->ops->recv(x->table, key, fn, arg);
        return;
    }
    leat_peer *peer = leat_peers_find(x->all->peers, key->text);
    if (peer)
        leat_exchange_ask_one(x, peer, key->text, fn, arg);
    else
        fn(arg, leat_error(INVALID_ARGUMENT, "No task of this cluster sends %s", key->text), NULL,
           false);
}

static void x_expect(leat_rendezvous *r, leat_rendezvous_group *g)
{
    leat_exchange_ask_group((leat_exchange *)r, g);
}

static void x_abort(leat_rendezvous *r, leat_status s)
{
    leat_exchange *x = (leat_exchange *)r;
    pthread_mutex_lock(&x->lock);
    x->dropped = true;
    for (leat_asking *a = x->askings; a; a = a->next)
        if (a->call)
            leat_call_cancel(a->call);
    pthread_mutex_unlock(&x->lock);
    x->table->ops->abort(x->table, s);
}

static const leat_rendezvous_ops x_ops = {
    .send = x_send, .recv = x_recv, .abort = x_abort, .expect = x_expect};

/* ---- By step ---- */

leat_exchanges *leat_exchanges_new(const char *task, leat_device *const *devices, int n_devices,
                                   leat_peers *peers)
{
    leat_exchanges *all = leat_new(leat_exchanges);
    all->task = task;
    all->task_n = strlen(task);
    all->devices = devices;
    all->n_devices = n_devices;
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

/* After the step: it is there, or it never comes; then its fn is called by the drop. */
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

/* ---- Answers ---- */

/* Somebody who waits for tensors of a step. */
typedef struct serving {
    leat_asked *asked;
    leat_exchange *x; /* a reference */
    bool many;
    int n;
    atomic_int left; /* tensors that have not come, and one while they are asked for */
    pthread_mutex_t lock;
    leat_status status; /* the first error */
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

/* Dead ones count as an empty tensor, which TensorFlow wants to see. */
static leat_status put_one(leat_outgoing *o, const struct awaited *a)
{
    leat_put_int(&o->text, 2, a->dead);
    leat_put_int(&o->text, 3, now_micros());
    return a->tensor ? leat_put_tensor(o, 1, a->tensor) : NULL;
}

static leat_status put_many(leat_outgoing *o, const serving *s)
{
    for (int i = 0; i < s->n; i++) {
        if (s->v[i].tensor)
            LEAT_TRY(leat_put_tensor(o, 1, s->v[i].tensor));
        else
            leat_put_int(&o->text, 2, 1);
    }
    return NULL;
}

/* Says which tensor is too large for whom. Its key: "from;incarnation;to;edge_NUMBER_NODE;frame".
 */
static leat_status check_size(const serving *s, const leat_outgoing *o)
{
    int64_t most = leat_asked_most(s->asked);
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
                      leat_asked_peer(s->asked));
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
    bool ok = !status;
    leat_asked_reply(s->asked, status, &o);
    for (int i = 0; i < s->n && ok; i++)
        leat_exchange_close(s->x); /* one that was kept has gone */
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

/* Who asked is gone: the step cannot end well. If it runs here, its master knows why, and will say
 * so; this is only a consequence. */
static void asker_gone(void *arg)
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

/* "device;incarnation;...": the device must be the one that the sender knew. */
static leat_status check_key(const leat_exchanges *all, const char *key)
{
    const char *semi = strchr(key, ';');
    LEAT_REQUIRE(semi && strlen(semi) > 18 && semi[17] == ';', INVALID_ARGUMENT,
                 "Invalid  rendezvous key: %s", key);
    uint64_t incarnation = strtoull(semi + 1, NULL, 16);
    for (int i = 0; i < all->n_devices; i++) {
        const leat_device *d = all->devices[i];
        if (strncmp(d->name, key, (size_t)(semi - key)) != 0 || d->name[semi - key])
            continue;
        LEAT_REQUIRE(d->incarnation == incarnation, ABORTED,
                     "RecvTensor expects a different device incarnation: %" PRIu64 " vs. %" PRIu64
                     ". Your worker job (\"%s\") was probably restarted. Check your worker job for "
                     "the reason why it was restarted.",
                     incarnation, d->incarnation, all->task);
        return NULL;
    }
    return leat_error(NOT_FOUND, "%s has no device %.*s, from which a tensor is wanted", all->task,
                      (int)(semi - key), key);
}

static void serve(leat_exchanges *all, leat_asked *a, int64_t step, char **keys, int n, bool many)
{
    leat_exchange *x = leat_exchange_get(all, step);
    serving *s = leat_xcalloc(1, sizeof(*s) + sizeof(s->v[0]) * (size_t)n);
    *s = (serving){.asked = a, .x = x, .many = many, .n = n};
    atomic_init(&s->left, n + 1);
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < n; i++) {
        s->v[i].s = s;
        s->v[i].key = leat_rendezvous_key_of(keys[i]);
    }
    for (int i = 0; i < n; i++)
        keep_text(x, keys[i]);
    if (!leat_asked_on_gone(a, asker_gone, x))
        asker_gone(x);
    for (int i = 0; i < n; i++)
        x->table->ops->recv(x->table, &s->v[i].key, came, &s->v[i]);
    serving_end(s);
}

/* Field 1: the step; field 2: a key, or several. */
static leat_status parse(leat_exchanges *all, const leat_incoming *in, int64_t *step, char ***keys,
                         int *n)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    int cap = 0;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == 1) {
            *step = (int64_t)f.value;
        } else if (f.number == 2) {
            LEAT_REQUIRE(*n < 1 << 16, INVALID_ARGUMENT, "More than 65,536 tensors are wanted");
            leat_grow(*keys, *n, cap);
            LEAT_TRY(leat_get_text(&f, &(*keys)[*n]));
            (*n)++;
            LEAT_TRY(check_key(all, (*keys)[*n - 1]));
        }
    }
    LEAT_TRY(s);
    LEAT_REQUIRE(*n, INVALID_ARGUMENT, "Invalid  rendezvous key: ");
    return NULL;
}

static void parse_and_serve(leat_exchanges *all, leat_asked *a, const leat_incoming *in, bool many)
{
    int64_t step = 0;
    char **keys = NULL;
    int n = 0;
    leat_status s = parse(all, in, &step, &keys, &n);
    if (!s && !many && n > 1)
        s = leat_error(INVALID_ARGUMENT, "RecvTensor has %d keys", n);
    if (s) {
        for (int i = 0; i < n; i++)
            free(keys[i]);
        leat_asked_reply(a, s, &(leat_outgoing){0});
    } else {
        serve(all, a, step, keys, n, many);
    }
    free(keys);
}

void leat_exchange_serve(leat_exchanges *all, leat_asked *a, const leat_incoming *in)
{
    parse_and_serve(all, a, in, false);
}

void leat_exchange_serve_many(leat_exchanges *all, leat_asked *a, const leat_incoming *in)
{
    parse_and_serve(all, a, in, true);
}
