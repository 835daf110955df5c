/* message_codecs.h -- the codecs of messages that carry tensors as a table, for the test and for
 * the fuzzer: a sample with all fields of a message, and a function that decodes bytes and shows
 * what the struct then holds, as text. */
#ifndef LEAT_TESTS_MESSAGE_CODECS_H
#define LEAT_TESTS_MESSAGE_CODECS_H

#include <inttypes.h>
#include <leat/leat.h>

#include "cluster/messages/fields.h"
#include "cluster/messages/messages.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "test.h"

/* ---- Tensors and bytes ---- */

static leat_tensor *floats(int64_t rows, int64_t columns)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(rows, columns), &t));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)leat_tensor_mutable(t))[i] = (float)i;
    return t;
}

/* Bytes in memory of exactly their size, as slices of at most `piece` bytes. */
typedef struct sliced {
    char *bytes;
    leat_slice *slices;
    leat_incoming in;
} sliced;

static sliced sliced_of(const char *bytes, size_t n, size_t piece)
{
    sliced c = {.bytes = malloc(n ? n : 1), .slices = leat_new_array(leat_slice, n / piece + 1)};
    memcpy(c.bytes, bytes, n);
    for (size_t at = 0; at < n; at += piece)
        c.slices[c.in.n++] =
            (leat_slice){(uint8_t *)c.bytes + at, n - at < piece ? n - at : piece, NULL};
    c.in.slices = c.slices;
    c.in.size = n;
    return c;
}

static void sliced_release(sliced *c)
{
    free(c->bytes);
    free(c->slices);
}

/* ---- What a struct holds, as text ---- */

static void show_text(leat_strbuf *b, const char *name, const char *text)
{
    leat_strbuf_printf(b, "%s=%s ", name, text ? text : "NULL");
}

static void show_tensor(leat_strbuf *b, const char *name, const leat_tensor *t)
{
    if (!t) {
        leat_strbuf_printf(b, "%s=NULL ", name);
        return;
    }
    char shape[128];
    unsigned sum = 0;
    /* Elements of other dtypes are pointers, which differ from one decoding to the next. */
    if (t->dtype != LEAT_STRING && t->dtype != LEAT_RESOURCE && t->dtype != LEAT_VARIANT)
        for (size_t i = 0; i < leat_tensor_bytes(t); i++)
            sum = sum * 31 + ((const uint8_t *)t->data)[i];
    leat_strbuf_printf(b, "%s=%s%s#%x ", name, leat_dtype_name(t->dtype),
                       leat_shape_text(&t->shape, shape, sizeof(shape)), sum);
}

static void show_names(leat_strbuf *b, const char *name, const leat_names *names)
{
    for (int i = 0; i < names->n; i++)
        show_text(b, name, names->v[i]);
}

static void show_named(leat_strbuf *b, const leat_named_tensors *t)
{
    for (int i = 0; i < t->n; i++)
        show_tensor(b, t->name[i], t->tensor[i]);
}

static leat_status show_run_graph_request(const leat_incoming *in, leat_strbuf *b)
{
    leat_run_graph_request q = {0};
    leat_status s = leat_run_graph_request_decode(in, &q);
    show_text(b, "graph", q.graph_handle);
    leat_strbuf_printf(b, "step=%" PRId64 " ", q.step_id);
    show_named(b, &q.send);
    show_names(b, "recv", &q.recv_key);
    leat_strbuf_printf(b, "timeline=%d graphs=%d errors=%d called=%d leat=%d depth=%" PRId64 " ",
                       q.record_timeline, q.record_partition_graphs,
                       q.store_errors_in_response_body, q.create_worker_session_called, q.leat,
                       q.leat_call_depth);
    show_text(b, "sender", q.leat_sender);
    CHECK(!q.session_handle);
    leat_run_graph_request_release(&q);
    return s;
}

static leat_status show_run_graph_response(const leat_incoming *in, leat_strbuf *b)
{
    leat_run_graph_response r = {0};
    leat_status s = leat_run_graph_response_decode(in, &r);
    leat_strbuf_printf(b, "stats=%d:%zu ", r.has_step_stats, r.step_stats.left);
    for (int i = 0; i < r.n_partition_graph; i++)
        leat_strbuf_printf(b, "graph:%zu ", r.partition_graph[i].left);
    leat_strbuf_printf(b, "code=%" PRId64 " ", r.status_code);
    show_text(b, "message", r.status_error_message);
    leat_run_graph_response_release(&r);
    return s;
}

