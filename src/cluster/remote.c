/* remote.c -- a session on a server, by calls of its MasterService. The graph is sent when the
 * session is opened; nodes that were added later are sent before the next run. */
#include "cluster/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/remote_hold.h"
#include "cluster/remote_int.h"
#include "cluster/stats.h"
#include "core/alloc.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

enum { OPEN_MS = 120000, CLOSE_MS = 10000 };

typedef struct remote {
    leat_session base;
    leat_channel *channel;
    char *handle;
    leat_cancellation *opening; /* cancels the call that opens the session; NULL afterwards */
    pthread_mutex_t grow;       /* guards what follows; held while the graph is extended */
    int sent;                   /* number of nodes that the server has */
    int64_t version;
    leat_remote_hold hold;
} remote;

typedef struct remote_partial {
    leat_object object; /* these two are first, as in every kind of session */
    leat_session *session;
    char *handle;
} remote_partial;

static int64_t deadline_of(int64_t ms)
{
    return ms > 0 ? leat_now_ns() + ms * 1000000 : 0;
}

static leat_status call_wait(remote *r, const char *method, leat_outgoing *o, int64_t ms,
                             void **reply, size_t *size)
{
    leat_call_options call = {
        .deadline_ns = deadline_of(ms), .wait_ready = ms > 0, .cancellation = r->opening};
    return leat_channel_call_wait(r->channel, method, o, &call, reply, size);
}

/* ---- The graph ---- */

static int64_t open_ms(const leat_session_options *o)
{
    return o->open_timeout_ms ? o->open_timeout_ms : o->timeout_ms ? o->timeout_ms : OPEN_MS;
}

static leat_status create(remote *r)
{
    const leat_session_options *o = &r->base.options;
    leat_outgoing q = {0};
    int end;
    void *reply = NULL;
    size_t n;
    leat_status s = leat_remote_put_create_session(&q.text, r->base.graph, o, &end);
    if (!s)
        s = call_wait(r, LEAT_METHOD_CREATE_SESSION, &q, open_ms(o), &reply, &n);
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
    leat_outgoing q = {0};
    Leat__ExtendSessionRequest request = LEAT__EXTEND_SESSION_REQUEST__INIT;
    request.session_handle = r->handle;
    request.current_graph_version = r->version;
    int end;
    void *reply = NULL;
    size_t n;
    leat_status s = leat_remote_put_extend_session(&q.text, r->base.graph, r->sent, &request, &end);
    if (!s && end > r->sent)
        s = call_wait(r, LEAT_METHOD_EXTEND_SESSION, &q, OPEN_MS, &reply, &n);
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
    leat_call *call;
    leat_status given_up; /* why the call was cancelled */
    pthread_mutex_t lock; /* guards call and given_up */
    leat_event done;
    leat_status status;
    const leat_fetches *fetches;
    leat_tensor **fetched;
    leat_trace *trace;
} run_call;

static leat_status put_feeds(leat_outgoing *q, leat_feeds feeds)
{
    char name[1024];
    for (int i = 0; i < feeds.n; i++) {
        LEAT_REQUIRE(feeds.v[i].x.node, INVALID_ARGUMENT,
                     "A tensor to be fed is none of the graph's");
        LEAT_TRY(leat_feed_check(feeds.v[i].x, feeds.v[i].value));
        leat_remote_name(feeds.v[i].x, name, sizeof(name));
        LEAT_TRY(leat_run_step_request_add_feed(q, name, (leat_tensor *)feeds.v[i].value));
    }
    return NULL;
}

static leat_status put_names(leat_outgoing *q, leat_fetches fetches, leat_targets targets)
{
    char name[1024];
    for (int i = 0; i < fetches.n; i++) {
        LEAT_REQUIRE(fetches.v[i].x.node, INVALID_ARGUMENT,
                     "A tensor to be fetched is none of the graph's");
        leat_remote_name(fetches.v[i].x, name, sizeof(name));
        leat_run_step_request_add_fetch(q, name);
    }
    for (int i = 0; i < targets.n; i++) {
        LEAT_REQUIRE(targets.v[i].node, INVALID_ARGUMENT, "A target is none of the graph's");
        leat_run_step_request_add_target(q, targets.v[i].node->name);
    }
    return NULL;
}

