/* exchange_fetch.c -- requests the tensors of a step from other processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/exchange_int.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "core/alloc.h"
#include "core/later.h"

leat_recv_call *leat_recv_call_new(leat_exchange *x)
{
    leat_recv_call *a = leat_new(leat_recv_call);
    a->x = x;
    a->requested_at = leat_rpc_log_now();
    atomic_fetch_add(&x->refs, 1);
    return a;
}

/* Whether the log is on is checked when the tensor arrives, because a master does not wait for the
 * reply to its Logging request before it starts the step. sent_at: when the sender began to send,
 * in microseconds, 0 if its reply does not say; the logged transfer begins then, since the call
 * only waited before. */
static void log_tensor(const leat_recv_call *a, const char *key, const leat_tensor *t,
                       int64_t sent_at)
{
    if (!leat_rpc_log_on(&a->x->all->log))
        return;
    int64_t end = leat_rpc_log_now(), start = a->requested_at;
    if (sent_at > start)
        start = sent_at < end ? sent_at : end;
    leat_rpc_log_add(&a->x->all->log, a->x->step, key, (int64_t)leat_tensor_bytes(t), start, end);
}

void leat_recv_call_free(leat_recv_call *a)
{
    if (a->group)
        leat_rendezvous_group_unref(a->group);
    leat_exchange_unref(a->x);
    free(a->key);
    free(a);
}

void leat_recv_call_delist(leat_recv_call *a)
{
    leat_exchange *x = a->x;
    pthread_mutex_lock(&x->lock);
    if (a->prev)
        a->prev->next = a->next;
    else
        x->recv_calls = a->next;
    if (a->next)
        a->next->prev = a->prev;
    a->call = NULL;
    pthread_mutex_unlock(&x->lock);
}

/* The lock is held while the call is made, so that x_abort, which sets `dropped` under the same
 * lock, cancels every call that was made. */
void leat_recv_call_make(leat_recv_call *a, leat_peer *peer, const char *method, leat_outgoing *o,
                         leat_reply_fn fn)
{
    leat_exchange *x = a->x;
    pthread_mutex_lock(&x->lock);
    bool dropped = x->dropped || (a->over && atomic_load(a->over));
    a->next = x->recv_calls;
    if (a->next)
        a->next->prev = a;
    x->recv_calls = a;
    if (!dropped)
        leat_peer_call(peer, method, o, &(leat_call_options){0}, fn, a, &a->call);
    pthread_mutex_unlock(&x->lock);
    if (dropped) {
        leat_outgoing_release(o);
        fn(a, leat_error(CANCELLED, "The step is over"), NULL);
    }
}

leat_status leat_error_from_task(leat_status s, const char *device)
{
    if (!s)
        return NULL;
    const char *end = strstr(device, "/device:");
    int n = end ? (int)(end - device) : (int)strlen(device);
    char task[160];
    snprintf(task, sizeof(task), "%.*s", n, device);
    bool named = leat_status_code(s) == LEAT_CANCELLED || strstr(leat_status_message(s), task);
    return named ? s : leat_status_prefix(s, "From %s:\n", task);
}

/* ---- One tensor ---- */

static void one_came(void *arg, leat_status s, const leat_incoming *in)
{
    leat_recv_call *a = arg;
    leat_recv_tensor_response r = {0};
    leat_tensor *t = NULL;
    leat_recv_call_delist(a);
    if (!s)
        s = leat_recv_tensor_response_decode(in, &r);
    if (!s && !r.is_dead) {
        t = r.tensor;
        r.tensor = NULL;
        log_tensor(a, a->key, t, r.send_start_micros);
    }
    bool dead = r.is_dead;
    leat_recv_tensor_response_release(&r);
    leat_later_jobs_begin();
    a->fn(a->arg, leat_error_from_task(s, a->key), t, dead);
    leat_recv_call_free(a);
    leat_later_jobs_end();
}

void leat_exchange_fetch_one(leat_exchange *x, leat_peer *peer, const char *key, leat_recv_fn fn,
                             void *arg)
{
    leat_recv_call *a = leat_recv_call_new(x);
    a->fn = fn;
    a->arg = arg;
    a->key = leat_xstrdup(key);
    leat_outgoing o = {0};
    leat_recv_tensor_request_encode(&o, &(leat_recv_tensor_request){.step_id = x->step});
    leat_recv_tensor_request_add_key(&o, key);
    leat_recv_call_make(a, peer, LEAT_METHOD_RECV_TENSOR, &o, one_came);
}

/* ---- A group ---- */

static leat_status hand_out(const leat_recv_call *a, const leat_incoming *in)
{
    leat_exchange *x = a->x;
    const leat_rendezvous_group *g = a->group;
    leat_cursor c = leat_cursor_of(in);
    leat_tensor *t;
    leat_status s;
    int at = 0;
    while (leat_recv_tensors_response_next(&c, &t, &s)) {
        if (at == g->n) {
            leat_tensor_unref(t);
            return leat_error(DATA_LOSS, "%s sent more than the %d tensors requested", g->task,
                              g->n);
        }
        if (t)
            log_tensor(a, g->keys[at].text, t, 0);
        LEAT_TRY(x->table->ops->send(x->table, &g->keys[at++], t, t == NULL));
    }
    LEAT_TRY(s);
    LEAT_REQUIRE(at == g->n, DATA_LOSS, "%s sent %d of the %d tensors requested", g->task, at,
                 g->n);
    return NULL;
}

static void group_came(void *arg, leat_status s, const leat_incoming *in)
{
    leat_recv_call *a = arg;
    leat_later_jobs_begin();
    leat_recv_call_delist(a);
    if (!s)
        s = hand_out(a, in);
    s = leat_error_from_task(s, a->group->task);
    if (s)
        a->x->table->ops->abort(a->x->table, s);
    leat_status_free(s);
    leat_recv_call_free(a);
    leat_later_jobs_end();
}

void leat_exchange_fetch_group(leat_exchange *x, leat_rendezvous_group *g)
{
    leat_recv_call *a = leat_recv_call_new(x);
    a->group = g;
    atomic_fetch_add(&g->refs, 1);
    leat_peer *peer = leat_peers_find(x->all->peers, g->task);
    leat_outgoing o = {0};
    leat_recv_tensor_request_encode(&o, &(leat_recv_tensor_request){.step_id = x->step});
    for (int i = 0; i < g->n; i++)
        leat_recv_tensor_request_add_key(&o, g->keys[i].text);
    if (peer) {
        leat_recv_call_make(a, peer, LEAT_METHOD_RECV_TENSORS, &o, group_came);
        return;
    }
    leat_status s = leat_error(INVALID_ARGUMENT, "This cluster has no task %s", g->task);
    x->table->ops->abort(x->table, s);
    leat_status_free(s);
    leat_outgoing_release(&o);
    leat_recv_call_free(a);
}
