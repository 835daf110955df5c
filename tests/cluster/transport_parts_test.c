/* transport_parts_test.c -- messages that are sent in parts: in both directions, to peers that do
 * not know parts, too large, cancelled, with wrong heads. LEAT_TEST_HUGE=1 moves tensors of more
 * than 2 GB.
 */
#include "test.h"

#include <arpa/inet.h>
#include <leat/leat.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/grpc/parts.h"
#include "cluster/transport.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/threadpool.h"

enum { FROM = 1000, PART = 256 };

static atomic_int came, gone, in_place;
static leat_server_call *parked;

static void note_gone(void *arg)
{
    atomic_fetch_add(&gone, 1);
}

/* Sends back what came, tensors as tensors. */
static void echo_tensors(const leat_incoming *in, leat_outgoing *out)
{
    for (int i = 0; i < in->n; i++) {
        const leat_slice *s = &in->slices[i];
        if (s->owner && s->n > 100) {
            leat_shape shape = leat_shape((int64_t)s->n);
            leat_buffer_ref(s->owner);
            leat_tensor *t = leat_tensor_over(s->owner, (void *)s->data, LEAT_UINT8, &shape);
            leat_outgoing_tensor(out, t);
            leat_tensor_unref(t);
            atomic_fetch_add(&in_place, (uintptr_t)s->data % LEAT_ALIGN == 0);
        } else {
            leat_strbuf_add(&out->text, s->data, s->n);
        }
    }
}

static void handle(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    leat_outgoing out = {0};
    atomic_fetch_add(&came, 1);
    if (strcmp(method, "/test/Park") == 0) {
        if (leat_server_call_on_cancel(a, note_gone, NULL)) {
            parked = a;
            return;
        }
        atomic_fetch_add(&gone, 1);
    } else {
        echo_tensors(in, &out);
    }
    leat_server_call_reply(a, NULL, &out);
}

static leat_listener *listener;
static leat_channel *channel;

static void start(bool client_knows, bool server_knows, int64_t max_message)
{
    leat_parts_from = FROM;
    leat_parts_bytes = PART;
    atomic_store(&came, 0);
    atomic_store(&gone, 0);
    atomic_store(&in_place, 0);
    leat_listen_options o = {.max_message = max_message};
    leat_parts_known = server_knows;
    CHECK_OK(leat_listen("127.0.0.1:0", &o, handle, NULL, &listener));
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(listener));
    leat_parts_known = client_knows;
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
}

static void stop(void)
{
    leat_channel_free(channel);
    leat_listener_stop(listener, leat_now_ns() + INT64_C(2000000000));
    leat_parts_known = true;
    leat_whole_max = INT64_C(2147483647);
}

static leat_tensor *bytes(int64_t n, int seed)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(n), &t));
    uint8_t *p = leat_tensor_mutable(t);
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 7 + i / 251 + seed);
    return t;
}

/* text, a tensor, text, another: echoed, and compared. */
static void round_trip(int64_t n, int64_t m)
{
    leat_tensor *a = bytes(n, 1), *b = bytes(m, 2);
    leat_outgoing out = {0};
    leat_strbuf_puts(&out.text, "one");
    leat_outgoing_tensor(&out, a);
    leat_strbuf_puts(&out.text, "two");
    leat_outgoing_tensor(&out, b);
    void *reply;
    size_t size;
    CHECK_OK(leat_channel_call_wait(channel, "/test/Echo", &out, NULL, &reply, &size));
    CHECK_INT(size, 6 + n + m);
    const char *p = reply;
    CHECK(memcmp(p, "one", 3) == 0 && memcmp(p + 3, leat_tensor_data(a), (size_t)n) == 0);
    CHECK(memcmp(p + 3 + n, "two", 3) == 0);
    CHECK(memcmp(p + 6 + n, leat_tensor_data(b), (size_t)m) == 0);
    free(reply);
    leat_tensor_unref(a);
    leat_tensor_unref(b);
}

