/* remote.c -- a client's side of MasterService: the graph is sent when the session is opened, what
 * was added to it before the run that needs it. */
#include "cluster/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stats.h"
#include "cluster/tensor_wire.h"
#include "core/alloc.h"
#include "graph/graphdef.h"
#include "proto/cluster.pb-c.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

#define MASTER "/tensorflow.MasterService/"
enum { OPEN_MS = 120000, CLOSE_MS = 10000 };

typedef struct remote {
    leat_session base;
    leat_channel *channel;
    char *handle;
    leat_cancellation *opening; /* that ends the call that opens it; NULL after that */
    pthread_mutex_t grow;       /* guards what follows; one extends at a time */
    int sent;                   /* nodes of the graph that the server has */
    int64_t version;
} remote;

typedef struct remote_partial {
    leat_session *session; /* first, as in every kind of session */
    char *handle;
} remote_partial;

static int64_t deadline_of(int64_t ms)
{
    return ms > 0 ? leat_now_ns() + ms * 1000000 : 0;
}

static leat_status ask(remote *r, const char *method, leat_outgoing *o, int64_t ms, void **reply,
                       size_t *size)
{
    leat_call_options call = {
        .deadline_ns = deadline_of(ms), .wait_ready = ms > 0, .cancellation = r->opening};
    return leat_channel_ask(r->channel, method, o, &call, reply, size);
}

/* ---- The graph ---- */

/* Adds nodes from `first` on, and all functions, as a GraphDef in a field. */
static leat_status put_graph(leat_strbuf *b, int field, const leat_graph *g, int first, int end)
{
    Leat__GraphDef def = LEAT__GRAPH_DEF__INIT;
    Leat__VersionDef versions = LEAT__VERSION_DEF__INIT;
    leat_status s = NULL;
    versions.producer = 134;
    def.versions = &versions;
    def.node = leat_new_array(Leat__NodeDef *, end - first + 1);
    for (int i = first; i < end && !s; i++) {
        s = leat_node_to_proto(g->nodes[i], &def.node[def.n_node]);
        def.n_node += !s;
    }
    if (!s && g->n_functions)
        s = leat_functions_export(g, &def.library);
    leat_strbuf bytes = {0};
    if (!s)
        s = leat_proto_pack(&def, &bytes);
    if (!s)
        leat_put_bytes(b, field, leat_strbuf_text(&bytes), bytes.n);
    leat_strbuf_release(&bytes);
    for (size_t i = 0; i < def.n_node; i++)
        leat_proto_free(def.node[i]);
    free(def.node);
    leat_proto_free(def.library);
    return s;
}

