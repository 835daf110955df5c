/* reply_fuzz.c -- any bytes as what other tasks answer: to a master that drives a worker, and to a
 * client of a master elsewhere; and as the words of a peer that is done.
 *
 * An input is a byte that chooses, and a row of answers: a byte, two bytes of length, the message.
 * The byte says whether the usual answer comes first, so that things go further, or an error. */
#include <leat/leat.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/tensor_wire.h"
#include "cluster/transport.h"
#include "core/threadpool.h"

enum { USUAL = 1, ERROR = 6, LEAT = 8, TIMEOUT_MS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what is left of the input */
static const uint8_t *data;
static size_t size;

static leat_listener *listener; /* the task that gives the answers */
static leat_server *server;     /* the one that asks */
static char there[32];

static bool next(uint8_t *kind, const uint8_t **bytes, size_t *n)
{
    pthread_mutex_lock(&lock);
    bool any = size > 3;
    if (any) {
        *kind = data[0];
        *n = data[1] | (size_t)data[2] << 8;
        *n = *n < size - 3 ? *n : size - 3;
        *bytes = data + 3;
        data += 3 + *n;
        size -= 3 + *n;
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
        n += f.number == 2;
    leat_status_free(s);
    return n;
}

static void usual(const char *method, const leat_incoming *in, bool leat, leat_strbuf *b)
{
    static const char one[] = "\x08\x01\x12\x00\x2a\x04\x00\x00\x80\x3f"; /* a float */
    leat_strbuf sub = {0};
    const char *name = strrchr(method, '/') + 1;
    if (strcmp(name, "GetStatus") == 0) {
        leat_put_text(&sub, 1, "/job:ps/replica:0/task:0/device:CPU:0");
        leat_put_text(&sub, 2, "CPU");
        leat_put_bytes(b, 1, sub.s, sub.n);
        if (leat)
            leat_put_bytes(b, 1000, "\x08\x01", 2);
    } else if (strcmp(name, "RecvTensor") == 0) {
        leat_put_bytes(b, 1, one, sizeof(one) - 1);
    } else if (strcmp(name, "RecvTensors") == 0) {
        for (int i = count_keys(in); i > 0; i--)
            leat_put_bytes(b, 1, one, sizeof(one) - 1);
    } else if (strcmp(name, "RunStep") == 0) {
        leat_put_text(&sub, 1, "Add:0");
        leat_put_bytes(&sub, 2, one, sizeof(one) - 1);
        leat_put_bytes(b, 1, sub.s, sub.n);
    } else if (strcmp(name, "RunGraph") != 0) {
        leat_put_text(b, 1, "handle"); /* of a session, a graph, a partial run */
    }
    leat_strbuf_release(&sub);
}

static void answer(void *arg, leat_asked *a, const char *method, const leat_incoming *in)
{
    uint8_t kind;
    const uint8_t *bytes;
    size_t n;
    leat_outgoing o = {0};
    leat_status s = NULL;
    if (!next(&kind, &bytes, &n))
        s = leat_error(INTERNAL, "The input is over");
    else if ((kind & ERROR) == ERROR)
        s = leat_status_new((leat_code)(1 + (kind >> 3) % 16), __FILE__, __LINE__, "%.*s",
                            (int)strnlen((const char *)bytes, n), (const char *)bytes);
    if (!s) {
        if (kind & USUAL)
            usual(method, in, kind & LEAT, &o.text);
        leat_strbuf_add(&o.text, bytes, n);
    }
    leat_asked_reply(a, s, &o);
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

/* z = -x + 1, half of it there. */
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
    const uint8_t *bytes;
    size_t n;
    if (leat_channel_open(leat_server_target(server) + strlen("grpc://"), "", NULL, &c))
        abort();
    while (next(&kind, &bytes, &n)) {
        void *reply = NULL;
        leat_outgoing o = {0};
        leat_call_options options = {.deadline_ns = leat_now_ns() + INT64_C(5000000000)};
        leat_strbuf_add(&o.text, bytes, n);
        leat_status s = leat_channel_ask(c, "/leat.PeerService/Done", &o, &options, &reply, &n);
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
    size = 0; /* calls that nobody waited for may still come */
    pthread_mutex_unlock(&lock);
    return 0;
}
