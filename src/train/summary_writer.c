/* summary_writer.c -- event files for training programs (summary.h). */
#include <leat/summary.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/buffer.h"
#include "core/object.h"
#include "io/event.h"
#include "proto/wire.h"

enum { FLUSH_SECONDS = 2 };

struct leat_summary_writer {
    leat_object object;
    pthread_mutex_t lock; /* guards events and flushed */
    leat_event_writer *events;
    double flushed; /* time of the last flush */
};

leat_status leat_summary_writer_open(const char *dir, leat_summary_writer **out)
{
    LEAT_CHECK_ARG(dir);
    leat_event_writer *events;
    LEAT_TRY(leat_event_writer_open(dir, "", &events));
    leat_summary_writer *w = leat_new_object(leat_summary_writer, SUMMARY_WRITER);
    pthread_mutex_init(&w->lock, NULL);
    w->events = events;
    w->flushed = leat_wall_time();
    *out = w;
    return NULL;
}

const char *leat_summary_writer_path(const leat_summary_writer *w)
{
    if (!LEAT_USABLE(SUMMARY_WRITER, w))
        return "";
    return leat_event_writer_path(w->events);
}

static leat_status write_event(leat_summary_writer *w, Leat__Event *e)
{
    pthread_mutex_lock(&w->lock);
    leat_status s = leat_event_write(w->events, e);
    if (!s && e->wall_time - w->flushed >= FLUSH_SECONDS) {
        w->flushed = e->wall_time;
        s = leat_event_flush(w->events);
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
    leat_status s = leat_event_flush(w->events);
    w->flushed = leat_wall_time();
    pthread_mutex_unlock(&w->lock);
    return s;
}

leat_status leat_summary_writer_close(leat_summary_writer *w)
{
    if (!w)
        return NULL;
    LEAT_CHECK(SUMMARY_WRITER, w);
    leat_status s = leat_event_writer_close(w->events);
    pthread_mutex_destroy(&w->lock);
    leat_object_free(&w->object);
    return s;
}
