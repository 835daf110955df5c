/* channel.c -- the caller's side of a connection: a link. A call is found by its number, and ends
 * once: by its reply, its deadline, a cancellation or the end of the connection, whichever comes
 * first. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stream/conn.h"
#include "core/alloc.h"
#include "core/thread.h"
#include "core/threadpool.h"

typedef struct call call;
struct leat_stream_link {
    leat_link base;
    leat_conn conn;
    char *address, *peer;
    const char *transport; /* The transport's name in error messages. */
    /* Atomic: a leat_link_state. Stays LIVES when the connection ends; see link_state. */
    uint32_t state;
    void (*cancel)(void *opening), (*before_free)(void *opening);
    void *opening; /* The argument of cancel and before_free. */
    /* Guarded by conn.lock: */
    call **calls; /* calls[id % cap] is the open call with that id, or NULL. */
    /* The size of calls; how many of its entries are not NULL; the id of the last call made. */
    uint64_t cap, n, number;
    call *failed, **failed_end;    /* Calls whose reply function on_chores has to call. */
    pthread_mutex_t unopened_lock; /* Guards unopened. */
    pthread_cond_t none_unopened;  /* Signalled when unopened becomes 0. */
    int unopened;                  /* Calls that were made before the link was open. */
};

struct call {
    leat_call base;
    leat_stream_link *channel;
    call *next; /* In the link's list of failed calls. */
    uint64_t id;
    const char *method;
    leat_reply_fn fn;
    void *arg;
    int64_t started_ns, deadline_ns;
    leat_status status;
};

static leat_stream_link *of(leat_conn *c)
{
    return (leat_stream_link *)((char *)c - offsetof(leat_stream_link, conn));
}

static leat_status failure(const call *k, leat_code code, const char *what)
{
    return leat_status_new(code, __FILE__, __LINE__, "%s (%s, %s) %s [%s, after %.3f s]",
                           k->channel->peer, k->channel->address, k->channel->transport, what,
                           k->method, (double)(leat_now_ns() - k->started_ns) / 1e9);
}

static leat_status lost(const call *k)
{
    switch (__atomic_load_n(&k->channel->conn.end, __ATOMIC_SEQ_CST)) {
    case LEAT_CONN_SILENT:
        return failure(
            k, LEAT_UNAVAILABLE,
            "fell silent: not even a ping was answered. It is stopped or hangs, or the network "
            "between is cut");
    case LEAT_CONN_GARBAGE:
        return failure(k, LEAT_UNAVAILABLE, "sent what is no frame: the connection was closed");
    case LEAT_CONN_STARVED:
        return failure(k, LEAT_UNAVAILABLE,
                       "was not listened to any longer: this task could not start a thread to read "
                       "the connection. " LEAT_NO_THREAD_HINT);
    case LEAT_CONN_LEFT:
        return failure(k, LEAT_CANCELLED, "was not waited for any longer: the channel was closed");
    default:
        return failure(k, LEAT_UNAVAILABLE,
                       "closed the connection in mid-call. The task ended, or was killed: see what "
                       "it printed last");
    }
}

/* ---- The table of calls; conn.lock is held ---- */
static void add(leat_stream_link *ch, call *k)
{
    if (2 * ch->n >= ch->cap) {
        uint64_t cap = ch->cap ? 2 * ch->cap : 64;
        call **v = leat_new_array(call *, cap);
        for (uint64_t i = 0; i < ch->cap; i++)
            if (ch->calls[i])
                v[ch->calls[i]->id % cap] = ch->calls[i];
        free(ch->calls);
        ch->calls = v;
        ch->cap = cap;
    }
    do
        k->id = ++ch->number;
    while (ch->calls[k->id % ch->cap]);
    ch->calls[k->id % ch->cap] = k;
    ch->n++;
}

