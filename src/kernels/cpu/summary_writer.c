/* summary_writer.c -- summary writers: SummaryWriter, CreateSummaryFileWriter and the ops that
 * write to the event file. Events are kept in memory until there are more than max_queue of them,
 * or until flush_millis have passed since the file was last written to. */
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "core/threadpool.h"
#include "io/event.h"
#include "kernels/any/resource_op.h"
#include "kernels/cpu/summary.h"
#include "proto/graph.pb-c.h"
#include "proto/wire.h"

typedef struct writer {
    leat_resource base;
    pthread_mutex_t lock; /* guards what follows; no other lock is taken under it */
    leat_event_writer *events;
    int64_t queued, max_queue; /* events that are in memory */
    int64_t flushed_ns, flush_ns;
} writer;

static void writer_free(void *resource)
{
    writer *w = resource;
    leat_status_free(leat_event_writer_close(w->events));
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static const leat_resource_type writer_type = {"N10tensorflow22SummaryWriterInterfaceE",
                                               writer_free};

static leat_status find_writer(leat_kernel *k, writer **out)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, 0, &writer_type, &r));
    *out = (writer *)r;
    return NULL;
}

/* ---- Inputs ---- */

static leat_status scalar(leat_kernel *k, int i, const char *name, const leat_tensor **out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be a scalar, got shape %s", name,
                 leat_shape_show(&t->shape).s);
    *out = t;
    return NULL;
}

static leat_status text(leat_kernel *k, int i, const char *name, char **out)
{
    const leat_tensor *t = NULL;
    LEAT_TRY(scalar(k, i, name, &t));
    *out = leat_summary_tag(t, 0);
    return NULL;
}

static leat_status number(leat_kernel *k, int i, const char *name, int64_t *out)
{
    const leat_tensor *t = NULL;
    LEAT_TRY(scalar(k, i, name, &t));
    *out = t->dtype == LEAT_INT32 ? AT(int32_t, t)[0] : AT(int64_t, t)[0];
    return NULL;
}

/* ---- Opening and closing ---- */

static leat_status handle_run(leat_kernel *k)
{
    return leat_resource_handle_run(k, &writer_type);
}

typedef struct file_args {
    char *dir, *suffix;
    int64_t max_queue, flush_millis;
} file_args;

static leat_status open_file(void *arg, leat_resource **out)
{
    const file_args *a = arg;
    leat_event_writer *events;
    LEAT_TRY(leat_status_prefix(leat_event_writer_open(a->dir, a->suffix, &events),
                                "Could not initialize events writer: "));
    writer *w = leat_new(writer);
    leat_resource_init(&w->base, &writer_type);
    pthread_mutex_init(&w->lock, NULL);
    w->events = events;
    w->max_queue = a->max_queue;
    w->flush_ns = a->flush_millis * 1000000;
    w->flushed_ns = leat_now_ns();
    *out = &w->base;
    return NULL;
}

/* A writer that is open already stays as it is. */
static leat_status create_file_writer(leat_kernel *k)
{
    const leat_handle *h;
    leat_resource *r;
    file_args a = {0};
    LEAT_TRY(text(k, 1, "logdir", &a.dir));
    LEAT_TRY(number(k, 2, "max_queue", &a.max_queue));
    LEAT_TRY(number(k, 3, "flush_millis", &a.flush_millis));
    LEAT_TRY(text(k, 4, "filename_suffix", &a.suffix));
    LEAT_TRY(leat_kernel_handle(k, 0, &h));
    LEAT_TRY(leat_resources_find_or_make(leat_kernel_resources(k), h->container, h->name,
                                         &writer_type, open_file, &a, &r));
    leat_resource_unref(r);
    return NULL;
}

static leat_status create_db_writer(leat_kernel *k)
{
    char *uri = NULL;
    LEAT_TRY(text(k, 1, "db_uri", &uri));
    return leat_error(UNIMPLEMENTED,
                      "Summaries are not written to databases (%s): use a file writer, "
                      "tf.contrib.summary.create_file_writer, and TensorBoard's --logdir",
                      uri);
}

