/* listener.c -- the serving side of connections. A server call has one reference for its reply, and
 * a second one while a cancellation calls its handler's function. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/gone.h"
#include "cluster/stream/conn.h"
#include "core/alloc.h"
#include "core/bind.h"
#include "core/buffer.h"
#include "core/cond.h"
#include "core/later.h"
#include "core/log.h"
#include "core/thread.h"
#include "core/threadpool.h"

typedef struct served served;
typedef struct server_call server_call;

struct leat_stream_server {
    leat_endpoint base;
    leat_handler_fn handler;
    void *arg;
    bool (*may_block)(const char *method); /* NULL: no method. */
    void (*close)(void *owner);
    void *owner;
    int64_t max_message;
    int max_calls;
    pthread_mutex_t lock; /* Guards changed to refs. Taken before the watch's and a connection's. */
    pthread_cond_t changed; /* Signalled when calls or handlers becomes 0, or conns changes. */
    served *conns;
    int calls;     /* Calls that were accepted and not replied to. */
    int handlers;  /* Calls whose handler has not returned. */
    bool stopping; /* No more calls are accepted. */
    int refs;      /* One for each connection that was not freed, and one for the endpoint. */
};

/* A connection that a peer opened. */
struct served {
    leat_conn conn;
    leat_stream_server *server;
    served *next, **link; /* In server->conns until the connection ends; guarded by server->lock. */
    char name[64];        /* The peer's name for leat_server_call_peer. */
    server_call *calls;   /* Calls that were not replied to; guarded by conn.lock. */
};

struct server_call {
    leat_server_call base;
    served *served;            /* The call has a reference to served->conn. */
    server_call *next, **link; /* In served->calls; guarded by conn.lock. */
    uint64_t id;
    leat_gone gone;
    /* Guarded by conn.lock: */
    int refs;
    bool told; /* leat_gone_fire was called, or is about to be. */
};

static served *of(leat_conn *c)
{
    return (served *)((char *)c - offsetof(served, conn));
}

static void unref_server(leat_stream_server *l)
{
    pthread_mutex_lock(&l->lock);
    int left = --l->refs;
    pthread_mutex_unlock(&l->lock);
    if (left)
        return;
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l);
}

/* ---- Calls ---- */
static void unref_call(server_call *a)
{
    served *g = a->served;
    pthread_mutex_lock(&g->conn.lock);
    int left = --a->refs;
    pthread_mutex_unlock(&g->conn.lock);
    if (left)
        return;
    leat_gone_release(&a->gone);
    free(a);
    leat_conn_unref(&g->conn);
}

static void send_error(leat_conn *c, uint64_t id, leat_status s)
{
    leat_outgoing words = {0};
    leat_strbuf_puts(&words.text, leat_status_message(s));
    leat_frame f = {.kind = LEAT_FRAME_ERROR, .code = (uint32_t)leat_status_code(s), .id = id};
    leat_conn_send(c, &f, "", &words);
    leat_status_free(s);
}

static void reply(leat_server_call *base, leat_status s, leat_outgoing *reply)
{
    server_call *a = (server_call *)base;
    served *g = a->served;
    leat_stream_server *l = g->server;
    leat_gone_reply(&a->gone);
    pthread_mutex_lock(&g->conn.lock);
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    pthread_mutex_unlock(&g->conn.lock);
    size_t size = reply && !s ? leat_outgoing_size(reply) : 0;
    if (size > LEAT_MESSAGE_MAX)
        s = leat_error(RESOURCE_EXHAUSTED, "A reply of %zu bytes is larger than the limit of %lld",
                       size, (long long)LEAT_MESSAGE_MAX);
    if (s)
        send_error(&g->conn, a->id, s);
    else
        leat_conn_send(&g->conn, &(leat_frame){.kind = LEAT_FRAME_REPLY, .id = a->id}, "", reply);
    if (reply)
        leat_outgoing_release(reply);
    pthread_mutex_lock(&l->lock);
    if (--l->calls == 0)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    unref_call(a);
}

