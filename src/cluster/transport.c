/* transport.c -- chooses the link that a call goes by, listens on several transports at once, and
 * makes calls whose caller waits for the reply. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "core/log.h"
#include "runtime/session_int.h"

int64_t leat_ping_after_ns = INT64_C(10000000000);

struct leat_channel {
    char *address, *peer;
    const leat_security *security;
    int n; /* The number of transports. */
    /* Atomic: links[i] is the link by transport i of leat_transports, or NULL. */
    leat_link *links[LEAT_TRANSPORTS_MAX];
    /* Guards offers, replaced and closing. Held while a link is opened; taken before renew_lock. */
    pthread_mutex_t lock;
    leat_strbuf offers[LEAT_TRANSPORTS_MAX]; /* links[i] was opened from offers[i]. */
    /* Links that newer ones replaced. They are freed with the channel, since calls may use them. */
    leat_link *replaced;
    bool closing;               /* The channel is being freed: no link is opened any more. */
    pthread_mutex_t renew_lock; /* Held while links renew their connections. */
};

struct leat_listener {
    leat_endpoint *endpoints[LEAT_TRANSPORTS_MAX];
    int n; /* The number of endpoints. The last one is that of the transport by_address. */
};

void leat_offers_release(leat_offers *o)
{
    for (int i = 0; i < o->n; i++)
        leat_strbuf_release(&o->v[i].data);
    o->n = 0;
}

/* ---- Channels ---- */
leat_status leat_channel_open_link(const leat_transport *t, const leat_link_target *to,
                                   leat_channel **out)
{
    LEAT_TRY(leat_transports_check());
    leat_link *link;
    LEAT_TRY(t->open(to, &link));
    leat_channel *c = leat_new(leat_channel);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->renew_lock, NULL);
    c->address = leat_xstrdup(to->address);
    c->peer = leat_xstrdup(to->peer);
    c->security = to->security;
    for (; leat_transports[c->n]; c->n++)
        if (leat_transports[c->n] == t)
            c->links[c->n] = link;
    *out = c;
    return NULL;
}

leat_status leat_channel_open(const char *address, const char *peer, const leat_security *security,
                              leat_channel **out)
{
    leat_link_target to = {.address = address, .peer = peer, .security = security};
    int i = 0;
    while (leat_transports[i] && !leat_transports[i]->by_address)
        i++;
    LEAT_TRY(leat_transports_check());
    return leat_channel_open_link(leat_transports[i], &to, out);
}

void leat_channel_free(leat_channel *c)
{
    if (!c)
        return;
    /* Until the links are freed, a reply to GetStatus may still come and bring offers. */
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_mutex_unlock(&c->lock);
    for (leat_link *l = c->replaced, *next; l; l = next) {
        next = l->next;
        l->ops->free(l);
    }
    for (int i = 0; i < c->n; i++) {
        if (c->links[i])
            c->links[i]->ops->free(c->links[i]);
        leat_strbuf_release(&c->offers[i]);
    }
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->renew_lock);
    free(c->address);
    free(c->peer);
    free(c);
}

static leat_link_state state(const leat_link *l)
{
    return l->ops->state ? l->ops->state(l) : LEAT_LINK_LIVES;
}

static leat_link *link_at(leat_channel *c, int i)
{
    return __atomic_load_n(&c->links[i], __ATOMIC_ACQUIRE);
}

/* Makes the channel's other links renew their connections because a link is dead, once for each
 * dead link, before the next call goes by one of the other links. */
