/* reply_fuzz.c -- any bytes as replies of other tasks: to a master that drives a worker, and to a
 * client of a master; and as a peer's request Done.
 *
 * An input is a byte that chooses, and a sequence of replies: a byte, two bytes of length, the
 * message. The byte says whether a correct reply comes before the message, so that the run goes
 * further, or an error. */
#include <leat/leat.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/transport.h"
#include "core/threadpool.h"

enum { USUAL = 1, ERROR = 6, LEAT = 8, TIMEOUT_MS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what is left of the input */
static const uint8_t *data;
static size_t size;

static leat_listener *listener; /* the task that replies */
static leat_server *server;     /* the task that calls it */
static char there[32];

/* The next row of the input; a copy of its bytes, because the reply to a call that is not waited
 * for may be sent after the input was freed. */
static bool next(uint8_t *kind, leat_strbuf *bytes)
{
    pthread_mutex_lock(&lock);
    bool any = size > 3;
    if (any) {
        size_t n = data[1] | (size_t)data[2] << 8;
        n = n < size - 3 ? n : size - 3;
        *kind = data[0];
        leat_strbuf_add(bytes, data + 3, n);
        data += 3 + n;
        size -= 3 + n;
    }
    pthread_mutex_unlock(&lock);
    return any;
}

static int count_keys(const leat_incoming *in)
{
    leat_cursor c = leat_cursor_of(in);
    leat_wire_field f;
    leat_status s;
    int n = 0;
    while (leat_next_field(&c, &f, &s))
        n += f.number == RECV_TENSOR_REQUEST_RENDEZVOUS_KEY;
    leat_status_free(s);
    return n;
}

static void put_status(leat_strbuf *b, bool leat)
{
    Leat__LeatPeer self = LEAT__LEAT_PEER__INIT;
    Leat__DeviceAttributes device = LEAT__DEVICE_ATTRIBUTES__INIT, *devices = &device;
    Leat__GetStatusResponse r = LEAT__GET_STATUS_RESPONSE__INIT;
    self.version = 1;
    device.name = "/job:ps/replica:0/task:0/device:CPU:0";
    device.device_type = "CPU";
    r.device_attributes = &devices;
    r.n_device_attributes = 1;
    r.leat = leat ? &self : NULL;
    LEAT_DIE_ON_ERROR(leat_put_fields(b, LEAT_METHOD_GET_STATUS, &r));
}

static void put_handle(leat_strbuf *b, const char *method)
{
    Leat__CreateSessionResponse session = LEAT__CREATE_SESSION_RESPONSE__INIT;
    Leat__RegisterGraphResponse graph = LEAT__REGISTER_GRAPH_RESPONSE__INIT;
    session.session_handle = graph.graph_handle = "handle";
    if (strcmp(method, LEAT_METHOD_CREATE_SESSION) == 0)
        LEAT_DIE_ON_ERROR(leat_put_fields(b, method, &session));
    if (strcmp(method, LEAT_METHOD_REGISTER_GRAPH) == 0)
        LEAT_DIE_ON_ERROR(leat_put_fields(b, method, &graph));
}

static void usual(const char *method, const leat_incoming *in, bool leat, leat_outgoing *o)
{
    leat_tensor *one = leat_scalar_float(1);
    leat_status s = NULL;
    if (strcmp(method, LEAT_METHOD_GET_STATUS) == 0)
        put_status(&o->text, leat);
    else if (strcmp(method, LEAT_METHOD_RECV_TENSOR) == 0)
        s = leat_recv_tensor_response_encode(o, &(leat_recv_tensor_response){.tensor = one});
    else if (strcmp(method, LEAT_METHOD_RECV_TENSORS) == 0)
        for (int i = count_keys(in); i > 0 && !s; i--)
            s = leat_recv_tensors_response_add(o, one);
    else if (strcmp(method, LEAT_METHOD_RUN_STEP) == 0)
        s = leat_run_step_response_add_tensor(o, "Add:0", one);
    else
        put_handle(&o->text, method);
    leat_status_free(s);
    leat_tensor_unref(one);
}

static void answer(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    uint8_t kind;
    leat_strbuf bytes = {0};
    leat_outgoing o = {0};
    leat_status s = NULL;
    if (!next(&kind, &bytes))
        s = leat_error(INTERNAL, "The input is over");
    else if ((kind & ERROR) == ERROR)
        s = leat_status_new((leat_code)(1 + (kind >> 3) % 16), __FILE__, __LINE__, "%s",
                            leat_strbuf_text(&bytes));
    if (!s) {
        if (kind & USUAL)
            usual(method, in, kind & LEAT, &o);
        leat_strbuf_add(&o.text, leat_strbuf_text(&bytes), bytes.n);
    }
    leat_strbuf_release(&bytes);
    leat_server_call_reply(a, s, &o);
}

static void begin(void)
{
    if (listener)
        return;
    leat_cluster *c = leat_cluster_new();
    leat_server_options options = {.inter_op_threads = 1};
    if (leat_listen("127.0.0.1:0", NULL, answer, NULL, &listener))
        abort();
    snprintf(there, sizeof(there), "127.0.0.1:%d", leat_listener_port(listener));
    if (leat_cluster_add(c, "ps", there) || leat_cluster_add(c, "worker", "127.0.0.1:0") ||
        leat_server_start(c, "worker", 0, &options, &server))
        abort();
    leat_cluster_free(c);
}

/* z = -x + 1, in part on the other task. */
static void run(const char *target)
{
    leat_graph *g = leat_graph_new();
    leat_out x, y, z;
    leat_with_device(g, "/job:worker/task:0") x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_with_device(g, "/job:ps/task:0") y = leat_neg(x);
    leat_with_device(g, "/job:worker/task:0") z = leat_add(y, leat_scalar(g, LEAT_FLOAT, 1));
    leat_session *session = NULL;
    leat_status s = leat_session_open(g, &session, .target = target, .timeout_ms = TIMEOUT_MS,
                                      .open_timeout_ms = TIMEOUT_MS);
    leat_tensor *in;
    if (leat_tensor_new(LEAT_FLOAT, leat_shape(), &in))
        abort();
    for (int i = 0; i < 2 && !s; i++) {
        leat_tensor *out = NULL;
        s = leat_session_run(session, LEAT_FEED({x, in}), LEAT_FETCH({z, &out}), LEAT_NO_TARGET);
        leat_tensor_unref(out);
    }
    leat_status_free(s);
    leat_tensor_unref(in);
    leat_session_close(session);
    leat_graph_free(g);
}

static void peer_is_done(void)
{
    leat_channel *c;
    uint8_t kind;
    size_t n;
    if (leat_channel_open(leat_server_target(server) + strlen("grpc://"), "", NULL, &c))
        abort();
    for (leat_outgoing o = {0}; next(&kind, &o.text); o = (leat_outgoing){0}) {
        void *reply = NULL;
        leat_call_options options = {.deadline_ns = leat_now_ns() + INT64_C(5000000000)};
        leat_status s = leat_channel_call_wait(c, LEAT_METHOD_DONE, &o, &options, &reply, &n);
        leat_status_free(s);
        free(reply);
    }
    leat_channel_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char target[64];
    if (!n)
        return 0;
    begin();
    pthread_mutex_lock(&lock);
    data = bytes + 1;
    size = n - 1;
    pthread_mutex_unlock(&lock);
    snprintf(target, sizeof(target), "grpc://%s", there);
    if (bytes[0] % 8 == 0)
        peer_is_done();
    else
        run(bytes[0] & 1 ? leat_server_target(server) : target);
    pthread_mutex_lock(&lock);
    size = 0; /* calls that were not waited for may still come */
    pthread_mutex_unlock(&lock);
    return 0;
}