static call *take(leat_stream_link *ch, uint64_t id)
{
    call *k = ch->cap ? ch->calls[id % ch->cap] : NULL;
    if (!k || k->id != id)
        return NULL;
    ch->calls[id % ch->cap] = NULL;
    ch->n--;
    return k;
}

/* Takes s. A thread of the connection calls the call's reply function (on_chores). */
static void fail(leat_stream_link *ch, call *k, leat_status s)
{
    k->status = s;
    k->next = NULL;
    *ch->failed_end = k;
    ch->failed_end = &k->next;
    leat_conn_call_reader(&ch->conn);
}

/* ---- Functions that the connection calls: leat_conn_ops ---- */
static void on_frame(leat_conn *c, const leat_frame *f, const char *method, const leat_incoming *in)
{
    leat_stream_link *ch = of(c);
    pthread_mutex_lock(&c->lock);
    call *k = take(ch, f->id);
    pthread_mutex_unlock(&c->lock);
    if (!k)
        return; /* The call was cancelled, or missed its deadline. */
    if (!in) {
        char what[160];
        if (f->size > (uint64_t)c->max_message)
            snprintf(what, sizeof what, "sent a reply of %llu bytes, and the limit is %lld",
                     (unsigned long long)f->size, (long long)c->max_message);
        else
            snprintf(what, sizeof what,
                     "sent a reply of %llu bytes, for which this task has no memory",
                     (unsigned long long)f->size);
        k->fn(k->arg, failure(k, LEAT_RESOURCE_EXHAUSTED, what), NULL);
    } else if (f->kind == LEAT_FRAME_REPLY) {
        k->fn(k->arg, NULL, in);
    } else {
        leat_strbuf words = {0};
        for (int i = 0; i < in->n; i++)
            leat_strbuf_add(&words, in->slices[i].data, in->slices[i].n);
        leat_code code = f->code > 0 && f->code <= LEAT_UNAUTHENTICATED ? f->code : LEAT_UNKNOWN;
        leat_status s = leat_status_new(code, __FILE__, __LINE__, "%s", leat_strbuf_text(&words));
        leat_strbuf_release(&words);
        k->fn(k->arg, s, NULL);
    }
    free(k);
}

static void on_chores(leat_conn *c)
{
    leat_stream_link *ch = of(c);
    pthread_mutex_lock(&c->lock);
    call *k = ch->failed;
    ch->failed = NULL;
    ch->failed_end = &ch->failed;
    pthread_mutex_unlock(&c->lock);
    while (k) {
        call *next = k->next;
        k->fn(k->arg, k->status, NULL);
        free(k);
        k = next;
    }
}

static void on_ended(leat_conn *c)
{
    leat_stream_link *ch = of(c);
    pthread_mutex_lock(&c->lock);
    for (uint64_t i = 0; i < ch->cap; i++)
        if (ch->calls[i])
            fail(ch, ch->calls[i], lost(ch->calls[i]));
    if (ch->cap)
        memset(ch->calls, 0, ch->cap * sizeof *ch->calls);
    ch->n = 0;
    pthread_mutex_unlock(&c->lock);
}

/* Ends calls that missed their deadline, and pings a peer that sends nothing. */
static void on_tick(leat_conn *c, int64_t now)
{
    leat_stream_link *ch = of(c);
    int64_t soonest = INT64_MAX, since = now - leat_ping_after_ns;
    pthread_mutex_lock(&c->lock);
    bool open = ch->n;
    for (uint64_t i = 0; i < ch->cap; i++) {
        call *k = ch->calls[i];
        if (!k || !k->deadline_ns)
            continue;
        if (k->deadline_ns > now) {
            soonest = k->deadline_ns < soonest ? k->deadline_ns : soonest;
            continue;
        }
        take(ch, k->id);
        leat_conn_send(c, &(leat_frame){.kind = LEAT_FRAME_CANCEL, .id = k->id}, "", NULL);
        fail(ch, k,
             failure(k, LEAT_DEADLINE_EXCEEDED,
                     "is connected, but did not answer in time. It is busy or stopped, or "
                     "the request takes longer"));
    }
    pthread_mutex_unlock(&c->lock);
    leat_watch_at(soonest);
    int64_t pinged = __atomic_load_n(&c->pinged_ns, __ATOMIC_RELAXED);
    if (!open || __atomic_load_n(&c->heard_ns, __ATOMIC_RELAXED) > since)
        return;
    if (pinged && pinged <= since)
        leat_conn_finish(c, LEAT_CONN_SILENT);
    else if (!pinged) {
        __atomic_store_n(&c->pinged_ns, now, __ATOMIC_RELAXED);
        leat_conn_send(c, &(leat_frame){.kind = LEAT_FRAME_PING}, "", NULL);
    }
}