static void leave_dead(leat_channel *c, leat_link *dead)
{
    if (__atomic_load_n(&dead->death_seen, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&c->renew_lock);
    for (int i = 0; i < c->n && !dead->death_seen; i++) {
        leat_link *l = link_at(c, i);
        if (l && l->ops->renew)
            l->ops->renew(l);
    }
    __atomic_store_n(&dead->death_seen, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&c->renew_lock);
}

static const leat_offer *find_offer(const leat_offers *offers, const leat_transport *t)
{
    for (int i = 0; i < offers->n; i++)
        if (strcmp(offers->v[i].transport, t->name) == 0)
            return &offers->v[i];
    return NULL;
}

static bool same(const leat_strbuf *a, const leat_strbuf *b)
{
    return a->n == b->n && (!a->n || memcmp(a->s, b->s, a->n) == 0);
}

/* Opens a link by transport i, unless the present one lives and is of the same offer. True if the
 * channel has such a link now. The channel's lock is held. */
static bool use_offer(leat_channel *c, int i, const leat_offer *offer)
{
    leat_link *old = c->links[i], *link;
    if (old && same(&c->offers[i], &offer->data) && state(old) != LEAT_LINK_DEAD)
        return true;
    leat_link_target to = {c->address, c->peer, c->security, offer};
    leat_status s = leat_transports[i]->open(&to, &link);
    if (s) {
        /* FAILED_PRECONDITION: the transport does not lead to this peer, which is normal. */
        if (leat_status_code(s) != LEAT_FAILED_PRECONDITION)
            LEAT_LOG(INFO, "No calls to %s by %s: %s", c->peer, leat_transports[i]->name,
                     leat_status_message(s));
        leat_status_free(s);
        return false;
    }
    __atomic_store_n(&c->links[i], link, __ATOMIC_RELEASE);
    if (old) {
        if (state(old) == LEAT_LINK_DEAD)
            leave_dead(c, old);
        if (old->ops->replaced)
            old->ops->replaced(old);
        old->next = c->replaced;
        c->replaced = old;
    }
    leat_strbuf_release(&c->offers[i]);
    leat_strbuf_add(&c->offers[i], offer->data.s, offer->data.n);
    return true;
}

void leat_channel_use_offers(leat_channel *c, const leat_offers *offers, uint32_t mask)
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n && !found && !c->closing; i++) {
        const leat_offer *offer = find_offer(offers, leat_transports[i]);
        if (offer && (mask >> i & 1) && !leat_transports[i]->by_address)
            found = use_offer(c, i, offer);
    }
    pthread_mutex_unlock(&c->lock);
}

bool leat_channel_degraded(leat_channel *c)
{
    for (int i = 0; i < c->n; i++) {
        leat_link *l = link_at(c, i);
        if (l && state(l) == LEAT_LINK_DEAD)
            return true;
    }
    return false;
}

leat_link_state leat_channel_state(leat_channel *c)
{
    leat_link *l = NULL;
    for (int i = 0; i < c->n && !l; i++)
        l = link_at(c, i);
    return state(l);
}

/* Gives the most preferred link that lives, or the least preferred one if none does. */
static leat_link *best(leat_channel *c)
{
    leat_link *last = NULL;
    for (int i = 0; i < c->n; i++) {
        leat_link *l = link_at(c, i);
        if (!l)
            continue;
        last = l;
        leat_link_state s = state(l);
        if (s == LEAT_LINK_LIVES)
            return l;
        if (s == LEAT_LINK_DEAD)
            leave_dead(c, l);
    }
    return last;
}

void leat_channel_call(leat_channel *c, const char *method, leat_outgoing *request,
                       const leat_call_options *options, leat_reply_fn fn, void *arg,
                       leat_call **call_out)
{
    static const leat_call_options none;
    leat_link *l = best(c);
    l->ops->call(l, method, request, options ? options : &none, fn, arg, call_out);
}

int leat_transports_wait(leat_pool *p, leat_event *e, int64_t deadline_ns)
{
    for (int i = 0; leat_transports[i]; i++) {
        int set = leat_transports[i]->wait ? leat_transports[i]->wait(p, e, deadline_ns) : -1;
        if (set >= 0)
            return set;
    }
    return leat_pool_wait(p, e, deadline_ns);
}

