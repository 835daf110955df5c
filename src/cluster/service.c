/* service.c -- clients' sessions: opened with a graph, extended, closed. */
#include "cluster/service.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster/call_many.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/service_int.h"
#include "core/alloc.h"
#include "core/log.h"
#include "graph/graphdef.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

leat_service *leat_service_new(leat_worker *w, leat_peers *peers, int max_sessions)
{
    leat_service *s = leat_new(leat_service);
    s->worker = w;
    s->peers = peers;
    s->max_sessions = max_sessions;
    s->stop = leat_cancellation_new();
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void leat_service_use_port(leat_service *s, int port)
{
    atomic_store(&s->port, port);
}

int leat_service_sessions(leat_service *s)
{
    pthread_mutex_lock(&s->lock);
    int n = (int)s->clients.n;
    pthread_mutex_unlock(&s->lock);
    return n;
}

bool leat_service_in_use(leat_service *s)
{
    const int64_t linger_ns = INT64_C(5000000000);
    pthread_mutex_lock(&s->lock);
    bool used =
        s->clients.n || s->opening || (s->used_ns && leat_now_ns() - s->used_ns < linger_ns);
    pthread_mutex_unlock(&s->lock);
    return used;
}

void leat_handle_make(char out[24])
{
    static atomic_uint count;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t seed[4] = {(uint64_t)t.tv_sec, (uint64_t)t.tv_nsec, (uint64_t)getpid(),
                        atomic_fetch_add(&count, 1)};
    snprintf(out, 24, "%016" PRIx64, leat_hash(seed, sizeof(seed), 0));
}

/* ---- One client ---- */

static void client_unref(leat_client *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    leat_usage_release(&c->usage);
    leat_graph_free(c->graph);
    leat_map_release(&c->partials);
    leat_map_release(&c->callables);
    pthread_rwlock_destroy(&c->use);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

leat_status leat_service_find(leat_service *s, leat_server_call *a, const char *handle,
                              leat_client **out)
{
    const char *peer = leat_server_call_peer(a);
    pthread_mutex_lock(&s->lock);
    leat_client *c = leat_map_get(&s->clients, handle);
    if (c) {
        atomic_fetch_add(&c->refs, 1);
        leat_usage_begin(&c->usage, peer);
        s->used_ns = leat_now_ns();
    }
    pthread_mutex_unlock(&s->lock);
    LEAT_REQUIRE(c, ABORTED, "Session %s is not found. Possibly, this master has restarted.",
                 handle);
    *out = c;
    return NULL;
}

void leat_client_done(leat_client *c)
{
    if (!c)
        return;
    leat_usage_end(&c->usage);
    client_unref(c);
}

leat_status leat_client_enter(leat_client *c)
{
    pthread_rwlock_rdlock(&c->use);
    if (c->session)
        return NULL;
    pthread_rwlock_unlock(&c->use);
    return leat_error(CANCELLED, "Session has been closed.");
}

void leat_client_leave(leat_client *c)
{
    pthread_rwlock_unlock(&c->use);
}

/* Partial runs are freed after the write lock was taken: until then a PartialRunSetup that entered
 * before may still add one, for which leat_session_close would wait. */
void leat_client_close(leat_client *c)
{
    leat_session_end_steps(c->session);
    pthread_rwlock_wrlock(&c->use);
    leat_session *session = c->session;
    c->session = NULL;
    pthread_rwlock_unlock(&c->use);
    leat_client_hold_free(c);
    leat_client_partials_free(c);
    leat_client_callables_free(c);
    leat_session_close(session);
    client_unref(c);
}

/* Cancels the steps under way. */
static void close_all(leat_service *s)
{
    for (;;) {
        size_t i = 0;
        const char *key;
        void *c = NULL;
        pthread_mutex_lock(&s->lock);
        if (leat_map_next(&s->clients, &i, &key, &c))
            leat_map_remove(&s->clients, ((leat_client *)c)->handle);
        pthread_mutex_unlock(&s->lock);
        if (!c)
            return;
        leat_client_close(c);
    }
}

void leat_service_stop(leat_service *s)
{
    atomic_store(&s->stopped, true);
    close_all(s);
}

leat_status leat_service_run_error(const leat_service *s, leat_status status)
{
    if (leat_status_code(status) != LEAT_CANCELLED || !atomic_load(&s->stopped))
        return status;
    leat_status_free(status);
    return leat_error(UNAVAILABLE, "%s is stopping", leat_worker_task(s->worker));
}

void leat_service_free(leat_service *s)
{
    if (!s)
        return;
    close_all(s);
    leat_map_release(&s->clients);
    leat_cancellation_free(s->stop);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- Opening ---- */

/* Reads device_count: the most devices of each kind that the client wants. */
static int read_counts(const Leat__ConfigProto *config, leat_device_count *out)
{
    int n = 0;
    for (size_t i = 0; i < config->n_device_count && n < LEAT_DEVICE_COUNTS; i++) {
        const Leat__ConfigProto__DeviceCountEntry *e = config->device_count[i];
        if (strlen(e->key) >= sizeof(out->type))
            continue; /* no kind has such a name */
        leat_device_count *c = &out[n++];
        for (size_t k = 0; k <= strlen(e->key); k++)
            c->type[k] = (char)toupper((unsigned char)e->key[k]);
        c->n = e->value;
    }
    return n;
}

/* Which GPUs there are, and what they take of their memory, was settled when the server started. */
static void check_gpu_options(leat_service *s, const Leat__GPUOptions *o)
{
    if (o && ((o->visible_device_list && o->visible_device_list[0]) ||
              o->per_process_gpu_memory_fraction != 0))
        LEAT_LOG(WARNING,
                 "%s: a session asks for visible_device_list \"%s\" and "
                 "per_process_gpu_memory_fraction %g in its gpu_options; these are a server's, "
                 "given when it starts (leat server --visible_device_list, --gpu_memory_fraction)",
                 leat_worker_task(s->worker), o->visible_device_list ? o->visible_device_list : "",
                 o->per_process_gpu_memory_fraction);
}

static void cancel_both(void *both)
{
    leat_cancel_runs(both);
}

/* The cancellation is that of the call. */
static leat_status open_session(leat_service *s, leat_client *c, const Leat__ConfigProto *config,
                                leat_cancellation *cancellation)
{
    leat_session_options o = {0};
    leat_device_count counts[LEAT_DEVICE_COUNTS];
    leat_master_options m = {.handle = c->handle, .counts = counts, .cancellation = cancellation};
    leat_cancel_watch stop = {.fn = cancel_both, .arg = cancellation};
    if (config) {
        const Leat__GraphOptions *g = config->graph_options;
        o.allow_soft_placement = config->allow_soft_placement;
        o.log_device_placement = config->log_device_placement;
        o.no_optimization = g && g->optimizer_options &&
                            g->optimizer_options->opt_level == LEAT__OPTIMIZER_OPTIONS__LEVEL__L0;
        check_gpu_options(s, config->gpu_options);
        m.n_counts = read_counts(config, counts);
        m.filters = (const char *const *)config->device_filters;
        m.n_filters = (int)config->n_device_filters;
        m.isolate = config->isolate_session_state;
        m.open_ms = config->operation_timeout_in_ms;
        c->operation_ms = config->operation_timeout_in_ms;
    }
    leat_cancellation_watch(s->stop, &stop);
    leat_status status = leat_master_open(c->graph, &o, &m, s->worker, s->peers, &c->session);
    leat_cancellation_unwatch(s->stop, &stop);
    if (!status || !leat_is_cancelled(s->stop))
        return status;
    leat_status_free(status);
    return leat_error(UNAVAILABLE, "%s is stopping: no session can be opened on it",
                      leat_worker_task(s->worker));
}

void leat_service_stop_opening(leat_service *s)
{
    leat_cancel_runs(s->stop);
}

static leat_status make_client(leat_service *s, const Leat__CreateSessionRequest *q,
                               leat_cancellation *cancellation, leat_client **out)
{
    leat_client *c = leat_new(leat_client);
    atomic_init(&c->refs, 1);
    leat_usage_init(&c->usage);
    pthread_rwlock_init(&c->use, NULL);
    pthread_mutex_init(&c->lock, NULL);
    leat_handle_make(c->handle);
    c->graph = leat_graph_new();
    leat_status status = NULL;
    if (q->graph_def)
        status = leat_graph_from_proto(c->graph, q->graph_def, "");
    if (!status)
        status = open_session(s, c, q->config, cancellation);
    if (status) {
        client_unref(c);
        return status;
    }
    *out = c;
    return NULL;
}

static void create_session(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__CreateSessionRequest *q = NULL;
    Leat__CreateSessionResponse r = LEAT__CREATE_SESSION_RESPONSE__INIT;
    leat_client *c = NULL;
    char handle[24] = "";
    leat_step_call k = leat_step_call_of(a);
    leat_status status = LEAT_REQUEST(create_session_request, in, &q);
    if (!status)
        status = leat_service_admit(s);
    if (!status) {
        status = make_client(s, q, k.cancellation, &c);
        if (!status) {
            leat_usage_begin(&c->usage, leat_server_call_peer(a));
            leat_usage_end(&c->usage);
            memcpy(handle, c->handle,
                   sizeof(handle)); /* c may be closed once it is in the table. */
        }
        pthread_mutex_lock(&s->lock);
        s->opening--;
        if (!status)
            leat_map_put(&s->clients, c->handle, c);
        pthread_mutex_unlock(&s->lock);
    }
    r.session_handle = handle;
    leat_reply_message(a, status, &r);
    leat_step_call_release(&k);
    leat_proto_free(q);
}

static void extend_session(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__ExtendSessionRequest *q = NULL;
    Leat__ExtendSessionResponse r = LEAT__EXTEND_SESSION_RESPONSE__INIT;
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(extend_session_request, in, &q);
    if (!status)
        status = leat_service_find(s, a, q->session_handle, &c);
    if (!status) {
        pthread_mutex_lock(&c->lock);
        if (q->current_graph_version != c->version)
            status = leat_error(ABORTED,
                                "Current version is %" PRId64 " but caller expected %" PRId64 ".",
                                c->version, q->current_graph_version);
        else if (q->graph_def)
            status = leat_graph_from_proto(c->graph, q->graph_def, "");
        if (!status)
            r.new_graph_version = ++c->version;
        pthread_mutex_unlock(&c->lock);
        leat_client_done(c);
    }
    leat_reply_message(a, status, &r);
    leat_proto_free(q);
}

static void close_session(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__CloseSessionRequest *q = NULL;
    leat_client *c = NULL;
    leat_status status = LEAT_REQUEST(close_session_request, in, &q);
    if (!status) {
        pthread_mutex_lock(&s->lock);
        s->used_ns = leat_now_ns();
        c = leat_map_remove(&s->clients, q->session_handle);
        pthread_mutex_unlock(&s->lock);
        if (c)
            leat_client_close(c);
        else
            status =
                leat_error(ABORTED, "Session %s is not found. Possibly, this master has restarted.",
                           q->session_handle);
    }
    leat_reply_message(a, status, NULL);
    leat_proto_free(q);
}

/* ---- Devices ---- */

static void list_devices(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__ListDevicesRequest *q = NULL;
    Leat__ListDevicesResponse r = LEAT__LIST_DEVICES_RESPONSE__INIT;
    leat_client *c = NULL;
    leat_outgoing o = {0};
    leat_status status = LEAT_REQUEST(list_devices_request, in, &q);
    if (!status)
        status = leat_service_find(s, a, q->session_handle, &c);
    if (!status)
        status = leat_client_enter(c);
    if (!status) {
        const Leat__DeviceAttributes *const *v;
        int own, n = leat_master_devices(c->session->far, &v, &own);
        r.local_device = (Leat__DeviceAttributes **)v;
        r.n_local_device = (size_t)own;
        r.remote_device = (Leat__DeviceAttributes **)v + own;
        r.n_remote_device = (size_t)(n - own);
        status = leat_put_fields(&o.text, LEAT_METHOD_LIST_DEVICES, &r);
        leat_client_leave(c);
    }
    leat_client_done(c);
    leat_server_call_reply(a, status, &o);
    leat_proto_free(q);
}

static void clear_far(leat_peers *peers, const char *own, const Leat__ResetRequest *q)
{
    for (int i = 0; i < leat_peers_count(peers); i++) {
        leat_peer *p = leat_peers_at(peers, i);
        if (p == leat_peers_find(peers, own))
            continue;
        Leat__CleanupAllRequest all = LEAT__CLEANUP_ALL_REQUEST__INIT;
        all.container = q->container;
        all.n_container = q->n_container;
        leat_peer_notify(p, LEAT_METHOD_CLEANUP_ALL, &all);
    }
}

/* Closes all sessions of this master, and clears containers on all tasks. */
static void reset(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__ResetRequest *q = NULL;
    leat_status status = LEAT_REQUEST(reset_request, in, &q);
    if (!status) {
        close_all(s);
        for (size_t i = 0; i < q->n_container; i++)
            leat_worker_clear(s->worker, q->container[i]);
        if (!q->n_container)
            leat_worker_clear(s->worker, "");
        clear_far(s->peers, leat_worker_task(s->worker), q);
    }
    leat_reply_message(a, status, NULL);
    leat_proto_free(q);
}

static const struct {
    const char *method;
    void (*serve)(leat_service *s, leat_server_call *a, const leat_incoming *in);
} methods[] = {
    {LEAT_METHOD_RUN_STEP, leat_service_run_step},
    {LEAT_METHOD_RUN_CALLABLE, leat_service_run_callable},
    {LEAT_METHOD_CREATE_SESSION, create_session},
    {LEAT_METHOD_EXTEND_SESSION, extend_session},
    {LEAT_METHOD_PARTIAL_RUN_SETUP, leat_service_partial_setup},
    {LEAT_METHOD_CLOSE_SESSION, close_session},
    {LEAT_METHOD_LIST_DEVICES, list_devices},
    {LEAT_METHOD_RESET, reset},
    {LEAT_METHOD_MAKE_CALLABLE, leat_service_make_callable},
    {LEAT_METHOD_RELEASE_CALLABLE, leat_service_release_callable},
    {LEAT_METHOD_HOLD, leat_service_hold},
};

bool leat_service_may_block(const char *method)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(method, methods[i].method) == 0)
            return true;
    return false;
}

bool leat_service_serve(leat_service *s, leat_server_call *a, const char *method,
                        const leat_incoming *in)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(method, methods[i].method) == 0) {
            /* Steps, and opening a session, wait for other tasks. */
            leat_server_call_will_block(a);
            methods[i].serve(s, a, in);
            return true;
        }
    return false;
}
