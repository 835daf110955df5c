/* channel.c -- the caller's side of calls within the process: links, and the transport. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/local/local.h"
#include "core/alloc.h"

static void cancel(leat_call *base)
{
    leat_local_call *k = (leat_local_call *)base;
    pthread_mutex_lock(&leat_local.lock);
    if (k->ended)
        pthread_mutex_unlock(&leat_local.lock);
    else
        leat_local_call_give_up(k, LEAT_CANCELLED,
                                "was not waited for any longer: the call was cancelled");
}

static void link_call(leat_link *base, const char *method, leat_outgoing *request,
                      const leat_call_options *options, leat_reply_fn fn, void *arg,
                      leat_call **call_out)
{
    leat_local_link *l = (leat_local_link *)base;
    leat_local_call *k = leat_new(leat_local_call);
    *k = (leat_local_call){.caller = {cancel},
                           .link = l,
                           .method = method,
                           .fn = fn,
                           .arg = arg,
                           .started_ns = leat_now_ns(),
                           .deadline_ns = options->deadline_ns,
                           .request = *request,
                           .refs = 1};
    *request = (leat_outgoing){0};
    leat_gone_init(&k->gone);
    if (call_out)
        *call_out = &k->caller;
    leat_local_call_start(k, l->to);
}

static leat_link_state link_state(const leat_link *base)
{
    const leat_local_link *l = (const leat_local_link *)base;
    return __atomic_load_n(&l->to->stopped, __ATOMIC_ACQUIRE) ? LEAT_LINK_DEAD : LEAT_LINK_LIVES;
}

static void link_free(leat_link *base)
{
    leat_local_link *l = (leat_local_link *)base;
    leat_later_now();
    leat_local_give_up_all(l, NULL, LEAT_CANCELLED,
                           "was not waited for any longer: the channel was closed");
    pthread_mutex_lock(&leat_local.lock);
    while (l->calls)
        pthread_cond_wait(&leat_local.changed, &leat_local.lock);
    leat_local_endpoint_unref(l->to);
    pthread_mutex_unlock(&leat_local.lock);
    leat_local_jobs_leave();
    free(l->address);
    free(l->peer);
    free(l);
}

static leat_status local_open(const leat_link_target *to, leat_link **out)
{
    static const leat_link_ops ops = {.call = link_call, .free = link_free, .state = link_state};
    unsigned long long identity, number;
    long long pid;
    char text[64] = "";
    int end = -1;
    const leat_strbuf *offer = &to->offer->data;
    leat_local_init();
    if (offer->n < sizeof text)
        memcpy(text, offer->s, offer->n);
    LEAT_REQUIRE(sscanf(text, "%16llx %lld %llu%n", &identity, &pid, &number, &end) == 3 &&
                     (size_t)end == offer->n,
                 INVALID_ARGUMENT, "A peer's offer of calls within its process cannot be read");
    LEAT_REQUIRE(identity == leat_local.identity && pid == getpid(), FAILED_PRECONDITION,
                 "%s is in another process", to->peer);
    pthread_mutex_lock(&leat_local.lock);
    leat_local_endpoint *e = leat_local.endpoints;
    while (e && e->number != number)
        e = e->next;
    if (e)
        e->refs++;
    pthread_mutex_unlock(&leat_local.lock);
    LEAT_REQUIRE(e, UNAVAILABLE, "The server of %s in this process was stopped", to->peer);
    leat_status s = leat_local_jobs_join();
    if (s) {
        pthread_mutex_lock(&leat_local.lock);
        leat_local_endpoint_unref(e);
        pthread_mutex_unlock(&leat_local.lock);
        return s;
    }
    leat_local_link *l = leat_new(leat_local_link);
    l->base.ops = &ops;
    l->to = e;
    l->address = leat_xstrdup(to->address);
    l->peer = leat_xstrdup(to->peer);
    *out = &l->base;
    return NULL;
}

const leat_transport leat_transport_local = {
    .name = "local", .listen = leat_local_listen, .stop = leat_local_stop, .open = local_open};