/* ---- Listeners ---- */
static void listen_beside(leat_listener *l, int i, const char *address,
                          const leat_listen_options *o, leat_handler_fn handler, void *arg)
{
    const leat_transport *t = leat_transports[i];
    leat_offer *offer = &o->offers->v[o->offers->n];
    *offer = (leat_offer){0};
    leat_status s = t->listen(address, o, handler, arg, &offer->data, &l->endpoints[l->n]);
    if (s) {
        if (o->data_port) /* The user chose the port, perhaps opened a firewall: a warning. */
            LEAT_LOG(WARNING, "No calls come by %s: %s", t->name, leat_status_message(s));
        else
            LEAT_LOG(INFO, "No calls come by %s: %s", t->name, leat_status_message(s));
        leat_status_free(s);
        leat_strbuf_release(&offer->data);
        return;
    }
    snprintf(offer->transport, sizeof offer->transport, "%s", t->name);
    /* A peer that has connected by this transport may read the list now (leat_peers_self). */
    __atomic_store_n(&o->offers->n, o->offers->n + 1, __ATOMIC_RELEASE);
    l->endpoints[l->n++]->transport = t;
}

leat_status leat_listen(const char *address, const leat_listen_options *options,
                        leat_handler_fn handler, void *arg, leat_listener **out)
{
    static const leat_listen_options none;
    LEAT_TRY(leat_transports_check());
    options = options ? options : &none;
    leat_listener *l = leat_new(leat_listener);
    const leat_transport *base = NULL;
    for (int i = 0; leat_transports[i]; i++)
        if (leat_transports[i]->by_address)
            base = leat_transports[i];
        else if (options->offers && (options->transports >> i & 1))
            listen_beside(l, i, address, options, handler, arg);
    leat_status s = base->listen(address, options, handler, arg, NULL, &l->endpoints[l->n]);
    if (s) {
        leat_listener_stop(l, 0);
        return s;
    }
    l->endpoints[l->n++]->transport = base;
    *out = l;
    return NULL;
}

int leat_listener_port(const leat_listener *l)
{
    const leat_endpoint *base = l->endpoints[l->n - 1];
    return base->transport->port(base);
}

void leat_listener_stop(leat_listener *l, int64_t deadline_ns)
{
    while (l->n) {
        leat_endpoint *e = l->endpoints[--l->n];
        e->transport->stop(e, deadline_ns);
    }
    free(l);
}

/* ---- Calls ---- */
void leat_call_cancel(leat_call *call)
{
    call->cancel(call);
}

void leat_server_call_reply(leat_server_call *a, leat_status s, leat_outgoing *reply)
{
    a->ops->reply(a, s, reply);
}

bool leat_server_call_on_cancel(leat_server_call *a, void (*fn)(void *arg), void *arg)
{
    return a->ops->on_cancel(a, fn, arg);
}

const char *leat_server_call_peer(const leat_server_call *a)
{
    return a->ops->peer(a);
}

void leat_server_call_will_block(leat_server_call *a)
{
    if (a->ops->will_block)
        a->ops->will_block(a);
}

int64_t leat_server_call_max_reply(const leat_server_call *a)
{
    return a->ops->max_reply ? a->ops->max_reply(a) : LEAT_MESSAGE_MAX;
}

/* A call of leat_channel_call_wait. */
typedef struct waiting {
    leat_event done;
    leat_status status;
    void *reply;
    size_t size;
    pthread_mutex_t lock; /* Guards call. */
    leat_call *call;      /* NULL once the reply function has begun to run. */
} waiting;

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    waiting *w = arg;
    pthread_mutex_lock(&w->lock);
    w->call = NULL;
    pthread_mutex_unlock(&w->lock);
    w->status = s;
    if (!s) {
        leat_cursor c = leat_cursor_of(in);
        w->status = leat_cursor_take(&c, in->size, &w->reply);
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

leat_status leat_channel_call_wait(leat_channel *c, const char *method, leat_outgoing *request,
                                   const leat_call_options *options, void **reply_out,
                                   size_t *size_out)
{
    waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER};
    leat_cancel_watch watch = {.fn = cancel_wait, .arg = &w};
    leat_event_init(&w.done);
    leat_call_options o = options ? *options : (leat_call_options){0};
    pthread_mutex_lock(&w.lock);
    leat_channel_call(c, method, request, &o, on_reply, &w, &w.call);
    pthread_mutex_unlock(&w.lock);
    leat_cancellation_watch(o.cancellation, &watch);
    leat_event_wait(&w.done, 0);
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
