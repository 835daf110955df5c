/* server.c -- a server serves a task, and all other tasks that the cluster has at the same address.
 * It has a listener, a worker and a master. */
#include "cluster/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/done_peers.h"
#include "cluster/expiry.h"
#include "cluster/messages/methods.h"
#include "cluster/service.h"
#include "core/alloc.h"
#include "core/arg.h"
#include "core/cond.h"
#include "core/log.h"
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
    leat_done_peers *done;
    leat_expiry *expiry;
    pthread_mutex_t lock; /* Guards stopping and stopped. */
    pthread_cond_t changed;
    /* Cancelled when the server stops: ends the wait of sessions that are being opened on it. */
    leat_cancellation *stop;
    int opening;            /* How many these are; guarded by servers.lock. */
    bool stopping, stopped; /* leat_server_stop has begun, has ended. */
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

static void handle(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    leat_server *s = arg;
    if (leat_worker_serve(s->worker, a, method, in) ||
        leat_service_serve(s->service, a, method, in))
        return;
    if (strcmp(method, LEAT_METHOD_DONE) == 0) {
        leat_done_peers_serve(s->done, a, in);
        return;
    }
    leat_server_call_reply(a, leat_error(UNIMPLEMENTED, "This server has no method %s", method),
                           &(leat_outgoing){0});
}

static void tell_ending(void *service)
{
    leat_service_tell_ending(service);
}

static bool has_clients(void *service)
{
    return leat_service_in_use(service);
}

static bool may_block(const char *method)
{
    return leat_worker_may_block(method) || leat_service_may_block(method);
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
                             .may_block = may_block,
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
    LEAT_TRY(leat_worker_new(s->job, s->task, &s->options, s->peers, &s->worker));
    leat_peers_set_task(s->peers, leat_worker_task(s->worker), leat_worker_incarnation(s->worker));
    s->done = leat_done_peers_new(s->peers, s->job, leat_worker_task(s->worker));
    s->service = leat_service_new(s->worker, s->peers, s->options.max_sessions);
    leat_done_peers_use_clients(s->done,
                                &(leat_done_clients){tell_ending, has_clients, s->service});
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
    leat_done_peers_wait(s->done);
    pthread_mutex_lock(&s->lock);
    while (s->stopping && !s->stopped)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* How long peers may take to reply to Done, if the grace is shorter. */
enum { SAY_SECONDS = 2 };

static void stop_parts(leat_server *s, int64_t grace_ms, int64_t deadline)
{
    leat_expiry_stop(s->expiry);
    s->expiry = NULL;
    leat_status why = leat_error(UNAVAILABLE, "%s is stopping", leat_worker_task(s->worker));
    while (leat_now_ns() < deadline && !leat_worker_idle(s->worker)) {
        struct timespec t = {0, 5000000};
        nanosleep(&t, NULL);
    }
    if (!leat_worker_idle(s->worker))
        LEAT_LOG(WARNING, "%s stops: steps that are still under way after %lld ms are aborted",
                 leat_worker_task(s->worker), (long long)grace_ms);
    leat_worker_stop(s->worker, why);
    leat_service_stop(s->service);
    leat_status_free(why);
    leat_done_peers_finish(s->done);
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
    if (s->service)
        leat_service_stop_opening(s->service);
    const int64_t now = leat_now_ns(), deadline = now + grace_ms * 1000000;
    const int64_t last = now + INT64_C(1000000000) * SAY_SECONDS;
    if (s->done)
        leat_done_peers_stop(s->done);
    if (s->listener) {
        leat_peers_set_stopping(s->peers);
        leat_done_peers_say(s->done, deadline > last ? deadline : last);
    }
    if (s->worker && s->service)
        stop_parts(s, grace_ms, deadline);
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
    leat_done_peers_free(s->done);
    leat_peers_free(s->peers); /* Ends the calls that steps of the worker still wait for. */
    leat_worker_free(s->worker);
    leat_cluster_free(s->cluster);
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
