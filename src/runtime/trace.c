/* trace.c -- see trace.h. */
#define _GNU_SOURCE
#include "runtime/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "core/threadpool.h"

struct leat_trace {
    pthread_mutex_t lock; /* guards rows and graphs */
    leat_trace_row *rows;
    int n, cap;
    bool wants_graphs;
    leat_trace_graph *graphs;
    int n_graphs, cap_graphs;
    int64_t wall_offset_ns;
};

leat_trace *leat_trace_new(void)
{
    leat_trace *t = leat_new(leat_trace);
    pthread_mutex_init(&t->lock, NULL);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->wall_offset_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec - leat_now_ns();
    return t;
}

void leat_trace_free(leat_trace *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n; i++) {
        free(t->rows[i].name);
        free(t->rows[i].op);
        free(t->rows[i].device);
        free(t->rows[i].label);
    }
    free(t->rows);
    for (int i = 0; i < t->n_graphs; i++)
        free(t->graphs[i].bytes);
    free(t->graphs);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static char *label_of(const leat_node *n)
{
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s = %s(", leat_node_name(n), leat_node_op(n));
    for (int i = 0; i < leat_node_inputs(n); i++)
        leat_strbuf_printf(&b, "%s%s", i ? ", " : "", leat_node_name(leat_node_input(n, i).node));
    leat_strbuf_putc(&b, ')');
    return leat_strbuf_take(&b);
}

void leat_trace_node(leat_trace *t, const leat_node *n, const char *device, int64_t start_ns,
                     int64_t end_ns, int64_t bytes)
{
    leat_trace_row row = {.name = leat_xstrdup(leat_node_name(n)),
                          .op = leat_xstrdup(leat_node_op(n)),
                          .device = leat_xstrdup(device),
                          .label = label_of(n),
                          .start_ns = start_ns,
                          .end_ns = end_ns,
                          .bytes = bytes,
                          .thread = (int)gettid()};
    pthread_mutex_lock(&t->lock);
    leat_grow(t->rows, t->n, t->cap);
    t->rows[t->n++] = row;
    pthread_mutex_unlock(&t->lock);
}

void leat_trace_far_row(leat_trace *t, leat_trace_row row)
{
    row.start_ns -= t->wall_offset_ns;
    row.end_ns -= t->wall_offset_ns;
    pthread_mutex_lock(&t->lock);
    leat_grow(t->rows, t->n, t->cap);
    t->rows[t->n++] = row;
    pthread_mutex_unlock(&t->lock);
}

void leat_trace_want_graphs(leat_trace *t)
{
    t->wants_graphs = true;
}

bool leat_trace_wants_graphs(const leat_trace *t)
{
    return t->wants_graphs;
}

void leat_trace_graph_add(leat_trace *t, void *bytes, size_t size)
{
    pthread_mutex_lock(&t->lock);
    leat_grow(t->graphs, t->n_graphs, t->cap_graphs);
    t->graphs[t->n_graphs++] = (leat_trace_graph){bytes, size};
    pthread_mutex_unlock(&t->lock);
}

const leat_trace_graph *leat_trace_graphs(const leat_trace *t, int *count_out)
{
    *count_out = t->n_graphs;
    return t->graphs;
}

const leat_trace_row *leat_trace_rows(const leat_trace *t, int *count_out)
{
    *count_out = t->n;
    return t->rows;
}

int64_t leat_trace_wall_offset_ns(const leat_trace *t)
{
    return t->wall_offset_ns;
}
