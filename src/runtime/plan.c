/* plan.c -- executors of one signature, and the memory of its steps, kept between them. */
#include "runtime/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/threadpool.h"

typedef struct part {
    leat_graph *graph;
    leat_device *device;
    leat_executor *executor;
} part;

/* The memory of one step. */
typedef struct activation {
    leat_run **runs; /* one for each part */
    leat_rendezvous *rendezvous;
    leat_cancel cancel;
    leat_step *step;
    struct activation *next;
    struct part_job {
        struct activation *a;
        int part;
    } * jobs;
} activation;

struct leat_plan {
    part *parts;
    int n_parts;
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

static activation *activation_get(leat_plan *p)
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
    if (p->n_parts > 1)
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

leat_status leat_plan_new(const leat_graph *g, const leat_request *q, const leat_plan_options *o,
                          leat_plan **out)
{
    leat_plan *p = leat_new(leat_plan);
    pthread_mutex_init(&p->lock, NULL);
    p->parts = leat_new_array(part, o->n_devices + 1);
    leat_graph **graphs = NULL;
    leat_status s = leat_compile_graph(g, q, o, &graphs);
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
    if (s) {
        leat_plan_free(p);
        return s;
    }
    *out = p;
    return NULL;
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
    pthread_mutex_destroy(&p->lock);
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
    char all[600] = "";
    for (int i = 0; i < p->n_parts; i++) {
        size_t at = strlen(all);
        leat_run_waiting(a->runs[i], all + at, sizeof(all) - at);
    }
    leat_step_fail(step, leat_error(DEADLINE_EXCEEDED, "Timed out waiting for %s",
                                    all[0] ? all : "kernels that are still running"));
}

leat_status leat_plan_run(leat_plan *p, leat_step *step)
{
    activation *a = activation_get(p);
    a->step = step;
    step->rendezvous = a->rendezvous;
    atomic_store(&step->running, p->n_parts);
    if (a->rendezvous) {
        a->cancel = (leat_cancel){.fn = abort_rendezvous, .arg = a};
        leat_step_on_cancel(step, &a->cancel);
    }
    for (int i = 1; i < p->n_parts; i++)
        leat_pool_submit(p->parts[i].device->inter, part_run, &a->jobs[i]);
    if (p->n_parts) {
        leat_run_start(a->runs[0], step);
        if (!leat_pool_wait(p->parts[0].device->inter, &step->done, step->deadline_ns)) {
            name_the_waiting(p, a, step);
            leat_event_wait(&step->done, 0); /* kernels end when they are cancelled */
        }
    }
    if (a->rendezvous)
        leat_step_off_cancel(step, &a->cancel);
    activation_put(p, a);
    pthread_mutex_lock(&step->lock); /* somebody may be cancelling it at this very moment */
    leat_status s = step->status;
    step->status = NULL;
    pthread_mutex_unlock(&step->lock);
    return s;
}