static leat_status show_recv_tensor_request(const leat_incoming *in, leat_strbuf *b)
{
    leat_recv_tensor_request q = {0};
    leat_status s = leat_recv_tensor_request_decode(in, &q);
    leat_strbuf_printf(b, "step=%" PRId64 " ", q.step_id);
    show_names(b, "key", &q.rendezvous_key);
    leat_recv_tensor_request_release(&q);
    return s;
}

static leat_status show_send_tensors_request(const leat_incoming *in, leat_strbuf *b)
{
    leat_send_tensors_request q = {0};
    leat_status s = leat_send_tensors_request_decode(in, &q);
    leat_strbuf_printf(b, "step=%" PRId64 " ", q.step_id);
    show_named(b, &q.tensor);
    show_names(b, "dead", &q.dead_key);
    leat_send_tensors_request_release(&q);
    return s;
}

static leat_status show_recv_tensor_response(const leat_incoming *in, leat_strbuf *b)
{
    leat_recv_tensor_response r = {0};
    leat_status s = leat_recv_tensor_response_decode(in, &r);
    show_tensor(b, "tensor", r.tensor);
    leat_strbuf_printf(b, "dead=%d start=%" PRId64, r.is_dead, r.send_start_micros);
    leat_recv_tensor_response_release(&r);
    return s;
}

static leat_status show_recv_tensors_response(const leat_incoming *in, leat_strbuf *b)
{
    leat_cursor c = leat_cursor_of(in);
    leat_tensor *t;
    leat_status s;
    while (leat_recv_tensors_response_next(&c, &t, &s)) {
        show_tensor(b, "tensor", t);
        leat_tensor_unref(t);
    }
    return s;
}

static leat_status show_run_step_request(const leat_incoming *in, leat_strbuf *b)
{
    leat_run_step_request q = {0};
    leat_status s = leat_run_step_request_decode(in, &q);
    show_text(b, "session", q.session_handle);
    show_named(b, &q.feed);
    show_names(b, "fetch", &q.fetch);
    show_names(b, "target", &q.target);
    if (q.options)
        leat_strbuf_printf(b, "trace=%d ms=%" PRId64 " ", q.options->trace_level,
                           q.options->timeout_in_ms);
    show_text(b, "partial", q.partial_run_handle);
    leat_strbuf_printf(b, "errors=%d", q.store_errors_in_response_body);
    leat_run_step_request_release(&q);
    return s;
}

static leat_status show_run_step_response(const leat_incoming *in, leat_strbuf *b)
{
    leat_run_step_response r = {0};
    leat_status s = leat_run_step_response_decode(in, &r);
    show_named(b, &r.tensor);
    leat_strbuf_printf(b, "metadata=%d:%zu code=%" PRId64 " ", r.has_metadata, r.metadata.left,
                       r.status_code);
    show_text(b, "message", r.status_error_message);
    leat_run_step_response_release(&r);
    return s;
}

static leat_status show_run_callable_request(const leat_incoming *in, leat_strbuf *b)
{
    leat_run_callable_request q = {0};
    leat_status s = leat_run_callable_request_decode(in, &q);
    show_text(b, "session", q.session_handle);
    leat_strbuf_printf(b, "handle=%" PRId64 " ", q.handle);
    for (int i = 0; i < q.n_feed; i++)
        show_tensor(b, "feed", q.feed[i]);
    leat_run_callable_request_release(&q);
    return s;
}

/* ---- Samples: all fields of a message ---- */

static void put_named(leat_outgoing *o, int field, const char *name, leat_tensor *t)
{
    CHECK_OK(leat_put_named(o, field, name, t));
    leat_tensor_unref(t);
}

static void sample_run_graph_request(leat_outgoing *o)
{
    leat_run_graph_request q = {.graph_handle = "graph",
                                .session_handle = "session",
                                .step_id = INT64_C(0x7fedcba987654321),
                                .record_timeline = true,
                                .record_partition_graphs = true,
                                .store_errors_in_response_body = true,
                                .create_worker_session_called = true,
                                .leat = true,
                                .leat_call_depth = 7,
                                .leat_sender = "/job:worker/replica:0/task:0"};
    leat_run_graph_request_encode(o, &q);
    put_named(o, RUN_GRAPH_REQUEST_SEND, "x:0", floats(2, 3));
    put_named(o, RUN_GRAPH_REQUEST_SEND, "y:0", floats(30, 30)); /* sent by reference */
    leat_put_text(&o->text, RUN_GRAPH_REQUEST_RECV_KEY, "a");
    leat_put_text(&o->text, RUN_GRAPH_REQUEST_RECV_KEY, "b");
}

