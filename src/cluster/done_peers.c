/* done_peers.c -- see done_peers.h. */
#include "cluster/done_peers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/call_many.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/worker.h"
#include "core/alloc.h"
#include "core/cond.h"
#include "core/log.h"
#include "core/thread.h"
#include "proto/wire.h"

#define SECOND INT64_C(1000000000)
enum { GONE_SECONDS = 60, PROBE_SECONDS = 5, ASK_SECONDS = 1, LAST_ASK_SECONDS = 2 };

typedef struct state {
    bool done;            /* This incarnation of the peer is done. */
    bool lost;            /* It has said nothing: it did not reply for GONE_SECONDS. */
    uint64_t incarnation; /* 0 for a peer that is not Leat's, or was never heard of. */
    int64_t silent_since; /* The time of the last reply, or of the first question; 0: none. */
    bool called;          /* A thread handles a call of Done. */
} state;

struct leat_done_peers {
    leat_peers *peers;
    const char *job, *task;
    leat_done_clients clients; /* All NULL until leat_done_peers_use_clients. */
    pthread_mutex_t lock;      /* Guards what follows. */
    pthread_cond_t changed;
    bool stopping;
    int calls; /* The number of calls of Done that are handled. */
    state *of; /* One for each peer. */
};

/* A call of Done that is handled by a thread of its own. The thread that has read the call may wait
 * for a step, which the chief has to complete before it saves. */
typedef struct done_call {
    leat_done_peers *d;
    leat_server_call *server_call;
    Leat__DoneRequest *request;
    leat_peer *peer;
} done_call;

leat_done_peers *leat_done_peers_new(leat_peers *peers, const char *job, const char *task)
{
    leat_done_peers *d = leat_new(leat_done_peers);
    d->peers = peers;
    d->job = job;
    d->task = task;
    pthread_mutex_init(&d->lock, NULL);
    leat_cond_init(&d->changed);
    d->of = leat_new_array(state, leat_peers_count(peers) + 1);
    return d;
}

void leat_done_peers_free(leat_done_peers *d)
{
    if (!d)
        return;
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    free(d->of);
    free(d);
}

void leat_done_peers_use_clients(leat_done_peers *d, const leat_done_clients *clients)
{
    d->clients = *clients;
}

