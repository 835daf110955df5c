/* plan.c -- executors of one signature, and the memory of its steps, kept between them. */
#include "runtime/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/later.h"
#include "core/threadpool.h"
#include "runtime/groups.h"

typedef struct part {
    leat_graph *graph;
    leat_device *device;
    leat_executor *executor;
} part;

/* The memory of one step. */
typedef struct leat_activation {
    leat_run **runs;             /* one for each part */
    leat_rendezvous *rendezvous; /* NULL where each step brings its own */
    leat_cancel cancel;
    bool cancellable; /* cancel was registered */
    leat_step *step;
    struct leat_activation *next;
    struct part_job {
        struct leat_activation *a;
        int part;
    } * jobs;
} activation;

struct leat_plan {
    part *parts;
    int n_parts;
    leat_far *far;
    leat_far_part **far_parts;
    int n_far;
    leat_rendezvous_group **groups; /* what other tasks send together */
    int n_groups;
    pthread_mutex_t lock; /* guards idle */
    activation *idle;
};

static void activation_free(leat_plan *p, activation *a)
{
    for (int i = 0; i < p->n_parts; i++)
        leat_run_free(a->runs[i]);
    if (a->rendezvous)
        a->rendezvous->ops->free(a->rendezvous);
    free(a->runs);
    free(a->jobs);
    free(a);
}

static activation *activation_get(leat_plan *p, bool own_rendezvous)
{
    pthread_mutex_lock(&p->lock);
    activation *a = p->idle;
    if (a)
        p->idle = a->next;
    pthread_mutex_unlock(&p->lock);
    if (a)
        return a;
    a = leat_new(activation);
    a->runs = leat_new_array(leat_run *, p->n_parts + 1);
    a->jobs = leat_new_array(struct part_job, p->n_parts + 1);
    for (int i = 0; i < p->n_parts; i++) {
        a->runs[i] = leat_run_new(p->parts[i].executor);
        a->jobs[i] = (struct part_job){a, i};
    }
    if (p->n_parts > 1 && !own_rendezvous)
        a->rendezvous = leat_local_rendezvous_new();
    return a;
}

static void activation_put(leat_plan *p, activation *a)
{
    if (a->rendezvous)
        a->rendezvous->ops->reset(a->rendezvous);
    pthread_mutex_lock(&p->lock);
    a->next = p->idle;
    p->idle = a;
    pthread_mutex_unlock(&p->lock);
}

/* Executors for the graphs of this task's devices; takes them. */
static leat_status add_parts(leat_plan *p, leat_graph **graphs, const leat_plan_options *o)
{
    leat_status s = NULL;
    for (int i = 0; graphs && i < o->n_devices; i++) {
        if (!graphs[i])
            continue;
        part *x = &p->parts[p->n_parts++];
        x->graph = graphs[i];
        x->device = o->devices[i];
        if (!s)
            s = leat_executor_new(x->graph, x->device, &x->executor);
    }
    free(graphs);
    return s;
}

static leat_status add_own(leat_plan *p, leat_graph *g, const leat_plan_options *o)
{
    leat_graph **graphs;
    LEAT_TRY(leat_compile_part(g, o, &graphs));
    return add_parts(p, graphs, o);
}

/* Hands the graphs of other tasks over, and keeps this task's. Takes all of them. */
static leat_status add_tasks(leat_plan *p, leat_graph **graphs, const leat_plan_options *o,
                             int64_t deadline_ns)
{
    const leat_device_name *own = &o->devices[0]->parsed;
    leat_status s = NULL;
    p->far_parts = leat_new_array(leat_far_part *, o->far->n + 1);
    for (int i = 0; i < o->far->n; i++) {
        const leat_device_name *d = &o->far->targets[i].parsed;
        if (!graphs[i])
            continue;
        if (!s && d->task == own->task && strcmp(d->job, own->job) == 0) {
            s = add_own(p, graphs[i], o);
            continue;
        }
        if (!s)
            s = o->far->ops->part_new(o->far, &o->far->targets[i], graphs[i], deadline_ns,
                                      &p->far_parts[p->n_far]);
        p->n_far += !s;
        leat_graph_free(graphs[i]);
    }
    free(graphs);
    return s;
}

static leat_plan *plan_alloc(const leat_plan_options *o)
{
    leat_plan *p = leat_new(leat_plan);
    pthread_mutex_init(&p->lock, NULL);
    p->parts = leat_new_array(part, o->n_devices + 1);
    p->far = o->far;
    return p;
}

static leat_status plan_made(leat_plan *p, leat_status s, leat_plan **out)
{
    if (s) {
        leat_plan_free(p);
        return s;
    }
    for (int i = 0; i < p->n_parts; i++)
        leat_groups_add(p->parts[i].graph, &p->groups, &p->n_groups);
    *out = p;
    return NULL;
}

leat_status leat_plan_new(const leat_graph *g, const leat_request *q, const leat_plan_options *o,
                          leat_plan **out)
{
    leat_graph **graphs = NULL;
    LEAT_TRY(leat_compile_graph(g, q, o, &graphs));
    leat_plan *p = plan_alloc(o);
    return plan_made(p, o->far ? add_tasks(p, graphs, o, q->deadline_ns) : add_parts(p, graphs, o),
                     out);
}

