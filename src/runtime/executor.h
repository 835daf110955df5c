/* executor.h -- runs a graph that was placed on one device.
 *
 * An executor is a graph made ready: kernels bound, edges laid out flat. It never changes and may
 * serve many steps at once. A run is the memory of one step on it, used again for later steps.
 */
#ifndef LEAT_EXECUTOR_H
#define LEAT_EXECUTOR_H

#include "core/stop.h"
#include "runtime/kernel_int.h"
#include "runtime/step.h"

typedef struct leat_executor leat_executor;
typedef struct leat_run leat_run;

/* The caller keeps the graph, and the callables that its nodes run (NULL: none), until the executor
 * is freed. */
leat_status leat_executor_new(leat_graph *g, leat_device *device, struct leat_callables *callables,
                              const leat_stop *stop, leat_executor **out) LEAT_MUST_CHECK;
void leat_executor_free(leat_executor *e);

leat_run *leat_run_new(leat_executor *e);
void leat_run_free(leat_run *r);
/* Runs nodes in the calling thread and in the device's pool; may return before all have run. When
 * all have run, calls leat_step_part_ended. */
void leat_run_start(leat_run *r, leat_step *step);
/* Writes the names of nodes whose kernels wait, for messages about time-outs; at most n bytes. */
void leat_run_waiting(leat_run *r, char *buf, size_t n);

#endif