static void both_ways(void)
{
    static const int64_t sizes[] = {0, 1, 250, 253, 256, 994, 995, 5000, 70000};
    start(true, true, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            round_trip(sizes[i], sizes[k]);
    CHECK(atomic_load(&in_place) > 50);
    leat_parts_bytes = 1 << 20;
    round_trip(30000000, 5000000);
    stop();
}

static void only_one_knows(void)
{
    for (int who = 0; who < 3; who++) {
        start(who == 1, who == 2, 0);
        round_trip(5000, 3000);
        round_trip(10, 3000);
        CHECK_INT(atomic_load(&came), 2);
        stop();
    }
}

static leat_status post(const char *method, int64_t n, int64_t timeout_ns)
{
    leat_tensor *t = bytes(n, 3);
    leat_outgoing out = {0};
    leat_outgoing_tensor(&out, t);
    leat_tensor_unref(t);
    void *reply;
    size_t size;
    leat_call_options o = {.deadline_ns = timeout_ns ? leat_now_ns() + timeout_ns : 0};
    leat_status s = leat_channel_call_wait(channel, method, &out, &o, &reply, &size);
    if (!s)
        free(reply);
    return s;
}

static void too_large(void)
{
    leat_whole_max = 4000;
    start(true, false, 0);
    CHECK_ERROR(post("/test/Echo", 5000, 0), RESOURCE_EXHAUSTED,
                "a request of 5000 bytes is larger than the limit of 4000");
    CHECK_INT(atomic_load(&came), 0);
    stop();
    leat_whole_max = 4000;
    start(false, true, 0); /* the request is sent in parts, the reply cannot be */
    CHECK_ERROR(post("/test/Echo", 5000, 0), RESOURCE_EXHAUSTED,
                "A reply of 5000 bytes is larger than the 4000");
    stop();
    start(true, true, 3000); /* a listener with a limit of its own */
    CHECK_ERROR(post("/test/Echo", 5000, 0), RESOURCE_EXHAUSTED, "/test/Echo");
    CHECK_OK(post("/test/Echo", 2900, 0));
    CHECK_INT(atomic_load(&came), 1);
    stop();
}

static void await(atomic_int *n, int least)
{
    for (int i = 0; i < 10000 && atomic_load(n) < least; i++)
        usleep(1000);
    CHECK(atomic_load(n) >= least);
}

static void deadline(void)
{
    start(true, true, 0);
    CHECK_ERROR(post("/test/Park", 100000, 300000000), DEADLINE_EXCEEDED, "/job:ps/task:0");
    await(&gone, 1);
    leat_server_call_reply(parked, NULL, NULL);
    stop();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a call is cancelled before it ended */
typedef struct result {
    leat_event done;
    leat_code code;
    bool ended;
} result;

static void on_result(void *arg, leat_status s, const leat_incoming *in)
{
    result *r = arg;
    pthread_mutex_lock(&lock);
    r->ended = true;
    pthread_mutex_unlock(&lock);
    r->code = leat_status_code(s);
    leat_status_free(s);
    leat_event_set(&r->done);
}

/* Cancels calls at any time: during the ping that finds out about parts, while parts are sent,
 * while they are received. */
static void cancelled(void)
{
    start(true, true, 0);
    leat_tensor *t = bytes(3000000, 4);
    for (int i = 0; i < 40; i++) {
        result r = {0};
        leat_event_init(&r.done);
        leat_outgoing out = {0};
        leat_outgoing_tensor(&out, t);
        leat_call *call;
        if (i % 10 == 0) {
            leat_channel_free(channel);
            char address[32];
            snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(listener));
            CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
        }
        leat_channel_call(channel, "/test/Echo", &out, NULL, on_result, &r, &call);
        usleep((useconds_t)(i * 700));
        pthread_mutex_lock(&lock);
        if (!r.ended)
            leat_call_cancel(call);
        pthread_mutex_unlock(&lock);
        leat_event_wait(&r.done, 0);
        CHECK(r.code == LEAT_CANCELLED || r.code == LEAT_OK);
    }
    leat_tensor_unref(t);
    stop();
}

/* ---- Heads and parts that are wrong ---- */

static grpc_byte_buffer *buffer_of(const char *text, size_t n)
{
    grpc_slice s = grpc_slice_from_copied_buffer(text, n);
    grpc_byte_buffer *b = grpc_raw_byte_buffer_create(&s, 1);
    grpc_slice_unref(s);
    return b;
}

static leat_status head(const char *text, size_t n, int64_t most, leat_gather **out)
{
    grpc_byte_buffer *b = buffer_of(text, n);
    leat_status s = leat_gather_new(b, most, out);
    grpc_byte_buffer_destroy(b);
    return s;
}

static void liars(void)
{
    leat_gather *g;
    CHECK_OK(leat_grpc_load());
    CHECK_ERROR(head("", 0, 100, &g), DATA_LOSS, "cut off");
    CHECK_ERROR(head("\0", 1, 100, &g), DATA_LOSS, "has 0 segments");
    CHECK_ERROR(head("\xff\xff\xff\x7f", 4, 100, &g), DATA_LOSS, "segments");
    CHECK_ERROR(head("\2\5", 2, 100, &g), DATA_LOSS, "segments");
    CHECK_ERROR(head("\1\0", 2, 100, &g), DATA_LOSS, "empty segment");
    CHECK_ERROR(head("\2\62\63", 3, 100, &g), RESOURCE_EXHAUSTED, "(101 vs. 100)");
    CHECK_ERROR(head("\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, INT64_MAX, &g),
                RESOURCE_EXHAUSTED, "larger than max");
    CHECK_OK(head("\2\3\4", 3, 100, &g));
    grpc_byte_buffer *b = buffer_of("abcdefgh", 8);
    CHECK_ERROR(leat_gather_add(g, b), DATA_LOSS, "longer than its head says");
    grpc_byte_buffer_destroy(b);
    leat_gather_free(g);
    /* More than there is memory for. */
    CHECK_OK(head("\1\xff\xff\xff\xff\xff\x1f", 7, LEAT_MESSAGE_MAX, &g));
    b = buffer_of("abc", 3);
    CHECK_ERROR(leat_gather_add(g, b), RESOURCE_EXHAUSTED, "OOM when allocating");
    grpc_byte_buffer_destroy(b);
    leat_gather_free(g);
}

/* ---- Tensors between tasks, and between a client and a task ---- */

static void add_task(leat_cluster *c, const char *job)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(s, (struct sockaddr *)&a, n) == 0 && getsockname(s, (struct sockaddr *)&a, &n) == 0);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(a.sin_port));
    CHECK_OK(leat_cluster_add(c, job, address));
    close(s);
}

