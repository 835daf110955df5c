/* worker_run.c -- RunGraph: one step of a registered graph on this task. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/tensor_wire.h"
#include "cluster/worker_int.h"
#include "core/alloc.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

/* A step under way. Whoever may fail the step holds a reference: the run itself, and whoever would
 * hear that the master has gone. */
typedef struct leat_running {
    leat_step step;
    atomic_int refs;
    leat_worker *worker;
    leat_registered *graph; /* a reference */
    leat_exchange *exchange;
    leat_asked *asked;
    atomic_bool gone; /* the master has, or will not any more be heard to have */
    leat_cancel cancel;
    struct leat_running *next, *prev;
    /* What the request asked for. */
    char *graph_handle;
    char **sends; /* names of tensors to be sent, with */
    leat_tensor **sent;
    int n_sends, cap_sends, cap_sent;
    char **recvs; /* names of tensors wanted */
    int n_recvs, cap_recvs;
    bool errors_in_body, trace, graphs, from_leat;
} leat_running;

static void running_unref(leat_running *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    for (int i = 0; i < r->n_sends; i++) {
        free(r->sends[i]);
        leat_tensor_unref(r->sent[i]);
    }
    for (int i = 0; i < r->n_recvs; i++)
        free(r->recvs[i]);
    free(r->sends);
    free(r->sent);
    free(r->recvs);
    free(r->graph_handle);
    if (r->exchange)
        leat_exchange_unref(r->exchange);
    if (r->graph)
        leat_registered_unref(r->graph);
    leat_trace_free(r->step.trace);
    leat_step_release(&r->step);
    free(r);
}

static leat_status read_send(leat_running *r, const leat_wire_field *f)
{
    leat_grow(r->sends, r->n_sends, r->cap_sends);
    leat_grow(r->sent, r->n_sends, r->cap_sent);
    LEAT_TRY(leat_get_named(f, &r->sends[r->n_sends], &r->sent[r->n_sends]));
    r->n_sends++;
    return NULL;
}

static leat_status read_options(leat_running *r, const leat_wire_field *f)
{
    Leat__ExecutorOpts *o;
    LEAT_TRY(LEAT_GET(executor_opts, f, &o));
    r->trace = o->record_timeline;
    r->graphs = o->record_partition_graphs;
    leat_proto_free(o);
    return NULL;
}

static leat_status read_request(leat_running *r, const leat_incoming *in)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    while (leat_next_field(&c, &f, &s)) {
        if (f.number == 1 && !r->graph_handle) {
            LEAT_TRY(leat_get_text(&f, &r->graph_handle));
        } else if (f.number == 2) {
            r->step.id = f.value;
        } else if (f.number == 3) {
            LEAT_TRY(read_send(r, &f));
        } else if (f.number == 4) {
            leat_grow(r->recvs, r->n_recvs, r->cap_recvs);
            LEAT_TRY(leat_get_text(&f, &r->recvs[r->n_recvs]));
            r->n_recvs++;
        } else if (f.number == 5) {
            LEAT_TRY(read_options(r, &f));
        } else if (f.number == 9) {
            r->errors_in_body = f.value != 0;
        } else if (f.number == 1000) {
            r->from_leat = f.value != 0;
        }
    }
    return s;
}

/* ---- The answer ---- */

static leat_status put_stats(leat_running *r, leat_outgoing *o)
{
    leat_metadata *m = leat_metadata_of(r->step.trace);
    r->step.trace = NULL;
    void *bytes;
    size_t n;
    leat_status s = leat_metadata_stats(m, &bytes, &n);
    if (!s) {
        leat_put_bytes(&o->text, 2, bytes, n);
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
        leat_put_bytes(&o->text, 4, bytes, n);
        free(bytes);
    }
    return NULL;
}

