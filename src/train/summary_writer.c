/* summary_writer.c -- event files for training programs (summary.h). Events are gathered in memory;
 * a thread, which is started with the first event, writes them to the file when the first of them
 * has waited flush_secs. */
#include <leat/summary.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/buffer.h"
#include "core/cond.h"
#include "core/log.h"
#include "core/object.h"
#include "core/thread.h"
#include "core/threadpool.h"
#include "graph/given.h"
#include "io/event.h"
#include "proto/wire.h"
#include "train/hook_int.h"
#include "train/saver.h"

struct leat_summary_writer {
    leat_object object;
    char *dir, *suffix;
    int64_t flush_ns;
    int max_queue;        /* 0: no limit */
    pthread_mutex_t lock; /* guards what follows; no other lock is taken under it */
    pthread_cond_t change;
    leat_event_writer *events;   /* NULL: closed, or never opened */
    leat_status failed;          /* why there is no file, or what the thread could not write */
    int64_t due_ns;              /* when the gathered events are to be written */
    int queued;                  /* number of gathered events */
    bool has_thread, ends, told; /* told: an error of this writer was logged */
    pthread_t thread;
};

/* Call with the lock held. */
static leat_status flush_locked(leat_summary_writer *w)
{
    if (!w->events)
        return NULL;
    w->due_ns = leat_now_ns() + w->flush_ns;
    LEAT_TRY(leat_event_flush(w->events));
    w->queued = 0;
    return NULL;
}

static void *flush_at_intervals(void *arg)
{
    leat_summary_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        const int64_t due = w->queued ? w->due_ns : INT64_MAX;
        if (leat_now_ns() < due)
            leat_cond_wait_until(&w->change, &w->lock, due);
        else
            w->failed = leat_status_first(w->failed, flush_locked(w));
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- Opening and closing ---- */

leat_summary_writer *leat_summary_writer_try(const char *dir, const leat_writer_options *o)
{
    leat_summary_writer *w = leat_new_object(leat_summary_writer, SUMMARY_WRITER);
    pthread_mutex_init(&w->lock, NULL);
    leat_cond_init(&w->change);
    w->dir = leat_xstrdup(dir);
    w->suffix = leat_xstrdup(o->filename_suffix ? o->filename_suffix : "");
    const double secs = leat_given_or(&o->given, "flush_secs", o->flush_secs, 2);
    w->flush_ns = secs > 0 ? (int64_t)(fmin(secs, 1e9) * 1e9) : 0;
    w->max_queue = o->max_queue;
    w->failed = leat_event_writer_open(dir, w->suffix, &w->events);
    return w;
}

leat_status leat_summary_writer_open_with(const char *dir, const leat_writer_options *options,
                                          leat_summary_writer **out)
{
    LEAT_CHECK_ARG(dir);
    leat_summary_writer *w = leat_summary_writer_try(dir, options);
    if (w->events) {
        *out = w;
        return NULL;
    }
    leat_status s = w->failed;
    w->failed = NULL;
    leat_status_free(leat_summary_writer_close(w));
    return s;
}

/* Closes the file. Call with the lock held. */
static leat_status close_file(leat_summary_writer *w)
{
    leat_status s = leat_event_writer_close(w->events);
    w->events = NULL;
    w->queued = 0;
    return s;
}

leat_status leat_summary_writer_reopen(leat_summary_writer *w)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    pthread_mutex_lock(&w->lock);
    leat_status s = close_file(w), again = leat_event_writer_open(w->dir, w->suffix, &w->events);
    leat_status_free(w->failed);
    w->failed = again ? leat_status_copy(again) : NULL;
    pthread_mutex_unlock(&w->lock);
    return leat_status_first(s, again);
}

leat_status leat_summary_writer_close(leat_summary_writer *w)
{
    if (!w)
        return NULL;
    LEAT_CHECK(SUMMARY_WRITER, w);
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    leat_status s = close_file(w);
    leat_status_free(w->failed);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
    free(w->dir);
    free(w->suffix);
    leat_object_free(&w->object);
    return s;
}

const char *leat_summary_writer_path(const leat_summary_writer *w)
{
    if (!LEAT_USABLE(SUMMARY_WRITER, w) || !w->events)
        return "";
    return leat_event_writer_path(w->events);
}

void leat_writer_tell(leat_summary_writer *w, leat_status s)
{
    if (!s)
        return;
    pthread_mutex_lock(&w->lock);
    const bool told = w->told;
    w->told = true;
    pthread_mutex_unlock(&w->lock);
    if (!told)
        LEAT_LOG(WARNING, "Events are not written to %s, and training goes on without them: %s",
                 w->dir, leat_status_message(s));
    leat_status_free(s);
}

/* ---- Writing ---- */

/* Writes the gathered events now, or has the thread write them later. Call with the lock held. */
static leat_status settle(leat_summary_writer *w)
{
    if (w->queued++ == 0) {
        w->due_ns = leat_now_ns() + w->flush_ns;
        if (w->flush_ns && !w->has_thread)
            w->has_thread = leat_thread_start(&w->thread, flush_at_intervals, w) == 0;
        pthread_cond_signal(&w->change);
    }
    const bool full = w->max_queue > 0 && w->queued > w->max_queue;
    const bool due = !w->has_thread && leat_now_ns() >= w->due_ns;
    return full || due ? flush_locked(w) : NULL;
}

