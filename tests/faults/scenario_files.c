/* scenario_files.c -- checkpoints, records and event files. */
#include "faults/scenarios.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records, of which one is larger than a buffer, written and read again. */
static leat_status records(const char *path, leat_record_form form)
{
    enum { N = 3, LARGE = 400000 };
    const size_t size[N] = {5, LARGE, 0};
    char *bytes = calloc(1, LARGE);
    leat_record_writer *w = NULL;
    leat_record_reader *r = NULL;
    const void *got;
    size_t n;
    if (!bytes)
        return leat_error(RESOURCE_EXHAUSTED, "no memory for the scenario");
    for (int i = 0; i < LARGE; i++)
        bytes[i] = (char)((uint32_t)i * (uint32_t)i >> 3);
    leat_status e = leat_record_writer_open(path, form, &w);
    for (int i = 0; i < N; i++)
        THEN(e, leat_record_write(w, bytes, size[i]));
    THEN(e, leat_record_flush(w));
    leat_status closed = leat_record_writer_close(w);
    if (e)
        leat_status_free(closed);
    else
        e = closed;
    THEN(e, leat_record_reader_open(path, LEAT_RECORD_AUTO, &r));
    for (int i = 0; i < N && !e; i++) {
        e = leat_record_next(r, &got, &n);
        if (!e)
            EXPECT(n == size[i] && memcmp(got, bytes, n) == 0);
    }
    leat_record_reader_free(r);
    free(bytes);
    return e;
}

leat_status scenario_records(const char *dir)
{
    leat_status e = records(scenario_path(dir, "new/plain"), LEAT_RECORD_PLAIN);
    THEN(e, records(scenario_path(dir, "gzip"), LEAT_RECORD_GZIP));
    THEN(e, records(scenario_path(dir, "zlib"), LEAT_RECORD_ZLIB));
    return e;
}

/* The steps of the events in a file, added up. */
static leat_status read_events(const char *path, int64_t *sum)
{
    leat_event_reader *r = NULL;
    const leat_event_record *event;
    LEAT_TRY(leat_event_reader_open(path, &r));
    leat_status e = NULL;
    for (*sum = 0; !e; *sum += e ? 0 : event->step)
        e = leat_event_next(r, &event);
    leat_event_reader_free(r);
    if (leat_status_code(e) != LEAT_OUT_OF_RANGE)
        return e;
    leat_status_free(e);
    return NULL;
}

leat_status scenario_events(const char *dir)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_summary_writer *w = NULL;
    leat_tensor *summaries = NULL;
    leat_metadata *trace = NULL;
    char path[300] = "";
    int64_t sum = 0;
    leat_out x = leat_scalar(g, LEAT_FLOAT, 3);
    leat_out both[] = {leat_scalar_summary("x", x), leat_histogram_summary("h", x)};
    leat_out all = leat_merge_summaries(g, both, 2);
    leat_status e = leat_summary_writer_open(scenario_path(dir, "events"), &w);
    if (!e)
        snprintf(path, sizeof(path), "%s", leat_summary_writer_path(w));
    THEN(e, leat_session_open(g, &s));
    THEN(e, leat_session_run_with(s, &(leat_run_options){.metadata_out = &trace}, LEAT_NO_FEED,
                                  LEAT_FETCH({all, &summaries}), LEAT_NO_TARGET));
    THEN(e, leat_summary_write_graph(w, g, 0));
    THEN(e, leat_summary_write(w, summaries, 1));
    THEN(e, leat_summary_write_scalar(w, "loss", 0.5f, 2));
    THEN(e, leat_summary_write_metadata(w, trace, "run", 3));
    THEN(e, leat_summary_write_mark(w, LEAT_SESSION_CHECKPOINT, "model.ckpt", 4));
    THEN(e, leat_summary_flush(w));
    leat_status closed = leat_summary_writer_close(w);
    if (e)
        leat_status_free(closed);
    else
        e = closed;
    THEN(e, read_events(path, &sum));
    if (!e)
        EXPECT(sum == 1 + 2 + 3 + 4);
    leat_metadata_free(trace);
    leat_tensor_unref(summaries);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

/* ---- Checkpoints ---- */
static leat_status check_value(leat_session *s, leat_out w, double want)
{
    leat_tensor *v = NULL;
    LEAT_TRY(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({w, &v}), LEAT_NO_TARGET));
    EXPECT(leat_tensor_at(v, leat_tensor_count(v) - 1) == want);
    leat_tensor_unref(v);
    return NULL;
}

/* Saves twice, so that the older checkpoint is removed, and restores. The checkpoint that is there
 * is whole at any time. */
static leat_status checkpoint(const char *dir, bool sharded)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_checkpoint *c = NULL;
    leat_tensor *read = NULL;
    char *path = NULL, *latest = NULL;
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(1000, 30)));
    leat_out name = leat_variable(g, "name", leat_string_const(g, "a name"));
    leat_out more =
        leat_variable_assign_add(w, leat_add(leat_zeros_like(w), leat_scalar(g, LEAT_FLOAT, 1)));
    leat_out init = leat_global_variables_initializer(g);
    leat_saver *saver = leat_saver_new(g, .max_to_keep = 1, .sharded = sharded);
    const char *prefix = scenario_path(dir, "model");
    leat_status e = leat_graph_status(g);
    (void)name;
    THEN(e, leat_session_open(g, &s));
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    for (int i = 1; i <= 2; i++) {
        THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(more)));
        free(path);
        path = NULL;
        THEN(e, leat_saver_save(saver, s, prefix, i, &path));
    }
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    THEN(e, leat_saver_restore(saver, s, path));
    THEN(e, check_value(s, w, 2));
    THEN(e, leat_checkpoint_open(path, &c));
    THEN(e, leat_checkpoint_read(c, "w", &read));
    if (!e)
        EXPECT(leat_tensor_at(read, 29999) == 2);
    leat_tensor_unref(read);
    leat_checkpoint_free(c);
    free(latest);
    free(path);
    leat_saver_free(saver);
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

leat_status scenario_checkpoint(const char *dir)
{
    return checkpoint(dir, false);
}

leat_status scenario_sharded(const char *dir)
{
    return checkpoint(dir, true);
}

/* A graph with its saver, written and read again. */
leat_status scenario_meta_graph(const char *dir)
{
    leat_graph *g = leat_graph_new(), *copy = leat_graph_new();
    leat_session *s = NULL;
    leat_saver *read = NULL;
    leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(3)));
    leat_global_variables_initializer(g);
    leat_saver *saver = leat_saver_new(g);
    const char *path = scenario_path(dir, "graph.meta");
    leat_status e = leat_graph_status(g);
    THEN(e, leat_meta_graph_write(g, saver, path));
    THEN(e, leat_meta_graph_read(copy, path, &read));
    THEN(e, leat_session_open(copy, &s));
    leat_session_close(s);
    leat_saver_free(read);
    leat_saver_free(saver);
    leat_graph_free(copy);
    leat_graph_free(g);
    return e;
}