/* The file is written to and closed as soon as no op uses the writer any more. */
static leat_status close_run(leat_kernel *k)
{
    const leat_handle *h;
    LEAT_TRY(leat_kernel_handle(k, 0, &h));
    return leat_resources_remove(leat_kernel_resources(k), h->container, h->name, &writer_type);
}

/* ---- Writing ---- */

/* Call with the lock held. */
static leat_status flush(writer *w)
{
    LEAT_TRY(leat_status_prefix(leat_event_flush(w->events), "Could not flush events file: "));
    w->queued = 0;
    w->flushed_ns = leat_now_ns();
    return NULL;
}

static leat_status flush_run(leat_kernel *k)
{
    writer *w;
    LEAT_TRY(find_writer(k, &w));
    pthread_mutex_lock(&w->lock);
    leat_status s = flush(w);
    pthread_mutex_unlock(&w->lock);
    leat_resource_unref(&w->base);
    return s;
}

/* Writes an event: bytes, or else a message. */
static leat_status write_event(leat_kernel *k, Leat__Event *e, const leat_string *bytes)
{
    writer *w;
    LEAT_TRY(find_writer(k, &w));
    pthread_mutex_lock(&w->lock);
    leat_status s = bytes ? leat_event_write_bytes(w->events, bytes->data, bytes->size)
                          : leat_event_write(w->events, e);
    if (!s && (++w->queued > w->max_queue || leat_now_ns() - w->flushed_ns > w->flush_ns))
        s = flush(w);
    pthread_mutex_unlock(&w->lock);
    leat_resource_unref(&w->base);
    return s;
}

leat_status leat_summary_write_to(leat_kernel *k, Leat__Summary *m)
{
    Leat__Event e = LEAT__EVENT__INIT;
    LEAT_TRY(number(k, 1, "step", &e.step));
    e.what_case = LEAT__EVENT__WHAT_SUMMARY;
    e.summary = m;
    return write_event(k, &e, NULL);
}

/* ---- Summaries of tensors ---- */

static leat_status write_tensor(leat_kernel *k)
{
    const leat_tensor *metadata = NULL;
    Leat__Summary__Value v = LEAT__SUMMARY__VALUE__INIT;
    LEAT_TRY(text(k, 3, "tag", &v.tag));
    LEAT_TRY(scalar(k, 4, "summary_metadata", &metadata));
    const leat_string *bytes = metadata->data;
    if (bytes->size)
        LEAT_TRY(LEAT_UNPACK(summary_metadata, bytes->data, bytes->size, &v.metadata));
    leat_status s = leat_summary_tensor(k, leat_kernel_in(k, 2), &v);
    leat_proto_free(v.metadata);
    return s;
}

static leat_status write_scalar(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 3);
    Leat__Summary__Value v = LEAT__SUMMARY__VALUE__INIT;
    LEAT_TRY(text(k, 2, "tag", &v.tag));
    LEAT_REQUIRE(x->count > 0, INVALID_ARGUMENT, "value must have an element, got shape %s",
                 leat_shape_show(&x->shape).s);
    v.value_case = LEAT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v.simple_value = (float)leat_tensor_at(x, 0);
    return leat_summary_put_value(k, &v);
}

static leat_status write_histogram(leat_kernel *k)
{
    char *tag = NULL;
    LEAT_TRY(text(k, 2, "tag", &tag));
    return leat_summary_histogram(k, tag, tag, leat_kernel_in(k, 3));
}

static leat_status write_images(leat_kernel *k)
{
    char *tag = NULL;
    LEAT_TRY(text(k, 2, "tag", &tag));
    return leat_summary_images(k, tag, leat_kernel_in(k, 3),
                               leat_node_int(leat_kernel_node(k), "max_images"),
                               leat_kernel_in(k, 4));
}

