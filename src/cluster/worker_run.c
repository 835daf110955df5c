/* worker_run.c -- RunGraph: one step of a registered graph on this task. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/messages.h"
#include "cluster/worker_int.h"
#include "core/alloc.h"
#include "core/later.h"
#include "proto/wire.h"
#include "runtime/callable.h"
#include "runtime/session_int.h"

/* A RunGraph call and its step. One reference belongs to the call; leat_worker_stop holds another
 * while it fails the step. */
typedef struct leat_running {
    leat_step *step; /* NULL until the request was checked. */
    leat_trace *trace;
    atomic_int refs;
    leat_worker *worker;
    leat_registered *graph;  /* A reference. */
    leat_exchange *exchange; /* A reference. */
    leat_server_call *call;  /* Lives while the leat_running is in worker->running. */
    int64_t begin_ns;        /* When the call came (CLOCK_MONOTONIC). */
    /* The call was cancelled or the master's connection broke. Set by the function master_gone,
     * which does not run after the reply; read after the reply. */
    bool master_gone;
    struct leat_running *next, *prev; /* In worker->running, guarded by worker->lock. */
    leat_run_graph_request request;
} leat_running;

static void running_unref(leat_running *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    leat_worker *w = r->worker;
    if (r->step)
        leat_step_free(r->step);
    leat_run_graph_request_release(&r->request);
    if (r->exchange)
        leat_exchange_unref(r->exchange);
    if (r->graph) {
        leat_usage_end(&r->graph->session->usage);
        leat_registered_unref(r->graph);
    }
    leat_trace_free(r->trace);
    free(r);
    pthread_mutex_lock(&w->lock);
    if (--w->runs == 0)
        pthread_cond_broadcast(&w->no_runs);
    pthread_mutex_unlock(&w->lock);
}

/* ---- The reply ---- */

static leat_status put_stats(leat_running *r, leat_outgoing *o)
{
    leat_metadata *m = leat_metadata_of(r->trace);
    r->trace = NULL;
    void *bytes;
    size_t n;
    leat_status s = leat_metadata_stats(m, &bytes, &n);
    if (!s) {
        leat_run_graph_response_add_step_stats(o, bytes, n);
        free(bytes);
    }
    leat_metadata_free(m);
    return s;
}

static leat_status put_graphs(leat_running *r, leat_outgoing *o)
{
    for (int i = 0; i < leat_plan_graphs(r->graph->plan); i++) {
        void *bytes;
        size_t n;
        LEAT_TRY(leat_graph_to_binary(leat_plan_graph(r->graph->plan, i), &bytes, &n));
        leat_run_graph_response_add_partition_graph(o, bytes, n);
        free(bytes);
    }
    return NULL;
}

static leat_status put_answer(leat_running *r, leat_outgoing *o)
{
    if (r->trace)
        LEAT_TRY(put_stats(r, o));
    if (r->request.record_partition_graphs)
        LEAT_TRY(put_graphs(r, o));
    for (int i = 0; i < r->request.recv_key.n; i++) {
        leat_tensor *t;
        const char *key = r->request.recv_key.v[i];
        LEAT_TRY(leat_exchange_take(r->exchange, key, &t));
        leat_status s = leat_run_graph_response_add_recv(o, key, t);
        leat_tensor_unref(t);
        LEAT_TRY(s);
    }
    return NULL;
}

static void answer(leat_running *r, leat_status s)
{
    leat_outgoing o = {0};
    if (!s)
        s = put_answer(r, &o);
    if (s && r->request.store_errors_in_response_body) {
        leat_outgoing_release(&o);
        leat_run_graph_response_add_error(&o, s);
        leat_status_free(s);
        s = NULL;
    }
    leat_server_call_reply(r->call, s, &o);
}

/* Drops the exchange, because a master that has gone, or has closed the session, does not send
 * CleanupGraph. */
static void forget(leat_running *r)
{
    int64_t id = r->request.step_id;
    leat_status why = leat_error(ABORTED, "The master of step %" PRId64 " has gone", id);
    leat_exchange_drop(r->worker->exchanges, id, why);
    leat_status_free(why);
}

/* Called when all parts of the step in this process have ended. The exchange of a step that failed,
 * or that a TensorFlow master drives, is kept until the master sends CleanupGraph, so that a task
 * that requests a tensor after the failure gets the step's error. */
static void run_ended(void *arg)
{
    leat_running *r = arg;
    leat_worker *w = r->worker;
    leat_worker_session *session = r->graph->session;
    leat_status s = leat_step_finish(r->step);
    bool kept = s || !r->request.leat;
    if (kept)
        leat_exchange_keep(r->exchange, session->number);
    pthread_mutex_lock(&w->lock);
    bool closed = session->closed;
    if (r->prev)
        r->prev->next = r->next;
    else
        w->running = r->next;
    if (r->next)
        r->next->prev = r->prev;
    pthread_mutex_unlock(&w->lock);
    leat_exchange_reply_pushed(r->exchange, s != NULL);
    if (!kept)
        leat_exchange_close(r->exchange);
    answer(r, s); /* After the reply, the function master_gone does not run any more. */
    if (r->master_gone || (kept && closed))
        forget(r);
    running_unref(r);
}

/* ---- The run ---- */