static void add_error(leat_outgoing *o, void (*add)(leat_outgoing *o, leat_status s))
{
    leat_status s = leat_error(ABORTED, "It was not to be");
    add(o, s);
    leat_status_free(s);
}

static void sample_run_graph_response(leat_outgoing *o)
{
    leat_tensor *t = floats(30, 30);
    CHECK_OK(leat_run_graph_response_add_recv(o, "a", t));
    leat_tensor_unref(t);
    leat_run_graph_response_add_step_stats(o,
                                           "\x0a\x03\x0a\x01"
                                           "d",
                                           5);
    leat_run_graph_response_add_partition_graph(o, "", 0);
    leat_run_graph_response_add_partition_graph(o,
                                                "\x0a\x03\x0a\x01"
                                                "n",
                                                5);
    add_error(o, leat_run_graph_response_add_error);
}

static void sample_recv_tensor_request(leat_outgoing *o)
{
    leat_recv_tensor_request_encode(o, &(leat_recv_tensor_request){.step_id = -2});
    leat_recv_tensor_request_add_key(o, "from;1;to;edge;0:0");
}

static void sample_recv_tensors_request(leat_outgoing *o)
{
    sample_recv_tensor_request(o);
    leat_recv_tensor_request_add_key(o, "from;1;to;other;0:0");
}

static void sample_send_tensors_request(leat_outgoing *o)
{
    leat_tensor *small = floats(2, 3), *large = floats(30, 30);
    leat_send_tensors_request_encode(o, &(leat_send_tensors_request){.step_id = -3});
    CHECK_OK(leat_send_tensors_request_add(o, "a", small));
    CHECK_OK(leat_send_tensors_request_add(o, "b", NULL));
    CHECK_OK(leat_send_tensors_request_add(o, "c", large));
    leat_tensor_unref(small);
    leat_tensor_unref(large);
}

static void sample_recv_tensor_response(leat_outgoing *o)
{
    leat_recv_tensor_response r = {floats(30, 30), true, 1234567};
    CHECK_OK(leat_recv_tensor_response_encode(o, &r));
    leat_tensor_unref(r.tensor);
}

static void sample_recv_tensors_response(leat_outgoing *o)
{
    leat_tensor *v[] = {floats(2, 3), NULL, floats(30, 30), floats(0, 3),
                        leat_scalar_string("words", 5)};
    for (int i = 0; i < 5; i++) {
        CHECK_OK(leat_recv_tensors_response_add(o, v[i]));
        leat_tensor_unref(v[i]);
    }
}

static void sample_run_step_request(leat_outgoing *o)
{
    Leat__RunOptions options = LEAT__RUN_OPTIONS__INIT;
    options.trace_level = LEAT__RUN_OPTIONS__TRACE_LEVEL__FULL_TRACE;
    options.timeout_in_ms = 500;
    leat_run_step_request q = {.session_handle = "session",
                               .options = &options,
                               .partial_run_handle = "partial",
                               .store_errors_in_response_body = true};
    leat_tensor *small = floats(2, 3), *words = leat_scalar_string("words", 5);
    CHECK_OK(leat_run_step_request_add_feed(o, "x:0", small));
    CHECK_OK(leat_run_step_request_add_feed(o, "w:0", words));
    leat_run_step_request_add_fetch(o, "y:0");
    leat_run_step_request_add_fetch(o, "z:1");
    leat_run_step_request_add_target(o, "train");
    leat_run_step_request_encode(o, &q);
    leat_tensor_unref(small);
    leat_tensor_unref(words);
}

static void sample_run_step_response(leat_outgoing *o)
{
    leat_tensor *small = floats(2, 3), *large = floats(30, 30);
    CHECK_OK(leat_run_step_response_add_tensor(o, "y:0", small));
    CHECK_OK(leat_run_step_response_add_tensor(o, "z:1", large));
    leat_run_step_response_add_metadata(o, "\x0a\x00", 2);
    add_error(o, leat_run_step_response_add_error);
    leat_tensor_unref(small);
    leat_tensor_unref(large);
}

