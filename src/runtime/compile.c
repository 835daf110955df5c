/* compile.c -- runs the passes over a graph, in order. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "runtime/plan.h"

enum { ALWAYS, OPTIMIZES, FUSES }; /* FUSES: the pass makes nodes of ops that only Leat has. */

static const struct {
    const char *name;
    leat_status (*run)(leat_compile *c);
    int kind;
} passes[] = {
    {"inline", leat_pass_inline, ALWAYS},
    {"reread", leat_pass_reread, ALWAYS},
    {"place", leat_pass_place, ALWAYS},
    {"reread_inside", leat_pass_reread_inside, ALWAYS},
    {"fold", leat_pass_fold, OPTIMIZES},
    {"simplify", leat_pass_simplify, OPTIMIZES},
    {"cse", leat_pass_cse, OPTIMIZES},
    {"sweep", leat_pass_sweep, OPTIMIZES},
    {"fuse_lstm", leat_pass_fuse_lstm, FUSES},
    {"fuse_products", leat_pass_fuse_products, FUSES},
    {"transpose_once", leat_pass_transpose_once, FUSES},
    {"fuse", leat_pass_fuse, FUSES},
    {"fuse_xent", leat_pass_fuse_xent, FUSES},
    {"fuse_cwise", leat_pass_fuse_cwise, FUSES},
    {"fuse_apply", leat_pass_fuse_apply, FUSES},
};

static void record_time(const leat_plan_options *o, const char *name, int64_t begin_ns)
{
    if (o->times && o->times->n < LEAT_MOST_STAGES)
        o->times->v[o->times->n++] = (leat_stage_time){name, leat_now_ns() - begin_ns};
}

leat_status leat_plan_stage(const leat_plan_options *o, const char *name, int64_t begin_ns,
                            leat_status s)
{
    record_time(o, name, begin_ns);
    if (!s) {
        const leat_stop stop = leat_plan_stop(o);
        s = leat_stop_check(&stop);
    }
    return leat_status_code(s) == LEAT_CANCELLED || leat_status_code(s) == LEAT_DEADLINE_EXCEEDED
               ? leat_status_suffix(s, " while the graph was compiled (%s)", name)
               : s;
}

/* Returns the device on which passes compute constants. */
static leat_device *host_of(const leat_plan_options *o)
{
    for (int i = 0; i < o->n_devices; i++)
        if (o->devices[i]->kind->host_memory)
            return o->devices[i];
    return NULL;
}

/* True also for device kinds that this task does not know: the tasks that have them check. */
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

/* Copies to each part the functions that its nodes name, because the part may be sent to another
 * task and may outlive the source graph. The parts by device of a function's body need no copies,
 * because the set of callables has the functions already. Frees the parts on failure. */
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

/* Adds copies on edges between memories. Frees the parts on failure. */
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
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && !s; i++) {
        if (passes[i].kind != ALWAYS &&
            (c->no_optimization || (passes[i].kind == FUSES && c->by_process)))
            continue;
        const int64_t begin = leat_now_ns();
        s = leat_plan_stage(o, passes[i].name, begin, passes[i].run(c));
    }
    if (s)
        return s;
    const int64_t begin = leat_now_ns();
    s = leat_pass_partition(c, parts_out);
    if (s)
        return leat_plan_stage(o, "partition", begin, s);
    record_time(o, "partition", begin);
    s = keep_functions(c, o, *parts_out);
    return s || c->by_process ? s : insert_copies(o, *parts_out);
}

static bool is_cancelled(void *cancellation)
{
    return leat_is_cancelled(cancellation);
}

leat_stop leat_plan_stop(const leat_plan_options *o)
{
    return (leat_stop){o->deadline_ns, o->cancellation ? is_cancelled : NULL, o->cancellation};
}

static leat_compile compile_of(const leat_plan_options *o, const leat_target *targets, int n)
{
    leat_compile c = {.devices = targets,
                      .n_devices = n,
                      .soft_placement = o->soft_placement,
                      .no_optimization = o->no_optimization,
                      .has_kernel = has_kernel,
                      .may_wait = may_wait,
                      .arg = host_of(o),
                      .stop = leat_plan_stop(o)};
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
    c.placements = o->placements;
    c.by_process = o->far != NULL;
    c.client_device = o->far ? o->devices[0]->name : NULL;
    /* Another thread may add nodes to g, so g is copied (by prune) with its lock held. */
    const int64_t begin = leat_now_ns();
    pthread_mutex_lock((pthread_mutex_t *)&g->lock);
    leat_status s = leat_pass_prune(&c, q);
    pthread_mutex_unlock((pthread_mutex_t *)&g->lock);
    s = leat_plan_stage(o, "prune", begin, s);
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