static void put_config(leat_strbuf *b, const leat_session_options *o)
{
    leat_strbuf c = {0};
    for (const char *const *f = o->device_filters; f && *f; f++)
        leat_put_text(&c, 4, *f);
    leat_put_int(&c, 7, o->allow_soft_placement);
    leat_put_int(&c, 8, o->log_device_placement);
    if (o->no_optimization) /* graph_options.optimizer_options.opt_level = L0 */
        leat_put_bytes(&c, 10, "\x1a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
    leat_put_int(&c, 11, o->timeout_ms);
    leat_put_bytes(b, 2, leat_strbuf_text(&c), c.n);
    leat_strbuf_release(&c);
}

static int64_t open_ms(const leat_session_options *o)
{
    return o->open_timeout_ms ? o->open_timeout_ms : o->timeout_ms ? o->timeout_ms : OPEN_MS;
}

static leat_status create(remote *r)
{
    leat_graph *g = r->base.graph;
    const leat_session_options *o = &r->base.options;
    leat_outgoing q = {0};
    pthread_mutex_lock(&g->lock);
    int end = g->n_nodes;
    leat_status s = put_graph(&q.text, 1, g, 0, end);
    pthread_mutex_unlock(&g->lock);
    put_config(&q.text, o);
    leat_put_text(&q.text, 3, o->target);
    void *reply = NULL;
    size_t n;
    if (!s)
        s = ask(r, MASTER "CreateSession", &q, open_ms(o), &reply, &n);
    leat_outgoing_release(&q);
    Leat__CreateSessionResponse *a = NULL;
    if (!s)
        s = LEAT_UNPACK(create_session_response, reply, n, &a);
    if (!s) {
        r->handle = leat_xstrdup(a->session_handle);
        r->version = a->graph_version;
        r->sent = end;
    }
    leat_proto_free(a);
    free(reply);
    return s;
}

static leat_status extend_locked(remote *r)
{
    leat_graph *g = r->base.graph;
    leat_outgoing q = {0};
    pthread_mutex_lock(&g->lock);
    int end = g->n_nodes;
    leat_status s = NULL;
    leat_put_text(&q.text, 1, r->handle);
    if (end > r->sent)
        s = put_graph(&q.text, 2, g, r->sent, end);
    pthread_mutex_unlock(&g->lock);
    leat_put_int(&q.text, 3, r->version);
    void *reply = NULL;
    size_t n;
    if (!s && end > r->sent)
        s = ask(r, MASTER "ExtendSession", &q, OPEN_MS, &reply, &n);
    leat_outgoing_release(&q);
    Leat__ExtendSessionResponse *a = NULL;
    if (!s && reply)
        s = LEAT_UNPACK(extend_session_response, reply, n, &a);
    if (a) {
        r->version = a->new_graph_version;
        r->sent = end;
    }
    leat_proto_free(a);
    free(reply);
    return s;
}

static leat_status extend(remote *r)
{
    if (r->base.graph->status)
        return leat_status_copy(r->base.graph->status);
    pthread_mutex_lock(&r->grow);
    leat_status s = extend_locked(r);
    pthread_mutex_unlock(&r->grow);
    return s;
}

/* ---- A run ---- */

/* A call that a cancellation may end. */
typedef struct run_call {
    leat_live_step live;
    leat_call *call;
    leat_cancel cancel;
    pthread_mutex_t lock; /* guards call */
    leat_event done;
    leat_status status;
    const leat_fetches *fetches;
    leat_tensor **fetched;
    leat_trace *trace;
} run_call;

static void name_of(leat_out x, char *buf, size_t n)
{
    snprintf(buf, n, "%s:%d", x.node->name, x.index);
}

static leat_status put_feeds(leat_outgoing *q, leat_feeds feeds)
{
    char name[1024];
    for (int i = 0; i < feeds.n; i++) {
        LEAT_REQUIRE(feeds.v[i].x.node, INVALID_ARGUMENT,
                     "A tensor to be fed is none of the graph's");
        LEAT_TRY(leat_feed_check(feeds.v[i].x, feeds.v[i].value));
        name_of(feeds.v[i].x, name, sizeof(name));
        LEAT_TRY(leat_put_named(q, 2, name, (leat_tensor *)feeds.v[i].value));
    }
    return NULL;
}

static leat_status put_names(leat_strbuf *b, leat_fetches fetches, leat_targets targets)
{
    char name[1024];
    for (int i = 0; i < fetches.n; i++) {
        LEAT_REQUIRE(fetches.v[i].x.node, INVALID_ARGUMENT,
                     "A tensor to be fetched is none of the graph's");
        name_of(fetches.v[i].x, name, sizeof(name));
        leat_put_text(b, 3, name);
    }
    for (int i = 0; i < targets.n; i++) {
        LEAT_REQUIRE(targets.v[i].node, INVALID_ARGUMENT, "A target is none of the graph's");
        leat_put_text(b, 4, targets.v[i].node->name);
    }
    return NULL;
}

static leat_status read_metadata(leat_trace *t, const leat_wire_field *f)
{
    Leat__RunMetadata *m;
    LEAT_TRY(LEAT_GET(run_metadata, f, &m));
    if (m->step_stats)
        leat_trace_add_stats(t, m->step_stats, 0);
    leat_status s = NULL;
    for (size_t i = 0; i < m->n_partition_graphs && !s; i++) {
        leat_strbuf b = {0};
        s = leat_proto_pack(m->partition_graphs[i], &b);
        size_t n = b.n;
        leat_trace_graph_add(t, leat_strbuf_take(&b), n);
    }
    leat_proto_free(m);
    return s;
}

static leat_status read_tensor(run_call *k, const leat_wire_field *f)
{
    char *name, want[1024];
    leat_tensor *t;
    LEAT_TRY(leat_get_named(f, &name, &t));
    bool used = false;
    for (int i = 0; i < k->fetches->n; i++) {
        name_of(k->fetches->v[i].x, want, sizeof(want));
        if (strcmp(name, want) == 0 && !k->fetched[i]) {
            k->fetched[i] = leat_tensor_ref(t);
            used = true;
        }
    }
    leat_tensor_unref(t);
    free(name);
    LEAT_REQUIRE(used, DATA_LOSS, "The server sends a tensor that nobody asked for");
    return NULL;
}

static leat_status read_answer(run_call *k, const leat_incoming *in)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    uint64_t code = 0;
    char *message = NULL;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == 1)
            s = read_tensor(k, &f);
        else if (f.number == 2 && k->trace)
            s = read_metadata(k->trace, &f);
        else if (f.number == 3)
            code = f.value;
        else if (f.number == 4 && !message)
            s = leat_get_text(&f, &message);
        if (s)
            break;
    }
    leat_status carried = leat_carried_error(s ? 0 : code, "", message);
    s = leat_status_first(s, carried);
    for (int i = 0; i < k->fetches->n && !s; i++)
        if (!k->fetched[i])
            s = leat_error(DATA_LOSS, "The server does not send %s:%d",
                           k->fetches->v[i].x.node->name, k->fetches->v[i].x.index);
    return s;
}