static leat_server *task(const leat_cluster *c, const char *job, bool shm)
{
    leat_server *s;
    leat_server_options o = {.transports = shm ? NULL : "grpc"};
    CHECK_OK(leat_server_start(c, job, 0, &o, &s));
    return s;
}

/* A variable of n floats goes from the ps to the worker, where its last element is looked at; then
 * the whole of it to a client, and back by a feed. */
static void between_tasks(int64_t n, bool shm)
{
    leat_cluster *c = leat_cluster_new();
    add_task(c, "ps");
    add_task(c, "worker");
    leat_server *ps = task(c, "ps", shm), *worker = task(c, "worker", shm);
    leat_graph *g = leat_graph_new();
    leat_out w, last, x, y;
    leat_with_device(g, "/job:ps/task:0") w =
        leat_variable(g, "w", leat_fill(leat_int_vector(g, &n, 1), leat_scalar(g, LEAT_FLOAT, 7)));
    leat_with_device(g, "/job:worker/task:0")
    {
        int64_t at = n - 1, one = 1;
        last = leat_slice(w, leat_int_vector(g, &at, 1), leat_int_vector(g, &one, 1));
        x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1));
        y = leat_slice(x, leat_int_vector(g, &at, 1), leat_int_vector(g, &one, 1));
    }
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(worker), .timeout_ms = 120000));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    leat_tensor *got = NULL, *all = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({last, &got}), LEAT_NO_TARGET));
    CHECK(got && leat_tensor_at(got, 0) == 7);
    leat_tensor_unref(got);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({w, &all}), LEAT_NO_TARGET));
    CHECK(all && leat_tensor_count(all) == n && leat_tensor_at(all, n - 1) == 7);
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, all}), LEAT_FETCH({y, &got}), LEAT_NO_TARGET));
    CHECK(got && leat_tensor_at(got, 0) == 7);
    leat_tensor_unref(got);
    leat_tensor_unref(all);
    leat_session_close(s);
    leat_server_free(worker);
    leat_server_free(ps);
    leat_graph_free(g);
    leat_cluster_free(c);
}

static void tasks(void)
{
    leat_parts_from = 1 << 20;
    leat_parts_bytes = 1 << 19;
    leat_whole_max = 2 << 20; /* as if this were gRPC's limit */
    between_tasks(2500000, false);
    leat_whole_max = INT64_C(2147483647);
}

/* A task that does not know parts, as TensorFlow's, gets an error that names the tensor that is too
 * large. */
static void refused_by_name(void)
{
    leat_parts_known = false;
    leat_whole_max = 1 << 20;
    leat_cluster *c = leat_cluster_new();
    add_task(c, "ps");
    add_task(c, "worker");
    leat_server *ps = task(c, "ps", false), *worker = task(c, "worker", false);
    leat_graph *g = leat_graph_new();
    leat_out w, y;
    leat_with_device(g, "/job:ps/task:0") w =
        leat_variable(g, "large", leat_zeros(g, LEAT_FLOAT, leat_shape(500000)));
    leat_with_device(g, "/job:worker/task:0") y = leat_neg(w);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(worker), .timeout_ms = 60000));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    leat_status why = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(y));
    CHECK_INT(leat_status_code(why), LEAT_RESOURCE_EXHAUSTED);
    const char *words[] = {"The output of node large", " has 20000", "more than the 1048576",
                           "/job:worker/replica:0/task:0", "Split it: a partitioned variable"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(leat_status_message(why), words[i])) {
            test_failures++;
            printf("not there: \"%s\"; but: %s\n", words[i], leat_status_message(why));
        }
    leat_status_free(why);
    leat_session_close(s);
    leat_server_free(worker);
    leat_server_free(ps);
    leat_graph_free(g);
    leat_cluster_free(c);
    leat_parts_known = true;
    leat_whole_max = INT64_C(2147483647);
}

static void huge(void)
{
    if (!getenv("LEAT_TEST_HUGE"))
        SKIP("LEAT_TEST_HUGE=1 moves 2.2 GB, in 12 GB of memory");
    leat_parts_from = 1 << 20;
    leat_parts_bytes = 1 << 19;
    between_tasks(550000000, false);
    between_tasks(550000000, true);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"both_ways", both_ways}, {"only_one_knows", only_one_knows},
               {"too_large", too_large}, {"deadline", deadline}, {"cancelled", cancelled},
               {"liars", liars}, {"tasks", tasks}, {"refused_by_name", refused_by_name},
               {"huge", huge});
}
