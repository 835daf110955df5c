/* session.c -- sessions in this process: devices, the plan cache, runs. */
#include <leat/session.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/later.h"
#include "core/threadpool.h"
#include "runtime/session_int.h"
#include "runtime/where.h"

static leat_status open_kind(leat_graph *g, const leat_session_options *o, leat_session **out)
{
    LEAT_REQUIRE(!o->gpu.visible_devices && o->gpu.memory_fraction == 0 && !o->gpu.memory_limit,
                 INVALID_ARGUMENT,
                 "The GPUs of a session at %s are those of its servers: give leat_gpu_options to "
                 "leat_server_start, or leat server --visible_device_list, --gpu_memory_fraction, "
                 "--gpu_memory_limit",
                 o->target);
    for (int i = 0; leat_session_kinds[i]; i++) {
        const leat_session_kind *k = leat_session_kinds[i];
        if (strncmp(o->target, k->prefix, strlen(k->prefix)) == 0)
            return k->open(g, o, out);
    }
    return leat_error(NOT_FOUND,
                      "No session of this kind can be opened: target \"%s\". It is \"\" for this "
                      "process, or \"grpc://host:port\" for a server",
                      o->target);
}

static leat_session *session_on(leat_graph *g, const leat_session_options *o,
                                leat_device *const *devices, int n, leat_pool *pool)
{
    leat_session *s = leat_new_object(leat_session, SESSION);
    s->graph = g;
    s->options = *o;
    s->pool = pool;
    s->n_devices = n;
    s->devices = devices;
    s->device_names = leat_new_array(const char *, n);
    for (int i = 0; i < n; i++)
        s->device_names[i] = devices[i]->name;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->idle, NULL);
    leat_plan_cache_init(&s->plans);
    s->closing = leat_cancellation_new();
    if (o->log_device_placement)
        s->placements = leat_placements_new();
    return s;
}

/* For a session in this process; the master of a cluster knows the devices of all tasks. */
static void log_devices(const leat_session *s)
{
    char(*text)[LEAT_DEVICE_TEXT] = leat_xcalloc((size_t)s->n_devices + 1, sizeof(*text));
    const char **what = leat_new_array(const char *, s->n_devices + 1);
    for (int i = 0; i < s->n_devices; i++)
        what[i] = leat_device_text(s->devices[i], text[i]);
    leat_placements_devices(s->device_names, what, s->n_devices);
    free(what);
    free(text);
}

leat_status leat_session_new_on(leat_graph *g, const leat_session_options *o,
                                leat_device *const *devices, int n, leat_far *far,
                                leat_session **out)
{
    leat_session *s = session_on(g, o, devices, n, devices[0]->inter);
    s->far = far;
    *out = s;
    return NULL;
}

leat_status leat_session_open_with(leat_graph *g, const leat_session_options *options,
                                   leat_session **session_out)
{
    LEAT_CHECK(GRAPH, g);
    leat_session_options o = options ? *options : (leat_session_options){0};
    if (o.target && o.target[0])
        return open_kind(g, &o, session_out);
    leat_devices_options d = {.spec = o.devices,
                              .host_devices = o.cpu_devices,
                              .gpu = o.gpu,
                              .job = "localhost",
                              .intra_op_threads = o.intra_op_threads,
                              .inter_op_threads = o.inter_op_threads};
    leat_devices devices;
    LEAT_TRY(leat_devices_open(&d, &devices));
    *session_out = session_on(g, &o, devices.v, devices.n, devices.pool);
    (*session_out)->owned = devices;
    if (o.log_device_placement)
        log_devices(*session_out);
    return NULL;
}

/* ---- Plans ---- */

static size_t key_put(int32_t *key, size_t n, const leat_out *x, int count)
{
    key[n++] = count;
    for (int i = 0; i < count; i++) {
        key[n++] = x[i].node->id;
        key[n++] = x[i].index;
    }
    return n;
}