/* The master itself does not hear of this. ABORTED is for other tasks, which wait for tensors of
 * this part: if it was only the connection to this task that broke, the master may hear from one of
 * them first, and must then try again. */
static void master_gone(void *arg)
{
    leat_running *r = arg;
    r->master_gone = true;
    leat_step_fail(r->step, leat_error(ABORTED, "%s: step %" PRId64 " was given up by its master",
                                       r->worker->task, r->request.step_id));
}

static leat_status prepare(leat_running *r)
{
    leat_worker *w = r->worker;
    const leat_run_graph_request *q = &r->request;
    LEAT_REQUIRE(q->leat_call_depth >= 0 && q->leat_call_depth <= LEAT_MOST_CALL_DEPTH,
                 INVALID_ARGUMENT, "RunGraph of step %" PRId64 ": a depth of %" PRId64 " calls",
                 q->step_id, q->leat_call_depth);
    LEAT_TRY(leat_worker_find_graph(w, q->graph_handle ? q->graph_handle : "", &r->graph));
    /* A Leat master is found by its incarnation, another one by its connection. */
    leat_usage_begin(&r->graph->session->usage, q->leat ? NULL : leat_server_call_peer(r->call));
    r->exchange = leat_exchange_get(w->exchanges, q->step_id);
    if (q->leat_sender)
        LEAT_TRY(leat_exchange_expect_pushes(r->exchange, q->leat_sender));
    for (int i = 0; i < q->send.n; i++)
        LEAT_TRY(leat_exchange_put(r->exchange, q->send.name[i], q->send.tensor[i]));
    if (q->record_timeline)
        r->trace = leat_trace_new();
    r->step = leat_step_new(r->graph->plan,
                            &(leat_step_options){.id = (uint64_t)q->step_id,
                                                 .trace = r->trace,
                                                 .call_depth = (int)q->leat_call_depth,
                                                 .rendezvous = leat_exchange_claim(r->exchange),
                                                 .ended = run_ended,
                                                 .arg = r});
    pthread_mutex_lock(&w->lock);
    bool stopping = w->stopping;
    r->next = w->running;
    if (r->next)
        r->next->prev = r;
    w->running = r;
    pthread_mutex_unlock(&w->lock);
    if (stopping)
        leat_step_fail(r->step, leat_error(UNAVAILABLE, "%s is stopping", w->task));
    return NULL;
}

void leat_worker_run_graph(leat_worker *w, leat_server_call *a, const leat_incoming *in)
{
    leat_running *r = leat_new(leat_running);
    atomic_init(&r->refs, 1);
    r->worker = w;
    r->call = a;
    r->begin_ns = leat_now_ns();
    pthread_mutex_lock(&w->lock);
    w->runs++;
    pthread_mutex_unlock(&w->lock);
    leat_status s = leat_run_graph_request_decode(in, &r->request);
    if (!s)
        s = prepare(r);
    if (s) {
        answer(r, s);
        running_unref(r);
        return;
    }
    if (!leat_server_call_on_cancel(a, master_gone, r))
        master_gone(r);
    leat_later_jobs_begin();
    leat_step_start(r->step);
    leat_later_jobs_end();
}

void leat_worker_stop(leat_worker *w, leat_status why)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    for (;;) {
        leat_running *r = w->running;
        while (r && leat_step_cancelled(r->step))
            r = r->next;
        if (!r)
            break;
        atomic_fetch_add(&r->refs, 1);
        pthread_mutex_unlock(&w->lock);
        leat_step_fail(r->step, leat_status_copy(why));
        running_unref(r);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    leat_exchange_drop_all(w->exchanges, why);
}

/* ---- Runs that nobody ends ---- */

/* Gives a reference to a run that began before begin_ns and was not failed yet, and the name of its
 * caller; NULL if there is none. */
static leat_running *find_old(leat_worker *w, int64_t begin_ns, char *peer, size_t size)
{
    pthread_mutex_lock(&w->lock);
    leat_running *r = w->running;
    while (r && (r->begin_ns >= begin_ns || leat_step_cancelled(r->step)))
        r = r->next;
    if (r) {
        atomic_fetch_add(&r->refs, 1);
        snprintf(peer, size, "%s", leat_server_call_peer(r->call));
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

void leat_worker_end_old_runs(leat_worker *w, int64_t limit_ns)
{
    char peer[128], waits[1000];
    leat_running *r;
    while ((r = find_old(w, leat_now_ns() - limit_ns, peer, sizeof(peer)))) {
        leat_step_waits(r->step, waits, sizeof(waits));
        leat_step_fail(r->step,
                       leat_error(DEADLINE_EXCEEDED,
                                  "RunGraph of step %" PRId64 " of session %s, called by %s, is "
                                  "under way on %s for more than %g s, the limit of this server "
                                  "(leat server --max_call_secs): it waits for %s",
                                  r->request.step_id, r->graph->session->handle, peer, w->task,
                                  (double)limit_ns / 1e9, waits));
        running_unref(r);
    }
}

void leat_worker_await_runs(leat_worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->runs)
        pthread_cond_wait(&w->no_runs, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

bool leat_worker_idle(leat_worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool idle = !w->running;
    pthread_mutex_unlock(&w->lock);
    return idle;
}
