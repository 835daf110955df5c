/* plan_step.c -- steps of a plan, from leat_step_new to leat_step_free. The plan keeps the memory
 * of steps that have ended and uses it again for later steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/later.h"
#include "runtime/plan_int.h"

typedef struct leat_plan_step {
    leat_step base; /* The first member: a leat_step * is cast to plan_step *. */
    leat_plan *plan;
    leat_run **runs;             /* One for each of the plan's parts on this task. */
    leat_rendezvous *rendezvous; /* Between this task's devices; NULL until a step needs it. */
    leat_far_step *far;          /* NULL: the step does not run on other tasks. */
    leat_cancel abort;           /* Aborts base.rendezvous when the step fails. */
    struct leat_plan_step *next; /* In plan->idle. */
    struct part_job {
        struct leat_plan_step *step;
        int part;
    } * jobs;
} plan_step;

/* ---- Memory ---- */

static plan_step *step_alloc(leat_plan *p)
{
    plan_step *s = leat_new(plan_step);
    s->plan = p;
    s->runs = leat_new_array(leat_run *, p->n_parts + 1);
    s->jobs = leat_new_array(struct part_job, p->n_parts + 1);
    for (int i = 0; i < p->n_parts; i++) {
        s->runs[i] = leat_run_new(p->parts[i].executor);
        s->jobs[i] = (struct part_job){s, i};
    }
    return s;
}

static plan_step *step_get(leat_plan *p)
{
    pthread_mutex_lock(&p->lock);
    plan_step *s = p->idle;
    if (s)
        p->idle = s->next;
    pthread_mutex_unlock(&p->lock);
    return s ? s : step_alloc(p);
}

bool leat_plan_steps_free(leat_plan *p)
{
    pthread_mutex_lock(&p->lock);
    plan_step *idle = p->idle;
    p->idle = NULL;
    pthread_mutex_unlock(&p->lock);
    const bool any = idle != NULL;
    while (idle) {
        plan_step *s = idle;
        idle = s->next;
        for (int i = 0; i < p->n_parts; i++)
            leat_run_free(s->runs[i]);
        if (s->rendezvous)
            s->rendezvous->ops->free(s->rendezvous);
        free(s->runs);
        free(s->jobs);
        free(s);
    }
    return any;
}

/* ---- Beginning ---- */

static void abort_rendezvous(void *arg, leat_status why)
{
    leat_rendezvous *r = arg;
    r->ops->abort(r, why);
}

/* Returns the rendezvous where the parts of the step meet: that of the options, that of p->far, or
 * the step's own between devices of this task. NULL if there is a single part. Sets *id if p->far
 * chooses the step's id. */
static leat_rendezvous *choose_rendezvous(plan_step *s, const leat_step_options *o, uint64_t *id)
{
    leat_plan *p = s->plan;
    leat_rendezvous *r = o->rendezvous;
    s->far = NULL;
    if (!r && p->far)
        s->far = p->far->ops->step_new(p->far, id, &r);
    if (!r && p->n_parts > 1 && !s->rendezvous)
        s->rendezvous = leat_local_rendezvous_new();
    return r ? r : p->n_parts > 1 ? s->rendezvous : NULL;
}

leat_step *leat_step_new(leat_plan *p, const leat_step_options *o)
{
    plan_step *x = step_get(p);
    leat_step *s = &x->base;
    leat_step_init(s);
    s->id = o->id;
    s->feeds = o->feeds;
    s->fetches = o->fetches;
    s->late = o->late;
    s->trace = o->trace;
    s->deadline_ns = o->deadline_ns;
    s->call_depth = o->call_depth;
    s->ended = o->ended;
    s->arg = o->arg;
    s->rendezvous = choose_rendezvous(x, o, &s->id);
    if (s->rendezvous) {
        x->abort = (leat_cancel){.fn = abort_rendezvous, .arg = s->rendezvous};
        leat_step_on_cancel(s, &x->abort);
    }
    return s;
}

static void part_run(void *arg)
{
    struct part_job *j = arg;
    leat_run_start(j->step->runs[j->part], &j->step->base);
}

