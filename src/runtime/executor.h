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

/* The graph belongs to the caller and stays until the executor is freed. */
leat_status leat_executor_new(leat_graph *g, leat_device *device,
                              leat_executor **out) LEAT_MUST_CHECK;
void leat_executor_free(leat_executor *e);

leat_run *leat_run_new(leat_executor *e);
void leat_run_free(leat_run *r);
/* Runs in the calling thread what can be run there, and hands the rest to the device's threads.
 * When all is done, step->running is counted down; the last one sets step->done. */
void leat_run_start(leat_run *r, leat_step *step);
/* A thread that brings tensors from elsewhere says when it begins to hand them out and when it has
 * done so: then it runs what waited for them, and what waited for that, instead of waking a thread
 * for each. It holds no lock and may stay away for long. */
typedef struct leat_arrivals {
    struct leat_async_run *first, **last;
    bool within; /* others, which take care of these */
} leat_arrivals;
void leat_arrivals_begin(leat_arrivals *l);
void leat_arrivals_end(leat_arrivals *l);
/* From now on this thread, which waits for a step, runs nothing but that one's nodes: other runs
 * go to their device's threads. NULL: any. */
void leat_arrivals_only(const leat_step *step);
bool leat_arrivals_welcome(const leat_step *step); /* in this thread */
/* Names of nodes that wait for something, for messages about time-outs; at most n bytes. */
void leat_run_waiting(leat_run *r, char *buf, size_t n);

#endif
