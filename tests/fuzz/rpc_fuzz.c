/* rpc_fuzz.c -- any bytes as calls to a task: every method of both services, several in a row.
 *
 * An input is a sequence of calls: a byte that chooses the method, two bytes of length, the
 * message. The handles of the session and of the graph that the task gave last are put in front, so
 * that calls do not all fail with "no such session". Every call must get exactly one reply. */
#include <leat/leat.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/service.h"
#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "core/buffer.h"

static leat_peers *peers;
static leat_worker *worker;
static leat_service *service;
static char *session, *graph; /* handles */
static int open_calls;

typedef struct fake {
    leat_server_call base;
    char **handle; /* where the handle in the reply goes, or NULL */
} fake;

enum { HANDLE = 1 }; /* the field of it in all replies that have one */

static void keep_handle(char **handle, const leat_outgoing *o)
{
    leat_slice slice = {(const uint8_t *)leat_strbuf_text(&o->text), o->text.n};
    leat_incoming in = {.slices = &slice, .n = 1, .size = slice.n};
    leat_cursor c = leat_cursor_of(&in);
    leat_wire_field f;
    leat_status s;
    while (leat_next_field(&c, &f, &s))
        if (f.number == HANDLE && f.type == WIRE_BYTES) {
            free(*handle);
            *handle = NULL;
            leat_status_free(leat_get_text(&f, handle));
        }
    leat_status_free(s);
}

static void reply(leat_server_call *a, leat_status s, leat_outgoing *o)
{
    fake *f = (fake *)a;
    if (!s && f->handle)
        keep_handle(f->handle, o);
    leat_status_free(s);
    leat_outgoing_release(o);
    free(f);
    open_calls--;
}

static bool on_cancel(leat_server_call *a, void (*fn)(void *arg), void *arg)
{
    return true;
}

static const char *peer(const leat_server_call *a)
{
    return "fuzzer";
}

static const leat_server_call_ops fake_ops = {.reply = reply, .on_cancel = on_cancel, .peer = peer};

/* Fields by name, where protobuf-c has the request: into which the session's handle goes, and into
 * which the graph's; NULL: none. gives: what the reply's first field, a handle, is kept as. */
static const struct {
    const char *name;
    const ProtobufCMessageDescriptor *request;
    const char *session_field, *graph_field;
    char **gives;
} methods[] = {
    {LEAT_METHOD_CREATE_SESSION, NULL, NULL, NULL, &session},
    {LEAT_METHOD_EXTEND_SESSION, &leat__extend_session_request__descriptor, "session_handle", NULL,
     NULL},
    {LEAT_METHOD_RUN_STEP, &leat__run_step_request__descriptor, "session_handle", NULL, NULL},
    {LEAT_METHOD_PARTIAL_RUN_SETUP, &leat__partial_run_setup_request__descriptor, "session_handle",
     NULL, NULL},
    {LEAT_METHOD_MAKE_CALLABLE, &leat__make_callable_request__descriptor, "session_handle", NULL,
     NULL},
    {LEAT_METHOD_RUN_CALLABLE, &leat__run_callable_request__descriptor, "session_handle", NULL,
     NULL},
    {LEAT_METHOD_RELEASE_CALLABLE, &leat__release_callable_request__descriptor, "session_handle",
     NULL, NULL},
    {LEAT_METHOD_LIST_DEVICES, &leat__list_devices_request__descriptor, "session_handle", NULL,
     NULL},
    {LEAT_METHOD_CLOSE_SESSION, &leat__close_session_request__descriptor, "session_handle", NULL,
     NULL},
    {LEAT_METHOD_HOLD, &leat__hold_request__descriptor, "session_handle", NULL, NULL},
    {LEAT_METHOD_RESET, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_GET_STATUS, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_CREATE_WORKER_SESSION, &leat__create_worker_session_request__descriptor,
     "session_handle", NULL, NULL},
    {LEAT_METHOD_DELETE_WORKER_SESSION, &leat__delete_worker_session_request__descriptor,
     "session_handle", NULL, NULL},
    {LEAT_METHOD_REGISTER_GRAPH, &leat__register_graph_request__descriptor, "session_handle", NULL,
     &graph},
    {LEAT_METHOD_DEREGISTER_GRAPH, &leat__deregister_graph_request__descriptor, "session_handle",
     "graph_handle", NULL},
    {LEAT_METHOD_RUN_GRAPH, &leat__run_graph_request__descriptor, "session_handle", "graph_handle",
     NULL},
    {LEAT_METHOD_CLEANUP_GRAPH, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_CLEANUP_ALL, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_RECV_TENSOR, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_RECV_TENSORS, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_SEND_TENSORS, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_LOGGING, NULL, NULL, NULL, NULL},
    {LEAT_METHOD_TRACING, NULL, NULL, NULL, NULL},
};

static void put_handle(leat_strbuf *b, int m, const char *field, const char *handle)
{
    if (field && handle)
        leat_put_text(
            b, (int)protobuf_c_message_descriptor_get_field_by_name(methods[m].request, field)->id,
            handle);
}

static void call(int m, const uint8_t *bytes, size_t n)
{
    leat_strbuf b = {0};
    /* The last one counts: bytes may name another handle, and seldom do. */
    put_handle(&b, m, methods[m].session_field, session);
    put_handle(&b, m, methods[m].graph_field, graph);
    leat_strbuf_add(&b, bytes, n);
    Leat__RunOptions short_run = LEAT__RUN_OPTIONS__INIT;
    short_run.timeout_in_ms = 20;
    if (strcmp(methods[m].name, LEAT_METHOD_RUN_STEP) == 0)
        leat_put_message(&b, RUN_STEP_REQUEST_OPTIONS, &short_run);
    fake *f = leat_new(fake);
    *f = (fake){{&fake_ops}, methods[m].gives};
    open_calls++;
    leat_slice halves[2] = {{(uint8_t *)b.s, b.n / 2}, {(uint8_t *)b.s + b.n / 2, b.n - b.n / 2}};
    leat_incoming in = {.slices = halves, .n = b.n ? 2 : 0, .size = b.n};
    if (!leat_worker_serve(worker, &f->base, methods[m].name, &in) &&
        !leat_service_serve(service, &f->base, methods[m].name, &in))
        abort();
    leat_strbuf_release(&b);
}

static void begin(void)
{
    leat_cluster *c = leat_cluster_new();
    leat_server_options o = {.inter_op_threads = 1};
    if (leat_cluster_add(c, "worker", "127.0.0.1:1") || leat_peers_new(c, NULL, &peers))
        abort();
    if (leat_worker_new("worker", 0, &o, peers, &worker))
        abort();
    leat_peers_set_task(peers, leat_worker_task(worker), leat_worker_incarnation(worker));
    service = leat_service_new(worker, peers, 8);
    leat_cluster_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_cpu_allocator()->limit = 8 << 20;
    begin();
    while (size > 3) {
        size_t n = data[1] | (size_t)data[2] << 8;
        n = n < size - 3 ? n : size - 3;
        call(data[0] % (int)(sizeof(methods) / sizeof(*methods)), data + 3, n);
        data += 3 + n;
        size -= 3 + n;
    }
    leat_service_free(service);
    leat_status why = leat_error(CANCELLED, "The input is over");
    leat_worker_stop(worker, why);
    leat_status_free(why);
    while (!leat_worker_idle(worker))
        ;
    leat_peers_free(peers);
    leat_worker_free(worker);
    if (open_calls)
        abort(); /* a call got no reply */
    free(session);
    free(graph);
    session = graph = NULL;
    return 0;
}
