/* master_run.c -- parts of plans on other tasks: registered once, started in each step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/ask.h"
#include "cluster/master_int.h"
#include "cluster/shm.h"
#include "cluster/stats.h"
#include "cluster/tensor_wire.h"
#include "core/alloc.h"
#include "proto/wire.h"
#include "runtime/trace.h"

#define WORKER "/tensorflow.WorkerService/"

struct leat_far_part {
    leat_tasks *tasks;
    leat_peer *peer;
    char *handle; /* of the registered graph */
};

/* What a step of the session has besides its plan's memory. */
typedef struct far_step {
    leat_tasks *tasks;
    leat_exchange *exchange;
    leat_cancel cancel;
    leat_step *step;
    int64_t begin_ns;
    struct taker { /* a task that takes part */
        leat_peer *peer;
        atomic_bool ended;
    } * takers; /* room for all of the session's, so that they stay where they are */
    int n_takers;
} far_step;

/* ---- Registering ---- */

static leat_status register_graph(leat_far_part *p, const leat_graph *g, int64_t deadline_ns)
{
    enum { MS = 120000 };
    void *def;
    size_t n;
    LEAT_TRY(leat_graph_to_binary(g, &def, &n));
    leat_question q = {.peer = p->peer};
    leat_put_text(&q.request.text, 1, p->tasks->handle);
    leat_put_bytes(&q.request.text, 2, def, n);
    leat_put_int(&q.request.text, 6, 1);
    if (p->peer->is_leat)
        leat_put_int(&q.request.text, 1000, 1);
    free(def);
    if (!deadline_ns)
        deadline_ns = leat_now_ns() + INT64_C(1000000) * MS;
    leat_status s =
        leat_ask_all(&q, 1, WORKER "RegisterGraph", "RegisterGraph", deadline_ns, false, NULL);
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

leat_status leat_tasks_part_new(leat_far *f, const leat_target *device, const leat_graph *g,
                                int64_t deadline_ns, leat_far_part **out)
{
    leat_tasks *t = (leat_tasks *)f;
    leat_far_part *p = leat_new(leat_far_part);
    p->tasks = t;
    for (int i = 0; i < t->n_peers; i++)
        if (strncmp(device->name, t->peers[i]->name, strlen(t->peers[i]->name)) == 0 &&
            device->name[strlen(t->peers[i]->name)] == '/')
            p->peer = t->peers[i];
    leat_status s = p->peer ? register_graph(p, g, deadline_ns)
                            : leat_error(INTERNAL, "No task of the session has %s", device->name);
    if (s)
        leat_tasks_part_free(p);
    else
        *out = p;
    return s;
}

void leat_tasks_part_free(leat_far_part *p)
{
    if (p->handle) {
        leat_outgoing o = {0};
        leat_put_text(&o.text, 1, p->handle);
        leat_put_text(&o.text, 2, p->tasks->handle);
        leat_put_int(&o.text, 3, 1);
        leat_tell(p->peer, WORKER "DeregisterGraph", &o);
    }
    free(p->handle);
    free(p);
}

/* ---- Steps ---- */

static void on_cancel(void *arg)
{
    far_step *s = arg;
    pthread_mutex_lock(&s->step->lock);
    leat_status why = leat_status_copy(s->step->status);
    pthread_mutex_unlock(&s->step->lock);
    /* It is found until the step is over: who asks later must hear of the failure, too. */
    s->step->rendezvous->ops->abort(s->step->rendezvous, why);
    leat_status_free(why);
}

leat_status leat_tasks_step_begin(leat_far *f, leat_step *step)
{
    leat_tasks *t = (leat_tasks *)f;
    far_step *s = leat_new(far_step);
    s->tasks = t;
    s->step = step;
    s->begin_ns = leat_now_ns();
    s->takers = leat_new_array(struct taker, t->n_peers + 1);
    /* As TensorFlow's: 56 bits, as good as random, never 0. */
    step->id = (t->first_id + atomic_fetch_add(&t->steps, 1) * UINT64_C(0x9e3779b97f4a7c15)) &
               UINT64_C(0xffffffffffffff);
    step->id += !step->id;
    s->exchange = leat_exchange_get(leat_worker_exchanges(t->worker), (int64_t)step->id);
    step->rendezvous = leat_exchange_claim(s->exchange);
    step->owner = s;
    s->cancel = (leat_cancel){.fn = on_cancel, .arg = s};
    if (!leat_step_on_cancel(step, &s->cancel))
        on_cancel(s);
    return NULL;
}

void leat_tasks_step_end(leat_far *f, leat_step *step)
{
    far_step *s = step->owner;
    bool failed = leat_step_cancelled(step);
    leat_step_off_cancel(step, &s->cancel);
    leat_status why = leat_error(ABORTED, "The step is over");
    leat_exchange_drop(leat_worker_exchanges(s->tasks->worker), (int64_t)step->id, why);
    leat_status_free(why);
    for (int i = 0; i < s->n_takers; i++) {
        if (!failed && s->takers[i].peer->is_leat)
            continue; /* it forgets the step by itself */
        leat_outgoing o = {0};
        leat_put_int(&o.text, 1, (int64_t)step->id);
        leat_tell(s->takers[i].peer, WORKER "CleanupGraph", &o);
    }
    leat_exchange_unref(s->exchange);
    free(s->takers);
    free(s);
    step->owner = NULL;
    step->rendezvous = NULL;
}

void leat_tasks_step_waits(leat_far *f, leat_step *step, char *out, size_t size)
{
    far_step *s = step->owner;
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < s->n_takers && at < size; i++)
        if (!atomic_load(&s->takers[i].ended)) {
            int n = snprintf(out + at, size - at, "%s%s (%s)", at ? ", " : "",
                             s->takers[i].peer->name, s->takers[i].peer->address);
            at += n > 0 ? (size_t)n : 0;
        }
    if (at && at < size)
        snprintf(
            out + at, size - at,
            ", not done with its part of the step for %.1f s: an op there waits or takes long, "
            "or the task is stopped or cut off",
            (double)(leat_now_ns() - s->begin_ns) / 1e9);
}