static bool on_cancel(leat_server_call *base, void (*fn)(void *arg), void *arg)
{
    return leat_gone_watch(&((server_call *)base)->gone, fn, arg);
}

static const char *peer(const leat_server_call *base)
{
    return ((const server_call *)base)->served->name;
}

static void will_block(leat_server_call *base)
{
    leat_later_now();
    leat_conn_hand_over(&((server_call *)base)->served->conn);
    leat_unbind(); /* The thread works on, beside the one that reads now. */
}

static void handler_returned(leat_stream_server *l)
{
    pthread_mutex_lock(&l->lock);
    if (--l->handlers == 0)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* A call whose handler runs in a thread of its own, since it may block, and the thread that has
 * read the request waits for something else. */
typedef struct apart {
    leat_stream_server *server; /* A reference. */
    server_call *call;
    char *method;
    leat_incoming in; /* With a copy of the slices, and a reference to their buffer. */
} apart;

static void apart_free(apart *x)
{
    if (x->in.owner)
        leat_buffer_unref(x->in.owner);
    unref_server(x->server);
    free((void *)x->in.slices);
    free(x->method);
    free(x);
}

static void *handle_apart(void *arg)
{
    apart *x = arg;
    x->server->handler(x->server->arg, &x->call->base, x->method, &x->in);
    handler_returned(x->server);
    apart_free(x);
    return NULL;
}

/* False if no thread can be started, or the bytes of the request are not in a buffer. */
static bool start_apart(leat_stream_server *l, server_call *a, const char *method,
                        const leat_incoming *in)
{
    if (in->size && !in->owner)
        return false;
    apart *x = leat_new(apart);
    leat_slice *slices = leat_new_array(leat_slice, in->n + 1);
    if (in->n)
        memcpy(slices, in->slices, sizeof(*slices) * (size_t)in->n);
    *x = (apart){l, a, leat_xstrdup(method), *in};
    x->in.slices = slices;
    if (in->owner)
        leat_buffer_ref(in->owner);
    pthread_mutex_lock(&l->lock);
    l->refs++;
    pthread_mutex_unlock(&l->lock);
    bool started = leat_thread_start(NULL, handle_apart, x) == 0;
    if (!started)
        apart_free(x);
    return started;
}

static void on_request(served *g, const leat_frame *f, const char *method, const leat_incoming *in)
{
    static const leat_server_call_ops ops = {reply, on_cancel, peer, will_block};
    leat_stream_server *l = g->server;
    pthread_mutex_lock(&l->lock);
    bool stopping = l->stopping, room = l->calls < l->max_calls;
    bool wanted = !stopping && room && in;
    l->calls += wanted;
    l->handlers += wanted;
    pthread_mutex_unlock(&l->lock);
    if (stopping)
        send_error(&g->conn, f->id, leat_error(UNAVAILABLE, "The task is being shut down"));
    else if (!in && f->size > (uint64_t)l->max_message)
        send_error(&g->conn, f->id,
                   leat_error(RESOURCE_EXHAUSTED,
                              "%s of %llu bytes is larger than the limit of %lld", method,
                              (unsigned long long)f->size, (long long)l->max_message));
    else if (!in)
        send_error(&g->conn, f->id,
                   leat_error(RESOURCE_EXHAUSTED,
                              "There is no memory for a message of %llu bytes (%s)",
                              (unsigned long long)f->size, method));
    else if (!room)
        send_error(&g->conn, f->id,
                   leat_error(RESOURCE_EXHAUSTED,
                              "The task has %d calls under way, which is its limit (--max_calls)",
                              l->max_calls));
    if (!wanted)
        return;
    server_call *a = leat_new(server_call);
    a->base.ops = &ops;
    a->served = g;
    a->id = f->id;
    a->refs = 1;
    leat_gone_init(&a->gone);
    leat_conn_ref(&g->conn);
    pthread_mutex_lock(&g->conn.lock);
    a->next = g->calls;
    a->link = &g->calls;
    if (a->next)
        a->next->link = &a->next;
    g->calls = a;
    pthread_mutex_unlock(&g->conn.lock);
    if (leat_conn_thread_waits() && l->may_block && l->may_block(method) &&
        start_apart(l, a, method, in))
        return;
    l->handler(l->arg, &a->base, method, in);
    handler_returned(l);
}

static void nothing(void) {}

/* The caller has cancelled the call with this id; id 0: the connection has ended, and all of its
 * callers are lost. */
static void tell_gone(served *g, uint64_t id)
{
    for (;;) {
        pthread_mutex_lock(&g->conn.lock);
        server_call *a = g->calls;
        while (a && ((id && a->id != id) || a->told))
            a = a->next;
        if (a) {
            a->refs++;
            a->told = true;
        }
        pthread_mutex_unlock(&g->conn.lock);
        if (!a)
            return;
        leat_gone_fire(&a->gone, nothing);
        unref_call(a);
    }
}

/* ---- Connections ---- */
static void on_frame(leat_conn *c, const leat_frame *f, const char *method, const leat_incoming *in)
{
    if (f->kind == LEAT_FRAME_REQUEST)
        on_request(of(c), f, method, in);
    else if (f->kind == LEAT_FRAME_CANCEL && f->id)
        tell_gone(of(c), f->id);
}

static void on_ended(leat_conn *c)
{
    served *g = of(c);
    leat_stream_server *l = g->server;
    tell_gone(g, 0);
    leat_watch_remove(c);
    __atomic_store_n(&c->closing, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&l->lock);
    *g->link = g->next;
    if (g->next)
        g->next->link = g->link;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    leat_conn_unref(c);
}

static void on_nothing(leat_conn *c) {}

static void on_released(leat_conn *c)
{
    served *g = of(c);
    unref_server(g->server);
    free(g);
}

static void on_tick(leat_conn *c, int64_t now) {}

/* ---- The server ---- */
leat_stream_server *leat_stream_server_new(const leat_listen_options *options,
                                           leat_handler_fn handler, void *arg,
                                           void (*close)(void *owner), void *owner)
{
    leat_stream_server *l = leat_new(leat_stream_server);
    l->handler = handler;
    l->arg = arg;
    l->may_block = options->may_block;
    l->close = close;
    l->owner = owner;
    l->max_calls = options->max_calls ? options->max_calls : 10000;
    l->max_message = options->max_message ? options->max_message : LEAT_MESSAGE_MAX;
    l->refs = 1;
    pthread_mutex_init(&l->lock, NULL);
    leat_cond_init(&l->changed);
    return l;
}

leat_endpoint *leat_stream_server_base(leat_stream_server *l)
{
    return &l->base;
}

void leat_stream_server_add(leat_stream_server *l, leat_stream *stream, const char *peer,
                            void (*accept)(void *arg), void *arg)
{
    static const leat_conn_ops ops = {on_frame, on_nothing, on_ended, on_released, on_tick};
    served *g = leat_new(served);
    g->server = l;
    snprintf(g->name, sizeof g->name, "%s", peer);
    pthread_mutex_lock(&l->lock);
    l->refs++;
    g->next = l->conns;
    g->link = &l->conns;
    if (g->next)
        g->next->link = &g->next;
    l->conns = g;
    leat_status e = leat_conn_start(&g->conn, &ops, stream, l->max_message);
    if (e) {
        l->refs--;
        *g->link = g->next;
        if (g->next)
            g->next->link = g->link;
        free(g);
    } else {
        accept(arg); /* on_ended waits for the lock, so the stream lives. */
    }
    pthread_mutex_unlock(&l->lock);
    if (e)
        LEAT_LOG(WARNING, "The connection of the %s was closed: %s", peer, leat_status_message(e));
    leat_status_free(e);
}

void leat_stream_server_stop(leat_endpoint *base, int64_t deadline_ns)
{
    leat_stream_server *l = (leat_stream_server *)base;
    l->close(l->owner);
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    while (l->calls && leat_cond_wait_until(&l->changed, &l->lock, deadline_ns))
        ;
    for (served *g = l->conns; g; g = g->next)
        leat_conn_finish(&g->conn, LEAT_CONN_LEFT);
    while (l->conns || l->handlers)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    unref_server(l);
}
