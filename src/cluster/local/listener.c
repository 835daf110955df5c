/* listener.c -- the serving side of calls within the process. */
#include <stdlib.h>
#include <unistd.h>

#include "cluster/local/local.h"
#include "core/alloc.h"
#include "core/cond.h"

/* ---- Functions that a handler calls ---- */
static leat_local_call *of_server(const leat_server_call *base)
{
    return (leat_local_call *)((char *)base - offsetof(leat_local_call, server));
}

static void reply(leat_server_call *base, leat_status s, leat_outgoing *reply)
{
    leat_local_call *k = of_server(base);
    size_t size = reply && !s ? leat_outgoing_size(reply) : 0;
    if (size > LEAT_MESSAGE_MAX)
        s = leat_error(RESOURCE_EXHAUSTED, "A reply of %zu bytes is larger than the limit of %lld",
                       size, (long long)LEAT_MESSAGE_MAX);
    leat_gone_reply(&k->gone);
    pthread_mutex_lock(&leat_local.lock);
    bool open = !k->ended;
    if (open) {
        leat_local_call_close(k);
        k->status = s;
        if (reply && !s) {
            k->reply = *reply;
            *reply = (leat_outgoing){0};
        }
    }
    k->to->calls--;
    pthread_cond_broadcast(&leat_local.changed);
    leat_local_call_unref(k);
    pthread_mutex_unlock(&leat_local.lock);
    if (open)
        leat_local_call_answer(k);
    else
        leat_status_free(s);
    if (reply)
        leat_outgoing_release(reply);
}

static bool on_cancel(leat_server_call *base, void (*fn)(void *arg), void *arg)
{
    return leat_gone_watch(&of_server(base)->gone, fn, arg);
}

static const char *peer(const leat_server_call *base)
{
    return "this process";
}

static void will_block(leat_server_call *base)
{
    leat_later_now();
}

/* ---- Accepting ---- */
/* Gives the reason why e does not accept the call; NULL if it does. The lock is held. */
static leat_status refusal(const leat_local_call *k, const leat_local_endpoint *e)
{
    size_t size = leat_outgoing_size(&k->request);
    if (e->stopped)
        return leat_local_failure(k, LEAT_UNAVAILABLE,
                                  "has closed the connection: its server was stopped");
    LEAT_REQUIRE(!e->stopping, UNAVAILABLE, "The task is being shut down");
    LEAT_REQUIRE(size <= (size_t)e->max_message, RESOURCE_EXHAUSTED,
                 "%s of %zu bytes is larger than the limit of %lld", k->method, size,
                 (long long)e->max_message);
    LEAT_REQUIRE(e->calls < e->max_calls, RESOURCE_EXHAUSTED,
                 "The task has %d calls under way, which is its limit (--max_calls)", e->max_calls);
    return NULL;
}

leat_status leat_local_accept(leat_local_call *k, leat_local_endpoint *e)
{
    static const leat_server_call_ops ops = {
        .reply = reply, .on_cancel = on_cancel, .peer = peer, .will_block = will_block};
    LEAT_TRY(refusal(k, e));
    k->server.ops = &ops;
    k->to = e;
    k->refs++;
    e->refs++;
    e->calls++;
    e->jobs++;
    k->next = leat_local.calls;
    k->at = &leat_local.calls;
    if (k->next)
        k->next->at = &k->next;
    leat_local.calls = k;
    return NULL;
}

/* ---- Beginning and end ---- */
leat_status leat_local_listen(const char *address, const leat_listen_options *options,
                              leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                              leat_endpoint **out)
{
    leat_local_init();
    LEAT_TRY(leat_local_jobs_join());
    leat_local_endpoint *e = leat_new(leat_local_endpoint);
    e->handler = handler;
    e->arg = arg;
    e->max_message = options->max_message ? options->max_message : LEAT_MESSAGE_MAX;
    e->max_calls = options->max_calls ? options->max_calls : 10000;
    e->refs = 1;
    pthread_mutex_lock(&leat_local.lock);
    e->number = ++leat_local.listeners;
    e->next = leat_local.endpoints;
    leat_local.endpoints = e;
    leat_strbuf_printf(offer_out, "%llx %lld %llu", leat_local.identity, (long long)getpid(),
                       e->number);
    pthread_mutex_unlock(&leat_local.lock);
    *out = &e->base;
    return NULL;
}

void leat_local_stop(leat_endpoint *base, int64_t deadline_ns)
{
    leat_local_endpoint *e = (leat_local_endpoint *)base;
    leat_later_now();
    pthread_mutex_lock(&leat_local.lock);
    leat_local_endpoint **at = &leat_local.endpoints;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    e->stopping = true;
    while (e->calls && leat_cond_wait_until(&leat_local.changed, &leat_local.lock, deadline_ns))
        ;
    __atomic_store_n(&e->stopped, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&leat_local.lock);
    leat_local_give_up_all(NULL, e, LEAT_UNAVAILABLE,
                           "closed the connection in mid-call: its server was stopped");
    pthread_mutex_lock(&leat_local.lock);
    while (e->jobs)
        pthread_cond_wait(&leat_local.changed, &leat_local.lock);
    leat_local_endpoint_unref(e);
    pthread_mutex_unlock(&leat_local.lock);
    leat_local_jobs_leave();
}
