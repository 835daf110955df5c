/* transport_test.c -- calls over gRPC within one process: replies and errors, deadlines,
 * cancellation, callers that are lost, handlers that block, listeners that stop. */
#define _GNU_SOURCE
#include "echo.h"

#include <dirent.h>
#include <leat/tensor.h>
#include <pthread.h>
#include <semaphore.h>

#include "core/alloc.h"

static leat_listener *listener;
static leat_channel *channel;
static char address[32];

static void start_at(const char *where)
{
    CHECK_OK(leat_listen(where, NULL, echo_handle, NULL, &listener));
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(listener));
}

static void start(void)
{
    echo_begin();
    start_at("127.0.0.1:0");
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
}

static void stop(void)
{
    leat_channel_free(channel);
    leat_listener_stop(listener, in_ms(2000));
}

static leat_status ask(const char *method, const char *text, char *reply, size_t cap,
                       const leat_call_options *options)
{
    return echo_call(channel, method, text, reply, cap, options);
}

static void echo(void)
{
    char reply[64];
    start();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, NULL));
    CHECK_STR(reply, "hello");
    CHECK_OK(ask("/test/Echo", "", reply, sizeof reply, NULL));
    CHECK_STR(reply, "");
    CHECK_OK(ask("/test/Peer", "", reply, sizeof reply, NULL));
    CHECK(strncmp(reply, "ipv4:127.0.0.1:", 15) == 0);
    CHECK_ERROR(ask("/test/Fail", "", reply, sizeof reply, NULL), FAILED_PRECONDITION,
                "Attempting to use uninitialized value W");
    CHECK_ERROR(ask("/test/Nothing", "", reply, sizeof reply, NULL), UNIMPLEMENTED,
                "no /test/Nothing here");
    stop();
}

/* Tensors among text are sent without a copy, and their references are dropped afterwards. */
static void pieces(void)
{
    start();
    leat_tensor *big, *empty;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(3000000), &big));
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(0), &empty));
    uint8_t *bytes = leat_tensor_mutable(big);
    for (int i = 0; i < 3000000; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 255);
    leat_outgoing out = {0};
    leat_outgoing_tensor(&out, empty);
    leat_strbuf_puts(&out.text, "one");
    leat_outgoing_tensor(&out, big);
    leat_strbuf_puts(&out.text, "two");
    leat_outgoing_tensor(&out, big);
    void *reply;
    size_t n;
    CHECK_OK(leat_channel_call_wait(channel, "/test/Echo", &out, NULL, &reply, &n));
    CHECK_INT(n, 6000006);
    if (n == 6000006) {
        CHECK(memcmp(reply, "one", 3) == 0 && memcmp((char *)reply + 3000003, "two", 3) == 0);
        CHECK(memcmp((char *)reply + 3, bytes, 3000000) == 0);
        CHECK(memcmp((char *)reply + 3000006, bytes, 3000000) == 0);
    }
    free(reply);
    stop();
    leat_tensor_unref(big); /* the leak sanitizer finds references that are not dropped */
    leat_tensor_unref(empty);
}

static void park(result *r, leat_call **call)
{
    leat_event_init(&r->done);
    leat_outgoing out = {0};
    leat_channel_call(channel, "/test/Park", &out, NULL, on_result, r, call);
    await(&entered, 1);
}

static void cancelled(void)
{
    start();
    result r;
    leat_call *call;
    park(&r, &call);
    leat_call_cancel(call);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, CANCELLED, "");
    await(&gone, 1);
    CHECK(!leat_server_call_on_cancel(parked, note_gone, NULL));
    leat_server_call_reply(parked, NULL, &(leat_outgoing){0}); /* too late, harmless */
    CHECK_INT(atomic_load(&gone), 1);
    stop();
}

static void deadline(void)
{
    char reply[8];
    start();
    CHECK_OK(ask("/test/Echo", "", reply, sizeof reply, NULL)); /* connects */
    int64_t begin = leat_now_ns();
    CHECK_ERROR(ask("/test/Park", "", reply, sizeof reply,
                    &(leat_call_options){.deadline_ns = in_ms(1000)}),
                DEADLINE_EXCEEDED, "/job:ps/task:0");
    int64_t took = leat_now_ns() - begin;
    CHECK(took > 990000000 && took < 20000000000);
    await(&gone, 1);
    leat_server_call_reply(parked, NULL, NULL);
    stop();
}

static void channel_freed(void)
{
    start();
    result r;
    park(&r, NULL);
    leat_channel_free(channel);
    CHECK(leat_event_is_set(&r.done));
    CHECK_ERROR(r.status, CANCELLED, "");
    await(&gone, 1);
    leat_listener_stop(listener, in_ms(1000)); /* before the reply */
    leat_server_call_reply(parked, NULL, NULL);
}

