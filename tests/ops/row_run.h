/* row_run.h -- runs the graph of a row (advisory_row.h), within limits of time and memory. */
#ifndef LEAT_TEST_ROW_RUN_H
#define LEAT_TEST_ROW_RUN_H

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/threadpool.h"
#include "ops/advisory_row.h"
#include "test.h"

/* Limits this process to so much address space more than it has: a sanitized one begins with
 * terabytes, which it does not use. */
static inline void row_limit_memory(int64_t more)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%llu", &pages) == 1);
    if (f)
        fclose(f);
    const rlim_t all = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)more;
    CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){all, all}) == 0);
}

/* Every byte of a result is read, which a sanitizer checks. */
static inline unsigned row_read_all(const leat_tensor *t)
{
    const unsigned char *p = leat_tensor_data(t);
    unsigned sum = 0;
    for (size_t i = 0; i < leat_tensor_bytes(t); i++)
        sum = sum * 31 + p[i];
    return sum;
}

/* Runs the row's last node, whose outputs are all fetched. The literals that `fed` names are fed,
 * the others are nodes of `text`. *ms_out: what the run took. */
static inline leat_status row_run_graph(const advisory_row *r, const char *text, const bool *fed,
                                        int timeout_ms, int64_t *ms_out)
{
    leat_graph *g = leat_graph_new();
    leat_session *session = NULL;
    leat_feed feeds[ROW_INPUTS];
    leat_fetch fetches[32];
    leat_tensor *values[32] = {0};
    int n_feeds = 0, n_fetches = 0;
    char name[16] = "a";
    leat_out x, last;
    leat_status s = leat_graph_from_text(g, text, "");
    for (int i = 0; !s && i < r->n_in; i++) {
        snprintf(name, sizeof(name), "i%d", i);
        s = leat_graph_find_out(g, name, &x);
        if (fed[i])
            feeds[n_feeds++] = (leat_feed){x, r->in[i]};
    }
    if (r->n_nodes)
        snprintf(name, sizeof(name), "n%d", r->n_nodes - 1);
    if (!s)
        s = leat_graph_find_out(g, name, &last);
    leat_node *n = s ? NULL : last.node;
    if (n) {
        for (int i = 0; i < leat_node_outputs(n) && i < 32; i++) {
            const leat_dtype t = leat_out_dtype(leat_output(last, i));
            if (t != LEAT_RESOURCE && t != LEAT_VARIANT)
                fetches[n_fetches] = (leat_fetch){leat_output(last, i), &values[n_fetches]},
                n_fetches++;
        }
        s = leat_session_open(g, &session, .timeout_ms = timeout_ms, .inter_op_threads = 2);
        const int64_t begin = leat_now_ns();
        if (!s)
            s = leat_session_run(session, (leat_feeds){feeds, n_feeds},
                                 (leat_fetches){fetches, n_fetches}, (leat_targets){&last, 1});
        *ms_out = (leat_now_ns() - begin) / 1000000;
    }
    for (int i = 0; i < n_fetches; i++) {
        if (values[i] && row_read_all(values[i]) == 12345)
            printf(" "); /* the sum is used, so the reads remain */
        leat_tensor_unref(values[i]);
    }
    leat_session_close(session);
    leat_graph_free(g);
    return s;
}

/* The same of a row: its literals are constants, which shape functions and passes see, or feeds of
 * unknown shape, which only kernels see. */
static inline leat_status row_run(const advisory_row *r, bool constant, int timeout_ms,
                                  int64_t *ms_out)
{
    leat_strbuf text = {0};
    bool fed[ROW_INPUTS] = {0};
    *ms_out = 0;
    for (int i = 0; i < r->n_in; i++)
        fed[i] = !row_source(r, i, constant, &text);
    leat_strbuf_puts(&text, leat_strbuf_text(&r->graph));
    leat_status s = row_run_graph(r, leat_strbuf_text(&text), fed, timeout_ms, ms_out);
    leat_strbuf_release(&text);
    return s;
}

#endif