static leat_status read_metadata(leat_trace *t, const leat_cursor *metadata)
{
    Leat__RunMetadata *m;
    LEAT_TRY(LEAT_GET(run_metadata, metadata, &m));
    if (m->step_stats)
        leat_trace_add_stats(t, m->step_stats, 0, 0, 0);
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

static leat_status take_tensor(run_call *k, const char *name, leat_tensor *t)
{
    char want[1024];
    bool used = false;
    for (int i = 0; i < k->fetches->n; i++) {
        leat_remote_name(k->fetches->v[i].x, want, sizeof(want));
        if (strcmp(name, want) == 0 && !k->fetched[i]) {
            k->fetched[i] = leat_tensor_ref(t);
            used = true;
        }
    }
    LEAT_REQUIRE(used, DATA_LOSS, "The server sent a tensor that the run does not fetch");
    return NULL;
}

static leat_status take_response(run_call *k, const leat_run_step_response *r)
{
    for (int i = 0; i < r->tensor.n; i++)
        LEAT_TRY(take_tensor(k, r->tensor.name[i], r->tensor.tensor[i]));
    if (k->trace && r->has_metadata)
        LEAT_TRY(read_metadata(k->trace, &r->metadata));
    LEAT_TRY(leat_carried_error(r->status_code, "", r->status_error_message));
    for (int i = 0; i < k->fetches->n; i++)
        LEAT_REQUIRE(k->fetched[i], DATA_LOSS, "The server did not send the fetch %s:%d",
                     k->fetches->v[i].x.node->name, k->fetches->v[i].x.index);
    return NULL;
}

static leat_status read_response(run_call *k, const leat_incoming *in)
{
    leat_run_step_response r = {0};
    leat_status s = leat_run_step_response_decode(in, &r);
    if (!s)
        s = take_response(k, &r);
    leat_run_step_response_release(&r);
    return s;
}

static void replied(void *arg, leat_status s, const leat_incoming *in)
{
    run_call *k = arg;
    pthread_mutex_lock(&k->lock);
    k->call = NULL;
    pthread_mutex_unlock(&k->lock);
    k->status = s ? s : read_response(k, in);
    leat_event_set(&k->done);
}

/* Takes why. */
static void give_up(run_call *k, leat_status why)
{
    pthread_mutex_lock(&k->lock);
    if (k->call)
        leat_call_cancel(k->call);
    k->given_up = leat_status_first(k->given_up, why);
    pthread_mutex_unlock(&k->lock);
}

static void on_cancel(void *arg)
{
    give_up(arg, leat_error(CANCELLED, "The run was cancelled"));
}

static void on_close(void *arg)
{
    give_up(arg, leat_session_closed_error());
}

static leat_status call(remote *r, leat_cancellation *c, leat_outgoing *q, int64_t ms, run_call *k)
{
    /* The server's own time-out comes first: its error says what the step waited for. */
    enum { GRACE_MS = 2000 };
    leat_call_options o = {.deadline_ns = ms > 0 ? deadline_of(ms + GRACE_MS) : 0};
    leat_cancel_watch cancel = {.fn = on_cancel, .arg = k}, close = {.fn = on_close, .arg = k};
    pthread_mutex_init(&k->lock, NULL);
    leat_event_init(&k->done);
    pthread_mutex_lock(&k->lock);
    leat_channel_call(r->channel, LEAT_METHOD_RUN_STEP, q, &o, replied, k, &k->call);
    pthread_mutex_unlock(&k->lock);
    leat_cancellation_watch(r->base.closing, &close);
    leat_cancellation_watch(c, &cancel);
    leat_event_wait(&k->done, 0);
    leat_cancellation_unwatch(c, &cancel);
    leat_cancellation_unwatch(r->base.closing, &close);
    pthread_mutex_destroy(&k->lock);
    if (k->given_up && k->status) { /* the cause of the cancellation, not the error of the call */
        leat_status_free(k->status);
        return k->given_up;
    }
    leat_status_free(k->given_up);
    return k->status;
}

static leat_status run_named(remote *r, const leat_run_options *o, char *partial, leat_feeds feeds,
                             leat_fetches fetches, leat_targets targets)
{
    leat_outgoing q = {0};
    int64_t ms = o && o->timeout_ms ? o->timeout_ms : r->base.options.timeout_ms;
    bool trace = o && o->metadata_out;
    Leat__RunOptions options = LEAT__RUN_OPTIONS__INIT;
    options.trace_level = trace ? LEAT__RUN_OPTIONS__TRACE_LEVEL__FULL_TRACE
                                : LEAT__RUN_OPTIONS__TRACE_LEVEL__NO_TRACE;
    options.timeout_in_ms = ms;
    options.output_partition_graphs = trace && o->output_partition_graphs;
    leat_run_step_request request = {.session_handle = r->handle,
                                     .options = &options,
                                     .partial_run_handle = partial,
                                     .store_errors_in_response_body = true};
    leat_run_step_request_encode(&q, &request);
    leat_status s = put_feeds(&q, feeds);
    if (!s)
        s = put_names(&q, fetches, targets);
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
        status = run_named(r, o, NULL, feeds, fetches, targets);
    leat_session_end(s);
    return status;
}

/* ---- Partial runs ---- */

static leat_status partial(leat_session *s, const leat_request *q, leat_partial **out)
{
    remote *r = (remote *)s;
    leat_outgoing o = {0};
    void *reply = NULL;
    size_t n;
    LEAT_TRY(leat_session_begin(s));
    leat_status status = extend(r);
    if (!status)
        status = leat_remote_put_partial_setup(&o.text, r->handle, q);
    if (!status)
        status = call_wait(r, LEAT_METHOD_PARTIAL_RUN_SETUP, &o, OPEN_MS, &reply, &n);
    Leat__PartialRunSetupResponse *a = NULL;
    if (!status)
        status = LEAT_UNPACK(partial_run_setup_response, reply, n, &a);
    free(reply);
    if (status) {
        leat_session_end(s);
        return status;
    }
    remote_partial *p = leat_new_object(remote_partial, PARTIAL);
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

/* The server keeps a partial run that is not finished until the session is closed. */
static void partial_free(leat_partial *partial)
{
    remote_partial *p = (remote_partial *)partial;
    leat_session_end(p->session);
    free(p->handle);
    leat_object_free(&p->object);
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
        Leat__CloseSessionRequest q = LEAT__CLOSE_SESSION_REQUEST__INIT;
        q.session_handle = r->handle;
        leat_call_options c = {.deadline_ns = deadline_of(CLOSE_MS)};
        leat_status status = leat_put_fields(&o.text, LEAT_METHOD_CLOSE_SESSION, &q);
        if (!status)
            status =
                leat_channel_call_wait(r->channel, LEAT_METHOD_CLOSE_SESSION, &o, &c, &reply, &n);
        leat_status_free(status); /* a server that cannot be reached closes the session itself */
        free(reply);
    }
    leat_channel_free(r->channel);
    free(r->handle);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->idle);
    leat_cancellation_free(s->closing);
    pthread_mutex_destroy(&r->grow);
    free((char *)s->options.target);
    leat_object_free(&s->object);
}

static void hold(leat_session *s, bool on)
{
    remote *r = (remote *)s;
    leat_remote_hold_set(&r->hold, r->channel, r->handle, on);
}

static const char *ending(leat_session *s)
{
    return leat_remote_hold_ending(&((remote *)s)->hold);
}

static const leat_session_ops remote_ops = {
    .run = run,
    .partial = partial,
    .partial_run = partial_run,
    .partial_free = partial_free,
    .hold = hold,
    .ending = ending,
    .close = close_remote,
};

leat_status leat_remote_open(leat_graph *g, const leat_session_options *o, leat_session **out)
{
    remote *r = leat_new(remote);
    leat_object_init(&r->base.object, LEAT_OBJECT_SESSION);
    r->base.ops = &remote_ops;
    r->base.graph = g;
    r->base.options = *o;
    r->base.options.target = leat_xstrdup(o->target);
    pthread_mutex_init(&r->base.lock, NULL);
    pthread_cond_init(&r->base.idle, NULL);
    r->base.closing = leat_cancellation_new();
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
