/* transport.c -- calls between tasks of one process: request and reply are handed over as they are,
 * tensors by reference.
 *
 * 1. A call is one object, which caller and handler share. It ends once for its caller: when it is
 *    replied to or cancelled, when its deadline passes, or when its link is freed or its endpoint
 *    stopped, whichever comes first.
 * 2. Handlers and reply functions are jobs (jobs.h). They run in another thread, or in the thread
 *    that made the call or the reply, after leat_channel_call or leat_server_call_reply returned.
 * 3. A link has a reference to the endpoint that it leads to, and is dead once the endpoint was
 *    stopped.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cluster/gone.h"
#include "cluster/local/jobs.h"
#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/cond.h"

typedef struct endpoint {
    leat_endpoint base;
    leat_handler_fn handler;
    void *arg;
    int64_t max_message;
    int max_calls;
    uint32_t stopped; /* Atomic: 1 once links to the endpoint are dead. */
    /* Guarded by process.lock: */
    unsigned long long number; /* Identifies the endpoint in its offer. */
    int refs;                  /* One for the listener, one for each link and each accepted call. */
    int calls;                 /* Calls that were accepted and not replied to. */
    int jobs;                  /* Jobs run_handler and run_gone that have not returned. */
    bool stopping;             /* No more calls are accepted. */
    struct endpoint *next;     /* In process.endpoints. */
} endpoint;

typedef struct local_link {
    leat_link base;
    endpoint *to;
    char *address, *peer;
    int calls; /* Calls whose reply function has not returned; guarded by process.lock. */
} local_link;

typedef struct call {
    leat_call caller;
    leat_server_call server;
    leat_local_job handler_job, reply_job, gone_job;
    local_link *link; /* Valid until the reply function has returned. */
    endpoint *to;     /* A reference; NULL if the call was not accepted. */
    const char *method;
    leat_reply_fn fn;
    void *arg;
    int64_t started_ns, deadline_ns;
    leat_outgoing request, reply;
    leat_status status; /* The status that the reply function gets. */
    leat_gone gone;
    /* Guarded by process.lock: */
    int refs;   /* One for run_reply, one until the handler's reply, one for run_gone. */
    bool ended; /* status and reply are set, and run_reply was submitted or is about to be. */
    struct call *next, **at; /* In process.calls until the call has ended. */
} call;

/* The listeners and open calls of this process. */
static struct {
    pthread_once_t once;
    unsigned long long identity; /* A random number that identifies this process in offers. */
    /* Guards the fields below. No other lock is taken while it is held. */
    pthread_mutex_t lock;
    pthread_cond_t changed;       /* Signalled when calls or jobs of an endpoint or link change. */
    unsigned long long listeners; /* Endpoints that were ever made. */
    endpoint *endpoints;          /* Endpoints that were not stopped. */
    call *calls;                  /* Calls that have not ended. */
    bool watches;                 /* run_watch was submitted and has not returned. */
    int64_t watch_ns;             /* The time until which run_watch waits (CLOCK_MONOTONIC). */
    leat_event watch_again;       /* Ends the wait of run_watch, which then looks at all calls. */
    leat_local_job watch_job;
} process = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void process_init(void)
{
    if (getrandom(&process.identity, sizeof process.identity, 0) != sizeof process.identity)
        process.identity = (unsigned long long)leat_now_ns();
    leat_cond_init(&process.changed);
}

/* The lock is held. */
static void unref_endpoint(endpoint *e)
{
    if (--e->refs == 0)
        free(e);
}

/* The lock is held. */
static void unref_call(call *k)
{
    if (--k->refs)
        return;
    if (k->to)
        unref_endpoint(k->to);
    leat_gone_release(&k->gone);
    free(k);
}

/* The lock is held. */
static void close_call(call *k)
{
    k->ended = true;
    *k->at = k->next;
    if (k->next)
        k->next->at = k->at;
}

/* ---- Jobs ---- */
/* Gives an outgoing message as the receiver gets it, without a copy. The caller frees its slices
 * with free(). */