void leat_done_peers_stop(leat_done_peers *d)
{
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* True for a process, other than this one, with a task of another job. */
static bool of_other_job(const leat_done_peers *d, const leat_peer *p)
{
    bool other = false;
    for (int i = 0; i < p->n_tasks; i++)
        other |= strcmp(p->tasks[i]->job, d->job) != 0;
    return other && p != leat_peers_own(d->peers);
}

static int index_of(const leat_done_peers *d, const leat_peer *p)
{
    return (int)(p - leat_peers_at(d->peers, 0));
}

/* Called with the lock held. */
static bool is_done(const leat_done_peers *d, int i)
{
    return d->of[i].done &&
           d->of[i].incarnation == atomic_load(&leat_peers_at(d->peers, i)->incarnation);
}

/* Called with the lock held. */
static void mark_done(leat_done_peers *d, int i, uint64_t incarnation, bool lost)
{
    d->of[i].done = true;
    d->of[i].lost = lost;
    d->of[i].incarnation = incarnation;
    pthread_cond_broadcast(&d->changed);
}

/* ---- A peer calls Done ---- */

/* Rule 1. */
static leat_status confirm(leat_peer *p, uint64_t incarnation)
{
    uint64_t heard = atomic_load(&p->incarnation), there = 0;
    bool stopping = false;
    leat_status asked = leat_peer_ask(p, leat_now_ns() + SECOND * ASK_SECONDS, &there, &stopping);
    bool replies = !asked;
    leat_status_free(asked);
    LEAT_REQUIRE(replies || (incarnation && heard == incarnation), FAILED_PRECONDITION,
                 "Done is refused: it names incarnation %016" PRIx64 " of %s, which was not heard "
                 "of before, and nobody replies at %s",
                 incarnation, p->name, p->address);
    LEAT_REQUIRE(!replies || there == incarnation, FAILED_PRECONDITION,
                 "Done is refused: it names incarnation %016" PRIx64
                 " of %s, but another one replies at %s",
                 incarnation, p->name, p->address);
    LEAT_REQUIRE(!replies || stopping, FAILED_PRECONDITION,
                 "Done is refused: %s at %s is not stopping", p->name, p->address);
    return NULL;
}

/* Rule 5. Called with the lock held. */
static void wait_for_holds(leat_done_peers *d, const leat_peer *p, int64_t wait_ms)
{
    enum { LIMIT_MS = 3600000, POLL_NS = 5000000 };
    wait_ms = wait_ms < 0 ? 0 : wait_ms > LIMIT_MS ? LIMIT_MS : wait_ms;
    int64_t now = leat_now_ns(), deadline = now + wait_ms * 1000000;
    for (; atomic_load(&p->holds) > 0 && !d->stopping && now < deadline; now = leat_now_ns())
        leat_cond_wait_until(&d->changed, &d->lock, now + POLL_NS);
}

static leat_status take_done(leat_done_peers *d, leat_peer *p, const Leat__DoneRequest *q)
{
    LEAT_TRY(confirm(p, q->incarnation));
    LEAT_LOG(INFO, "%s at %s is done", p->name, p->address);
    atomic_store(&p->ending, q->incarnation);
    if (d->clients.tell_ending)
        d->clients.tell_ending(d->clients.arg);
    pthread_mutex_lock(&d->lock);
    mark_done(d, index_of(d, p), q->incarnation, false);
    wait_for_holds(d, p, q->wait_ms);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void *handle_call(void *arg)
{
    done_call c = *(done_call *)arg;
    free(arg);
    leat_status s = take_done(c.d, c.peer, c.request);
    leat_proto_free(c.request);
    leat_server_call_reply(c.server_call, s, &(leat_outgoing){0});
    pthread_mutex_lock(&c.d->lock);
    c.d->of[index_of(c.d, c.peer)].called = false;
    c.d->calls--;
    pthread_cond_broadcast(&c.d->changed);
    pthread_mutex_unlock(&c.d->lock); /* leat_done_peers_finish may return now. */
    return NULL;
}

/* Starts the thread of a call. Takes the request if it succeeds. There is one thread at most for
 * each peer, however many calls come. */
static leat_status start_call(const done_call *c)
{
    pthread_t thread;
    leat_done_peers *d = c->d;
    LEAT_REQUIRE(c->peer && c->peer != leat_peers_own(d->peers), INVALID_ARGUMENT,
                 "Done is refused: %.127s is no other task of this cluster", c->request->task);
    state *of = &d->of[index_of(d, c->peer)];
    done_call *copy = leat_new(done_call);
    *copy = *c;
    pthread_mutex_lock(&d->lock);
    bool busy = of->called, stopping = d->stopping;
    int e = busy || stopping ? 0 : pthread_create(&thread, NULL, handle_call, copy);
    bool started = !busy && !stopping && !e;
    if (started) {
        of->called = true;
        d->calls++;
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&d->lock);
    if (started)
        return NULL;
    free(copy);
    LEAT_REQUIRE(!stopping, UNAVAILABLE, "%s is stopping", d->task);
    return busy ? leat_error(ALREADY_EXISTS, "Done is refused: %s has called it already",
                             c->peer->name)
                : leat_error(RESOURCE_EXHAUSTED, "Done is refused: no thread can be started: %s. %s",
                             strerror(e), LEAT_NO_THREAD_HINT);
}

void leat_done_peers_serve(leat_done_peers *d, leat_server_call *a, const leat_incoming *in)
{
    done_call c = {.d = d, .server_call = a};
    leat_status s = LEAT_REQUEST(done_request, in, &c.request);
    if (!s) {
        c.peer = leat_peers_find(d->peers, c.request->task);
        s = start_call(&c);
    }
    if (!s)
        return;
    leat_proto_free(c.request);
    leat_server_call_reply(a, s, &(leat_outgoing){0});
}

void leat_done_peers_finish(leat_done_peers *d)
{
    pthread_mutex_lock(&d->lock);
    while (d->calls)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

/* ---- This server calls Done ---- */

void leat_done_peers_say(leat_done_peers *d, int64_t deadline_ns)
{
    int n = 0;
    leat_pending_call *q = leat_new_array(leat_pending_call, leat_peers_count(d->peers) + 1);
    Leat__DoneRequest request = LEAT__DONE_REQUEST__INIT;
    request.task = (char *)d->task;
    request.incarnation = leat_peers_incarnation(d->peers);
    request.wait_ms = (deadline_ns - leat_now_ns()) / 1000000;
    leat_status status = NULL;
    for (int i = 0; i < leat_peers_count(d->peers) && !status; i++) {
        leat_peer *p = leat_peers_at(d->peers, i);
        if (!of_other_job(d, p) || (!p->is_leat && !p->incarnation))
            continue; /* TensorFlow's servers have no method Done. */
        q[n].peer = p;
        status = leat_put_fields(&q[n++].request.text, LEAT_METHOD_DONE, &request);
    }
    if (!status)
        status = leat_call_many(q, n, LEAT_METHOD_DONE, "Done", deadline_ns, false, NULL);
    leat_status_free(status); /* A process that is not reachable need not know. */
    leat_pending_calls_free(q, n);
}

/* ---- Waiting until all are done ---- */

/* Returns how many processes with tasks of other jobs are not done. *some_done: whether at least
 * one is. Called with the lock held. */
static int left(const leat_done_peers *d, bool *some_done)
{
    int n = 0;
    *some_done = false;
    for (int i = 0; i < leat_peers_count(d->peers); i++)
        if (of_other_job(d, leat_peers_at(d->peers, i))) {
            n += !is_done(d, i);
            *some_done |= is_done(d, i);
        }
    return n;
}

/* Rule 3. The lock is held on entry and on return, and released in between. */
static void probe(leat_done_peers *d)
{
    for (int i = 0; i < leat_peers_count(d->peers) && !d->stopping; i++) {
        leat_peer *p = leat_peers_at(d->peers, i);
        if (!of_other_job(d, p) || is_done(d, i))
            continue;
        pthread_mutex_unlock(&d->lock);
        uint64_t incarnation = atomic_load(&p->incarnation);
        bool stopping;
        leat_status s =
            leat_peer_ask(p, leat_now_ns() + SECOND * ASK_SECONDS, &incarnation, &stopping);
        pthread_mutex_lock(&d->lock);
        int64_t now = leat_now_ns();
        if (!s || !d->of[i].silent_since)
            d->of[i].silent_since = now;
        if (s && now - d->of[i].silent_since > SECOND * GONE_SECONDS)
            mark_done(d, i, incarnation, true);
        leat_status_free(s);
    }
}

/* Uses the reply of a peer that is done: it is not, if its server runs. */
static void take_reply(leat_done_peers *d, leat_pending_call *q)
{
    Leat__GetStatusResponse *r = NULL;
    leat_peer *p = leat_peers_find(d->peers, q->peer->name);
    leat_status s = q->status ? leat_status_copy(q->status)
                              : LEAT_UNPACK(get_status_response, q->reply, q->size, &r);
    if (!s && !(r->leat && r->leat->stopping)) {
        LEAT_LOG(WARNING, "%s at %s was done, and runs again: this server goes on", p->name,
                 p->address);
        atomic_store(&p->incarnation, r->leat ? r->leat->incarnation : 0);
        pthread_mutex_lock(&d->lock);
        d->of[index_of(d, p)].done = false;
        d->of[index_of(d, p)].silent_since = 0;
        pthread_mutex_unlock(&d->lock);
    }
    leat_status_free(s);
    leat_proto_free(r);
}

/* Rule 4. The lock is held on entry and on return, and released in between. */
static void ask_again(leat_done_peers *d)
{
    int n = 0, count = leat_peers_count(d->peers);
    pthread_mutex_unlock(&d->lock);
    leat_pending_call *q = leat_new_array(leat_pending_call, count + 1);
    leat_peer *asked = leat_new_array(leat_peer, count + 1); /* Peers with a new connection. */
    leat_status s = NULL;
    for (int i = 0; i < count && !s; i++) {
        const leat_peer *p = leat_peers_at(d->peers, i);
        if (!of_other_job(d, p))
            continue;
        asked[n].name = p->name;
        asked[n].address = p->address;
        atomic_init(&asked[n].status_requested, true);
        s = leat_peer_connect(p, &asked[n].channel);
        q[n].peer = &asked[n];
        n += !s;
    }
    leat_status_free(s);
    leat_status_free(leat_call_many(q, n, LEAT_METHOD_GET_STATUS, "The end",
                                    leat_now_ns() + SECOND * LAST_ASK_SECONDS, false, NULL));
    for (int i = 0; i < n; i++) {
        take_reply(d, &q[i]);
        leat_channel_free(asked[i].channel);
    }
    leat_pending_calls_free(q, n);
    free(asked);
    pthread_mutex_lock(&d->lock);
}

/* Says why the server ends: lists the processes that are done. Called with the lock held. */
static void list_done(const leat_done_peers *d, leat_strbuf *out)
{
    enum { SHOWN = 10 };
    int n = 0;
    for (int i = 0; i < leat_peers_count(d->peers); i++) {
        const leat_peer *p = leat_peers_at(d->peers, i);
        if (!of_other_job(d, p) || n++ >= SHOWN)
            continue;
        leat_strbuf_printf(out, "%s%s", n > 1 ? ", " : "", p->name);
        if (d->of[i].lost)
            leat_strbuf_printf(out, " (no reply for %d s)", GONE_SECONDS);
    }
    if (n > SHOWN)
        leat_strbuf_printf(out, " and %d more", n - SHOWN);
}

/* Rule 6. */
static bool has_clients(const leat_done_peers *d)
{
    return d->clients.any && d->clients.any(d->clients.arg);
}

bool leat_done_peers_wait(leat_done_peers *d)
{
    bool some_done, all = false;
    leat_strbuf which = {0};
    pthread_mutex_lock(&d->lock);
    while (!d->stopping && !all) {
        if (!left(d, &some_done) && some_done && !has_clients(d)) {
            ask_again(d);
            all = !left(d, &some_done) && some_done && !d->stopping && !has_clients(d);
        } else if (!leat_cond_wait_until(&d->changed, &d->lock,
                                         leat_now_ns() + SECOND * PROBE_SECONDS) &&
                   some_done) {
            probe(d);
        }
    }
    if (all)
        list_done(d, &which);
    pthread_mutex_unlock(&d->lock);
    if (all)
        LEAT_LOG(WARNING, "%s ends, since all tasks of other jobs are done: %s", d->task,
                 leat_strbuf_text(&which));
    leat_strbuf_release(&which);
    return all;
}
