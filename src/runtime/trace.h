/* trace.h -- per-node times and memory of one step, for run metadata and Chrome traces. */
#ifndef LEAT_TRACE_H
#define LEAT_TRACE_H

#include <leat/graph.h>

typedef struct leat_trace_row {
    char *name, *op, *device; /* owned: the plan may be gone when they are read */
    char *label;              /* "y = MatMul(x, w)" */
    int64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    int64_t bytes;            /* of its outputs */
    int thread;
} leat_trace_row;

typedef struct leat_trace leat_trace;

leat_trace *leat_trace_new(void);
void leat_trace_free(leat_trace *t); /* of NULL does nothing */
/* One node ran from start to end on a device; its outputs hold `bytes`. Thread-safe. */
void leat_trace_node(leat_trace *t, const leat_node *n, const char *device, int64_t start_ns,
                     int64_t end_ns, int64_t bytes);
/* What was recorded, once the step is over. */
const leat_trace_row *leat_trace_rows(const leat_trace *t, int *count_out);
int64_t leat_trace_wall_offset_ns(const leat_trace *t); /* add to get CLOCK_REALTIME */

#endif
