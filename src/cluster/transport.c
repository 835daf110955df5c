/* transport.c -- hands calls to the way that a channel goes, and waits for those that are asked
 * to wait. */
#include <stdlib.h>

#include "cluster/shm.h"
#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "runtime/session_int.h"

void leat_channel_free(leat_channel *c)
{
    if (!c)
        return;
    for (leat_channel *f = c->fast, *was; f; f = was) {
        was = f->was;
        f->ops->free(f);
    }
    c->ops->free(c);
}

leat_status leat_channel_use_shm(leat_channel *c, const leat_shm_name *name, const char *address,
                                 const char *peer)
{
    leat_channel *f = __atomic_load_n(&c->fast, __ATOMIC_ACQUIRE);
    if (f && leat_channel_shm_leads_to(f, name))
        return NULL;
    LEAT_TRY(leat_channel_open_shm(name, address, peer, &f));
    f->was = __atomic_load_n(&c->fast, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&c->fast, &f->was, f, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
        ;
    return NULL;
}

void leat_channel_call(leat_channel *c, const char *method, leat_outgoing *request,
                       const leat_call_options *options, leat_reply_fn fn, void *arg,
                       leat_call **call_out)
{
    static const leat_call_options none;
    leat_channel *fast = __atomic_load_n(&c->fast, __ATOMIC_ACQUIRE);
    if (fast && leat_channel_shm_lives(fast))
        c = fast;
    c->ops->call(c, method, request, options ? options : &none, fn, arg, call_out);
}

void leat_channel_wait(leat_channel *c, leat_event *done)
{
    leat_channel *fast = __atomic_load_n(&c->fast, __ATOMIC_ACQUIRE);
    if (!fast && c->ops->wait)
        c->ops->wait(done);
    else
        leat_event_wait(done, 0);
}

void leat_call_cancel(leat_call *call)
{
    call->cancel(call);
}

void leat_asked_reply(leat_asked *a, leat_status s, leat_outgoing *reply)
{
    a->ops->reply(a, s, reply);
}

bool leat_asked_on_gone(leat_asked *a, void (*fn)(void *arg), void *arg)
{
    return a->ops->on_gone(a, fn, arg);
}

const char *leat_asked_peer(const leat_asked *a)
{
    return a->ops->peer(a);
}

void leat_asked_leave(leat_asked *a)
{
    if (a->ops->leave)
        a->ops->leave(a);
}

int64_t leat_asked_most(const leat_asked *a)
{
    return a->ops->most ? a->ops->most(a) : LEAT_MESSAGE_MAX;
}

typedef struct waiting {
    leat_event done;
    leat_status status;
    void *reply;
    size_t size;
    pthread_mutex_t lock; /* guards call: NULL from when its answer is there */
    leat_call *call;
} waiting;

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    waiting *w = arg;
    pthread_mutex_lock(&w->lock);
    w->call = NULL;
    pthread_mutex_unlock(&w->lock);
    w->status = s;
    if (!s) {
        char *p = w->reply = leat_xmalloc(in->size + 1);
        leat_cursor c = leat_cursor_of(in);
        w->status = leat_cursor_copy(&c, p, in->size);
        p[in->size] = 0;
        w->size = in->size;
    }
    leat_event_set(&w->done);
}

static void cancel_wait(void *arg)
{
    waiting *w = arg;
    pthread_mutex_lock(&w->lock);
    if (w->call)
        leat_call_cancel(w->call);
    pthread_mutex_unlock(&w->lock);
}

leat_status leat_channel_ask(leat_channel *c, const char *method, leat_outgoing *request,
                             const leat_call_options *options, void **reply_out, size_t *size_out)
{
    waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER};
    leat_cancel_watch watch = {.fn = cancel_wait, .arg = &w};
    leat_event_init(&w.done);
    leat_call_options o = options ? *options : (leat_call_options){0};
    o.waits = true;
    pthread_mutex_lock(&w.lock);
    leat_channel_call(c, method, request, &o, on_reply, &w, &w.call);
    pthread_mutex_unlock(&w.lock);
    leat_cancellation_watch(o.cancellation, &watch);
    leat_channel_wait(c, &w.done);
    leat_cancellation_unwatch(o.cancellation, &watch);
    pthread_mutex_destroy(&w.lock);
    if (w.status) {
        free(w.reply);
        return w.status;
    }
    *reply_out = w.reply;
    *size_out = w.size;
    return NULL;
}
