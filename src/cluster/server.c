/* server.c -- a server serves a task, and all other tasks that the cluster has at the same address.
 * It has a listener, a worker and a master.
 *
 * leat_server_join returns when the server is not needed any more: when every process with a task
 * of another job has called Done, as servers do when they are stopped, or has not replied for
 * GONE_SECONDS.
 */
#include "cluster/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/call_many.h"
#include "cluster/expiry.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/service.h"
#include "core/alloc.h"
#include "core/arg.h"
#include "core/cond.h"
#include "core/log.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

struct leat_server {
    leat_object object;
    leat_cluster *cluster;
    leat_server_options options;
    char job[64];
    int task;
    char target[300]; /* "grpc://host:port" */
    leat_peers *peers;
    leat_worker *worker;
    leat_service *service;
    leat_listener *listener;
    leat_expiry *expiry;
    pthread_mutex_t lock; /* Guards stopping, stopped and done. */
    pthread_cond_t changed;
    /* Cancelled when the server stops: ends the wait of sessions that are being opened on it. */
    leat_cancellation *stop;
    int opening;            /* How many these are; guarded by servers.lock. */
    bool stopping, stopped; /* leat_server_stop has begun, has ended. */
    bool *done;             /* One for each peer: the peer has called Done, or is lost. */
    leat_server *next;      /* In `servers`, guarded by servers.lock. */
};

/* The servers of this process. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t opened; /* `opening` of a server became 0. */
    leat_server *first;
} servers = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};

static void enlist(leat_server *s)
{
    pthread_mutex_lock(&servers.lock);
    s->next = servers.first;
    servers.first = s;
    pthread_mutex_unlock(&servers.lock);
}

/* Returns when no session is being opened on the server any more. */
static void delist(leat_server *s)
{
    leat_cancel_runs(s->stop);
    pthread_mutex_lock(&servers.lock);
    leat_server **at = &servers.first;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    while (s->opening)
        pthread_cond_wait(&servers.opened, &servers.lock);
    pthread_mutex_unlock(&servers.lock);
}

/* ---- Which peers are done ---- */

enum { GONE_SECONDS = 60, PROBE_SECONDS = 5, SAY_SECONDS = 2 };

static void mark_done(leat_server *s, const leat_peer *p)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < leat_peers_count(s->peers); i++)
        if (leat_peers_at(s->peers, i) == p)
            s->done[i] = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static leat_status peer_done(leat_server *s, const leat_incoming *in)
{
    Leat__DoneRequest *q;
    LEAT_TRY(LEAT_REQUEST(done_request, in, &q));
    leat_peer *p = leat_peers_find(s->peers, q->task);
    if (p)
        mark_done(s, p);
    leat_proto_free(q);
    return NULL;
}

/* True for a process, other than this one, with a task of another job. */
static bool of_other_job(const leat_server *s, const leat_peer *p)
{
    bool other = false;
    for (int i = 0; i < p->n_tasks; i++)
        other |= strcmp(p->tasks[i]->job, s->job) != 0;
    return other && p != leat_peers_find(s->peers, leat_worker_task(s->worker));
}

/* Calls Done on the Leat processes with tasks of other jobs, and waits for their replies for at
 * most SAY_SECONDS. */
static void say_done(leat_server *s)
{
    int n = 0;
    leat_pending_call *q = leat_new_array(leat_pending_call, leat_peers_count(s->peers) + 1);
    Leat__DoneRequest request = LEAT__DONE_REQUEST__INIT;
    request.task = (char *)leat_worker_task(s->worker);
    leat_status status = NULL;
    for (int i = 0; i < leat_peers_count(s->peers) && !status; i++) {
        leat_peer *p = leat_peers_at(s->peers, i);
        if (!of_other_job(s, p) || !p->is_leat)
            continue; /* TensorFlow's servers have no method Done. */
        q[n].peer = p;
        status = leat_put_fields(&q[n++].request.text, LEAT_METHOD_DONE, &request);
    }
    if (!status)
        status = leat_call_many(q, n, LEAT_METHOD_DONE, "Done",
                                leat_now_ns() + INT64_C(1000000000) * SAY_SECONDS, false, NULL);
    leat_status_free(status); /* A process that is not reachable need not know. */
    leat_pending_calls_free(q, n);
}

/* Returns how many processes with tasks of other jobs are not done. *some_done: whether at least
 * one is. Called with the lock held. */
static int left(const leat_server *s, bool *some_done)
{
    int n = 0;
    *some_done = false;
    for (int i = 0; i < leat_peers_count(s->peers); i++)
        if (of_other_job(s, leat_peers_at(s->peers, i))) {
            n += !s->done[i];
            *some_done |= s->done[i];
        }
    return n;
}

/* Called when at least one process is done: marks as done the processes that have not replied to
 * GetStatus for GONE_SECONDS. silent_since has, for each peer, the time of the last reply, or of
 * the first try. The lock is held on entry and on return, and released in between. */