static leat_status check_out(const leat_session *s, leat_out x, const char *what, bool control)
{
    LEAT_REQUIRE(x.node, INVALID_ARGUMENT, "A tensor to be %s is %s", what,
                 leat_no_tensor(s->graph, x).s);
    LEAT_REQUIRE(x.node->graph == s->graph, INVALID_ARGUMENT,
                 "Tensor %s:%d, to be %s, is of another graph", x.node->name, x.index, what);
    LEAT_REQUIRE(x.node->id >= 0, INVALID_ARGUMENT,
                 "A tensor to be %s was never made: the graph has a mistake", what);
    LEAT_REQUIRE(control || (x.index >= 0 && x.index < x.node->n_out), INVALID_ARGUMENT,
                 "%s:%d cannot be %s: node %s has %d outputs", x.node->name, x.index, what,
                 x.node->name, x.node->n_out);
    return NULL;
}

static leat_status check_request(const leat_session *s, const leat_request *q)
{
    if (s->graph->status)
        return leat_status_copy(s->graph->status);
    for (int i = 0; i < q->n_feeds; i++)
        LEAT_TRY(check_out(s, q->feeds[i], "fed", false));
    for (int i = 0; i < q->n_fetches; i++)
        LEAT_TRY(check_out(s, q->fetches[i], "fetched", false));
    for (int i = 0; i < q->n_targets; i++)
        LEAT_TRY(check_out(s, q->targets[i], "run", true));
    LEAT_REQUIRE(q->n_fetches + q->n_targets > 0, INVALID_ARGUMENT,
                 "Must specify at least one target to fetch or execute.");
    return NULL;
}

typedef struct compiling {
    leat_session *session;
    const leat_request *q;
    int64_t deadline_ns;
    leat_cancellation *stop;
} compiling;

static leat_status compile(void *arg, leat_plan **out)
{
    const compiling *c = arg;
    leat_session *s = c->session;
    leat_plan_options o = {.devices = s->devices,
                           .n_devices = s->n_devices,
                           .far = s->far,
                           .soft_placement = s->options.allow_soft_placement,
                           .placements = s->placements,
                           .no_optimization = s->options.no_optimization,
                           .deadline_ns = c->deadline_ns,
                           .cancellation = c->stop};
    LEAT_TRY(check_request(s, c->q));
    return leat_plan_new(s->graph, c->q, &o, out);
}

static void cancel_stop(void *stop)
{
    leat_cancel_runs(stop);
}

leat_status leat_session_closed_error(void)
{
    return leat_error(CANCELLED, "Step was cancelled by an explicit call to `Session::Close()`.");
}

static leat_status new_plan(leat_session *s, const leat_request *q, const void *key, size_t n,
                            int64_t deadline_ns, leat_cancellation *cancellation, leat_plan **out)
{
    leat_cancellation *stop = leat_cancellation_new();
    leat_cancel_watch run = {.fn = cancel_stop, .arg = stop}, session = run;
    compiling c = {s, q, deadline_ns, stop};
    leat_cancellation_watch(cancellation, &run);
    leat_cancellation_watch(s->closing, &session);
    leat_status status =
        leat_plan_cache_get(&s->plans, key, n, deadline_ns, stop, compile, &c, out);
    leat_cancellation_unwatch(s->closing, &session);
    leat_cancellation_unwatch(cancellation, &run);
    leat_cancellation_free(stop);
    if (leat_status_code(status) == LEAT_CANCELLED && leat_is_cancelled(s->closing)) {
        leat_status_free(status);
        status = leat_session_closed_error();
    }
    return status;
}

