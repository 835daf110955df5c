/* stats.h -- what another task measured in a step, for a trace of all of them. */
#ifndef LEAT_CLUSTER_STATS_H
#define LEAT_CLUSTER_STATS_H

#include "proto/step_stats.pb-c.h"
#include "runtime/trace.h"

/* offset_ns is added to its times: what our clock is ahead of the other's. */
void leat_trace_add_stats(leat_trace *t, const Leat__StepStats *stats, int64_t offset_ns);

#endif