static void probe(leat_server *s, int64_t *silent_since)
{
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < leat_peers_count(s->peers); i++) {
        leat_peer *p = leat_peers_at(s->peers, i);
        pthread_mutex_lock(&s->lock);
        bool done = s->done[i];
        pthread_mutex_unlock(&s->lock);
        if (!of_other_job(s, p) || done)
            continue;
        void *reply = NULL;
        size_t n;
        leat_call_options o = {.deadline_ns = leat_now_ns() + INT64_C(1000000000)};
        leat_status status = leat_channel_call_wait(p->channel, LEAT_METHOD_GET_STATUS,
                                                    &(leat_outgoing){0}, &o, &reply, &n);
        if (!status || !silent_since[i])
            silent_since[i] = leat_now_ns();
        if (status && leat_now_ns() - silent_since[i] > INT64_C(1000000000) * GONE_SECONDS) {
            LEAT_LOG(WARNING, "%s at %s has not answered for %d s and counts as gone", p->name,
                     p->address, GONE_SECONDS);
            mark_done(s, p);
        }
        leat_status_free(status);
        free(reply);
    }
    pthread_mutex_lock(&s->lock);
}

static void handle(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    leat_server *s = arg;
    if (leat_worker_serve(s->worker, a, method, in) ||
        leat_service_serve(s->service, a, method, in))
        return;
    if (strcmp(method, LEAT_METHOD_DONE) == 0) {
        leat_server_call_reply(a, peer_done(s, in), &(leat_outgoing){0});
        return;
    }
    leat_server_call_reply(a, leat_error(UNIMPLEMENTED, "This server has no method %s", method),
                           &(leat_outgoing){0});
}

/* ---- Starting ---- */

static leat_status choose_transports(const leat_server_options *o, uint32_t *mask_out)
{
    uint32_t shared_memory = 0;
    LEAT_TRY(leat_transports_parse(o->transports, mask_out));
    if (o->no_shared_memory)
        LEAT_TRY(leat_transports_parse("shm", &shared_memory));
    *mask_out &= ~shared_memory;
    return NULL;
}

static leat_status listen_there(leat_server *s, const char *address, uint32_t transports)
{
    leat_listen_options o = {.security = &s->options.security,
                             .max_message = s->options.max_message,
                             .max_calls = s->options.max_calls,
                             .data_port = s->options.data_port,
                             .transports = transports,
                             .offers = leat_peers_offers(s->peers)};
    LEAT_TRY(leat_listen(address, &o, handle, s, &s->listener));
    const char *colon = strrchr(address, ':');
    snprintf(s->target, sizeof(s->target), "grpc://%.*s:%d", (int)(colon - address), address,
             leat_listener_port(s->listener));
    return NULL;
}

static leat_status start(leat_server *s)
{
    const char *address = leat_cluster_address(s->cluster, s->job, s->task);
    LEAT_REQUIRE(address, INVALID_ARGUMENT,
                 "The cluster has no task %d of job \"%s\": it has %d tasks of that job", s->task,
                 s->job, leat_cluster_tasks(s->cluster, s->job));
    LEAT_TRY(leat_peers_new(s->cluster, &s->options.security, &s->peers));
    s->done = leat_new_array(bool, leat_peers_count(s->peers) + 1);
    LEAT_TRY(leat_worker_new(s->job, s->task, &s->options, s->peers, &s->worker));
    s->service = leat_service_new(s->worker, s->peers, s->options.max_sessions);
    uint32_t transports;
    LEAT_TRY(choose_transports(&s->options, &transports));
    leat_peers_use_transports(s->peers, transports);
    LEAT_TRY(listen_there(s, address, transports));
    int port = leat_listener_port(s->listener);
    leat_service_use_port(s->service, port);
    LEAT_TRY(leat_expiry_start(&s->options, port, s->service, s->worker, &s->expiry));
    enlist(s);
    LEAT_LOG(INFO, "Started server with target: %s", s->target);
    return NULL;
}

leat_status leat_server_start(const leat_cluster *c, const char *job, int task,
                              const leat_server_options *options, leat_server **server_out)
{
    LEAT_CHECK(CLUSTER, c);
    LEAT_CHECK_ARG(job);
    leat_server *s = leat_new_object(leat_server, SERVER);
    if (options)
        s->options = *options;
    s->cluster = leat_cluster_copy(c);
    snprintf(s->job, sizeof(s->job), "%s", job);
    s->task = task;
    pthread_mutex_init(&s->lock, NULL);
    leat_cond_init(&s->changed);
    s->stop = leat_cancellation_new();
    leat_status status = start(s);
    if (status) {
        leat_server_free(s);
        return status;
    }
    *server_out = s;
    return NULL;
}

leat_status leat_server_start_local(leat_server **server_out)
{
    leat_cluster *c = leat_cluster_new();
    leat_status s = leat_cluster_add(c, "local", "localhost:0");
    if (!s)
        s = leat_server_start(c, "local", 0, NULL, server_out);
    leat_cluster_free(c);
    return s;
}