leat_status leat_session_plan(leat_session *s, const leat_request *q, int64_t deadline_ns,
                              leat_cancellation *cancellation, leat_plan **out)
{
    int32_t few[128], *key = few;
    size_t most = 4 + 2 * (size_t)(q->n_feeds + q->n_fetches + q->n_targets);
    for (int i = 0; i < q->n_feeds + q->n_fetches + q->n_targets; i++) {
        const leat_out *x = i < q->n_feeds ? &q->feeds[i]
                            : i < q->n_feeds + q->n_fetches
                                ? &q->fetches[i - q->n_feeds]
                                : &q->targets[i - q->n_feeds - q->n_fetches];
        if (!x->node || x->node->graph != s->graph || x->node->id < 0)
            return check_request(s, q);
    }
    if (most > sizeof(few) / sizeof(*few))
        key = leat_new_array(int32_t, most);
    size_t n = key_put(key, 0, q->feeds, q->n_feeds);
    n = key_put(key, n, q->fetches, q->n_fetches);
    n = key_put(key, n, q->targets, q->n_targets);
    key[n++] = q->feed_later;
    leat_status status = NULL;
    leat_plan *p = leat_plan_cache_find(&s->plans, key, n * sizeof(*key));
    if (!p)
        status = new_plan(s, q, key, n * sizeof(*key), deadline_ns, cancellation, &p);
    if (key != few)
        free(key);
    *out = p;
    return status;
}

/* ---- Runs ---- */

leat_status leat_session_begin(leat_session *s)
{
    pthread_mutex_lock(&s->lock);
    bool closed = s->closed;
    s->runs += !closed;
    pthread_mutex_unlock(&s->lock);
    LEAT_REQUIRE(!closed, CANCELLED, "Session has been closed.");
    return NULL;
}

