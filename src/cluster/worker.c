/* worker.c -- the devices of this process, the graphs that masters registered for them, and the
 * methods of WorkerService. */
#include "cluster/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/admit.h"
#include "cluster/messages/methods.h"
#include "cluster/rpc_log.h"
#include "cluster/worker_int.h"
#include "core/alloc.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "proto/wire.h"

/* Opens the devices of the task and of all other tasks that the cluster has at its address. */
static leat_status open_devices(const char *job, int task, const leat_server_options *o,
                                const leat_peer *self, leat_devices *out)
{
    leat_devices_options d = {.spec = o->devices,
                              .host_devices = o->cpu_devices,
                              .gpu = o->gpu,
                              .job = job,
                              .task = task,
                              .intra_op_threads = o->intra_op_threads,
                              .inter_op_threads = o->inter_op_threads};
    leat_devices devices;
    LEAT_TRY(leat_devices_open(&d, &devices));
    leat_status s = NULL;
    for (int i = 0; self && i < self->n_tasks && !s; i++) {
        d.job = self->tasks[i]->job;
        d.task = self->tasks[i]->index;
        if (strcmp(d.job, job) != 0 || d.task != task)
            s = leat_devices_add(&d, &devices);
    }
    if (s)
        leat_devices_close(&devices);
    else
        *out = devices;
    return s;
}

leat_status leat_worker_new(const char *job, int task, const leat_server_options *o,
                            leat_peers *peers, leat_worker **out)
{
    leat_worker *w = leat_new(leat_worker);
    snprintf(w->task, sizeof(w->task), "/job:%s/replica:0/task:%d", job, task);
    leat_status s = open_devices(job, task, o, leat_peers_find(peers, w->task), &w->devices);
    if (s) {
        free(w);
        return s;
    }
    w->peers = peers;
    w->max_sessions = o->max_worker_sessions ? o->max_worker_sessions : 10000;
    w->max_graphs = o->max_graphs ? o->max_graphs : 100000;
    w->exchanges = leat_exchanges_new(w->task, w->devices.v, w->devices.n, peers);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->no_runs, NULL);
    *out = w;
    return NULL;
}

void leat_worker_free(leat_worker *w)
{
    if (!w)
        return;
    leat_worker_await_runs(w);
    for (;;) {
        size_t i = 0;
        const char *key;
        void *session;
        if (!leat_map_next(&w->sessions, &i, &key, &session))
            break;
        char *handle = leat_xstrdup(((leat_worker_session *)session)->handle);
        leat_worker_session_close(w, handle);
        free(handle);
    }
    leat_exchanges_free(w->exchanges);
    leat_map_release(&w->sessions);
    leat_map_release(&w->graphs);
    leat_devices_close(&w->devices);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->no_runs);
    free(w);
}

const char *leat_worker_task(const leat_worker *w)
{
    return w->task;
}

uint64_t leat_worker_incarnation(const leat_worker *w)
{
    return w->devices.v[0]->incarnation;
}

leat_device *const *leat_worker_devices(const leat_worker *w, int *n_out)
{
    *n_out = w->devices.n;
    return w->devices.v;
}

leat_exchanges *leat_worker_exchanges(leat_worker *w)
{
    return w->exchanges;
}

int leat_worker_graphs(leat_worker *w)
{
    pthread_mutex_lock(&w->lock);
    int n = (int)w->graphs.n;
    pthread_mutex_unlock(&w->lock);
    return n;
}

int leat_worker_sessions(leat_worker *w)
{
    pthread_mutex_lock(&w->lock);
    int n = w->n_far;
    pthread_mutex_unlock(&w->lock);
    return n;
}

void leat_worker_clear(leat_worker *w, const char *container)
{
    for (int i = 0; i < w->devices.n; i++)
        leat_resources_clear(w->devices.v[i]->resources, container);
}

/* ---- Graphs ---- */

void leat_registered_unref(leat_registered *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    leat_plan_free(r->plan);
    leat_worker_session_unref(r->session);
    free(r);
}

