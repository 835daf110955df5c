/* exchange.c -- the exchanges of a process: found by step, used as rendezvous, dropped. */
#include "cluster/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/exchange_int.h"
#include "core/alloc.h"
#include "core/map.h"

/* ---- As a rendezvous ---- */

const leat_device *leat_exchange_own_device(const leat_exchanges *all, const char *text)
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
    if (to && !leat_exchange_own_device(x->all, to + 1))
        atomic_fetch_add(&x->kept, 1);
    return x->table->ops->send(x->table, key, t, dead);
}

static void x_recv(leat_rendezvous *r, const leat_rendezvous_key *key, leat_recv_fn fn, void *arg)
{
    leat_exchange *x = (leat_exchange *)r;
    if (key->grouped || leat_exchange_own_device(x->all, key->text)) {
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
    leat_exchange *x = (leat_exchange *)r;
    if (!x->pusher || leat_peers_find(x->all->peers, g->task) != x->pusher)
        leat_exchange_fetch_group(x, g);
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
    leat_exchange_reply_pushed(x, true);
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
    leat_status why = leat_error(UNAVAILABLE, "The server is stopping");
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

void leat_exchange_keep(leat_exchange *x, uint64_t session)
{
    atomic_store(&x->session, session);
}

/* Gives the id of a step that `fits`; false if there is none. */
static bool find_step(leat_exchanges *all, bool (*fits)(leat_exchange *x, void *arg), void *arg,
                      int64_t *step_out)
{
    size_t i = 0;
    const char *key;
    void *x;
    bool found = false;
    pthread_mutex_lock(&all->lock);
    while (!found && leat_map_next(all->by_step, &i, &key, &x)) {
        found = fits(x, arg);
        *step_out = ((leat_exchange *)x)->step;
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

static bool is_of_session(leat_exchange *x, void *session)
{
    return atomic_load(&x->session) == *(uint64_t *)session;
}

void leat_exchange_drop_session(leat_exchanges *all, uint64_t session, leat_status why)
{
    int64_t step;
    while (find_step(all, is_of_session, &session, &step))
        leat_exchange_drop(all, step, why);
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

void leat_exchange_keep_text(leat_exchange *x, char *text)
{
    leat_grow(x->texts, x->n_texts, x->cap_texts);
    x->texts[x->n_texts++] = text;
}

static leat_rendezvous_key kept_key(leat_exchange *x, const char *key)
{
    char *text = leat_xstrdup(key);
    pthread_mutex_lock(&x->lock);
    leat_exchange_keep_text(x, text);
    pthread_mutex_unlock(&x->lock);
    return leat_rendezvous_key_of(text);
}

leat_status leat_exchange_put(leat_exchange *x, const char *key, leat_tensor *t)
{
    leat_rendezvous_key k = kept_key(x, key);
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
    leat_rendezvous_key rk = kept_key(x, key);
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

static bool any_step(leat_exchange *x, void *arg)
{
    return true;
}

void leat_exchange_drop_all(leat_exchanges *all, leat_status why)
{
    int64_t step;
    while (find_step(all, any_step, NULL, &step))
        leat_exchange_drop(all, step, why);
}

typedef struct old_wait {
    int64_t begin_ns;
    char text[1000];
} old_wait;

static bool waits_for_long(leat_exchange *x, void *arg)
{
    old_wait *w = arg;
    return leat_exchange_old_wait(x, w->begin_ns, w->text, sizeof(w->text));
}

void leat_exchange_end_old_waits(leat_exchanges *all, int64_t limit_ns)
{
    old_wait w = {.begin_ns = leat_now_ns() - limit_ns};
    int64_t step;
    while (find_step(all, waits_for_long, &w, &step)) {
        leat_status why = leat_error(DEADLINE_EXCEEDED,
                                     "%s, for more than %g s, the limit of %s (leat server "
                                     "--max_call_secs)",
                                     w.text, (double)limit_ns / 1e9, all->task);
        leat_exchange_drop(all, step, why);
        leat_status_free(why);
    }
}
