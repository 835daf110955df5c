/* exchange_push.c -- SendTensors: the master of a step sends tensors of its process without being
 * asked, which saves the other process a request. The reply is sent together with that of RunGraph,
 * when the step has ended there. */
#include <stdlib.h>
#include <string.h>

#include "cluster/exchange_int.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "core/alloc.h"
#include "core/later.h"
#include "runtime/step.h"

/* ---- The sender ---- */

/* A call is cancelled with its step, or because the peer's part of the step has ended. The peer
 * replies with CANCELLED if the step has failed there; RunGraph's reply has the cause. */
static void replied(void *arg, leat_status s, const leat_incoming *in)
{
    leat_recv_call *a = arg;
    leat_step *step = a->step;
    leat_recv_call_delist(a);
    if (leat_status_code(s) == LEAT_CANCELLED)
        leat_status_free(s);
    else
        leat_step_fail(step, leat_error_from_task(s, a->key));
    leat_recv_call_free(a);
    leat_step_part_ended(step);
}

void leat_exchange_push_now(leat_exchange *x, leat_peer *peer, leat_outgoing *o, leat_step *step,
                            const atomic_bool *over)
{
    leat_recv_call *a = leat_recv_call_new(x);
    a->step = step;
    a->key = leat_xstrdup(peer->name);
    a->over = over;
    atomic_fetch_add(&step->running, 1);
    leat_recv_call_make(a, peer, LEAT_METHOD_SEND_TENSORS, o, replied);
}

void leat_exchange_end_pushes(leat_exchange *x, atomic_bool *over)
{
    pthread_mutex_lock(&x->lock);
    atomic_store(over, true);
    for (leat_recv_call *a = x->recv_calls; a; a = a->next)
        if (a->over == over && a->call)
            leat_call_cancel(a->call);
    pthread_mutex_unlock(&x->lock);
}

/* ---- The receiver ---- */

/* A SendTensors call whose tensors were taken. */
typedef struct leat_pushed {
    leat_server_call *call;
    struct leat_pushed *next;
} leat_pushed;

leat_status leat_exchange_expect_pushes(leat_exchange *x, const char *sender)
{
    x->pusher = leat_peers_find(x->all->peers, sender);
    LEAT_REQUIRE(x->pusher, INVALID_ARGUMENT,
                 "RunGraph says that %s sends tensors, but this cluster has no such task", sender);
    return NULL;
}

void leat_exchange_reply_pushed(leat_exchange *x, bool failed)
{
    pthread_mutex_lock(&x->lock);
    leat_pushed *list = x->pushed;
    x->pushed = NULL;
    x->pushed_over = true;
    pthread_mutex_unlock(&x->lock);
    while (list) {
        leat_pushed *p = list;
        list = p->next;
        leat_server_call_reply(p->call, failed ? leat_error(CANCELLED, "The step is over") : NULL,
                               &(leat_outgoing){0});
        free(p);
        leat_exchange_unref(x);
    }
}

/* Keeps the call until the step ends. False if the step has ended; then the call is the caller's.
 */
static bool hold(leat_exchange *x, leat_server_call *a)
{
    leat_pushed *p = leat_new(leat_pushed);
    p->call = a;
    atomic_fetch_add(&x->refs, 1);
    pthread_mutex_lock(&x->lock);
    bool over = x->pushed_over;
    if (!over) {
        p->next = x->pushed;
        x->pushed = p;
    }
    pthread_mutex_unlock(&x->lock);
    if (over) {
        leat_exchange_unref(x);
        free(p);
    }
    return !over;
}

/* A key has the form "from;incarnation;to;edge;frame"; `to` must be a device of this process. */
static leat_status check_key(const leat_exchanges *all, const char *key)
{
    const char *semi = strchr(key, ';'), *to = semi ? strchr(semi + 1, ';') : NULL;
    LEAT_REQUIRE(to && leat_exchange_own_device(all, to + 1), INVALID_ARGUMENT,
                 "SendTensors has a tensor that %s does not receive: %s", all->task, key);
    return NULL;
}

static leat_status check_keys(const leat_exchanges *all, const leat_send_tensors_request *q)
{
    LEAT_REQUIRE(q->tensor.n + q->dead_key.n, INVALID_ARGUMENT, "SendTensors has no tensor");
    for (int i = 0; i < q->tensor.n; i++)
        LEAT_TRY(check_key(all, q->tensor.name[i]));
    for (int i = 0; i < q->dead_key.n; i++)
        LEAT_TRY(check_key(all, q->dead_key.v[i]));
    return NULL;
}

/* Takes *text and *t, and gives the tensor, or a dead value if t is NULL, to its receiver. */
static leat_status hand_out(leat_exchange *x, char **text, leat_tensor **t)
{
    leat_rendezvous_key key = leat_rendezvous_key_of(*text);
    leat_tensor *tensor = t ? *t : NULL;
    pthread_mutex_lock(&x->lock);
    leat_exchange_keep_text(x, *text);
    pthread_mutex_unlock(&x->lock);
    *text = NULL;
    if (t) {
        *t = NULL;
        int64_t now = leat_rpc_log_now();
        if (leat_rpc_log_on(&x->all->log))
            leat_rpc_log_add(&x->all->log, x->step, key.text, (int64_t)leat_tensor_bytes(tensor),
                             now, now);
    }
    return x->table->ops->send(x->table, &key, tensor, !t);
}

static leat_status hand_out_all(leat_exchange *x, leat_send_tensors_request *q)
{
    for (int i = 0; i < q->tensor.n; i++)
        LEAT_TRY(hand_out(x, &q->tensor.name[i], &q->tensor.tensor[i]));
    for (int i = 0; i < q->dead_key.n; i++)
        LEAT_TRY(hand_out(x, &q->dead_key.v[i], NULL));
    return NULL;
}

static void take(leat_exchanges *all, leat_server_call *a, leat_send_tensors_request *q)
{
    leat_exchange *x = leat_exchange_get(all, q->step_id);
    bool here = leat_server_call_on_cancel(a, leat_exchange_caller_gone, x);
    if (!hold(x, a)) {
        leat_server_call_reply(a, NULL, &(leat_outgoing){0});
    } else { /* The end of the step may reply to the call at any time from now on. */
        leat_later_jobs_begin();
        if (!here)
            leat_exchange_caller_gone(x);
        leat_status s = hand_out_all(x, q);
        if (s) /* The step fails, and RunGraph's reply says why. */
            x->base.ops->abort(&x->base, s);
        leat_status_free(s);
        leat_later_jobs_end();
    }
    leat_exchange_unref(x);
}

void leat_exchange_take_pushed(leat_exchanges *all, leat_server_call *a, const leat_incoming *in)
{
    leat_send_tensors_request q = {0};
    leat_status s = leat_send_tensors_request_decode(in, &q);
    if (!s)
        s = check_keys(all, &q);
    if (s)
        leat_server_call_reply(a, s, &(leat_outgoing){0});
    else
        take(all, a, &q);
    leat_send_tensors_request_release(&q);
}
