/* plan.c -- makes and frees plans; plan_step.c runs their steps. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "runtime/callable.h"
#include "runtime/groups.h"
#include "runtime/plan_int.h"

/* Sets p->callables if nodes of these graphs name functions and the options have no set. */
static leat_status add_callables(leat_plan *p, leat_graph **graphs, const leat_plan_options *o)
{
    bool any = false;
    for (int i = 0; graphs && !o->callables && i < o->n_devices; i++)
        any |= graphs[i] && leat_graph_names_functions(graphs[i]);
    return any ? leat_callables_of(graphs, o->n_devices, o, &p->callables) : NULL;
}

/* Makes executors for the graphs of this task's devices. Takes the graphs and the array. */
static leat_status add_parts(leat_plan *p, leat_graph **graphs, const leat_plan_options *o)
{
    leat_status s = add_callables(p, graphs, o);
    leat_callables *callables = p->callables ? p->callables : o->callables;
    const leat_stop stop = leat_plan_stop(o);
    for (int i = 0; graphs && i < o->n_devices; i++) {
        if (!graphs[i])
            continue;
        leat_plan_part *x = &p->parts[p->n_parts++];
        x->graph = graphs[i];
        x->device = o->devices[i];
        if (s)
            continue;
        const int64_t begin = leat_now_ns();
        s = leat_executor_new(x->graph, x->device, callables, &stop, &x->executor);
        s = leat_plan_stage(o, "executor", begin, s);
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

/* Sends the other processes their graphs, and compiles this process's graph further. Takes the
 * graphs and the array. */
static leat_status add_tasks(leat_plan *p, leat_graph **graphs, const leat_plan_options *o)
{
    leat_status s = NULL;
    p->far_parts = leat_new_array(leat_far_part *, o->far->n + 1);
    for (int i = 0; i < o->far->n; i++) {
        if (!graphs[i])
            continue;
        if (!s && o->far->targets[i].process == 0) {
            s = add_own(p, graphs[i], o);
            continue;
        }
        if (!s)
            s = o->far->ops->part_new(o->far, &o->far->targets[i], graphs[i], o->deadline_ns,
                                      o->cancellation, &p->far_parts[p->n_far]);
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
    p->parts = leat_new_array(leat_plan_part, o->n_devices + 1);
    return p;
}

static leat_status plan_made(leat_plan *p, leat_status s, leat_plan **out)
{
    if (s) {
        leat_plan_free(p);
        return s;
    }
    const leat_graph **graphs = leat_new_array(const leat_graph *, p->n_parts + 1);
    for (int i = 0; i < p->n_parts; i++)
        graphs[i] = p->parts[i].graph;
    p->groups = leat_groups_new(graphs, p->n_parts, &p->n_groups);
    free(graphs);
    for (int i = 0; i < p->n_parts; i++)
        leat_graph_seal(p->parts[i].graph);
    leat_reclaim_from(p);
    *out = p;
    return NULL;
}

leat_status leat_plan_new(const leat_graph *g, const leat_request *q, const leat_plan_options *o,
                          leat_plan **out)
{
    leat_graph **graphs = NULL;
    LEAT_TRY(leat_compile_graph(g, q, o, &graphs));
    leat_plan *p = plan_alloc(o);
    p->far = o->far;
    leat_status s = o->far ? add_tasks(p, graphs, o) : add_parts(p, graphs, o);
    if (!s && o->callables && !p->n_far)
        p->far = NULL; /* A call without nodes on other tasks needs no step there. */
    return plan_made(p, s, out);
}

leat_status leat_plan_of_part(leat_graph *part, const leat_plan_options *o, leat_plan **out)
{
    leat_plan *p = plan_alloc(o);
    return plan_made(p, add_own(p, part, o), out);
}

bool leat_plan_closed(const leat_plan *p)
{
    return p->n_far && atomic_load(&p->far->closed);
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
    leat_reclaim_no_more(p);
    leat_plan_steps_free(p);
    leat_callables_forget_nodes(p->callables);
    for (int i = 0; i < p->n_parts; i++) {
        leat_executor_free(p->parts[i].executor);
        leat_graph_free(p->parts[i].graph);
    }
    for (int i = 0; i < p->n_far; i++)
        p->far->ops->part_free(p->far_parts[i]);
    leat_groups_free(p->groups, p->n_groups);
    leat_callables_unref(p->callables);
    pthread_mutex_destroy(&p->lock);
    free(p->far_parts);
    free(p->parts);
    free(p);
}
