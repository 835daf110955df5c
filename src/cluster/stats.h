/* stats.h -- adds another task's times of a step to a trace. */
#ifndef LEAT_CLUSTER_STATS_H
#define LEAT_CLUSTER_STATS_H

#include "proto/step_stats.pb-c.h"
#include "runtime/trace.h"

/* offset_ns, by which this machine's clock is ahead of the other task's, is added to the times. */
void leat_trace_add_stats(leat_trace *t, const Leat__StepStats *stats, int64_t offset_ns);

#endif