static leat_incoming incoming_of(const leat_outgoing *o)
{
    leat_slice *slices = leat_new_array(leat_slice, 2 * o->n_pieces + 1);
    int n = 0;
    size_t at = 0;
    for (int i = 0; i <= o->n_pieces; i++) {
        const leat_tensor *t = i < o->n_pieces ? o->pieces[i].tensor : NULL;
        size_t end = t ? o->pieces[i].end : o->text.n;
        if (end > at)
            slices[n++] = (leat_slice){(const uint8_t *)o->text.s + at, end - at, NULL};
        if (t && leat_tensor_bytes(t))
            slices[n++] = (leat_slice){t->data, leat_tensor_bytes(t), t->buffer};
        at = end;
    }
    return (leat_incoming){.slices = slices, .n = n, .size = leat_outgoing_size(o)};
}

static void run_reply(void *arg)
{
    call *k = arg;
    leat_incoming in = incoming_of(&k->reply);
    k->fn(k->arg, k->status, k->status ? NULL : &in);
    free((void *)in.slices);
    leat_outgoing_release(&k->reply);
    pthread_mutex_lock(&process.lock);
    k->link->calls--;
    unref_call(k);
    pthread_cond_broadcast(&process.changed);
    pthread_mutex_unlock(&process.lock);
}

/* The lock is held, and released here. */
static void end_job(endpoint *e)
{
    e->jobs--;
    pthread_cond_broadcast(&process.changed);
    pthread_mutex_unlock(&process.lock);
}

static void run_handler(void *arg)
{
    call *k = arg; /* May be freed as soon as the handler has replied. */
    endpoint *e = k->to;
    leat_outgoing request = k->request;
    leat_incoming in = incoming_of(&request);
    leat_later_jobs_begin();
    e->handler(e->arg, &k->server, k->method, &in);
    free((void *)in.slices);
    leat_outgoing_release(&request);
    pthread_mutex_lock(&process.lock);
    end_job(e);
    leat_later_jobs_end();
}

static void nothing(void) {}

static void run_gone(void *arg)
{
    call *k = arg;
    endpoint *e = k->to;
    leat_gone_fire(&k->gone, nothing);
    pthread_mutex_lock(&process.lock);
    unref_call(k);
    end_job(e);
}

/* ---- Calls that end without a reply ---- */
static leat_status failure(const call *k, leat_code code, const char *what)
{
    return leat_status_new(
        code, __FILE__, __LINE__, "%s (%s, in this process) %s [%s, after %.3f s]", k->link->peer,
        k->link->address, what, k->method, (double)(leat_now_ns() - k->started_ns) / 1e9);
}

/* Ends a call with an error, and tells its handler that the caller is lost. The lock is held, and
 * released here. */
static void give_up(call *k, leat_code code, const char *what)
{
    close_call(k);
    k->status = failure(k, code, what);
    k->refs++;
    k->to->jobs++;
    pthread_mutex_unlock(&process.lock);
    leat_local_job_submit(&k->reply_job, run_reply, k);
    leat_local_job_submit(&k->gone_job, run_gone, k);
}

/* Ends all calls of link l, or all calls to endpoint e; the other argument is NULL. */
static void give_up_all(const local_link *l, const endpoint *e, leat_code code, const char *what)
{
    for (;;) {
        pthread_mutex_lock(&process.lock);
        call *k = process.calls;
        while (k && k->link != l && k->to != e)
            k = k->next;
        if (!k)
            break;
        give_up(k, code, what);
    }
    pthread_mutex_unlock(&process.lock);
}

/* A job that ends calls when their deadline passes. Runs while there are calls with a deadline. */
static void run_watch(void *unused)
{
    pthread_mutex_lock(&process.lock);
    for (;;) {
        call *soonest = NULL;
        for (call *k = process.calls; k; k = k->next)
            if (k->deadline_ns && (!soonest || k->deadline_ns < soonest->deadline_ns))
                soonest = k;
        if (!soonest)
            break;
        if (soonest->deadline_ns <= leat_now_ns()) {
            give_up(soonest, LEAT_DEADLINE_EXCEEDED,
                    "did not answer in time. It is busy, or what was called for takes longer");
        } else {
            int64_t until = process.watch_ns = soonest->deadline_ns;
            leat_event_init(&process.watch_again);
            pthread_mutex_unlock(&process.lock);
            leat_event_park(&process.watch_again, until);
        }
        pthread_mutex_lock(&process.lock);
    }
    process.watches = false;
    pthread_mutex_unlock(&process.lock);
}

