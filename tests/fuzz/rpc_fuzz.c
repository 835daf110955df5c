/* rpc_fuzz.c -- any bytes as calls to a task: every method of both services, several in a row.
 *
 * An input is a row of calls: a byte that chooses the method, two bytes of length, the message. The
 * handles of the session and of the graph that the task gave last are put in front, so that calls
 * come further than "no such session". Every call must be answered exactly once. */
#include <leat/leat.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/service.h"
#include "cluster/tensor_wire.h"
#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "core/buffer.h"

static leat_peers *peers;
static leat_worker *worker;
static leat_service *service;
static char *session, *graph; /* handles */
static int open_calls;

typedef struct fake {
    leat_asked base;
    char **handle; /* where the reply's field 1 goes, or NULL */
} fake;

static void keep_handle(char **handle, const leat_outgoing *o)
{
    leat_slice slice = {(const uint8_t *)leat_strbuf_text(&o->text), o->text.n};
    leat_incoming in = {.slices = &slice, .n = 1, .size = slice.n};
    leat_cursor c = leat_cursor_of(&in);
    leat_wire_field f;
    leat_status s;
    while (leat_next_field(&c, &f, &s))
        if (f.number == 1 && f.type == 2) {
            free(*handle);
            *handle = NULL;
            leat_status_free(leat_get_text(&f, handle));
        }
    leat_status_free(s);
}

static void reply(leat_asked *a, leat_status s, leat_outgoing *o)
{
    fake *f = (fake *)a;
    if (!s && f->handle)
        keep_handle(f->handle, o);
    leat_status_free(s);
    leat_outgoing_release(o);
    free(f);
    open_calls--;
}

static bool on_gone(leat_asked *a, void (*fn)(void *arg), void *arg)
{
    return true;
}

static const char *peer(const leat_asked *a)
{
    return "fuzzer";
}

static const leat_asked_ops fake_ops = {.reply = reply, .on_gone = on_gone, .peer = peer};

#define MASTER "/tensorflow.MasterService/"
#define WORKER "/tensorflow.WorkerService/"
/* session_field: where the session's handle goes; graph_field: the graph's. */
static const struct {
    const char *name;
    int session_field, graph_field;
    char **gives;
} methods[] = {
    {MASTER "CreateSession", 0, 0, &session},
    {MASTER "ExtendSession", 1, 0, NULL},
    {MASTER "RunStep", 1, 0, NULL},
    {MASTER "PartialRunSetup", 1, 0, NULL},
    {MASTER "MakeCallable", 1, 0, NULL},
    {MASTER "RunCallable", 1, 0, NULL},
    {MASTER "ReleaseCallable", 1, 0, NULL},
    {MASTER "ListDevices", 1, 0, NULL},
    {MASTER "CloseSession", 1, 0, NULL},
    {MASTER "Reset", 0, 0, NULL},
    {WORKER "GetStatus", 0, 0, NULL},
    {WORKER "CreateWorkerSession", 1, 0, NULL},
    {WORKER "DeleteWorkerSession", 1, 0, NULL},
    {WORKER "RegisterGraph", 1, 0, &graph},
    {WORKER "DeregisterGraph", 2, 1, NULL},
    {WORKER "RunGraph", 8, 1, NULL},
    {WORKER "CleanupGraph", 0, 0, NULL},
    {WORKER "CleanupAll", 0, 0, NULL},
    {WORKER "RecvTensor", 0, 0, NULL},
    {"/leat.PeerService/RecvTensors", 0, 0, NULL},
    {WORKER "Logging", 0, 0, NULL},
    {WORKER "Tracing", 0, 0, NULL},
};

static void call(int m, const uint8_t *bytes, size_t n)
{
    leat_strbuf b = {0};
    if (methods[m].session_field && session)
        leat_put_text(&b, methods[m].session_field, session);
    if (methods[m].graph_field && graph)
        leat_put_text(&b, methods[m].graph_field, graph);
    leat_strbuf_add(&b, bytes, n);
    if (strcmp(methods[m].name, MASTER "RunStep") == 0)
        leat_put_bytes(&b, 5, "\x10\x14", 2); /* at most 20 ms */
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
    worker = leat_worker_new("worker", 0, &o, peers);
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
        abort(); /* one was not answered */
    free(session);
    free(graph);
    session = graph = NULL;
    return 0;
}