static void listener_stopped(void)
{
    start();
    result r;
    park(&r, NULL);
    leat_listener_stop(listener, in_ms(100));
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "");
    CHECK_INT(atomic_load(&gone), 1);
    leat_server_call_reply(parked, NULL, NULL);
    leat_channel_free(channel);
}

/* Calls that come while the listener stops fail with UNAVAILABLE, upon which a caller tries again:
 * gRPC's server ends them with CANCELLED, which is for calls that the caller has cancelled. */
static void called_while_it_stops(void)
{
    enum { ROUNDS = 20, CALLS = 200 };
    static result r[CALLS];
    int failed = 0, wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        start();
        CHECK_OK(ask("/test/Echo", "", NULL, 0, NULL)); /* The connection is there. */
        for (int k = 0; k < CALLS; k++) {
            leat_event_init(&r[k].done);
            leat_channel_call(channel, "/test/Echo", &(leat_outgoing){0}, NULL, on_result, &r[k],
                              NULL);
        }
        leat_listener_stop(listener, in_ms(20000));
        for (int k = 0; k < CALLS; k++) {
            leat_event_wait(&r[k].done, 0);
            leat_code code = leat_status_code(r[k].status);
            failed += code != LEAT_OK;
            wrong += code != LEAT_OK && code != LEAT_UNAVAILABLE;
            leat_status_free(r[k].status);
        }
        leat_channel_free(channel);
    }
    CHECK(failed > 0);
    CHECK_INT(wrong, 0);
}

/* Stopping a listener waits for the replies of its handlers. */
static void *answer_soon(void *arg)
{
    usleep(100000);
    leat_server_call_reply(parked, NULL, NULL);
    return NULL;
}

static void drained(void)
{
    start();
    result r;
    park(&r, NULL);
    pthread_t t;
    pthread_create(&t, NULL, answer_soon, NULL);
    int64_t begin = leat_now_ns();
    leat_listener_stop(listener, in_ms(60000));
    CHECK(leat_now_ns() - begin < 30000000000);
    pthread_join(t, NULL);
    leat_event_wait(&r.done, 0);
    CHECK_OK(r.status);
    CHECK_INT(atomic_load(&gone), 0);
    leat_channel_free(channel);
}

/* A hundred handlers block; others are served meanwhile. */
static void blocked(void)
{
    enum { N = 100 };
    static result r[N];
    start();
    for (int i = 0; i < N; i++) {
        leat_event_init(&released[i]);
        leat_event_init(&r[i].done);
        leat_channel_call(channel, "/test/Block", &(leat_outgoing){0}, NULL, on_result, &r[i],
                          NULL);
    }
    await(&entered, N);
    char reply[16];
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, NULL));
    for (int i = 0; i < N; i++)
        leat_event_set(&released[i]);
    for (int i = 0; i < N; i++) {
        leat_event_wait(&r[i].done, 0);
        CHECK_OK(r[i].status);
    }
    stop();
}

/* A handler blocks in a way that Leat does not see beforehand; others are served meanwhile. */
static sem_t semaphore;

static void wait_at_semaphore(void *arg, leat_server_call *a, const char *method,
                              const leat_incoming *in)
{
    if (strcmp(method, "/test/Semaphore") == 0)
        while (sem_wait(&semaphore))
            ;
    leat_server_call_reply(a, NULL, NULL);
}

static void blocked_unseen(void)
{
    result r;
    char reply[16];
    sem_init(&semaphore, 0, 0);
    CHECK_OK(leat_listen("127.0.0.1:0", NULL, wait_at_semaphore, NULL, &listener));
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(listener));
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
    leat_event_init(&r.done);
    leat_channel_call(channel, "/test/Semaphore", &(leat_outgoing){0}, NULL, on_result, &r, NULL);
    for (int i = 0; i < 10; i++)
        CHECK_OK(ask("/test/Other", "", reply, sizeof reply,
                     &(leat_call_options){.deadline_ns = in_ms(20000)}));
    CHECK(!leat_event_is_set(&r.done));
    sem_post(&semaphore);
    leat_event_wait(&r.done, 0);
    CHECK_OK(r.status);
    stop();
    sem_destroy(&semaphore);
}

/* Threads have stacks so large that none can be started, or as before. */
static void forbid_threads(bool forbid)
{
    pthread_attr_t attr;
    static size_t usual;
    pthread_attr_init(&attr);
    if (!usual)
        pthread_attr_getstacksize(&attr, &usual);
    pthread_attr_setstacksize(&attr, forbid ? (size_t)1 << 46 : usual);
    CHECK_INT(pthread_setattr_default_np(&attr), 0);
    pthread_attr_destroy(&attr);
}