const char *leat_server_target(const leat_server *s)
{
    if (!LEAT_USABLE(SERVER, s))
        return "";
    return s->target;
}

leat_worker *leat_server_worker(const leat_server *s)
{
    return s->worker;
}

leat_service *leat_server_service(const leat_server *s)
{
    return s->service;
}

/* ---- Stopping ---- */

leat_status leat_server_join(leat_server *s)
{
    LEAT_CHECK(SERVER, s);
    int64_t *silent_since = leat_new_array(int64_t, leat_peers_count(s->peers) + 1);
    bool some_done;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping && (left(s, &some_done) || !some_done)) {
        int64_t until = leat_now_ns() + INT64_C(1000000000) * PROBE_SECONDS;
        if (!leat_cond_wait_until(&s->changed, &s->lock, until) && some_done)
            probe(s, silent_since);
    }
    while (s->stopping && !s->stopped)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    free(silent_since);
    return NULL;
}

static void stop_parts(leat_server *s, int64_t grace_ms)
{
    int64_t deadline = leat_now_ns() + grace_ms * 1000000;
    leat_expiry_stop(s->expiry);
    s->expiry = NULL;
    leat_status why = leat_error(UNAVAILABLE, "%s is stopping", leat_worker_task(s->worker));
    while (grace_ms > 0 && leat_now_ns() < deadline && !leat_worker_idle(s->worker)) {
        struct timespec t = {0, 5000000};
        nanosleep(&t, NULL);
    }
    if (!leat_worker_idle(s->worker))
        LEAT_LOG(WARNING, "%s stops: steps that are still under way after %lld ms are aborted",
                 leat_worker_task(s->worker), (long long)grace_ms);
    leat_worker_stop(s->worker, why);
    leat_service_close_all(s->service);
    leat_status_free(why);
    if (s->listener)
        leat_listener_stop(s->listener, leat_now_ns() + INT64_C(2000000000));
    s->listener = NULL;
}

void leat_server_stop(leat_server *s, int64_t grace_ms)
{
    if (!LEAT_USABLE(SERVER, s))
        return;
    pthread_mutex_lock(&s->lock);
    bool first = !s->stopping;
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    while (!first && !s->stopped)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (!first)
        return;
    delist(s);
    if (s->listener)
        say_done(s);
    if (s->worker && s->service)
        stop_parts(s, grace_ms);
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void leat_server_free(leat_server *s)
{
    if (!s)
        return;
    if (!LEAT_USABLE(SERVER, s))
        return;
    leat_server_stop(s, 0);
    leat_service_free(s->service);
    leat_peers_free(s->peers); /* Ends the calls that steps of the worker still wait for. */
    leat_worker_free(s->worker);
    leat_cluster_free(s->cluster);
    free(s->done);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    leat_cancellation_free(s->stop);
    leat_object_free(&s->object);
}

/* ---- Sessions whose target is a server of this process ---- */

static void cancel_both(void *both)
{
    leat_cancel_runs(both);
}

/* Opens a session on s, which the caller keeps from being freed. */
static leat_status open_on(leat_server *s, leat_graph *g, const leat_session_options *o,
                           leat_session **out)
{
    char handle[24];
    leat_handle_make(handle);
    leat_device_count counts[LEAT_DEVICE_COUNTS];
    leat_master_options m = {.handle = handle,
                             .counts = counts,
                             .open_ms = o->open_timeout_ms ? o->open_timeout_ms : o->timeout_ms,
                             .filters = o->device_filters};
    LEAT_TRY(leat_device_counts_read(o->devices, counts, &m.n_counts));
    while (m.filters && m.filters[m.n_filters])
        m.n_filters++;
    leat_cancellation *both = m.cancellation = leat_cancellation_new();
    leat_cancel_watch user = {.fn = cancel_both, .arg = both}, stop = user;
    leat_cancellation_watch(o->cancellation, &user);
    leat_cancellation_watch(s->stop, &stop);
    leat_status status = leat_master_open(g, o, &m, s->worker, s->peers, out);
    leat_cancellation_unwatch(s->stop, &stop);
    leat_cancellation_unwatch(o->cancellation, &user);
    leat_cancellation_free(both);
    if (!status || !leat_is_cancelled(s->stop))
        return status;
    leat_status_free(status);
    return leat_error(UNAVAILABLE, "%s is stopping: no session can be opened on it",
                      leat_worker_task(s->worker));
}

leat_status leat_server_session(leat_graph *g, const leat_session_options *o, leat_session **out)
{
    *out = NULL;
    pthread_mutex_lock(&servers.lock);
    leat_server *s = servers.first;
    while (s && strcmp(s->target, o->target) != 0)
        s = s->next;
    if (s)
        s->opening++;
    pthread_mutex_unlock(&servers.lock);
    if (!s)
        return NULL;
    leat_status status = open_on(s, g, o, out);
    pthread_mutex_lock(&servers.lock);
    if (--s->opening == 0)
        pthread_cond_broadcast(&servers.opened);
    pthread_mutex_unlock(&servers.lock);
    return status;
}