leat_status leat_worker_find_graph(leat_worker *w, const char *handle, leat_registered **out)
{
    pthread_mutex_lock(&w->lock);
    leat_registered *r = leat_map_get(&w->graphs, handle);
    if (r)
        atomic_fetch_add(&r->refs, 1);
    pthread_mutex_unlock(&w->lock);
    LEAT_REQUIRE(r, ABORTED,
                 "Graph handle is not found: %s. Possibly, this worker (\"%s\") just restarted.",
                 handle, w->task);
    *out = r;
    return NULL;
}

/* A graph from a TensorFlow master differs from one from a Leat master in two ways. Tensors in host
 * memory have _HostSend and _HostRecv instead of _Send and _Recv: adapt_graph renames them. No
 * attribute says which received tensors may be dead: expect_dead marks all of them. */
static void adapt_graph(Leat__GraphDef *def)
{
    for (size_t i = 0; i < def->n_node; i++) {
        char *op = def->node[i]->op;
        if (strcmp(op, "_HostSend") == 0 || strcmp(op, "_HostRecv") == 0)
            memmove(op + 1, op + 5, strlen(op + 5) + 1);
    }
}

static void expect_dead(leat_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (leat_node_role(g->nodes[i]) == LEAT_ROLE_RECV)
            leat_node_set_attr(g->nodes[i],
                               &(leat_attr){.name = "_may_be_dead", .kind = LEAT_ARG_BOOL, .i = 1});
}

/* True if nodes of the graph call functions. The functions may have nodes on other tasks. */
static bool calls_functions(const leat_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (leat_node_names_functions(g->nodes[i]) || leat_function_is_call(g->nodes[i]))
            return true;
    return false;
}

/* Takes the caller's reference to s. */
static leat_status add_graph(leat_worker *w, leat_worker_session *s, Leat__GraphDef *def,
                             bool from_leat, bool no_optimization, char handle_out[24])
{
    leat_graph *g = leat_graph_new();
    leat_plan_options o = {
        .devices = s->devices, .n_devices = s->n_devices, .no_optimization = no_optimization};
    leat_plan *plan = NULL;
    if (!from_leat)
        adapt_graph(def);
    leat_status status = leat_graph_from_proto(g, def, "");
    if (!status && !from_leat)
        expect_dead(g);
    if (!status && calls_functions(g))
        status = leat_worker_session_far(w, s, &o.far);
    if (status)
        leat_graph_free(g);
    else
        status = leat_plan_of_part(g, &o, &plan);
    if (status) {
        leat_worker_session_unref(s);
        return status;
    }
    leat_registered *r = leat_new(leat_registered);
    atomic_init(&r->refs, 1);
    r->session = s;
    r->plan = plan;
    pthread_mutex_lock(&w->lock);
    snprintf(r->handle, sizeof(r->handle), "%016" PRIx64, ++w->next_handle);
    memcpy(handle_out, r->handle, sizeof(r->handle));
    bool open = !s->closed, room = (int)w->graphs.n < w->max_graphs;
    if (open && room) {
        r->next = s->graphs;
        s->graphs = r;
        leat_map_put(&w->graphs, r->handle, r);
    }
    pthread_mutex_unlock(&w->lock);
    if (open && room)
        return NULL;
    leat_registered_unref(r);
    LEAT_REQUIRE(open, ABORTED, "The session was closed while a graph was registered");
    return leat_error(
        RESOURCE_EXHAUSTED,
        "%s has %d registered graphs, which is its limit: run fewer different sets of "
        "fetches, close sessions, or start it with a higher limit (leat server "
        "--max_graphs, max_graphs of leat_server_options)",
        w->task, w->max_graphs);
}

static void register_graph(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__RegisterGraphRequest *q = NULL;
    Leat__RegisterGraphResponse r = LEAT__REGISTER_GRAPH_RESPONSE__INIT;
    leat_worker_session *session;
    char handle[24] = "";
    leat_status s = LEAT_REQUEST(register_graph_request, in, &q);
    if (!s)
        s = leat_worker_find_session(w, q->session_handle, &session);
    if (!s) {
        const Leat__GraphOptions *o = q->graph_options;
        bool plain = o && o->optimizer_options &&
                     o->optimizer_options->opt_level == LEAT__OPTIMIZER_OPTIONS__LEVEL__L0;
        Leat__GraphDef none = LEAT__GRAPH_DEF__INIT;
        leat_usage_begin(&session->usage, leat_server_call_peer(a));
        atomic_fetch_add(&session->refs, 1);
        s = add_graph(w, session, q->graph_def ? q->graph_def : &none, q->leat, plain, handle);
        leat_usage_end(&session->usage);
        leat_worker_session_unref(session);
    }
    r.graph_handle = handle;
    leat_reply_message(a, s, &r);
    leat_proto_free(q);
}

