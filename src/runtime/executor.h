/* executor.h -- runs a graph that was placed on one device.
 *
 * An executor is a graph made ready: kernels bound, edges laid out flat. It never changes and may
 * serve many steps at once. A run is the memory of one step on it, used again for later steps.
 */
#ifndef LEAT_EXECUTOR_H
#define LEAT_EXECUTOR_H

#include "runtime/kernel_int.h"
#include "runtime/step.h"

typedef struct leat_executor leat_executor;
typedef struct leat_run leat_run;

/* The graph, and the functions that its nodes run (NULL: none), belong to the caller and stay until
 * the executor is freed. */
leat_status leat_executor_new(leat_graph *g, leat_device *device, struct leat_callables *callables,
                              leat_executor **out) LEAT_MUST_CHECK;
void leat_executor_free(leat_executor *e);

leat_run *leat_run_new(leat_executor *e);
void leat_run_free(leat_run *r);
/* Runs in the calling thread what can be run there, and hands the rest to the device's threads.
 * When all is done, step->running is counted down; the last one sets step->done. */
void leat_run_start(leat_run *r, leat_step *step);
/* Names of nodes that wait for something, for messages about time-outs; at most n bytes. */
void leat_run_waiting(leat_run *r, char *buf, size_t n);

#endif