static void sample_run_callable_request(leat_outgoing *o)
{
    leat_tensor *t = floats(2, 3);
    leat_put_text(&o->text, RUN_CALLABLE_REQUEST_SESSION_HANDLE, "session");
    leat_put_int(&o->text, RUN_CALLABLE_REQUEST_HANDLE, 77);
    CHECK_OK(leat_put_tensor(o, RUN_CALLABLE_REQUEST_FEED, t));
    CHECK_OK(leat_put_tensor(o, RUN_CALLABLE_REQUEST_FEED, t));
    leat_tensor_unref(t);
}

/* ---- The codecs ---- */

#define SMALL "float[2,3]#c4ea9d5f"
#define LARGE "float[30,30]#24058827"

/* kind: 'N' a number, 'T' a text, 'P' a part (message or tensor), '-' not decoded. */
typedef struct field {
    const char *name;
    int number;
    char kind;
} field;
typedef struct codec {
    const char *name;
    const ProtobufCMessageDescriptor *type; /* NULL: protobuf-c has no struct for it */
    void (*sample)(leat_outgoing *o);
    leat_status (*show)(const leat_incoming *in, leat_strbuf *b);
    const char *want;  /* `show` of the sample */
    const char *empty; /* `show` of no bytes; with '!' before it, a part of the error's message */
    field fields[12];
} codec;