static void free_memory(leat_stream_link *ch)
{
    pthread_mutex_destroy(&ch->unopened_lock);
    pthread_cond_destroy(&ch->none_unopened);
    free(ch->calls);
    free(ch->address);
    free(ch->peer);
    free(ch);
}

static void on_released(leat_conn *c)
{
    free_memory(of(c));
}

/* ---- Functions that the channel calls: leat_link_ops ---- */
static void cancel(leat_call *base)
{
    call *k = (call *)base;
    leat_stream_link *ch = k->channel;
    pthread_mutex_lock(&ch->conn.lock);
    if (take(ch, k->id)) {
        leat_conn_send(&ch->conn, &(leat_frame){.kind = LEAT_FRAME_CANCEL, .id = k->id}, "", NULL);
        fail(ch, k,
             failure(k, LEAT_CANCELLED, "was not waited for any longer: the call was cancelled"));
    }
    pthread_mutex_unlock(&ch->conn.lock);
}

/* ---- Calls on a link that is not open ---- */
static void cancel_nothing(leat_call *base) {}

static void *fail_unopened(void *arg)
{
    call *k = arg;
    leat_stream_link *ch = k->channel;
    k->fn(k->arg,
          failure(k, LEAT_UNAVAILABLE,
                  "cannot be called: the connection is not open yet, or could not be opened"),
          NULL);
    free(k);
    pthread_mutex_lock(&ch->unopened_lock);
    if (--ch->unopened == 0)
        pthread_cond_broadcast(&ch->none_unopened);
    pthread_mutex_unlock(&ch->unopened_lock);
    return NULL;
}

/* A channel has another link as a rule, and does not call this one. The call fails, in a thread of
 * its own, since its reply function must not run here (rule 2 of transport.h); where no thread can
 * be started there is no other way. */
static void call_unopened(leat_stream_link *ch, call *k)
{
    k->base.cancel = cancel_nothing;
    pthread_mutex_lock(&ch->unopened_lock);
    ch->unopened++;
    pthread_mutex_unlock(&ch->unopened_lock);
    if (leat_thread_start(NULL, fail_unopened, k))
        fail_unopened(k);
}