static void answered(void *arg, leat_status s, const leat_incoming *in)
{
    run_call *k = arg;
    pthread_mutex_lock(&k->lock);
    k->call = NULL;
    pthread_mutex_unlock(&k->lock);
    k->status = s ? s : read_answer(k, in);
    leat_event_set(&k->done);
}

static void on_cancel(void *arg)
{
    run_call *k = arg;
    pthread_mutex_lock(&k->lock);
    if (k->call)
        leat_call_cancel(k->call);
    pthread_mutex_unlock(&k->lock);
}

static leat_status call(remote *r, leat_cancellation *c, leat_outgoing *q, int64_t ms, run_call *k)
{
    enum { GRACE_MS = 2000 }; /* the server ends the step itself, and says what it waited for */
    leat_call_options o = {.deadline_ns = ms > 0 ? deadline_of(ms + GRACE_MS) : 0, .waits = true};
    pthread_mutex_init(&k->lock, NULL);
    leat_event_init(&k->done);
    leat_step_init(&k->live.step);
    k->cancel = (leat_cancel){.fn = on_cancel, .arg = k};
    leat_step_on_cancel(&k->live.step, &k->cancel);
    leat_session_enlist(&r->base, &k->live);
    pthread_mutex_lock(&k->lock);
    leat_channel_call(r->channel, MASTER "RunStep", q, &o, answered, k, &k->call);
    pthread_mutex_unlock(&k->lock);
    leat_cancellation_join(c, &k->live);
    leat_channel_wait(r->channel, &k->done);
    leat_cancellation_part(c, &k->live);
    leat_session_delist(&r->base, &k->live);
    leat_status cancelled = k->live.step.status;
    k->live.step.status = NULL;
    leat_step_release(&k->live.step);
    pthread_mutex_destroy(&k->lock);
    if (cancelled && k->status) { /* what was asked for, not how it came about */
        leat_status_free(k->status);
        return cancelled;
    }
    leat_status_free(cancelled);
    return k->status;
}

static leat_status run_named(remote *r, const leat_run_options *o, const char *partial,
                             leat_feeds feeds, leat_fetches fetches, leat_targets targets)
{
    leat_outgoing q = {0};
    int64_t ms = o && o->timeout_ms ? o->timeout_ms : r->base.options.timeout_ms;
    bool trace = o && o->metadata_out;
    leat_put_text(&q.text, 1, r->handle);
    leat_status s = put_feeds(&q, feeds);
    if (!s)
        s = put_names(&q.text, fetches, targets);
    leat_strbuf options = {0};
    leat_put_int(&options, 1, trace ? LEAT__RUN_OPTIONS__TRACE_LEVEL__FULL_TRACE : 0);
    leat_put_int(&options, 2, ms);
    leat_put_int(&options, 5, trace && o->output_partition_graphs);
    leat_put_bytes(&q.text, 5, leat_strbuf_text(&options), options.n);
    leat_strbuf_release(&options);
    leat_put_text(&q.text, 6, partial);
    leat_put_int(&q.text, 7, 1);
    run_call k = {.fetches = &fetches, .fetched = leat_new_array(leat_tensor *, fetches.n + 1)};
    if (trace)
        k.trace = leat_trace_new();
    if (!s)
        s = call(r, o ? o->cancellation : NULL, &q, ms, &k);
    leat_outgoing_release(&q);
    for (int i = 0; i < fetches.n; i++) {
        if (!s && fetches.v[i].value)
            *fetches.v[i].value = k.fetched[i];
        else
            leat_tensor_unref(k.fetched[i]);
    }
    if (trace && !s)
        *o->metadata_out = leat_metadata_of(k.trace);
    else
        leat_trace_free(k.trace);
    free(k.fetched);
    return s;
}

