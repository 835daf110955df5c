/* master_run.c -- the parts of plans on other tasks: registered once (RegisterGraph), started in
 * each step (RunGraph), and sent what this process makes for them (SendTensors). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/call_many.h"
#include "cluster/master_int.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/stats.h"
#include "core/alloc.h"
#include "graph/graphdef.h"
#include "proto/wire.h"
#include "runtime/groups.h"
#include "runtime/trace.h"

struct leat_far_part {
    leat_tasks *tasks;
    leat_peer *peer;
    char *handle; /* Of the registered graph; chosen by the peer. */
    /* The tensors that this process sends to the part without being asked. */
    leat_rendezvous_group **groups;
    int n_groups;
};

/* One part in one step. */
typedef struct far_run {
    leat_far_part *part;
    leat_step *step;
    leat_exchange *exchange;
    leat_call *call;
    leat_cancel cancel;
    pthread_mutex_t lock; /* Guards call; held while the call is started. */
    atomic_bool ended;    /* The reply was read. */
    int64_t sent_ns;      /* When RunGraph was sent. */
} far_run;

struct leat_far_step {
    leat_tasks *tasks;
    uint64_t id;
    leat_exchange *exchange;
    int64_t begin_ns;
    far_run *runs; /* One for each part that was started. */
    int n_runs;
};

/* ---- Registering ---- */

static leat_status register_graph(leat_far_part *p, const leat_graph *g, int64_t deadline_ns,
                                  leat_cancellation *cancellation)
{
    enum { MS = 120000 };
    leat_pending_call q = {.peer = p->peer};
    Leat__RegisterGraphRequest request = LEAT__REGISTER_GRAPH_REQUEST__INIT;
    request.session_handle = p->tasks->handle;
    request.create_worker_session_called = true;
    request.leat = p->peer->is_leat;
    LEAT_TRY(leat_graph_to_proto(g, &request.graph_def));
    leat_status s = leat_put_fields(&q.request.text, LEAT_METHOD_REGISTER_GRAPH, &request);
    leat_proto_free(request.graph_def);
    if (!deadline_ns)
        deadline_ns = leat_now_ns() + INT64_C(1000000) * MS;
    if (!s)
        s = leat_call_many(&q, 1, LEAT_METHOD_REGISTER_GRAPH, "RegisterGraph", deadline_ns, false,
                           cancellation);
    Leat__RegisterGraphResponse *r = NULL;
    if (!s)
        s = LEAT_UNPACK(register_graph_response, q.reply, q.size, &r);
    if (!s)
        p->handle = leat_xstrdup(r->graph_handle);
    leat_proto_free(r);
    leat_status_free(q.status);
    free(q.reply);
    return s;
}

/* Finds the groups of the part that come from this process. */
static void find_groups(leat_far_part *p, const leat_graph *g)
{
    leat_peers *peers = p->peer->all;
    const leat_peer *own = leat_peers_find(peers, leat_worker_task(p->tasks->worker));
    int n;
    leat_rendezvous_group **all = leat_groups_new(&g, 1, &n);
    p->groups = all;
    for (int i = 0; i < n; i++)
        if (own && leat_peers_find(peers, all[i]->task) == own)
            p->groups[p->n_groups++] = all[i];
        else
            leat_rendezvous_group_unref(all[i]);
}

leat_status leat_tasks_part_new(leat_far *f, const leat_target *device, const leat_graph *g,
                                int64_t deadline_ns, leat_cancellation *cancellation,
                                leat_far_part **out)
{
    leat_tasks *t = (leat_tasks *)f;
    LEAT_REQUIRE(!atomic_load(&f->closed), CANCELLED,
                 "Nodes cannot be placed on %s any more: the session is closed", device->name);
    leat_far_part *p = leat_new(leat_far_part);
    p->tasks = t;
    p->peer = t->peers[device->process - 1]; /* Process 0 is this process. */
    find_groups(p, g);
    leat_status s = register_graph(p, g, deadline_ns, cancellation);
    if (s)
        leat_tasks_part_free(p);
    else
        *out = p;
    return s;
}

void leat_tasks_part_free(leat_far_part *p)
{
    if (p->handle && !atomic_load(&p->tasks->base.closed)) {
        Leat__DeregisterGraphRequest q = LEAT__DEREGISTER_GRAPH_REQUEST__INIT;
        q.graph_handle = p->handle;
        q.session_handle = p->tasks->handle;
        q.create_worker_session_called = true;
        leat_peer_notify(p->peer, LEAT_METHOD_DEREGISTER_GRAPH, &q);
    }
    leat_groups_free(p->groups, p->n_groups);
    free(p->handle);
    free(p);
}

/* ---- A part in a step ---- */

static void cancel_run(void *arg, leat_status why)
{
    far_run *r = arg;
    pthread_mutex_lock(&r->lock);
    if (r->call)
        leat_call_cancel(r->call);
    pthread_mutex_unlock(&r->lock);
}

static leat_status add_stats(const far_run *r, const leat_cursor *stats, int64_t now_ns)
{
    Leat__StepStats *p;
    LEAT_TRY(LEAT_GET(step_stats, stats, &p));
    leat_trace_add_stats(r->step->trace, p, r->part->peer->clock_ahead_ns, r->sent_ns, now_ns);
    leat_proto_free(p);
    return NULL;
}

static leat_status add_graph(leat_trace *t, leat_cursor graph)
{
    size_t n = graph.left;
    void *bytes;
    LEAT_TRY(leat_cursor_take(&graph, n, &bytes));
    leat_trace_graph_add(t, bytes, n);
    return NULL;
}