/* A call with this deadline begins. True: run_watch has to be submitted. The lock is held. */
static bool watch_deadline(int64_t deadline_ns)
{
    bool start = deadline_ns && !process.watches;
    if (deadline_ns && process.watches && deadline_ns < process.watch_ns)
        leat_event_set(&process.watch_again);
    process.watches |= start;
    return start;
}

/* A listener or link that has no more calls is closed. The lock is held, and released here. */
static void leave(void)
{
    if (process.watches)
        leat_event_set(&process.watch_again); /* run_watch returns if no call has a deadline. */
    pthread_mutex_unlock(&process.lock);
    leat_local_jobs_leave();
}

/* ---- Serving ---- */
static call *of_server(const leat_server_call *base)
{
    return (call *)((char *)base - offsetof(call, server));
}

static void reply(leat_server_call *base, leat_status s, leat_outgoing *reply)
{
    call *k = of_server(base);
    size_t size = reply && !s ? leat_outgoing_size(reply) : 0;
    if (size > LEAT_MESSAGE_MAX)
        s = leat_error(RESOURCE_EXHAUSTED, "A reply of %zu bytes is larger than the limit of %lld",
                       size, (long long)LEAT_MESSAGE_MAX);
    leat_gone_reply(&k->gone);
    pthread_mutex_lock(&process.lock);
    bool open = !k->ended;
    if (open) {
        close_call(k);
        k->status = s;
        if (reply && !s) {
            k->reply = *reply;
            *reply = (leat_outgoing){0};
        }
    }
    k->to->calls--;
    pthread_cond_broadcast(&process.changed);
    unref_call(k);
    pthread_mutex_unlock(&process.lock);
    if (open)
        leat_local_job_soon(&k->reply_job, run_reply, k);
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

static leat_status local_listen(const char *address, const leat_listen_options *options,
                                leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                                leat_endpoint **out)
{
    pthread_once(&process.once, process_init);
    endpoint *e = leat_new(endpoint);
    e->handler = handler;
    e->arg = arg;
    e->max_message = options->max_message ? options->max_message : LEAT_MESSAGE_MAX;
    e->max_calls = options->max_calls ? options->max_calls : 10000;
    e->refs = 1;
    leat_local_jobs_join();
    pthread_mutex_lock(&process.lock);
    e->number = ++process.listeners;
    e->next = process.endpoints;
    process.endpoints = e;
    leat_strbuf_printf(offer_out, "%llx %lld %llu", process.identity, (long long)getpid(),
                       e->number);
    pthread_mutex_unlock(&process.lock);
    *out = &e->base;
    return NULL;
}

static void stop(leat_endpoint *base, int64_t deadline_ns)
{
    endpoint *e = (endpoint *)base;
    leat_later_now();
    pthread_mutex_lock(&process.lock);
    endpoint **at = &process.endpoints;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    e->stopping = true;
    while (e->calls && leat_cond_wait_until(&process.changed, &process.lock, deadline_ns))
        ;
    __atomic_store_n(&e->stopped, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&process.lock);
    give_up_all(NULL, e, LEAT_UNAVAILABLE,
                "closed the connection in mid-call: its server was stopped");
    pthread_mutex_lock(&process.lock);
    while (e->jobs)
        pthread_cond_wait(&process.changed, &process.lock);
    unref_endpoint(e);
    leave();
}

/* ---- Calling ---- */
static void cancel(leat_call *base)
{
    call *k = (call *)base;
    pthread_mutex_lock(&process.lock);
    if (k->ended)
        pthread_mutex_unlock(&process.lock);
    else
        give_up(k, LEAT_CANCELLED, "was not waited for any longer: the call was cancelled");
}

/* Gives the reason why e does not accept the call; NULL if it does. The lock is held. */
static leat_status refusal(const call *k, const endpoint *e)
{
    size_t size = leat_outgoing_size(&k->request);
    if (e->stopped)
        return failure(k, LEAT_UNAVAILABLE, "has closed the connection: its server was stopped");
    LEAT_REQUIRE(!e->stopping, UNAVAILABLE, "The task is being shut down");
    LEAT_REQUIRE(size <= (size_t)e->max_message, RESOURCE_EXHAUSTED,
                 "%s of %zu bytes is larger than the limit of %lld", k->method, size,
                 (long long)e->max_message);
    LEAT_REQUIRE(e->calls < e->max_calls, RESOURCE_EXHAUSTED,
                 "The task has %d calls under way, which is its limit (--max_calls)", e->max_calls);
    return NULL;
}

/* The lock is held. */
static void accept_call(call *k, endpoint *e)
{
    k->to = e;
    k->refs++;
    e->refs++;
    e->calls++;
    e->jobs++;
    k->next = process.calls;
    k->at = &process.calls;
    if (k->next)
        k->next->at = &k->next;
    process.calls = k;
}

static void link_call(leat_link *base, const char *method, leat_outgoing *request,
                      const leat_call_options *options, leat_reply_fn fn, void *arg,
                      leat_call **call_out)
{
    static const leat_server_call_ops ops = {
        .reply = reply, .on_cancel = on_cancel, .peer = peer, .will_block = will_block};
    local_link *l = (local_link *)base;
    call *k = leat_new(call);
    *k = (call){.caller = {cancel},
                .server = {&ops},
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
    pthread_mutex_lock(&process.lock);
    l->calls++;
    k->status = refusal(k, l->to);
    k->ended = k->status != NULL;
    bool accepted = !k->ended;
    if (accepted)
        accept_call(k, l->to);
    bool watch = accepted && watch_deadline(k->deadline_ns);
    pthread_mutex_unlock(&process.lock);
    if (watch)
        leat_local_job_submit(&process.watch_job, run_watch, NULL);
    if (accepted) {
        leat_local_job_soon(&k->handler_job, run_handler, k);
    } else {
        leat_outgoing_release(&k->request);
        leat_local_job_soon(&k->reply_job, run_reply, k);
    }
}

static leat_link_state link_state(const leat_link *base)
{
    const local_link *l = (const local_link *)base;
    return __atomic_load_n(&l->to->stopped, __ATOMIC_ACQUIRE) ? LEAT_LINK_DEAD : LEAT_LINK_LIVES;
}

static void link_free(leat_link *base)
{
    local_link *l = (local_link *)base;
    leat_later_now();
    give_up_all(l, NULL, LEAT_CANCELLED, "was not waited for any longer: the channel was closed");
    pthread_mutex_lock(&process.lock);
    while (l->calls)
        pthread_cond_wait(&process.changed, &process.lock);
    unref_endpoint(l->to);
    leave();
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
    pthread_once(&process.once, process_init);
    if (offer->n < sizeof text)
        memcpy(text, offer->s, offer->n);
    LEAT_REQUIRE(sscanf(text, "%16llx %lld %llu%n", &identity, &pid, &number, &end) == 3 &&
                     (size_t)end == offer->n,
                 INVALID_ARGUMENT, "A peer's offer of calls within its process cannot be read");
    LEAT_REQUIRE(identity == process.identity && pid == getpid(), FAILED_PRECONDITION,
                 "%s is in another process", to->peer);
    pthread_mutex_lock(&process.lock);
    endpoint *e = process.endpoints;
    while (e && e->number != number)
        e = e->next;
    if (e)
        e->refs++;
    pthread_mutex_unlock(&process.lock);
    LEAT_REQUIRE(e, UNAVAILABLE, "The server of %s in this process was stopped", to->peer);
    leat_local_jobs_join();
    local_link *l = leat_new(local_link);
    l->base.ops = &ops;
    l->to = e;
    l->address = leat_xstrdup(to->address);
    l->peer = leat_xstrdup(to->peer);
    *out = &l->base;
    return NULL;
}

const leat_transport leat_transport_local = {
    .name = "local", .listen = local_listen, .stop = stop, .open = local_open};
