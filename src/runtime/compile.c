/* compile.c -- the passes, in order. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "runtime/plan.h"

static const struct {
    leat_status (*run)(leat_compile *c);
    bool optimizes;
} passes[] = {
    {leat_pass_inline, false},    {leat_pass_reread, false},  {leat_pass_place, false},
    {leat_pass_fold, true},       {leat_pass_simplify, true}, {leat_pass_cse, true},
    {leat_pass_sweep, true},      {leat_pass_fuse, true},     {leat_pass_fuse_xent, true},
    {leat_pass_fuse_cwise, true},
};

static leat_device *cpu_of(const leat_plan_options *o)
{
    for (int i = 0; i < o->n_devices; i++)
        if (strcmp(o->devices[i]->parsed.type, "CPU") == 0)
            return o->devices[i];
    return NULL;
}

static bool has_kernel(const leat_node *n, const char *device_type)
{
    const leat_kernel_def *def;
    bool via_float;
    leat_status s = leat_kernel_find(n, device_type, &def, &via_float);
    leat_status_free(s);
    return !s;
}

leat_status leat_compile_graph(const leat_graph *g, const leat_request *q,
                               const leat_plan_options *o, leat_graph ***parts_out)
{
    leat_target *targets = leat_new_array(leat_target, o->n_devices + 1);
    for (int i = 0; i < o->n_devices; i++)
        targets[i] =
            (leat_target){o->devices[i]->name, o->devices[i]->parsed, o->devices[i]->incarnation};
    leat_compile c = {.source = g,
                      .devices = targets,
                      .n_devices = o->n_devices,
                      .soft_placement = o->soft_placement,
                      .log_placement = o->log_placement,
                      .no_optimization = o->no_optimization,
                      .has_kernel = has_kernel,
                      .arg = cpu_of(o)};
    c.evaluate = c.arg ? leat_evaluate_node : NULL;
    /* The graph may be growing in another thread; the copy does not. */
    pthread_mutex_lock((pthread_mutex_t *)&g->lock);
    leat_status s = leat_pass_prune(&c, q);
    pthread_mutex_unlock((pthread_mutex_t *)&g->lock);
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && !s; i++)
        if (!passes[i].optimizes || !o->no_optimization)
            s = passes[i].run(&c);
    if (!s)
        s = leat_pass_partition(&c, parts_out);
    leat_graph_free(c.graph);
    free(targets);
    return s;
}
