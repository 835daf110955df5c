/* compile.c -- the passes, in order. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "runtime/plan.h"

enum { ALWAYS, OPTIMIZES, FUSES }; /* FUSES: makes nodes that only Leat has */

static const struct {
    leat_status (*run)(leat_compile *c);
    int kind;
} passes[] = {
    {leat_pass_inline, ALWAYS},    {leat_pass_reread, ALWAYS},
    {leat_pass_place, ALWAYS},     {leat_pass_reread_inside, ALWAYS},
    {leat_pass_fold, OPTIMIZES},   {leat_pass_simplify, OPTIMIZES},
    {leat_pass_cse, OPTIMIZES},    {leat_pass_sweep, OPTIMIZES},
    {leat_pass_fuse, FUSES},       {leat_pass_fuse_xent, FUSES},
    {leat_pass_fuse_cwise, FUSES}, {leat_pass_fuse_apply, FUSES},
};

/* Where constants are computed. */
static leat_device *host_of(const leat_plan_options *o)
{
    for (int i = 0; i < o->n_devices; i++)
        if (o->devices[i]->kind->host_memory)
            return o->devices[i];
    return NULL;
}

/* True for kinds of devices that only other tasks have: these tasks check for kernels. */
static bool has_kernel(const leat_node *n, const char *device_type)
{
    const leat_kernel_def *def;
    if (!leat_device_kind_find(device_type))
        return true;
    bool via_float;
    leat_status s = leat_kernel_find(n, device_type, &def, &via_float);
    leat_status_free(s);
    return !s;
}

static bool may_wait(const leat_node *n, const char *device_type)
{
    const leat_kernel_def *def;
    bool via_float;
    leat_status s = leat_kernel_find(n, device_type, &def, &via_float);
    leat_status_free(s);
    return s || (def->run_async && leat_node_role(n) != LEAT_ROLE_RECV) ||
           def->flags & LEAT_KERNEL_BLOCKS;
}

/* Each part gets the functions that its nodes name: it may be sent to another task, and may outlive
 * the graph that has them. The parts of a function's body that are ready to run need none: the set
 * of callables has them already. */
static leat_status keep_functions(const leat_compile *c, const leat_plan_options *o,
                                  leat_graph **parts)
{
    leat_status s = NULL;
    for (int i = 0; i < c->n_devices; i++) {
        const leat_graph *library = c->source ? c->source : c->graph ? c->graph : parts[i];
        if (parts[i] && !s && (!o->callables || c->by_process) &&
            leat_graph_names_functions(parts[i]))
            s = leat_functions_gather(parts[i], library, parts[i]);
        if (parts[i])
            parts[i]->library = NULL;
    }
    for (int i = 0; s && i < c->n_devices; i++)
        leat_graph_free(parts[i]);
    if (s)
        free(parts);
    return s;
}

/* Adds copies on edges between memories, now that every node has its device. */
static leat_status insert_copies(const leat_plan_options *o, leat_graph **parts)
{
    leat_status s = NULL;
    for (int i = 0; i < o->n_devices && !s; i++)
        if (parts[i] && leat_device_memory(o->devices[i]))
            s = leat_insert_copies(parts[i], o->devices[i], o->devices, o->n_devices);
    for (int i = 0; i < o->n_devices && s; i++)
        leat_graph_free(parts[i]);
    if (s)
        free(parts);
    return s;
}

static leat_status run_passes(leat_compile *c, const leat_plan_options *o, leat_graph ***parts_out)
{
    leat_status s = NULL;
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && !s; i++)
        if (passes[i].kind == ALWAYS ||
            (!c->no_optimization && !(passes[i].kind == FUSES && c->by_process)))
            s = passes[i].run(c);
    if (!s)
        s = leat_pass_partition(c, parts_out);
    if (!s)
        s = keep_functions(c, o, *parts_out);
    return s || c->by_process ? s : insert_copies(o, *parts_out);
}

static leat_compile compile_of(const leat_plan_options *o, const leat_target *targets, int n)
{
    leat_compile c = {.devices = targets,
                      .n_devices = n,
                      .soft_placement = o->soft_placement,
                      .no_optimization = o->no_optimization,
                      .has_kernel = has_kernel,
                      .may_wait = may_wait,
                      .arg = host_of(o)};
    c.evaluate = c.arg ? leat_evaluate_node : NULL;
    return c;
}

static leat_target *own_targets(const leat_plan_options *o)
{
    leat_target *targets = leat_new_array(leat_target, o->n_devices + 1);
    for (int i = 0; i < o->n_devices; i++)
        targets[i] = (leat_target){.name = o->devices[i]->name,
                                   .parsed = o->devices[i]->parsed,
                                   .incarnation = o->devices[i]->incarnation,
                                   .priority = o->devices[i]->kind->priority};
    return targets;
}

leat_status leat_compile_graph(const leat_graph *g, const leat_request *q,
                               const leat_plan_options *o, leat_graph ***parts_out)
{
    leat_target *own = o->far ? NULL : own_targets(o);
    leat_compile c = compile_of(o, own ? own : o->far->targets, own ? o->n_devices : o->far->n);
    c.source = g;
    c.log_placement = o->log_placement;
    c.by_process = o->far != NULL;
    c.client_device = o->far ? o->devices[0]->name : NULL;
    /* The graph may be growing in another thread; the copy does not. */
    pthread_mutex_lock((pthread_mutex_t *)&g->lock);
    leat_status s = leat_pass_prune(&c, q);
    pthread_mutex_unlock((pthread_mutex_t *)&g->lock);
    if (!s)
        s = run_passes(&c, o, parts_out);
    leat_graph_free(c.graph);
    free(own);
    return s;
}

leat_status leat_compile_part(leat_graph *part, const leat_plan_options *o, leat_graph ***parts_out)
{
    leat_target *own = own_targets(o);
    leat_compile c = compile_of(o, own, o->n_devices);
    c.calls_stay = o->far != NULL;
    leat_pass_take(&c, part);
    leat_status s = run_passes(&c, o, parts_out);
    leat_graph_free(c.graph);
    free(own);
    return s;
}