static leat_status write_sounds(leat_kernel *k)
{
    char *tag = NULL;
    const leat_tensor *rate = NULL;
    LEAT_TRY(text(k, 2, "tag", &tag));
    LEAT_TRY(scalar(k, 4, "sample_rate", &rate));
    return leat_summary_sounds(k, tag, leat_kernel_in(k, 3),
                               leat_node_int(leat_kernel_node(k), "max_outputs"),
                               AT(float, rate)[0]);
}

/* ---- Messages as strings ---- */

/* DATA_LOSS with these words, if the bytes are no message of type d. */
static leat_status check_message(const ProtobufCMessageDescriptor *d, const leat_string *bytes,
                                 const char *what)
{
    ProtobufCMessage *m;
    leat_status s = leat_proto_unpack(d, bytes->data, bytes->size, &m);
    if (!s)
        leat_proto_free(m);
    if (!s || leat_status_code(s) == LEAT_RESOURCE_EXHAUSTED)
        return s;
    leat_status_free(s);
    return leat_error(DATA_LOSS, "Bad %s binary proto tensor string", what);
}

/* Messages that follow each other are one message with the values of all. */
static leat_status write_raw(leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 2);
    const leat_string *v = t->data;
    leat_strbuf all = {0};
    leat_status s = NULL;
    for (int64_t i = 0; i < t->count && !s; i++) {
        s = leat_status_suffix(
            check_message(&leat__summary__descriptor, &v[i], "tf.compat.v1.Summary"),
            " at index %lld", (long long)i);
        if (!s)
            s = leat_strbuf_reserve(&all, v[i].size);
        if (!s)
            leat_strbuf_add(&all, v[i].data, v[i].size);
    }
    Leat__Summary *m = NULL;
    if (!s)
        s = LEAT_UNPACK(summary, all.s, all.n, &m);
    if (!s)
        s = leat_summary_write_to(k, m);
    leat_proto_free(m);
    leat_strbuf_release(&all);
    return s;
}

static leat_status import_event(leat_kernel *k)
{
    const leat_tensor *t = NULL;
    LEAT_TRY(scalar(k, 1, "event", &t));
    LEAT_TRY(check_message(&leat__event__descriptor, t->data, "tf.Event"));
    return write_event(k, NULL, t->data);
}

static leat_status write_graph(leat_kernel *k)
{
    const leat_tensor *t = NULL;
    Leat__Event e = LEAT__EVENT__INIT;
    LEAT_TRY(number(k, 1, "step", &e.step));
    LEAT_TRY(scalar(k, 2, "tensor", &t));
    const leat_string *bytes = t->data;
    LEAT_TRY(check_message(&leat__graph_def__descriptor, bytes, "tf.GraphDef"));
    e.what_case = LEAT__EVENT__WHAT_GRAPH_DEF;
    e.graph_def = (ProtobufCBinaryData){bytes->size, (uint8_t *)bytes->data};
    return write_event(k, &e, NULL);
}

const leat_kernel_def leat_cpu_summary_writer[] = {
    {.op = "SummaryWriter",
     .run = handle_run,
     .state_size = sizeof(leat_resource_op),
     .release = leat_resource_op_release},
    {.op = "CreateSummaryFileWriter", .run = create_file_writer, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "CreateSummaryDbWriter", .run = create_db_writer},
    {.op = "FlushSummaryWriter", .run = flush_run, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "CloseSummaryWriter", .run = close_run, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteSummary", .run = write_tensor, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteRawProtoSummary", .run = write_raw, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "ImportEvent", .run = import_event, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteScalarSummary",
     .where = {{"T", LEAT_TYPES_REAL}},
     .run = write_scalar,
     .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteHistogramSummary",
     .where = {{"T", LEAT_TYPES_REAL}},
     .run = write_histogram,
     .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteImageSummary", .run = write_images, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteAudioSummary", .run = write_sounds, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteGraphSummary", .run = write_graph, .flags = LEAT_KERNEL_BLOCKS},
    {0},
};