static leat_status write_event(leat_summary_writer *w, Leat__Event *e)
{
    pthread_mutex_lock(&w->lock);
    leat_status s = w->failed;
    w->failed = NULL;
    if (!w->events) {
        w->failed = s ? leat_status_copy(s) : NULL;
    } else {
        leat_status mine = leat_event_write(w->events, e);
        s = leat_status_first(s, mine ? mine : settle(w));
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}

leat_status leat_summary_write_bytes(leat_summary_writer *w, const void *summary, size_t size,
                                     int64_t step)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    Leat__Summary *m;
    LEAT_TRY(LEAT_UNPACK(summary, summary, size, &m));
    Leat__Event e = LEAT__EVENT__INIT;
    e.step = step;
    e.what_case = LEAT__EVENT__WHAT_SUMMARY;
    e.summary = m;
    leat_status s = write_event(w, &e);
    leat_proto_free(m);
    return s;
}

leat_status leat_summary_write(leat_summary_writer *w, const leat_tensor *summaries, int64_t step)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    LEAT_REQUIRE(summaries->dtype == LEAT_STRING, INVALID_ARGUMENT, "A summary is a string, not %s",
                 leat_dtype_name(summaries->dtype));
    for (int64_t i = 0; i < summaries->count; i++) {
        const leat_string *v = (const leat_string *)summaries->data + i;
        LEAT_TRY(leat_summary_write_bytes(w, v->data, v->size, step));
    }
    return NULL;
}

leat_status leat_summary_write_scalar(leat_summary_writer *w, const char *tag, float value,
                                      int64_t step)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    Leat__Summary__Value v = LEAT__SUMMARY__VALUE__INIT, *values[] = {&v};
    v.tag = (char *)tag;
    v.value_case = LEAT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v.simple_value = value;
    Leat__Summary m = LEAT__SUMMARY__INIT;
    m.n_value = 1;
    m.value = values;
    Leat__Event e = LEAT__EVENT__INIT;
    e.step = step;
    e.what_case = LEAT__EVENT__WHAT_SUMMARY;
    e.summary = &m;
    return write_event(w, &e);
}

leat_status leat_summary_write_graph(leat_summary_writer *w, const leat_graph *g, int64_t step)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    LEAT_CHECK(GRAPH, g);
    void *bytes;
    size_t n;
    LEAT_TRY(leat_graph_to_binary(g, &bytes, &n));
    Leat__Event e = LEAT__EVENT__INIT;
    e.step = step;
    e.what_case = LEAT__EVENT__WHAT_GRAPH_DEF;
    e.graph_def = (ProtobufCBinaryData){n, bytes};
    leat_status s = write_event(w, &e);
    free(bytes);
    return s;
}

leat_status leat_summary_write_meta_graph(leat_summary_writer *w, const leat_graph *g,
                                          const leat_saver *saver, int64_t step)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    LEAT_CHECK(GRAPH, g);
    Leat__MetaGraphDef *m;
    void *bytes;
    size_t n;
    LEAT_TRY(leat_meta_graph_to_proto(g, saver, &m));
    leat_status s = leat_proto_bytes(m, &bytes, &n);
    leat_proto_free(m);
    LEAT_TRY(s);
    Leat__Event e = LEAT__EVENT__INIT;
    e.step = step;
    e.what_case = LEAT__EVENT__WHAT_META_GRAPH_DEF;
    e.meta_graph_def = (ProtobufCBinaryData){n, bytes};
    s = write_event(w, &e);
    free(bytes);
    return s;
}

leat_status leat_summary_write_metadata(leat_summary_writer *w, const leat_metadata *m,
                                        const char *tag, int64_t step)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    LEAT_CHECK(METADATA, m);
    void *bytes;
    size_t n;
    LEAT_TRY(leat_metadata_to_binary(m, &bytes, &n));
    Leat__TaggedRunMetadata tagged = LEAT__TAGGED_RUN_METADATA__INIT;
    tagged.tag = (char *)tag;
    tagged.run_metadata = (ProtobufCBinaryData){n, bytes};
    Leat__Event e = LEAT__EVENT__INIT;
    e.step = step;
    e.what_case = LEAT__EVENT__WHAT_TAGGED_RUN_METADATA;
    e.tagged_run_metadata = &tagged;
    leat_status s = write_event(w, &e);
    free(bytes);
    return s;
}

leat_status leat_summary_write_mark(leat_summary_writer *w, leat_session_mark mark,
                                    const char *path, int64_t step)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    Leat__SessionLog log = LEAT__SESSION_LOG__INIT;
    log.status = (Leat__SessionLog__SessionStatus)mark;
    if (path)
        log.checkpoint_path = (char *)path;
    Leat__Event e = LEAT__EVENT__INIT;
    e.step = step;
    e.what_case = LEAT__EVENT__WHAT_SESSION_LOG;
    e.session_log = &log;
    return write_event(w, &e);
}

leat_status leat_summary_flush(leat_summary_writer *w)
{
    LEAT_CHECK(SUMMARY_WRITER, w);
    pthread_mutex_lock(&w->lock);
    leat_status s;
    if (w->events) {
        leat_status_free(w->failed); /* what failed before is tried again now */
        w->failed = NULL;
        s = flush_locked(w);
    } else {
        s = w->failed ? leat_status_copy(w->failed) : NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}
