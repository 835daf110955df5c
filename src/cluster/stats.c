/* stats.c -- see stats.h. */
#include "cluster/stats.h"

#include <string.h>

#include "core/alloc.h"

static void add_node(leat_trace *t, const char *device, const Leat__NodeExecStats *n,
                     int64_t offset_ns)
{
    /* A label is "y = MatMul(x, w)". */
    const char *eq = strstr(n->timeline_label, " = "), *op = eq ? eq + 3 : n->node_name;
    int64_t start = n->all_start_nanos ? n->all_start_nanos : n->all_start_micros * 1000;
    int64_t took = n->all_end_rel_nanos ? n->all_end_rel_nanos : n->all_end_rel_micros * 1000;
    leat_trace_row row = {.name = leat_xstrdup(n->node_name),
                          .op = leat_xstrndup(op, strcspn(op, "(")),
                          .device = leat_xstrdup(device),
                          .label = leat_xstrdup(n->timeline_label),
                          .start_ns = start + offset_ns,
                          .end_ns = start + took + offset_ns,
                          .bytes = n->n_memory ? n->memory[0]->total_bytes : 0,
                          .thread = (int)n->thread_id};
    leat_trace_far_row(t, row);
}

void leat_trace_add_stats(leat_trace *t, const Leat__StepStats *stats, int64_t offset_ns)
{
    for (size_t d = 0; d < stats->n_dev_stats; d++)
        for (size_t i = 0; i < stats->dev_stats[d]->n_node_stats; i++)
            add_node(t, stats->dev_stats[d]->device, stats->dev_stats[d]->node_stats[i], offset_ns);
}
