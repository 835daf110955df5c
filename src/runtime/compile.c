/* compile.c -- the passes, in order. */
#include <stdlib.h>

#include "runtime/plan.h"

static leat_status (*const passes[])(leat_compile *c) = {
    leat_pass_place,
};

leat_status leat_compile_graph(const leat_graph *g, const leat_request *q,
                               const leat_plan_options *o, leat_graph ***parts_out)
{
    leat_compile c = {.source = g,
                      .devices = o->devices,
                      .n_devices = o->n_devices,
                      .soft_placement = o->soft_placement,
                      .log_placement = o->log_placement,
                      .no_optimization = o->no_optimization};
    leat_status s = leat_pass_prune(&c, q);
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && !s; i++)
        s = passes[i](&c);
    if (!s)
        s = leat_pass_partition(&c, parts_out);
    leat_graph_free(c.graph);
    return s;
}