int leat_tasks_step_await(leat_far *f, leat_pool *p, leat_step *step)
{
    return leat_shm_wait(p, &step->done, step->deadline_ns);
}

/* ---- A part in a step ---- */

/* References: the answer's, and the cancellation's. */
typedef struct far_run {
    atomic_int refs;
    leat_far_part *part;
    leat_step *step;
    struct taker *taker; /* the step's */
    leat_call *call;
    leat_cancel cancel;
    bool cancellable;
    pthread_mutex_t lock; /* guards call; held while it is started */
} far_run;

static void run_unref(far_run *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void cancel_run(void *arg)
{
    far_run *r = arg;
    pthread_mutex_lock(&r->lock);
    if (r->call)
        leat_call_cancel(r->call);
    pthread_mutex_unlock(&r->lock);
    run_unref(r);
}

static leat_status add_stats(leat_trace *t, const leat_wire_field *f, int64_t offset_ns)
{
    Leat__StepStats *p;
    LEAT_TRY(LEAT_GET(step_stats, f, &p));
    leat_trace_add_stats(t, p, offset_ns);
    leat_proto_free(p);
    return NULL;
}

static leat_status read_answer(far_run *r, const leat_incoming *in)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    uint64_t code = 0;
    char *message = NULL;
    while (leat_next_field(&c, &f, &s) && !s) {
        if (f.number == 2 && r->step->trace) {
            s = add_stats(r->step->trace, &f, r->part->peer->clock_ahead_ns);
        } else if (f.number == 4 && r->step->trace) {
            void *bytes = leat_xmalloc(f.sub.left + 1);
            size_t n = f.sub.left;
            s = leat_cursor_copy(&f.sub, bytes, n);
            leat_trace_graph_add(r->step->trace, bytes, n);
        } else if (f.number == 5) {
            code = f.value;
        } else if (f.number == 6 && !message) {
            s = leat_get_text(&f, &message);
        }
        if (s)
            break;
    }
    leat_status carried = leat_carried_error(s ? 0 : code, r->part->peer->name, message);
    s = leat_status_first(s, carried);
    return s;
}

static void run_answered(void *arg, leat_status s, const leat_incoming *in)
{
    far_run *r = arg;
    pthread_mutex_lock(&r->lock); /* it has been started */
    r->call = NULL;               /* and is not cancelled from here on */
    pthread_mutex_unlock(&r->lock);
    if (r->cancellable && leat_step_off_cancel(r->step, &r->cancel))
        run_unref(r);
    if (!s)
        s = read_answer(r, in);
    leat_step *step = r->step;
    atomic_store(&r->taker->ended, true);
    run_unref(r);
    leat_step_fail(step, s);
    leat_step_part_ended(step);
}

static void put_request(const leat_far_part *p, const leat_step *step, leat_outgoing *o)
{
    leat_put_text(&o->text, 1, p->handle);
    leat_put_int(&o->text, 2, (int64_t)step->id);
    if (step->trace) {
        const char opts[] = {3 << 3, 1, 4 << 3, leat_trace_wants_graphs(step->trace)};
        leat_put_bytes(&o->text, 5, opts, sizeof(opts));
    }
    leat_put_text(&o->text, 8, p->tasks->handle);
    leat_put_int(&o->text, 9, 1);
    leat_put_int(&o->text, 10, 1);
    if (p->peer->is_leat)
        leat_put_int(&o->text, 1000, 1);
}

void leat_tasks_part_start(leat_far_part *p, leat_step *step)
{
    far_step *s = step->owner;
    far_run *r = leat_new(far_run);
    atomic_init(&r->refs, 2);
    r->taker = &s->takers[s->n_takers++];
    r->taker->peer = p->peer;
    r->part = p;
    r->step = step;
    r->cancel = (leat_cancel){.fn = cancel_run, .arg = r};
    pthread_mutex_init(&r->lock, NULL);
    leat_outgoing o = {0};
    put_request(p, step, &o);
    pthread_mutex_lock(&r->lock);
    leat_peer_call(p->peer, WORKER "RunGraph", &o, &(leat_call_options){0}, run_answered, r,
                   &r->call);
    r->cancellable = leat_step_on_cancel(step, &r->cancel);
    if (!r->cancellable) {
        leat_call_cancel(r->call);
        atomic_fetch_sub(&r->refs, 1);
    }
    pthread_mutex_unlock(&r->lock);
}