static leat_status put_answer(leat_running *r, leat_outgoing *o)
{
    if (r->step.trace)
        LEAT_TRY(put_stats(r, o));
    if (r->graphs)
        LEAT_TRY(put_graphs(r, o));
    for (int i = 0; i < r->n_recvs; i++) {
        leat_tensor *t;
        LEAT_TRY(leat_exchange_take(r->exchange, r->recvs[i], &t));
        leat_status s = leat_put_named(o, 1, r->recvs[i], t);
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
    if (s && r->errors_in_body) {
        leat_outgoing_release(&o);
        leat_put_int(&o.text, 5, leat_status_code(s));
        leat_put_text(&o.text, 6, leat_status_message(s));
        leat_status_free(s);
        s = NULL;
    }
    leat_asked_reply(r->asked, s, &o);
}

static void on_cancel(void *arg)
{
    leat_running *r = arg;
    pthread_mutex_lock(&r->step.lock);
    leat_status s = leat_status_copy(r->step.status);
    pthread_mutex_unlock(&r->step.lock);
    /* It is found until the master cleans up: who asks later must hear of the failure, too. */
    r->step.rendezvous->ops->abort(r->step.rendezvous, s);
    leat_status_free(s);
}

/* Nobody will clean up. */
static void forget(leat_running *r)
{
    leat_status why = leat_error(CANCELLED, "The master of step %" PRIu64 " has gone", r->step.id);
    leat_exchange_drop(r->worker->exchanges, (int64_t)r->step.id, why);
    leat_status_free(why);
}

static void run_ended(leat_step *step)
{
    leat_running *r = step->owner;
    leat_worker *w = r->worker;
    leat_step_off_cancel(step, &r->cancel);
    leat_status s = leat_plan_ended(r->graph->plan, step);
    pthread_mutex_lock(&w->lock);
    if (r->prev)
        r->prev->next = r->next;
    else
        w->running = r->next;
    if (r->next)
        r->next->prev = r->prev;
    pthread_mutex_unlock(&w->lock);
    if (!s && r->from_leat)
        leat_exchange_close(r->exchange); /* else the master cleans up */
    answer(r, s);
    if (!atomic_exchange(&r->gone, true))
        running_unref(r); /* nobody will hear that the master has gone */
    else
        forget(r);
    running_unref(r);
}

/* ---- The run ---- */

static void master_gone(void *arg)
{
    leat_running *r = arg;
    if (atomic_exchange(&r->gone, true))
        return;
    leat_step_fail(&r->step,
                   leat_error(CANCELLED, "%s: step %" PRIu64 " was given up by its master",
                              r->worker->task, r->step.id));
    running_unref(r);
}

static leat_status prepare(leat_running *r)
{
    leat_worker *w = r->worker;
    LEAT_TRY(leat_worker_find_graph(w, r->graph_handle ? r->graph_handle : "", &r->graph));
    r->exchange = leat_exchange_get(w->exchanges, (int64_t)r->step.id);
    for (int i = 0; i < r->n_sends; i++)
        LEAT_TRY(leat_exchange_put(r->exchange, r->sends[i], r->sent[i]));
    r->step.rendezvous = leat_exchange_claim(r->exchange);
    r->step.ended = run_ended;
    r->step.owner = r;
    if (r->trace)
        r->step.trace = leat_trace_new();
    r->cancel = (leat_cancel){.fn = on_cancel, .arg = r};
    leat_step_on_cancel(&r->step, &r->cancel);
    pthread_mutex_lock(&w->lock);
    bool stopping = w->stopping;
    r->next = w->running;
    if (r->next)
        r->next->prev = r;
    w->running = r;
    pthread_mutex_unlock(&w->lock);
    if (stopping)
        leat_step_fail(&r->step, leat_error(UNAVAILABLE, "%s is stopping", w->task));
    return NULL;
}

void leat_worker_run_graph(leat_worker *w, leat_asked *a, const leat_incoming *in)
{
    leat_running *r = leat_new(leat_running);
    atomic_init(&r->refs, 2);
    leat_step_init(&r->step);
    r->worker = w;
    r->asked = a;
    leat_status s = read_request(r, in);
    if (!s)
        s = prepare(r);
    if (s) {
        answer(r, s);
        atomic_store(&r->refs, 1);
        running_unref(r);
        return;
    }
    if (!leat_asked_on_gone(a, master_gone, r))
        master_gone(r);
    leat_arrivals made_ready;
    leat_arrivals_begin(&made_ready);
    leat_plan_start(r->graph->plan, &r->step);
    leat_arrivals_end(&made_ready);
}

void leat_worker_stop(leat_worker *w, leat_status why)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    for (;;) {
        leat_running *r = w->running;
        while (r && leat_step_cancelled(&r->step))
            r = r->next;
        if (!r)
            break;
        atomic_fetch_add(&r->refs, 1);
        pthread_mutex_unlock(&w->lock);
        leat_step_fail(&r->step, leat_status_copy(why));
        running_unref(r);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    leat_exchange_drop_all(w->exchanges, why);
}

bool leat_worker_idle(leat_worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool idle = !w->running;
    pthread_mutex_unlock(&w->lock);
    return idle;
}
