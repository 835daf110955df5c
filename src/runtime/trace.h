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
void leat_trace_free(leat_trace *t); /* NULL does nothing */
/* One node ran from start to end on a device; its outputs hold `bytes`. Thread-safe. */
void leat_trace_node(leat_trace *t, const leat_node *n, const char *device, int64_t start_ns,
                     int64_t end_ns, int64_t bytes);
/* A node of another task; takes the strings in row, whose times are of CLOCK_REALTIME. */
void leat_trace_far_row(leat_trace *t, leat_trace_row row);
/* A graph that was run, as the bytes of a GraphDef. Graphs are recorded after
 * leat_trace_want_graphs; leat_trace_graph_add takes bytes. */
typedef struct leat_trace_graph {
    void *bytes;
    size_t size;
} leat_trace_graph;
void leat_trace_want_graphs(leat_trace *t);
bool leat_trace_wants_graphs(const leat_trace *t);
void leat_trace_graph_add(leat_trace *t, void *bytes, size_t size);
const leat_trace_graph *leat_trace_graphs(const leat_trace *t, int *count_out);
/* What was recorded, once the step is over. */
const leat_trace_row *leat_trace_rows(const leat_trace *t, int *count_out);
int64_t leat_trace_wall_offset_ns(const leat_trace *t); /* add to get CLOCK_REALTIME */

#endif