static void no_threads(void)
{
    leat_channel *c;
    forbid_threads(true);
    CHECK_ERROR(leat_channel_open("127.0.0.1:1", "/job:ps/task:0", NULL, &c), RESOURCE_EXHAUSTED,
                "No thread can be started for calls over gRPC");
    CHECK_ERROR(leat_listen("127.0.0.1:0", NULL, echo_handle, NULL, &listener), RESOURCE_EXHAUSTED,
                "ulimit -u");
    forbid_threads(false);
    start(); /* The failed attempts have left no thread behind. */
    stop();
}

static void poll_strategy(void)
{
    static const char *const bad[] = {"", "none-such", "epoll1x,none-such"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("GRPC_POLL_STRATEGY", bad[i], 1);
        CHECK_ERROR(leat_listen("127.0.0.1:0", NULL, echo_handle, NULL, &listener),
                    INVALID_ARGUMENT, "unset it, or set it to epoll1, poll or all");
    }
    setenv("GRPC_POLL_STRATEGY", "none-such,poll", 1);
    start();
    stop();
    unsetenv("GRPC_POLL_STRATEGY");
}

static int count_threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    CHECK(d);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

static void thousands(void)
{
    enum { N = 3000 };
    static result r[N];
    start();
    for (int i = 0; i < N; i++) {
        leat_event_init(&r[i].done);
        leat_outgoing out = {0};
        leat_strbuf_puts(&out.text, "some bytes");
        leat_channel_call(channel, "/test/Echo", &out, NULL, on_result, &r[i], NULL);
    }
    for (int i = 0; i < N; i++) {
        leat_event_wait(&r[i].done, 0);
        CHECK_OK(r[i].status);
    }
    CHECK(count_threads() < 40); /* None is started for handlers that do not block. */
    stop();
}

static void listening(void)
{
    leat_listener *l;
    char text[64];
    start();
    CHECK_ERROR(leat_listen(address, NULL, echo_handle, NULL, &l), ALREADY_EXISTS, "is in use");
    CHECK_ERROR(leat_listen("192.0.2.1:0", NULL, echo_handle, NULL, &l), UNAVAILABLE,
                "not an address of this machine");
    CHECK_ERROR(leat_listen("no-such-host.invalid:0", NULL, echo_handle, NULL, &l), UNAVAILABLE,
                "does not resolve");
    CHECK_ERROR(leat_listen("127.0.0.1", NULL, echo_handle, NULL, &l), INVALID_ARGUMENT,
                "host:port");
    CHECK_ERROR(leat_listen("127.0.0.1:70000", NULL, echo_handle, NULL, &l), INVALID_ARGUMENT,
                "host:port");
    /* Stopped and started again on the same port: the channel comes back by itself. */
    leat_listener_stop(listener, in_ms(100));
    char reply[16];
    CHECK_ERROR(ask("/test/Echo", "a", reply, sizeof reply, NULL), UNAVAILABLE, address);
    snprintf(text, sizeof text, "%s", address);
    start_at(text);
    CHECK_OK(ask("/test/Echo", "again", reply, sizeof reply,
                 &(leat_call_options){.deadline_ns = in_ms(5000), .wait_ready = true}));
    CHECK_STR(reply, "again");
    stop();
    CHECK_OK(leat_listen("localhost:0", NULL, echo_handle, NULL, &l));
    leat_listener_stop(l, 0);
}

static void limits(void)
{
    start();
    leat_channel_free(channel);
    leat_listener_stop(listener, 0);
    leat_listen_options o = {.max_message = 1000, .max_calls = 1};
    CHECK_OK(leat_listen("127.0.0.1:0", &o, echo_handle, NULL, &listener));
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(listener));
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
    char reply[16], text[2000] = {0};
    memset(text, 'x', sizeof text - 1);
    CHECK_ERROR(ask("/test/Echo", text, reply, sizeof reply, NULL), RESOURCE_EXHAUSTED,
                "/test/Echo");
    result r;
    park(&r, NULL);
    CHECK_ERROR(ask("/test/Echo", "a", reply, sizeof reply, NULL), RESOURCE_EXHAUSTED,
                "1 calls under way");
    leat_server_call_reply(parked, NULL, NULL);
    leat_event_wait(&r.done, 0);
    stop();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"echo", echo}, {"pieces", pieces}, {"cancelled", cancelled},
               {"deadline", deadline}, {"channel_freed", channel_freed},
               {"listener_stopped", listener_stopped},
               {"called_while_it_stops", called_while_it_stops}, {"drained", drained},
               {"blocked", blocked}, {"blocked_unseen", blocked_unseen}, {"no_threads", no_threads},
               {"poll_strategy", poll_strategy}, {"thousands", thousands}, {"listening", listening},
               {"limits", limits});
}