static void link_call(leat_link *base, const char *method, leat_outgoing *request,
                      const leat_call_options *options, leat_reply_fn fn, void *arg,
                      leat_call **call_out)
{
    leat_stream_link *ch = (leat_stream_link *)base;
    call *k = leat_new(call);
    *k = (call){.base = {cancel},
                .channel = ch,
                .method = method,
                .fn = fn,
                .arg = arg,
                .started_ns = leat_now_ns(),
                .deadline_ns = options->deadline_ns};
    if (__atomic_load_n(&ch->state, __ATOMIC_ACQUIRE) != LEAT_LINK_LIVES) {
        leat_outgoing_release(request);
        if (call_out)
            *call_out = &k->base;
        call_unopened(ch, k);
        return;
    }
    size_t size = leat_outgoing_size(request);
    pthread_mutex_lock(&ch->conn.lock);
    add(ch, k);
    if (call_out)
        *call_out = &k->base;
    leat_frame f = {.kind = LEAT_FRAME_REQUEST, .id = k->id};
    bool sent = true;
    if (size > LEAT_MESSAGE_MAX) {
        take(ch, k->id);
        fail(ch, k, failure(k, LEAT_RESOURCE_EXHAUSTED, "cannot be sent a request so large"));
        sent = false;
    } else if (__atomic_load_n(&ch->conn.end, __ATOMIC_SEQ_CST)) {
        take(ch, k->id);
        fail(ch, k, lost(k));
        sent = false;
    } else if (ch->n == 1) { /* The peer had no reason to send anything before this call. */
        __atomic_store_n(&ch->conn.heard_ns, k->started_ns, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&ch->conn.lock);
    if (!sent) {
        leat_outgoing_release(request);
        return;
    }
    if (options->deadline_ns)
        leat_watch_at(options->deadline_ns);
    leat_conn_send(&ch->conn, &f, method, request);
}

static void link_replaced(leat_link *base)
{
    leat_stream_link *ch = (leat_stream_link *)base;
    if (ch->cancel)
        ch->cancel(ch->opening);
}

static void link_free(leat_link *base)
{
    leat_stream_link *ch = (leat_stream_link *)base;
    link_replaced(base);
    if (ch->before_free)
        ch->before_free(ch->opening);
    pthread_mutex_lock(&ch->unopened_lock);
    while (ch->unopened)
        pthread_cond_wait(&ch->none_unopened, &ch->unopened_lock);
    pthread_mutex_unlock(&ch->unopened_lock);
    if (__atomic_load_n(&ch->state, __ATOMIC_ACQUIRE) != LEAT_LINK_LIVES) {
        free_memory(ch);
        return;
    }
    leat_conn_close(&ch->conn);
    leat_conn_unref(&ch->conn);
}

static leat_link_state link_state(const leat_link *base)
{
    const leat_stream_link *ch = (const leat_stream_link *)base;
    leat_link_state s = __atomic_load_n(&ch->state, __ATOMIC_ACQUIRE);
    return s == LEAT_LINK_LIVES && leat_conn_ended(&ch->conn) ? LEAT_LINK_DEAD : s;
}

leat_stream_link *leat_stream_link_new(const leat_link_target *to, const char *name)
{
    static const leat_link_ops ops = {
        .call = link_call, .free = link_free, .state = link_state, .replaced = link_replaced};
    leat_stream_link *ch = leat_new(leat_stream_link);
    ch->base.ops = &ops;
    ch->address = leat_xstrdup(to->address);
    ch->peer = leat_xstrdup(to->peer);
    ch->transport = name;
    ch->failed_end = &ch->failed;
    pthread_mutex_init(&ch->unopened_lock, NULL);
    pthread_cond_init(&ch->none_unopened, NULL);
    ch->state = LEAT_LINK_OPENING;
    return ch;
}

leat_link *leat_stream_link_base(leat_stream_link *ch)
{
    return &ch->base;
}

leat_status leat_stream_link_start(leat_stream_link *ch, leat_stream *stream)
{
    static const leat_conn_ops ops = {on_frame, on_chores, on_ended, on_released, on_tick};
    leat_status s = leat_conn_start(&ch->conn, &ops, stream, LEAT_MESSAGE_MAX);
    __atomic_store_n(&ch->state, s ? LEAT_LINK_DEAD : LEAT_LINK_LIVES, __ATOMIC_RELEASE);
    return s;
}

void leat_stream_link_fail(leat_stream_link *ch)
{
    __atomic_store_n(&ch->state, LEAT_LINK_DEAD, __ATOMIC_RELEASE);
}

void leat_stream_link_on_free(leat_stream_link *ch, void (*cancel)(void *arg),
                              void (*before_free)(void *arg), void *arg)
{
    ch->cancel = cancel;
    ch->before_free = before_free;
    ch->opening = arg;
}