static leat_status read_answer(far_run *r, const leat_incoming *in)
{
    leat_run_graph_response a = {0};
    leat_trace *trace = r->step->trace;
    const int64_t now_ns = trace ? leat_now_ns() : 0;
    leat_status s = leat_run_graph_response_decode(in, &a);
    if (!s && trace && a.has_step_stats)
        s = add_stats(r, &a.step_stats, now_ns);
    for (int i = 0; i < a.n_partition_graph && !s && trace; i++)
        s = add_graph(trace, a.partition_graph[i]);
    if (!s)
        s = leat_carried_error(a.status_code, r->part->peer->name, a.status_error_message);
    leat_run_graph_response_release(&a);
    return s;
}

static void run_answered(void *arg, leat_status s, const leat_incoming *in)
{
    far_run *r = arg;
    leat_step *step = r->step;
    pthread_mutex_lock(&r->lock); /* Waits until run_start has left its critical section. */
    r->call = NULL;               /* From here on cancel_run does nothing. */
    pthread_mutex_unlock(&r->lock);
    leat_step_off_cancel(step, &r->cancel);
    if (!s)
        s = read_answer(r, in);
    leat_exchange_end_pushes(r->exchange, &r->ended);
    leat_step_fail(step, s);
    leat_step_part_ended(step); /* After this call r may be freed. */
}

static void put_request(const leat_far_part *p, const leat_step *step, leat_outgoing *o)
{
    leat_run_graph_request q = {
        .graph_handle = p->handle,
        .session_handle = p->tasks->handle,
        .step_id = (int64_t)step->id,
        .record_timeline = step->trace,
        .record_partition_graphs = step->trace && leat_trace_wants_graphs(step->trace),
        .store_errors_in_response_body = true,
        .create_worker_session_called = true,
        .leat = p->peer->is_leat,
        .leat_call_depth = step->call_depth,
        .leat_sender = p->n_groups ? (char *)leat_worker_task(p->tasks->worker) : NULL,
    };
    leat_run_graph_request_encode(o, &q);
}

static void run_start(far_run *r, leat_far_part *p, leat_exchange *x, leat_step *step)
{
    r->part = p;
    r->step = step;
    r->exchange = x;
    r->cancel = (leat_cancel){.fn = cancel_run, .arg = r};
    pthread_mutex_init(&r->lock, NULL);
    leat_outgoing o = {0};
    put_request(p, step, &o);
    r->sent_ns = step->trace ? leat_now_ns() : 0;
    pthread_mutex_lock(&r->lock);
    leat_peer_call(p->peer, LEAT_METHOD_RUN_GRAPH, &o, &(leat_call_options){0}, run_answered, r,
                   &r->call);
    if (!leat_step_on_cancel(step, &r->cancel))
        leat_call_cancel(r->call);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < p->n_groups; i++)
        leat_exchange_push(x, p->peer, p->groups[i], step, &r->ended);
}

/* ---- Steps ---- */

leat_far_step *leat_tasks_step_new(leat_far *f, uint64_t *id_out, leat_rendezvous **rendezvous_out)
{
    leat_tasks *t = (leat_tasks *)f;
    leat_far_step *x = leat_new(leat_far_step);
    x->tasks = t;
    x->begin_ns = leat_now_ns();
    /* As in TensorFlow, ids have 56 bits, look random and are never 0. */
    x->id = (t->first_id + atomic_fetch_add(&t->steps, 1) * UINT64_C(0x9e3779b97f4a7c15)) &
            UINT64_C(0xffffffffffffff);
    x->id += !x->id;
    x->exchange = leat_exchange_get(leat_worker_exchanges(t->worker), (int64_t)x->id);
    *id_out = x->id;
    *rendezvous_out = leat_exchange_claim(x->exchange);
    return x;
}

void leat_tasks_step_start(leat_far_step *x, leat_far_part *const *parts, int n, leat_step *step)
{
    x->runs = leat_new_array(far_run, n);
    x->n_runs = n;
    for (int i = 0; i < n; i++)
        run_start(&x->runs[i], parts[i], x->exchange, step);
}

int leat_tasks_step_await(leat_far_step *x, leat_pool *p, leat_step *step)
{
    return leat_transports_wait(p, &step->done, step->deadline_ns);
}

void leat_tasks_step_waits(leat_far_step *x, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < x->n_runs && at < size; i++)
        if (!atomic_load(&x->runs[i].ended)) {
            const leat_peer *peer = x->runs[i].part->peer;
            int n = snprintf(out + at, size - at, "%s%s (%s)", at ? ", " : "", peer->name,
                             peer->address);
            at += n > 0 ? (size_t)n : 0;
        }
    if (at && at < size)
        snprintf(
            out + at, size - at,
            ", not done with its part of the step for %.1f s: an op there waits or takes long, "
            "or the task is stopped or cut off",
            (double)(leat_now_ns() - x->begin_ns) / 1e9);
}

void leat_tasks_step_free(leat_far_step *x, bool failed)
{
    leat_status why = leat_error(ABORTED, "The step is over");
    leat_exchange_drop(leat_worker_exchanges(x->tasks->worker), (int64_t)x->id, why);
    leat_status_free(why);
    for (int i = 0; i < x->n_runs; i++) {
        leat_peer *peer = x->runs[i].part->peer;
        pthread_mutex_destroy(&x->runs[i].lock);
        if (!failed && peer->is_leat)
            continue; /* A Leat worker frees the exchange of a step that succeeded by itself. */
        Leat__CleanupGraphRequest q = LEAT__CLEANUP_GRAPH_REQUEST__INIT;
        q.step_id = (int64_t)x->id;
        leat_peer_notify(peer, LEAT_METHOD_CLEANUP_GRAPH, &q);
    }
    leat_exchange_unref(x->exchange);
    free(x->runs);
    free(x);
}