static const codec codecs[] = {
    {"RunGraphRequest",
     &leat__run_graph_request__descriptor,
     sample_run_graph_request,
     show_run_graph_request,
     "graph=graph step=9218247941278745377 x:0=" SMALL " y:0=" LARGE
     " recv=a recv=b timeline=1 graphs=1 errors=1 called=1 leat=1 depth=7 "
     "sender=/job:worker/replica:0/task:0 ",
     "graph=NULL step=0 timeline=0 graphs=0 errors=0 called=0 leat=0 depth=0 sender=NULL ",
     {{"graph_handle", RUN_GRAPH_REQUEST_GRAPH_HANDLE, 'T'},
      {"step_id", RUN_GRAPH_REQUEST_STEP_ID, 'N'},
      {"send", RUN_GRAPH_REQUEST_SEND, 'P'},
      {"recv_key", RUN_GRAPH_REQUEST_RECV_KEY, 'T'},
      {"exec_opts", RUN_GRAPH_REQUEST_EXEC_OPTS, 'P'},
      {"session_handle", RUN_GRAPH_REQUEST_SESSION_HANDLE, '-'},
      {"store_errors_in_response_body", RUN_GRAPH_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY, 'N'},
      {"create_worker_session_called", RUN_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED, 'N'},
      {"leat_call_depth", RUN_GRAPH_REQUEST_LEAT_CALL_DEPTH, 'N'},
      {"leat_sender", RUN_GRAPH_REQUEST_LEAT_SENDER, 'T'},
      {"leat", RUN_GRAPH_REQUEST_LEAT, 'N'}}},
    {"RunGraphResponse",
     &leat__run_graph_response__descriptor,
     sample_run_graph_response,
     show_run_graph_response,
     "stats=1:5 graph:0 graph:5 code=10 message=It was not to be ",
     "stats=0:0 code=0 message=NULL ",
     {{"recv", RUN_GRAPH_RESPONSE_RECV, '-'},
      {"step_stats", RUN_GRAPH_RESPONSE_STEP_STATS, 'P'},
      {"partition_graph", RUN_GRAPH_RESPONSE_PARTITION_GRAPH, 'P'},
      {"status_code", RUN_GRAPH_RESPONSE_STATUS_CODE, 'N'},
      {"status_error_message", RUN_GRAPH_RESPONSE_STATUS_ERROR_MESSAGE, 'T'}}},
    {"RecvTensorRequest",
     &leat__recv_tensor_request__descriptor,
     sample_recv_tensor_request,
     show_recv_tensor_request,
     "step=-2 key=from;1;to;edge;0:0 ",
     "step=0 ",
     {{"step_id", RECV_TENSOR_REQUEST_STEP_ID, 'N'},
      {"rendezvous_key", RECV_TENSOR_REQUEST_RENDEZVOUS_KEY, 'T'}}},
    {"RecvTensorsRequest",
     &leat__recv_tensors_request__descriptor,
     sample_recv_tensors_request,
     show_recv_tensor_request,
     "step=-2 key=from;1;to;edge;0:0 key=from;1;to;other;0:0 ",
     "step=0 ",
     {{"step_id", RECV_TENSOR_REQUEST_STEP_ID, 'N'},
      {"rendezvous_key", RECV_TENSOR_REQUEST_RENDEZVOUS_KEY, 'T'}}},
    {"RecvTensorResponse",
     &leat__recv_tensor_response__descriptor,
     sample_recv_tensor_response,
     show_recv_tensor_response,
     "tensor=" LARGE " dead=1 start=1234567",
     "!The reply to RecvTensor has no tensor",
     {{"tensor", RECV_TENSOR_RESPONSE_TENSOR, 'P'},
      {"is_dead", RECV_TENSOR_RESPONSE_IS_DEAD, 'N'},
      {"send_start_micros", RECV_TENSOR_RESPONSE_SEND_START_MICROS, 'N'}}},
    {"RecvTensorsResponse",
     NULL,
     sample_recv_tensors_response,
     show_recv_tensors_response,
     "tensor=" SMALL " tensor=NULL tensor=" LARGE " tensor=float[0,3]#0 tensor=string[]#0 ",
     "",
     {{"tensor", RECV_TENSORS_RESPONSE_TENSOR, 'P'},
      {"is_dead", RECV_TENSORS_RESPONSE_IS_DEAD, 'N'}}},
    {"SendTensorsRequest",
     &leat__send_tensors_request__descriptor,
     sample_send_tensors_request,
     show_send_tensors_request,
     "step=-3 a=" SMALL " c=" LARGE " dead=b ",
     "step=0 ",
     {{"step_id", SEND_TENSORS_REQUEST_STEP_ID, 'N'},
      {"tensor", SEND_TENSORS_REQUEST_TENSOR, 'P'},
      {"dead_key", SEND_TENSORS_REQUEST_DEAD_KEY, 'T'}}},
    {"RunStepRequest",
     &leat__run_step_request__descriptor,
     sample_run_step_request,
     show_run_step_request,
     "session=session x:0=" SMALL " w:0=string[]#0 fetch=y:0 fetch=z:1 target=train trace=3 ms=500 "
     "partial=partial errors=1",
     "session=NULL partial=NULL errors=0",
     {{"session_handle", RUN_STEP_REQUEST_SESSION_HANDLE, 'T'},
      {"feed", RUN_STEP_REQUEST_FEED, 'P'},
      {"fetch", RUN_STEP_REQUEST_FETCH, 'T'},
      {"target", RUN_STEP_REQUEST_TARGET, 'T'},
      {"options", RUN_STEP_REQUEST_OPTIONS, 'P'},
      {"partial_run_handle", RUN_STEP_REQUEST_PARTIAL_RUN_HANDLE, 'T'},
      {"store_errors_in_response_body", RUN_STEP_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY, 'N'}}},
    {"RunStepResponse",
     &leat__run_step_response__descriptor,
     sample_run_step_response,
     show_run_step_response,
     "y:0=" SMALL " z:1=" LARGE " metadata=1:2 code=10 message=It was not to be ",
     "metadata=0:0 code=0 message=NULL ",
     {{"tensor", RUN_STEP_RESPONSE_TENSOR, 'P'},
      {"metadata", RUN_STEP_RESPONSE_METADATA, 'P'},
      {"status_code", RUN_STEP_RESPONSE_STATUS_CODE, 'N'},
      {"status_error_message", RUN_STEP_RESPONSE_STATUS_ERROR_MESSAGE, 'T'}}},
    {"RunCallableRequest",
     &leat__run_callable_request__descriptor,
     sample_run_callable_request,
     show_run_callable_request,
     "session=session handle=77 feed=" SMALL " feed=" SMALL " ",
     "session=NULL handle=0 ",
     {{"session_handle", RUN_CALLABLE_REQUEST_SESSION_HANDLE, 'T'},
      {"handle", RUN_CALLABLE_REQUEST_HANDLE, 'N'},
      {"feed", RUN_CALLABLE_REQUEST_FEED, 'P'}}},
};
enum { CODECS = sizeof(codecs) / sizeof(*codecs) };

static leat_status show(const codec *k, const char *bytes, size_t n, size_t piece, leat_strbuf *b)
{
    sliced c = sliced_of(bytes, n, piece);
    leat_status s = k->show(&c.in, b);
    sliced_release(&c);
    return s;
}

#endif
