/* stats.h -- adds another task's times of a step to a trace. */
#ifndef LEAT_CLUSTER_STATS_H
#define LEAT_CLUSTER_STATS_H

#include "proto/step_stats.pb-c.h"
#include "runtime/trace.h"

/* offset_ns, by which this machine's clock is ahead of the other task's, is added to the times.
 * The nodes ran between the times begin_ns and end_ns of leat_now_ns, if those are not 0: RunGraph
 * was sent at the one, its reply came at the other. Times that lie outside because the clocks are
 * not known well enough are all moved by the same amount, as far as is needed. */
void leat_trace_add_stats(leat_trace *t, const Leat__StepStats *stats, int64_t offset_ns,
                          int64_t begin_ns, int64_t end_ns);

#endif
