/* event_read.c -- event files for programs (io.h): messages as plain structs. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/object.h"
#include "core/strbuf.h"
#include "io/event.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

struct leat_event_reader {
    leat_object object;
    leat_record_reader *records;
    Leat__Event *message; /* the message that the fields of `event` point into */
    leat_event_record event;
    leat_summary_value *values;
    leat_strbuf text;
};

leat_status leat_event_reader_open(const char *path, leat_event_reader **out)
{
    LEAT_CHECK_ARG(path);
    leat_record_reader *records;
    LEAT_TRY(leat_record_reader_open(path, LEAT_RECORD_PLAIN, &records));
    leat_event_reader *r = leat_new_object(leat_event_reader, EVENT_READER);
    r->records = records;
    *out = r;
    return NULL;
}

void leat_event_reader_free(leat_event_reader *r)
{
    if (!r)
        return;
    if (!LEAT_USABLE(EVENT_READER, r))
        return;
    leat_record_reader_free(r->records);
    leat_proto_free(r->message);
    free(r->values);
    leat_strbuf_release(&r->text);
    leat_object_free(&r->object);
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

/* TensorFlow 2 writes a scalar as a tensor. */
static bool is_scalar(const Leat__Summary__Value *v, float *out)
{
    const Leat__SummaryMetadata *m = v->metadata;
    leat_tensor *t = NULL;
    if (!m || !m->plugin_data || strcmp(text_of(m->plugin_data->plugin_name), "scalars") != 0)
        return false;
    leat_status s = leat_tensor_from_proto(v->tensor, &t);
    const bool yes = !s && leat_tensor_count(t) == 1 && leat_tensor_dtype(t) == LEAT_FLOAT;
    if (yes)
        *out = (float)leat_tensor_at(t, 0);
    leat_status_free(s);
    leat_tensor_unref(t);
    return yes;
}

static leat_summary_value value_of(const Leat__Summary__Value *v)
{
    leat_summary_value x = {.tag = text_of(v->tag)};
    if (!*x.tag)
        x.tag = text_of(v->node_name);
    switch (v->value_case) {
    case LEAT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE:
        x.kind = LEAT_SUMMARY_SCALAR;
        x.scalar = v->simple_value;
        break;
    case LEAT__SUMMARY__VALUE__VALUE_HISTO:
        x.kind = LEAT_SUMMARY_HISTOGRAM;
        x.min = v->histo->min;
        x.max = v->histo->max;
        x.num = v->histo->num;
        x.sum = v->histo->sum;
        x.limits = v->histo->bucket_limit;
        x.counts = v->histo->bucket;
        x.n_buckets =
            (int)(v->histo->n_bucket < v->histo->n_bucket_limit ? v->histo->n_bucket
                                                                : v->histo->n_bucket_limit);
        break;
    case LEAT__SUMMARY__VALUE__VALUE_IMAGE:
        x.kind = LEAT_SUMMARY_IMAGE;
        x.height = v->image->height;
        x.width = v->image->width;
        x.channels = v->image->colorspace;
        break;
    case LEAT__SUMMARY__VALUE__VALUE_AUDIO:
        x.kind = LEAT_SUMMARY_AUDIO;
        break;
    case LEAT__SUMMARY__VALUE__VALUE_TENSOR:
        x.kind = is_scalar(v, &x.scalar) ? LEAT_SUMMARY_SCALAR : LEAT_SUMMARY_TENSOR;
        break;
    default:
        break;
    }
    return x;
}

static void show_summary(leat_event_reader *r, const Leat__Summary *m)
{
    r->values = leat_xrealloc(r->values, sizeof(*r->values) * (m->n_value + 1));
    for (size_t i = 0; i < m->n_value; i++)
        r->values[i] = value_of(m->value[i]);
    r->event.values = r->values;
    r->event.n_values = (int)m->n_value;
}

static void show_bytes(leat_event_reader *r, leat_event_kind kind, const ProtobufCBinaryData *b)
{
    r->event.kind = kind;
    r->event.bytes = b->data;
    r->event.size = b->len;
}

static void show_session(leat_event_reader *r, const Leat__SessionLog *m)
{
    static const char *const names[] = {"", "START", "STOP", "CHECKPOINT"};
    int i = (int)m->status >= 0 && (int)m->status < 4 ? (int)m->status : 0;
    const char *path = text_of(m->checkpoint_path);
    leat_strbuf_printf(&r->text, "%s%s%s", names[i], *path ? " " : "", path);
    r->event.kind = LEAT_EVENT_SESSION;
    r->event.text = leat_strbuf_text(&r->text);
}

static void show(leat_event_reader *r, const Leat__Event *m)
{
    r->event = (leat_event_record){.wall_time = m->wall_time, .step = m->step, .text = ""};
    leat_strbuf_clear(&r->text);
    switch (m->what_case) {
    case LEAT__EVENT__WHAT_FILE_VERSION:
        r->event.kind = LEAT_EVENT_VERSION;
        r->event.text = text_of(m->file_version);
        break;
    case LEAT__EVENT__WHAT_GRAPH_DEF:
        show_bytes(r, LEAT_EVENT_GRAPH, &m->graph_def);
        break;
    case LEAT__EVENT__WHAT_META_GRAPH_DEF:
        show_bytes(r, LEAT_EVENT_META_GRAPH, &m->meta_graph_def);
        break;
    case LEAT__EVENT__WHAT_SUMMARY:
        r->event.kind = LEAT_EVENT_SUMMARY;
        show_summary(r, m->summary);
        break;
    case LEAT__EVENT__WHAT_LOG_MESSAGE:
        r->event.kind = LEAT_EVENT_LOG;
        r->event.text = text_of(m->log_message->message);
        break;
    case LEAT__EVENT__WHAT_SESSION_LOG:
        show_session(r, m->session_log);
        break;
    case LEAT__EVENT__WHAT_TAGGED_RUN_METADATA:
        show_bytes(r, LEAT_EVENT_METADATA, &m->tagged_run_metadata->run_metadata);
        r->event.text = text_of(m->tagged_run_metadata->tag);
        break;
    default:
        break;
    }
}

leat_status leat_event_next(leat_event_reader *r, const leat_event_record **out)
{
    LEAT_CHECK(EVENT_READER, r);
    leat_proto_free(r->message);
    r->message = NULL;
    LEAT_TRY(leat_event_next_message(r->records, &r->message));
    show(r, r->message);
    *out = &r->event;
    return NULL;
}