static void deregister_graph(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__DeregisterGraphRequest *q = NULL;
    leat_registered *r = NULL;
    leat_status s = LEAT_REQUEST(deregister_graph_request, in, &q);
    if (!s)
        s = leat_worker_find_graph(w, q->graph_handle, &r);
    if (!s) {
        pthread_mutex_lock(&w->lock);
        bool there = leat_map_remove(&w->graphs, r->handle) != NULL;
        leat_registered **at = &r->session->graphs;
        while (*at && *at != r)
            at = &(*at)->next;
        if (*at)
            *at = r->next;
        pthread_mutex_unlock(&w->lock);
        if (there)
            leat_registered_unref(r);
        leat_registered_unref(r);
    }
    leat_reply_message(a, s, NULL);
    leat_proto_free(q);
}

/* ---- The other methods ---- */

Leat__DeviceAttributes *leat_device_to_proto(const leat_device *d)
{
    Leat__DeviceAttributes *p = leat_xmalloc(sizeof(*p));
    leat__device_attributes__init(p);
    p->name = leat_xstrdup(d->name);
    p->device_type = leat_xstrdup(d->parsed.type);
    leat_device_info info;
    d->kind->describe(d->ordinal, &info);
    p->memory_limit =
        leat_device_memory(d) && d->allocator->limit ? (int64_t)d->allocator->limit : info.memory;
    p->incarnation = d->incarnation;
    p->locality = leat_xmalloc(sizeof(*p->locality));
    leat__device_locality__init(p->locality);
    char text[LEAT_DEVICE_TEXT];
    const char *what = leat_device_text(d, text);
    p->physical_device_desc = leat_xstrdup(what ? what : info.description);
    return p;
}

/* Adds the handles of sessions that the master of this process has closed, or never had. */
static void add_closed(leat_worker *w, const Leat__GetStatusRequest *q, Leat__GetStatusResponse *r)
{
    r->leat_closed = leat_new_array(char *, q->n_leat_session + 1);
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < q->n_leat_session; i++) {
        const leat_worker_session *s = leat_map_get(&w->sessions, q->leat_session[i]);
        if (!s || !s->own)
            r->leat_closed[r->n_leat_closed++] = q->leat_session[i];
    }
    pthread_mutex_unlock(&w->lock);
}

static void get_status(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__GetStatusRequest *q = NULL;
    Leat__GetStatusResponse r = LEAT__GET_STATUS_RESPONSE__INIT;
    leat_status s = LEAT_REQUEST(get_status_request, in, &q);
    if (s) {
        leat_reply_message(a, s, NULL);
        return;
    }
    add_closed(w, q, &r);
    r.device_attributes = leat_new_array(Leat__DeviceAttributes *, w->devices.n);
    for (int i = 0; i < w->devices.n; i++)
        r.device_attributes[r.n_device_attributes++] = leat_device_to_proto(w->devices.v[i]);
    leat_self self;
    leat_peers_self(w->peers, &self);
    r.leat = &self.message;
    leat_reply_message(a, NULL, &r);
    for (int i = 0; i < w->devices.n; i++)
        leat_proto_free(r.device_attributes[i]);
    free(r.device_attributes);
    free(r.leat_closed);
    leat_proto_free(q);
}

static void create_session(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__CreateWorkerSessionRequest *q = NULL;
    leat_status s = LEAT_REQUEST(create_worker_session_request, in, &q);
    if (!s && q->leat_cluster)
        s = leat_peers_admit(w->peers, q);
    if (!s) {
        const leat_worker_session_options o = {.isolate = q->isolate_session_state,
                                               .master_task = q->master_task,
                                               .master_incarnation =
                                                   (uint64_t)q->master_incarnation,
                                               .peer = leat_server_call_peer(a),
                                               .cluster = q->cluster_device_attributes,
                                               .n_cluster = q->n_cluster_device_attributes};
        s = leat_worker_session_open(w, q->session_handle, &o, NULL);
    }
    leat_reply_message(a, s, NULL);
    leat_proto_free(q);
}

