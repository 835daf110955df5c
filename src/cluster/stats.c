/* stats.c -- see stats.h. */
#include "cluster/stats.h"

#include <string.h>

#include "core/alloc.h"

static int64_t start_of(const Leat__NodeExecStats *n)
{
    return n->all_start_nanos ? n->all_start_nanos : n->all_start_micros * 1000;
}

static int64_t end_of(const Leat__NodeExecStats *n)
{
    return start_of(n) +
           (n->all_end_rel_nanos ? n->all_end_rel_nanos : n->all_end_rel_micros * 1000);
}

static void add_node(leat_trace *t, const char *device, const Leat__NodeExecStats *n,
                     int64_t offset_ns)
{
    /* A label is "y = MatMul(x, w)". */
    const char *eq = strstr(n->timeline_label, " = "), *op = eq ? eq + 3 : n->node_name;
    leat_trace_row row = {.name = leat_xstrdup(n->node_name),
                          .op = leat_xstrndup(op, strcspn(op, "(")),
                          .device = leat_xstrdup(device),
                          .label = leat_xstrdup(n->timeline_label),
                          .start_ns = start_of(n) + offset_ns,
                          .end_ns = end_of(n) + offset_ns,
                          .bytes = n->n_memory ? n->memory[0]->total_bytes : 0,
                          .thread = (int)n->thread_id};
    leat_trace_far_row(t, row);
}

/* By how much times from first to last have to be moved so that they lie between begin and end; if
 * they take longer than that, they begin at `begin`. */
static int64_t shift_into(int64_t first, int64_t last, int64_t begin, int64_t end)
{
    if (first < begin || last - first > end - begin)
        return begin - first;
    return last > end ? end - last : 0;
}

void leat_trace_add_stats(leat_trace *t, const Leat__StepStats *stats, int64_t offset_ns,
                          int64_t begin_ns, int64_t end_ns)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t d = 0; d < stats->n_dev_stats; d++)
        for (size_t i = 0; i < stats->dev_stats[d]->n_node_stats; i++) {
            const Leat__NodeExecStats *n = stats->dev_stats[d]->node_stats[i];
            first = start_of(n) < first ? start_of(n) : first;
            last = end_of(n) > last ? end_of(n) : last;
        }
    if (begin_ns && first <= last) {
        const int64_t wall = leat_trace_wall_offset_ns(t);
        offset_ns +=
            shift_into(first + offset_ns, last + offset_ns, begin_ns + wall, end_ns + wall);
    }
    for (size_t d = 0; d < stats->n_dev_stats; d++)
        for (size_t i = 0; i < stats->dev_stats[d]->n_node_stats; i++)
            add_node(t, stats->dev_stats[d]->device, stats->dev_stats[d]->node_stats[i], offset_ns);
}