static leat_status run(leat_session *s, const leat_run_options *o, leat_feeds feeds,
                       leat_fetches fetches, leat_targets targets)
{
    remote *r = (remote *)s;
    LEAT_TRY(leat_session_begin(s));
    leat_status status = extend(r);
    if (!status)
        status = run_named(r, o, "", feeds, fetches, targets);
    leat_session_end(s);
    return status;
}

/* ---- Partial runs ---- */

static leat_status partial(leat_session *s, const leat_request *q, leat_partial **out)
{
    remote *r = (remote *)s;
    char name[1024];
    leat_outgoing o = {0};
    LEAT_TRY(leat_session_begin(s));
    leat_status status = extend(r);
    leat_put_text(&o.text, 1, r->handle);
    for (int i = 0; i < q->n_feeds + q->n_fetches && !status; i++) {
        leat_out x = i < q->n_feeds ? q->feeds[i] : q->fetches[i - q->n_feeds];
        if (!x.node)
            status =
                leat_error(INVALID_ARGUMENT, "A tensor of a partial run is none of the graph's");
        else
            name_of(x, name, sizeof(name));
        leat_put_text(&o.text, i < q->n_feeds ? 2 : 3, status ? "" : name);
    }
    for (int i = 0; i < q->n_targets && !status; i++)
        leat_put_text(&o.text, 4, q->targets[i].node ? q->targets[i].node->name : "");
    void *reply = NULL;
    size_t n;
    if (!status)
        status = ask(r, MASTER "PartialRunSetup", &o, OPEN_MS, &reply, &n);
    leat_outgoing_release(&o);
    Leat__PartialRunSetupResponse *a = NULL;
    if (!status)
        status = LEAT_UNPACK(partial_run_setup_response, reply, n, &a);
    free(reply);
    if (status) {
        leat_session_end(s);
        return status;
    }
    remote_partial *p = leat_new(remote_partial);
    p->session = s;
    p->handle = leat_xstrdup(a->partial_run_handle);
    leat_proto_free(a);
    *out = (leat_partial *)p;
    return NULL;
}

static leat_status partial_run(leat_partial *partial, leat_feeds feeds, leat_fetches fetches)
{
    remote_partial *p = (remote_partial *)partial;
    return run_named((remote *)p->session, NULL, p->handle, feeds, fetches, LEAT_NO_TARGET);
}

/* The server keeps an unfinished one until the session is closed. */
static void partial_free(leat_partial *partial)
{
    remote_partial *p = (remote_partial *)partial;
    leat_session_end(p->session);
    free(p->handle);
    free(p);
}

/* ---- Opening and closing ---- */

static void close_remote(leat_session *s)
{
    remote *r = (remote *)s;
    leat_session_end_steps(s);
    pthread_mutex_lock(&s->lock);
    while (s->runs)
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (r->handle) {
        leat_outgoing o = {0};
        void *reply = NULL;
        size_t n;
        leat_put_text(&o.text, 1, r->handle);
        leat_call_options c = {.deadline_ns = deadline_of(CLOSE_MS)};
        leat_status status =
            leat_channel_ask(r->channel, MASTER "CloseSession", &o, &c, &reply, &n);
        leat_status_free(status); /* a server that is gone has closed it */
        free(reply);
    }
    leat_channel_free(r->channel);
    free(r->handle);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&r->grow);
    free((char *)s->options.target);
    free(r);
}

static const leat_session_ops remote_ops = {
    .run = run,
    .partial = partial,
    .partial_run = partial_run,
    .partial_free = partial_free,
    .close = close_remote,
};

leat_status leat_remote_open(leat_graph *g, const leat_session_options *o, leat_session **out)
{
    remote *r = leat_new(remote);
    r->base.ops = &remote_ops;
    r->base.graph = g;
    r->base.options = *o;
    r->base.options.target = leat_xstrdup(o->target);
    pthread_mutex_init(&r->base.lock, NULL);
    pthread_cond_init(&r->base.idle, NULL);
    pthread_mutex_init(&r->grow, NULL);
    leat_status s =
        leat_channel_open(o->target + strlen("grpc://"), o->target, o->security, &r->channel);
    r->opening = o->cancellation;
    if (!s)
        s = create(r);
    r->opening = r->base.options.cancellation = NULL;
    if (s) {
        close_remote(&r->base);
        return s;
    }
    *out = &r->base;
    return NULL;
}