static void delete_session(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__DeleteWorkerSessionRequest *q = NULL;
    leat_status s = LEAT_REQUEST(delete_worker_session_request, in, &q);
    if (!s)
        leat_worker_session_close(w, q->session_handle);
    leat_reply_message(a, s, NULL);
    leat_proto_free(q);
}

static void cleanup_graph(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__CleanupGraphRequest *q = NULL;
    leat_status s = LEAT_REQUEST(cleanup_graph_request, in, &q);
    if (!s) {
        leat_status why = leat_error(ABORTED, "Cleanup %" PRId64, q->step_id);
        leat_exchange_drop(w->exchanges, q->step_id, why);
        leat_status_free(why);
    }
    leat_reply_message(a, s, NULL);
    leat_proto_free(q);
}

static void cleanup_all(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__CleanupAllRequest *q = NULL;
    leat_status s = LEAT_REQUEST(cleanup_all_request, in, &q);
    for (size_t i = 0; !s && i < q->n_container; i++)
        leat_worker_clear(w, q->container[i]);
    if (!s && !q->n_container)
        leat_worker_clear(w, "");
    leat_reply_message(a, s, NULL);
    leat_proto_free(q);
}

static void logging(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    Leat__LoggingRequest *q = NULL;
    leat_rpc_log *log = leat_exchanges_log(w->exchanges);
    leat_outgoing o = {0};
    leat_status s = LEAT_REQUEST(logging_request, in, &q);
    if (!s && q->enable_rpc_logging)
        leat_rpc_log_turn(log, true);
    /* Versions of TensorFlow without disable_rpc_logging turn the log off with a request that has
     * neither flag and fetches nothing. */
    if (!s && (q->disable_rpc_logging || (!q->enable_rpc_logging && !q->n_fetch_step_id)))
        leat_rpc_log_turn(log, false);
    for (size_t i = 0; !s && i < q->n_fetch_step_id; i++)
        s = leat_rpc_log_take(log, q->fetch_step_id[i], &o.text);
    if (!s && q->clear)
        leat_rpc_log_clear(log);
    leat_server_call_reply(a, s, &o);
    leat_proto_free(q);
}

/* TensorFlow's worker replies to Tracing with this error. */
static void tracing(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    leat_reply_message(a, leat_error(UNIMPLEMENTED, "Tracing"), NULL);
}

static void recv_tensor(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    leat_exchange_serve(w->exchanges, a, in);
}

static void recv_tensors(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    leat_exchange_serve_many(w->exchanges, a, in);
}

static void send_tensors(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    leat_exchange_take_pushed(w->exchanges, a, in);
}

static const struct {
    const char *method;
    void (*serve)(leat_worker *w, leat_server_call *a, const leat_incoming *in);
    bool may_block;
} methods[] = {
    {LEAT_METHOD_RUN_GRAPH, leat_worker_run_graph},
    {LEAT_METHOD_RECV_TENSORS, recv_tensors},
    {LEAT_METHOD_SEND_TENSORS, send_tensors},
    {LEAT_METHOD_RECV_TENSOR, recv_tensor},
    {LEAT_METHOD_CLEANUP_GRAPH, cleanup_graph},
    {LEAT_METHOD_GET_STATUS, get_status},
    {LEAT_METHOD_CREATE_WORKER_SESSION, create_session, .may_block = true},
    {LEAT_METHOD_DELETE_WORKER_SESSION, delete_session, .may_block = true},
    {LEAT_METHOD_REGISTER_GRAPH, register_graph, .may_block = true},
    {LEAT_METHOD_DEREGISTER_GRAPH, deregister_graph},
    {LEAT_METHOD_CLEANUP_ALL, cleanup_all, .may_block = true},
    {LEAT_METHOD_LOGGING, logging},
    {LEAT_METHOD_TRACING, tracing},
};

bool leat_worker_may_block(const char *method)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(method, methods[i].method) == 0)
            return methods[i].may_block;
    return false;
}

bool leat_worker_serve(leat_worker *w, leat_server_call *a, const char *method,
                       const leat_incoming *in)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(method, methods[i].method) == 0) {
            methods[i].serve(w, a, in);
            return true;
        }
    return false;
}