void leat_step_start(leat_step *s)
{
    plan_step *x = (plan_step *)s;
    leat_plan *p = x->plan;
    /* This function counts as a part until it has started all parts. */
    atomic_store(&s->running, p->n_parts + p->n_far + 1);
    if (p->n_far)
        p->far->ops->step_start(x->far, p->far_parts, p->n_far, s);
    for (int i = 0; i < p->n_groups; i++)
        s->rendezvous->ops->expect(s->rendezvous, p->groups[i]);
    bool here = leat_later_may_run(s);
    for (int i = here ? 1 : 0; i < p->n_parts; i++)
        leat_pool_submit(p->parts[i].device->inter, part_run, &x->jobs[i]);
    if (here && p->n_parts)
        leat_run_start(x->runs[0], s);
    leat_step_part_ended(s);
}

/* ---- Ending ---- */

leat_status leat_step_finish(leat_step *s)
{
    plan_step *x = (plan_step *)s;
    leat_status status = leat_step_settle(s);
    if (x->far)
        x->plan->far->ops->step_free(x->far, status != NULL);
    else if (s->rendezvous == x->rendezvous && x->rendezvous)
        x->rendezvous->ops->reset(x->rendezvous);
    x->far = NULL;
    return status;
}

void leat_step_free(leat_step *s)
{
    plan_step *x = (plan_step *)s;
    leat_plan *p = x->plan;
    leat_step_release(s);
    pthread_mutex_lock(&p->lock);
    x->next = p->idle;
    p->idle = x;
    pthread_mutex_unlock(&p->lock);
}

/* ---- Waiting for the end ---- */

/* Writes the nodes and tasks that the step waits for to `all`, and the first node that waits on
 * this task, "" if there is none, to `node`. */
static void name_the_waiting(plan_step *x, char *all, size_t size, char node[600])
{
    leat_plan *p = x->plan;
    char some[600];
    all[0] = node[0] = 0;
    for (int i = -1; i < p->n_parts; i++) {
        some[0] = 0;
        if (i >= 0)
            leat_run_waiting(x->runs[i], some, sizeof(some));
        else if (x->far)
            p->far->ops->step_waits(x->far, some, sizeof(some));
        if (i >= 0 && !node[0])
            snprintf(node, sizeof(some), "%.*s", (int)strcspn(some, " "), some);
        size_t at = strlen(all);
        snprintf(all + at, size - at, "%s%s", at && some[0] ? ", " : "", some);
    }
    if (!all[0])
        snprintf(all, size, "kernels that are still running");
}

void leat_step_waits(leat_step *s, char *out, size_t size)
{
    char node[600];
    name_the_waiting((plan_step *)s, out, size, node);
}

/* Fails the step with DEADLINE_EXCEEDED and a message that names what it waits for. */
static void fail_late(plan_step *x)
{
    char all[1000], node[600];
    name_the_waiting(x, all, sizeof(all), node);
    leat_status s = leat_error(DEADLINE_EXCEEDED, "Timed out waiting for %s", all);
    if (node[0])
        s = leat_status_suffix(s, "\n\t [[{{node %s}}]]", node);
    leat_step_fail(&x->base, s);
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

static bool await_end(plan_step *x)
{
    leat_plan *p = x->plan;
    leat_step *s = &x->base;
    leat_pool *pool = p->n_parts ? p->parts[0].device->inter : NULL;
    if (!x->far)
        return leat_pool_wait(pool, &s->done, s->deadline_ns);
    leat_later_only(s);
    bool ended = p->far->ops->step_await(x->far, pool, s);
    leat_later_only(NULL);
    return ended;
}

leat_status leat_step_run(leat_step *s)
{
    plan_step *x = (plan_step *)s;
    if (s->trace && leat_trace_wants_graphs(s->trace))
        record_graphs(x->plan, s->trace);
    leat_later_begin();
    leat_step_start(s);
    leat_later_end();
    if (!await_end(x)) {
        fail_late(x);
        leat_event_wait(&s->done, 0); /* Kernels end early, because the step has failed. */
    }
    return leat_step_finish(s);
}