leat_status leat_plan_of_part(leat_graph *part, const leat_plan_options *o, leat_plan **out)
{
    leat_plan *p = plan_alloc(o);
    return plan_made(p, add_own(p, part, o), out);
}

int leat_plan_graphs(const leat_plan *p)
{
    return p->n_parts;
}

const leat_graph *leat_plan_graph(const leat_plan *p, int i)
{
    return p->parts[i].graph;
}

void leat_plan_free(leat_plan *p)
{
    if (!p)
        return;
    while (p->idle) {
        activation *a = p->idle;
        p->idle = a->next;
        activation_free(p, a);
    }
    for (int i = 0; i < p->n_parts; i++) {
        leat_executor_free(p->parts[i].executor);
        leat_graph_free(p->parts[i].graph);
    }
    for (int i = 0; i < p->n_far; i++)
        p->far->ops->part_free(p->far_parts[i]);
    leat_groups_free(p->groups, p->n_groups);
    pthread_mutex_destroy(&p->lock);
    free(p->far_parts);
    free(p->parts);
    free(p);
}

static void part_run(void *arg)
{
    struct part_job *j = arg;
    leat_run_start(j->a->runs[j->part], j->a->step);
}

static void abort_rendezvous(void *arg)
{
    activation *a = arg;
    pthread_mutex_lock(&a->step->lock);
    leat_status s = leat_status_copy(a->step->status);
    pthread_mutex_unlock(&a->step->lock);
    a->rendezvous->ops->abort(a->rendezvous, s);
    leat_status_free(s);
}

static void name_the_waiting(leat_plan *p, activation *a, leat_step *step)
{
    char all[1000] = "", some[600];
    for (int i = -1; i < p->n_parts; i++) {
        some[0] = 0;
        if (i >= 0)
            leat_run_waiting(a->runs[i], some, sizeof(some));
        else if (p->n_far)
            p->far->ops->step_waits(p->far, step, some, sizeof(some));
        size_t at = strlen(all);
        snprintf(all + at, sizeof(all) - at, "%s%s", at && some[0] ? ", " : "", some);
    }
    leat_step_fail(step, leat_error(DEADLINE_EXCEEDED, "Timed out waiting for %s",
                                    all[0] ? all : "kernels that are still running"));
}

void leat_plan_start(leat_plan *p, leat_step *step)
{
    activation *a = activation_get(p, step->rendezvous != NULL);
    a->step = step;
    step->activation = a;
    atomic_store(&step->running, p->n_parts + p->n_far + 1); /* one is this function's */
    if (a->rendezvous && !step->rendezvous) {
        step->rendezvous = a->rendezvous;
        a->cancel = (leat_cancel){.fn = abort_rendezvous, .arg = a};
        a->cancellable = leat_step_on_cancel(step, &a->cancel);
    }
    for (int i = 0; i < p->n_far; i++)
        p->far->ops->part_start(p->far_parts[i], step);
    for (int i = 0; i < p->n_groups; i++)
        step->rendezvous->ops->expect(step->rendezvous, p->groups[i]);
    bool here = leat_arrivals_welcome(step);
    for (int i = here ? 1 : 0; i < p->n_parts; i++)
        leat_pool_submit(p->parts[i].device->inter, part_run, &a->jobs[i]);
    if (here && p->n_parts)
        leat_run_start(a->runs[0], step);
    leat_step_part_ended(step);
}

leat_status leat_plan_ended(leat_plan *p, leat_step *step)
{
    activation *a = step->activation;
    if (a->cancellable)
        leat_step_off_cancel(step, &a->cancel);
    a->cancellable = false;
    activation_put(p, a);
    pthread_mutex_lock(&step->lock); /* somebody may be cancelling it at this very moment */
    leat_status s = step->status;
    step->status = NULL;
    pthread_mutex_unlock(&step->lock);
    return s;
}

static void record_graphs(const leat_plan *p, leat_trace *trace)
{
    for (int i = 0; i < p->n_parts; i++) {
        void *bytes;
        size_t size;
        leat_status s = leat_graph_to_binary(p->parts[i].graph, &bytes, &size);
        if (!s)
            leat_trace_graph_add(trace, bytes, size);
        leat_status_free(s);
    }
}

static bool await_end(leat_plan *p, leat_step *step)
{
    leat_pool *pool = p->n_parts ? p->parts[0].device->inter : NULL;
    if (!p->far)
        return leat_pool_wait(pool, &step->done, step->deadline_ns);
    leat_arrivals_only(step);
    bool ended = p->far->ops->step_await(p->far, pool, step);
    leat_arrivals_only(NULL);
    return ended;
}

leat_status leat_plan_run(leat_plan *p, leat_step *step)
{
    if (p->far)
        LEAT_TRY(p->far->ops->step_begin(p->far, step));
    if (step->trace && leat_trace_wants_graphs(step->trace))
        record_graphs(p, step->trace);
    leat_later_begin();
    leat_plan_start(p, step);
    leat_later_end();
    if (!await_end(p, step)) {
        name_the_waiting(p, step->activation, step);
        leat_event_wait(&step->done, 0); /* kernels end when they are cancelled */
    }
    leat_status s = leat_plan_ended(p, step);
    if (p->far)
        p->far->ops->step_end(p->far, step);
    return s;
}