void leat_session_end(leat_session *s)
{
    pthread_mutex_lock(&s->lock);
    if (--s->runs == 0)
        pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

static leat_status check_fed(leat_out x, const leat_tensor *t)
{
    LEAT_REQUIRE(t, INVALID_ARGUMENT, "Tensor %s:%d is fed nothing", x.node->name, x.index);
    LEAT_TRY(leat_tensor_check(t, "leat_session_run"));
    leat_dtype want = leat_dtype_base(leat_out_dtype(x));
    LEAT_REQUIRE(t->dtype == want, INVALID_ARGUMENT, "Tensor %s:%d was fed %s: it holds %s",
                 x.node->name, x.index, leat_dtype_name(t->dtype), leat_dtype_name(want));
    const leat_shape *shape = &x.node->out_shapes[x.index];
    LEAT_REQUIRE(leat_shape_compatible(shape, &t->shape), INVALID_ARGUMENT,
                 "Cannot feed value of shape %s for Tensor %s:%d, which has shape %s",
                 leat_shape_show(&t->shape).s, x.node->name, x.index, leat_shape_show(shape).s);
    return NULL;
}

leat_status leat_feed_check(leat_out x, const leat_tensor *t)
{
    return leat_status_of_node(check_fed(x, t), x.node);
}

static int64_t deadline_of(const leat_session *s, const leat_run_options *o)
{
    int64_t timeout = o && o->timeout_ms ? o->timeout_ms : s->options.timeout_ms;
    return timeout > 0 ? leat_now_ns() + timeout * 1000000 : 0;
}

static leat_status run_step(leat_session *s, const leat_run_options *o, int64_t deadline_ns,
                            leat_plan *plan, leat_tensor *const *feeds, leat_tensor **fetched)
{
    leat_cancellation *cancellation = o ? o->cancellation : NULL;
    leat_trace *trace = o && o->metadata_out ? leat_trace_new() : NULL;
    if (trace && o->output_partition_graphs)
        leat_trace_want_graphs(trace);
    leat_step *step =
        leat_step_new(plan, &(leat_step_options){.id = atomic_fetch_add(&s->next_step, 1) + 1,
                                                 .feeds = feeds,
                                                 .fetches = fetched,
                                                 .trace = trace,
                                                 .deadline_ns = deadline_ns});
    leat_step_guard guard;
    leat_session_guard(s, cancellation, step, &guard);
    leat_status status = leat_step_run(step);
    leat_session_unguard(s, cancellation, &guard);
    leat_step_free(step);
    if (trace && !status)
        *o->metadata_out = leat_metadata_of(trace); /* takes the trace */
    else
        leat_trace_free(trace);
    return status;
}

static leat_status run(leat_session *s, const leat_run_options *o, leat_feeds feeds,
                       leat_fetches fetches, leat_targets targets, leat_out *outs,
                       leat_tensor **tensors)
{
    leat_out *feed_outs = outs, *fetch_outs = outs + feeds.n;
    leat_tensor **fed = tensors, **fetched = tensors + feeds.n;
    for (int i = 0; i < feeds.n; i++) {
        feed_outs[i] = feeds.v[i].x;
        fed[i] = (leat_tensor *)feeds.v[i].value;
    }
    for (int i = 0; i < fetches.n; i++)
        fetch_outs[i] = fetches.v[i].x;
    memset(fetched, 0, sizeof(*fetched) * (size_t)fetches.n);
    leat_request q = {.feeds = feed_outs,
                      .n_feeds = feeds.n,
                      .fetches = fetch_outs,
                      .n_fetches = fetches.n,
                      .targets = targets.v,
                      .n_targets = targets.n};
    leat_plan *plan;
    int64_t deadline_ns = deadline_of(s, o);
    LEAT_TRY(leat_session_plan(s, &q, deadline_ns, o ? o->cancellation : NULL, &plan));
    for (int i = 0; i < feeds.n; i++)
        LEAT_TRY(leat_feed_check(feed_outs[i], fed[i]));
    leat_status status = run_step(s, o, deadline_ns, plan, fed, fetched);
    for (int i = 0; i < fetches.n; i++) {
        if (!status && fetches.v[i].value)
            *fetches.v[i].value = fetched[i];
        else
            leat_tensor_unref(fetched[i]);
    }
    return status;
}

leat_status leat_session_run_with(leat_session *s, const leat_run_options *options,
                                  leat_feeds feeds, leat_fetches fetches, leat_targets targets)
{
    LEAT_CHECK(SESSION, s);
    enum { FEW = 32 };
    if (s->ops)
        return leat_status_where(s->ops->run(s, options, feeds, fetches, targets), s->graph);
    leat_out few_outs[FEW], *outs = few_outs;
    leat_tensor *few_tensors[FEW], **tensors = few_tensors;
    if (feeds.n + fetches.n > FEW) {
        outs = leat_new_array(leat_out, feeds.n + fetches.n);
        tensors = leat_new_array(leat_tensor *, feeds.n + fetches.n);
    }
    leat_status status = leat_session_begin(s);
    if (!status) {
        status = run(s, options, feeds, fetches, targets, outs, tensors);
        leat_session_end(s);
    }
    if (outs != few_outs) {
        free(outs);
        free(tensors);
    }
    return leat_status_where(status, s->graph);
}

leat_status leat_session_run(leat_session *s, leat_feeds feeds, leat_fetches fetches,
                             leat_targets targets)
{
    return leat_session_run_with(s, NULL, feeds, fetches, targets);
}

void leat_session_end_steps(leat_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
    leat_cancel_runs(s->closing);
}

void leat_session_close(leat_session *s)
{
    if (!s)
        return;
    if (!LEAT_USABLE(SESSION, s))
        return;
    if (s->ops) {
        s->ops->close(s);
        return;
    }
    leat_session_end_steps(s);
    leat_later_now();
    pthread_mutex_lock(&s->lock);
    while (s->runs)
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
    leat_plan_cache_release(&s->plans);
    leat_placements_free(s->placements);
    leat_cancellation_free(s->closing);
    if (s->far)
        leat_far_close(s->far);
    leat_far_unref(s->far);
    leat_devices_close(&s->owned);
    free(s->device_names);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->idle);
    leat_object_free(&s->object);
}

void leat_session_hold(leat_session *s)
{
    if (s->ops)
        s->ops->hold(s, true);
    else if (s->far)
        s->far->ops->hold(s->far, true);
}

void leat_session_let_go(leat_session *s)
{
    if (s->ops)
        s->ops->hold(s, false);
    else if (s->far)
        s->far->ops->hold(s->far, false);
}

const char *leat_session_ending(leat_session *s)
{
    if (s->ops)
        return s->ops->ending(s);
    return s->far ? s->far->ops->ending(s->far) : NULL;
}

const char *const *leat_session_devices(const leat_session *s, int *count_out)
{
    *count_out = 0;
    if (!LEAT_USABLE(SESSION, s))
        return NULL;
    *count_out = s->n_devices;
    return s->device_names;
}
