/* event_read.c -- event files for programs (io.h): messages as plain structs. */
#include <limits.h>
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
    leat_tensor **tensors; /* those of the values; some are NULL */
    double **buckets;      /* limits and counts of histograms that are tensors; some are NULL */
    size_t n_values;
    leat_strbuf text;
};

static void release_values(leat_event_reader *r)
{
    for (size_t i = 0; i < r->n_values; i++) {
        leat_tensor_unref(r->tensors[i]);
        free(r->buckets[i]);
    }
    r->n_values = 0;
}

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
    release_values(r);
    free(r->values);
    free(r->tensors);
    free(r->buckets);
    leat_strbuf_release(&r->text);
    leat_object_free(&r->object);
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

/* ---- TensorFlow 2 writes tensors, and names the plugin that shows them ---- */

/* Rows of a left limit, a right limit and a count. Gives the limits and then the counts. */
static double *buckets_of(const leat_tensor *t, leat_summary_value *x)
{
    const leat_shape s = leat_tensor_shape(t);
    const int64_t n = s.rank == 2 && s.dim[1] == 3 ? s.dim[0] : 0;
    if (n <= 0 || n > INT_MAX || leat_tensor_dtype(t) != LEAT_DOUBLE)
        return NULL;
    double *b = leat_new_array(double, 2 * n);
    for (int64_t i = 0; i < n; i++) {
        const double low = leat_tensor_at(t, 3 * i), high = leat_tensor_at(t, 3 * i + 1);
        b[i] = high;
        b[n + i] = leat_tensor_at(t, 3 * i + 2);
        x->num += b[n + i];
        x->sum += b[n + i] * (low + high) / 2;
    }
    x->kind = LEAT_SUMMARY_HISTOGRAM;
    x->min = leat_tensor_at(t, 0);
    x->max = b[n - 1];
    x->limits = b;
    x->counts = b + n;
    x->n_buckets = (int)n;
    return b;
}

static int number_at(const leat_tensor *t, int64_t i)
{
    const leat_string *v = (const leat_string *)leat_tensor_data(t) + i;
    return v->data ? atoi(v->data) : 0;
}

static double *tensor_value(const leat_tensor *t, leat_summary_value *x)
{
    const int64_t n = leat_tensor_count(t);
    const leat_dtype type = leat_tensor_dtype(t);
    x->kind = LEAT_SUMMARY_TENSOR;
    x->tensor = t;
    if (strcmp(x->plugin, "scalars") == 0 && n == 1 && type == LEAT_FLOAT) {
        x->kind = LEAT_SUMMARY_SCALAR;
        x->scalar = (float)leat_tensor_at(t, 0);
    } else if (strcmp(x->plugin, "images") == 0 && n >= 2 && type == LEAT_STRING) {
        x->kind = LEAT_SUMMARY_IMAGE; /* width, height, and a PNG file for each image */
        x->width = number_at(t, 0);
        x->height = number_at(t, 1);
    } else if (strcmp(x->plugin, "audio") == 0) {
        x->kind = LEAT_SUMMARY_AUDIO;
    } else if (strcmp(x->plugin, "histograms") == 0) {
        return buckets_of(t, x);
    }
    return NULL;
}

/* ---- Values ---- */

/* Gives a tensor, if the value is one, and buckets, if that is a histogram. */
static leat_summary_value value_of(const Leat__Summary__Value *v, leat_tensor **tensor_out,
                                   double **buckets_out)
{
    leat_summary_value x = {.tag = text_of(v->tag), .plugin = ""};
    leat_status bad = NULL;
    if (v->metadata && v->metadata->plugin_data)
        x.plugin = text_of(v->metadata->plugin_data->plugin_name);
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
        x.channels = (int)v->audio->num_channels;
        x.sample_rate = v->audio->sample_rate;
        x.frames = v->audio->length_frames;
        break;
    case LEAT__SUMMARY__VALUE__VALUE_TENSOR:
        x.kind = LEAT_SUMMARY_TENSOR;
        bad = leat_tensor_from_proto(v->tensor, tensor_out);
        if (!bad)
            *buckets_out = tensor_value(*tensor_out, &x);
        leat_status_free(bad); /* a tensor that cannot be read is shown without its value */
        break;
    default:
        break;
    }
    return x;
}

static void show_summary(leat_event_reader *r, const Leat__Summary *m)
{
    const size_t n = m->n_value;
    r->values = leat_xrealloc(r->values, sizeof(*r->values) * (n + 1));
    r->tensors = leat_xrealloc(r->tensors, sizeof(*r->tensors) * (n + 1));
    r->buckets = leat_xrealloc(r->buckets, sizeof(*r->buckets) * (n + 1));
    for (size_t i = 0; i < n; i++) {
        r->tensors[i] = NULL;
        r->buckets[i] = NULL;
        r->values[i] = value_of(m->value[i], &r->tensors[i], &r->buckets[i]);
    }
    r->n_values = n;
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
    release_values(r);
    leat_proto_free(r->message);
    r->message = NULL;
    LEAT_TRY(leat_event_next_message(r->records, &r->message));
    show(r, r->message);
    *out = &r->event;
    return NULL;
}
