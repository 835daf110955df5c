/* server.c -- a task: a listener, and behind it worker and master.
 *
 * A server ends by itself when its job is done: a ps task, once sessions were open on it and the
 * last of them has been closed for a while (see leat_server_join).
 */
#include "cluster/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/service.h"
#include "core/alloc.h"
#include "core/log.h"
#include "runtime/session_int.h"

struct leat_server {
    leat_cluster *cluster;
    leat_server_options options;
    char job[64];
    int task;
    char target[300]; /* "grpc://host:port" */
    leat_peers *peers;
    leat_worker *worker;
    leat_service *service;
    leat_listener *listener;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stopping, stopped;
    int sessions; /* of this process, opened on it */
    leat_server *next;
};

/* The servers of this process. */
static struct {
    pthread_mutex_t lock;
    leat_server *first;
} servers = {PTHREAD_MUTEX_INITIALIZER, NULL};

static void enlist(leat_server *s)
{
    pthread_mutex_lock(&servers.lock);
    s->next = servers.first;
    servers.first = s;
    pthread_mutex_unlock(&servers.lock);
}

static void delist(leat_server *s)
{
    pthread_mutex_lock(&servers.lock);
    leat_server **at = &servers.first;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    pthread_mutex_unlock(&servers.lock);
}

static void handle(void *arg, leat_asked *a, const char *method, const leat_incoming *in)
{
    leat_server *s = arg;
    if (leat_worker_serve(s->worker, a, method, in) ||
        leat_service_serve(s->service, a, method, in))
        return;
    leat_asked_reply(a, leat_error(UNIMPLEMENTED, "This server has no method %s", method),
                     &(leat_outgoing){0});
}

/* ---- Starting ---- */

static leat_status listen_there(leat_server *s, const char *address)
{
    leat_listen_options o = {.security = &s->options.security,
                             .max_message = s->options.max_message,
                             .max_calls = s->options.max_calls};
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
    LEAT_TRY(leat_isa_check());
    LEAT_TRY(leat_peers_new(s->cluster, &s->options.security, &s->peers));
    s->worker = leat_worker_new(s->job, s->task, &s->options, s->peers);
    s->service = leat_service_new(s->worker, s->peers, s->options.max_sessions);
    LEAT_TRY(listen_there(s, address));
    enlist(s);
    LEAT_LOG(INFO, "Started server with target: %s", s->target);
    return NULL;
}

leat_status leat_server_start(const leat_cluster *c, const char *job, int task,
                              const leat_server_options *options, leat_server **server_out)
{
    leat_server *s = leat_new(leat_server);
    if (options)
        s->options = *options;
    s->cluster = leat_cluster_copy(c);
    snprintf(s->job, sizeof(s->job), "%s", job);
    s->task = task;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
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
    return s->target;
}

/* ---- Stopping ---- */

leat_status leat_server_join(leat_server *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->stopping)
        pthread_cond_wait(&s->changed, &s->lock);
    while (!s->stopped)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void stop_parts(leat_server *s, int64_t grace_ms)
{
    int64_t deadline = leat_now_ns() + grace_ms * 1000000;
    leat_status why = leat_error(UNAVAILABLE, "%s is stopping", leat_worker_task(s->worker));
    while (grace_ms > 0 && leat_now_ns() < deadline && !leat_worker_idle(s->worker)) {
        struct timespec t = {0, 5000000};
        nanosleep(&t, NULL);
    }
    leat_worker_stop(s->worker, why);
    leat_service_close_all(s->service);
    leat_status_free(why);
    if (s->listener)
        leat_listener_stop(s->listener, leat_now_ns() + INT64_C(2000000000));
    s->listener = NULL;
}

void leat_server_stop(leat_server *s, int64_t grace_ms)
{
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
    leat_server_stop(s, 0);
    leat_service_free(s->service);
    leat_peers_free(s->peers); /* calls under way end, and with them what waits in the worker */
    leat_worker_free(s->worker);
    leat_cluster_free(s->cluster);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* ---- Sessions of this process ---- */

leat_status leat_server_session(leat_graph *g, const leat_session_options *o, leat_session **out)
{
    *out = NULL;
    pthread_mutex_lock(&servers.lock);
    leat_server *s = servers.first;
    while (s && strcmp(s->target, o->target) != 0)
        s = s->next;
    pthread_mutex_unlock(&servers.lock);
    if (!s)
        return NULL;
    char handle[24];
    leat_handle_make(handle);
    leat_master_options m = {.handle = handle, .open_ms = o->timeout_ms};
    return leat_master_open(g, o, &m, s->worker, s->peers, out);
}
