/* shm_test.c -- calls through shared memory, within one process and between two: as over gRPC, and
 * with messages larger than a ring, peers that are killed or stopped, and callers that lie. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <leat/tensor.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cluster/shm_int.h"
#include "core/buffer.h"
#include "echo.h"
#include "task.h"

/* Gives the last segment back, without a copy; the rest is the echo's. */
static void handle(void *arg, leat_asked *a, const char *method, const leat_incoming *in)
{
    if (strcmp(method, "/test/Share") != 0) {
        echo_handle(arg, a, method, in);
        return;
    }
    leat_outgoing out = {0};
    leat_slice last = in->slices[in->n - 1];
    CHECK(in->owner && (uintptr_t)last.data % LEAT_ALIGN == 0);
    leat_buffer_ref(in->owner);
    leat_shape shape = leat_shape((int64_t)last.n);
    leat_tensor *t = leat_tensor_over(in->owner, (void *)last.data, LEAT_UINT8, &shape);
    leat_outgoing_tensor(&out, t);
    leat_tensor_unref(t);
    leat_asked_reply(a, NULL, &out);
}

static leat_shm_name name;
static leat_shm_listener *listener;
static leat_channel *channel;

static void listen_here(void)
{
    echo_begin();
    CHECK_OK(leat_shm_listen(handle, NULL, NULL, &name, &listener));
}

static void open_channel(void)
{
    CHECK_OK(leat_channel_open_shm(&name, "10.0.0.1:2222", "/job:ps/task:0", &channel));
}

static void start(void)
{
    listen_here();
    open_channel();
}

static void stop(void)
{
    leat_channel_free(channel);
    leat_shm_stop(listener, in_ms(1000));
}

static leat_status ask(const char *method, const char *text, char *reply, size_t cap,
                       int64_t timeout_ms)
{
    leat_call_options o = {.deadline_ns = timeout_ms ? in_ms(timeout_ms) : 0};
    return echo_ask(channel, method, text, reply, cap, &o);
}

static void call(const char *method, result *r, leat_call **out)
{
    leat_event_init(&r->done);
    leat_channel_call(channel, method, &(leat_outgoing){0}, NULL, on_result, r, out);
}

static void echo(void)
{
    char reply[64];
    start();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    CHECK_STR(reply, "hello");
    CHECK_OK(ask("/test/Echo", "", reply, sizeof reply, 0));
    CHECK_STR(reply, "");
    CHECK_ERROR(ask("/test/Fail", "", reply, sizeof reply, 0), FAILED_PRECONDITION,
                "uninitialized value W");
    for (int i = 0; i < 20000; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d", i);
        CHECK_OK(ask("/test/Echo", text, reply, sizeof reply, 0));
        CHECK_STR(reply, text);
    }
    stop();
}

/* Larger than the ring, in pieces, both ways. */
static void large(void)
{
    enum { N = 3 * LEAT_RING_BYTES + 12345 };
    start();
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(N), &t));
    uint8_t *bytes = leat_tensor_mutable(t);
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 4096);
    for (int round = 0; round < 3; round++) {
        leat_outgoing out = {0};
        leat_strbuf_puts(&out.text, "odd");
        leat_outgoing_tensor(&out, t);
        if (round)
            leat_strbuf_puts(&out.text, "end");
        void *reply = NULL;
        size_t n = 0;
        CHECK_OK(leat_channel_ask(channel, round ? "/test/Echo" : "/test/Share", &out, NULL, &reply,
                                  &n));
        CHECK_INT(n, round ? N + 6 : N);
        CHECK(reply && memcmp((char *)reply + (round ? 3 : 0), bytes, N) == 0);
        free(reply);
    }
    leat_tensor_unref(t);
    stop();
}

static void cancelled(void)
{
    char reply[8];
    start();
    result r;
    leat_call *c;
    call("/test/Park", &r, &c);
    await(&entered, 1);
    leat_call_cancel(c);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, CANCELLED, "/job:ps/task:0 (10.0.0.1:2222, shared memory)");
    await(&gone, 1);
    leat_asked_reply(parked, NULL, NULL);
    int64_t begin = leat_now_ns();
    CHECK_ERROR(ask("/test/Park", "", reply, sizeof reply, 100), DEADLINE_EXCEEDED,
                "did not answer in time");
    CHECK(leat_now_ns() - begin > 95000000 && leat_now_ns() - begin < 2000000000);
    await(&gone, 2);
    leat_asked_reply(parked, NULL, NULL);
    /* A channel that is freed, a listener that stops before the answer. */
    call("/test/Park", &r, NULL);
    await(&entered, 3);
    leat_channel_free(channel);
    CHECK(leat_event_is_set(&r.done));
    CHECK_ERROR(r.status, CANCELLED, "the channel was closed");
    await(&gone, 3);
    leat_shm_stop(listener, in_ms(50));
    leat_asked_reply(parked, NULL, NULL);
}

static void listener_stops(void)
{
    char reply[8];
    start();
    result r;
    call("/test/Park", &r, NULL);
    await(&entered, 1);
    leat_shm_stop(listener, in_ms(50));
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "closed the connection in mid-call");
    CHECK_INT(atomic_load(&gone), 1);
    CHECK(!leat_channel_shm_lives(channel));
    CHECK_ERROR(ask("/test/Echo", "", reply, sizeof reply, 0), UNAVAILABLE, "closed");
    leat_channel_free(channel);
    leat_asked_reply(parked, NULL, NULL);
}

/* Handlers that block hold nobody up, whether they say so or not. */
static void blocked(void)
{
    enum { N = 60 };
    static result r[N];
    char reply[8];
    start();
    for (int i = 0; i < N; i++) {
        leat_event_init(&released[i]);
        call(i % 2 ? "/test/Block" : "/test/Leave", &r[i], NULL);
    }
    await(&entered, N);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    for (int i = 0; i < N; i++)
        leat_event_set(&released[i]);
    for (int i = 0; i < N; i++) {
        leat_event_wait(&r[i].done, 0);
        CHECK_OK(r[i].status);
    }
    stop();
}

static void *many(void *arg)
{
    enum { N = 500 };
    result *r = malloc(N * sizeof *r);
    for (int i = 0; i < N; i++)
        call("/test/Echo", &r[i], NULL);
    for (int i = 0; i < N; i++) {
        leat_event_wait(&r[i].done, 0);
        CHECK_OK(r[i].status);
    }
    free(r);
    return NULL;
}

static void thousands(void)
{
    pthread_t t[4];
    start();
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, many, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    stop();
}

/* ---- Another process ---- */
static int serve(void)
{
    listen_here();
    printf("%s\n%s %llu\n", name.host, name.socket, (unsigned long long)name.secret);
    fflush(stdout);
    while (pause() < 0)
        ;
    return 0;
}

static task start_task(void)
{
    task t = task_start("server", "");
    unsigned long long secret = 0;
    CHECK_INT(fscanf(t.says, "%95[^\n] %47s %llu", name.host, name.socket, &secret), 3);
    name.secret = secret;
    return t;
}

static void killed(void)
{
    char reply[8];
    task t = start_task();
    open_channel();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    CHECK_STR(reply, "hello");
    result r;
    call("/test/Park", &r, NULL);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    task_end(&t);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "closed the connection in mid-call");
    leat_channel_free(channel);
}

static void stopped(void)
{
    char reply[8];
    task t = start_task();
    open_channel();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    task_pause(&t);
    CHECK_ERROR(ask("/test/Echo", "", reply, sizeof reply, 200), DEADLINE_EXCEEDED, "in time");
    /* More than fits into the ring: nobody waits but the call. */
    leat_tensor *big;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(3 * LEAT_RING_BYTES), &big));
    leat_outgoing out = {0};
    leat_outgoing_tensor(&out, big);
    result r;
    leat_event_init(&r.done);
    leat_channel_call(channel, "/test/Echo", &out, &(leat_call_options){.deadline_ns = in_ms(300)},
                      on_result, &r, NULL);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, DEADLINE_EXCEEDED, "in time");
    kill(t.pid, SIGCONT);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 10000));
    leat_channel_free(channel);
    leat_tensor_unref(big);
    task_end(&t);
}

/* ---- Callers that lie ---- */
static int knock(uint64_t secret, int memory)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path + 1, name.socket, strlen(name.socket));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&a,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.socket))) ==
          0);
    leat_shm_hello hello = {LEAT_SHM_MAGIC, LEAT_SHM_VERSION, secret};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {&hello, sizeof hello};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &memory, sizeof(int));
    CHECK(sendmsg(fd, &m, MSG_NOSIGNAL) > 0);
    return fd;
}

static bool welcome(int fd)
{
    char c = 0;
    return recv(fd, &c, 1, 0) == 1;
}

static void liars(void)
{
    char reply[8];
    start();
    leat_ring_pair rings;
    int memory, fd;
    CHECK_OK(leat_rings_make(&rings, &memory));
    fd = knock(name.secret + 1, memory);
    CHECK(!welcome(fd));
    close(fd);
    int other = memfd_create("x", 0); /* could be cut off under the reader's feet */
    CHECK(ftruncate(other, 4096 + 2 * LEAT_RING_BYTES) == 0);
    fd = knock(name.secret, other);
    CHECK(!welcome(fd));
    close(fd);
    close(other);
    unsigned seed = 7;
    for (int i = 0; i < 40; i++) {
        leat_ring_pair p;
        int m;
        CHECK_OK(leat_rings_make(&p, &m));
        fd = knock(name.secret, m);
        CHECK(welcome(fd));
        if (i % 4 == 0) { /* places that cannot be */
            p.out.shared->head = (uint64_t)1 << 60;
            p.in.shared->tail = (uint64_t)1 << 61;
            leat_ring_wake_reader(&p.out);
        } else {
            leat_frame f = {.kind = 1 + (uint32_t)rand_r(&seed) % 4, .id = (uint64_t)i};
            f.segments = i % 3 ? 2 : 0xffffffff;
            f.size = i % 5 ? 100 : UINT64_MAX;
            f.method = i % 7 ? 4 : 100000;
            uint64_t lengths[2] = {i % 2 ? 50 : UINT64_MAX - 5, i % 11 ? 50 : 56};
            leat_ring_put(&p.out, &f, sizeof f);
            leat_ring_put(&p.out, "/a/b", 4);
            leat_ring_put(&p.out, lengths, sizeof lengths);
            for (int k = 0; k < 300; k++) {
                uint8_t b = (uint8_t)rand_r(&seed);
                leat_ring_put(&p.out, &b, 1);
            }
            leat_ring_tell_written(&p.out);
        }
        usleep(2000);
        close(fd);
        close(m);
        leat_rings_release(&p);
    }
    close(memory);
    leat_rings_release(&rings);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    stop();
}

static void elsewhere(void)
{
    start();
    leat_channel *c;
    leat_shm_name n = name;
    n.host[0] ^= 1;
    CHECK_ERROR(leat_channel_open_shm(&n, "a:1", "/job:ps/task:0", &c), FAILED_PRECONDITION,
                "not on this machine");
    n = name;
    n.secret++;
    CHECK_ERROR(leat_channel_open_shm(&n, "a:1", "/job:ps/task:0", &c), UNAVAILABLE,
                "wrong secret");
    n = name;
    n.socket[6]++;
    CHECK_ERROR(leat_channel_open_shm(&n, "a:1", "/job:ps/task:0", &c), UNAVAILABLE, "refused");
    stop();
}

/* A channel over gRPC takes the faster way while there is one. */
static void beside_grpc(void)
{
    char reply[64], address[32];
    leat_listener *l;
    listen_here();
    CHECK_OK(leat_listen("127.0.0.1:0", NULL, handle, NULL, &l));
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(l));
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
    CHECK_OK(ask("/test/Echo", "one", reply, sizeof reply, 5000));
    CHECK_OK(leat_channel_use_shm(channel, &name, address, "/job:ps/task:0"));
    CHECK_OK(ask("/test/Echo", "two", reply, sizeof reply, 5000));
    result r;
    call("/test/Park", &r, NULL);
    await(&entered, 1);
    CHECK(strncmp(leat_asked_peer(parked), "shared memory", 13) == 0);
    leat_asked_reply(parked, NULL, NULL);
    leat_event_wait(&r.done, 0);
    CHECK_OK(r.status);
    leat_shm_stop(listener, in_ms(500));
    for (int i = 0; i < 1000 && leat_channel_shm_lives(((leat_channel *)channel)->fast); i++)
        usleep(1000);
    CHECK_OK(ask("/test/Echo", "three", reply, sizeof reply, 5000));
    CHECK_STR(reply, "three");
    leat_channel_free(channel);
    leat_listener_stop(l, in_ms(500));
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return serve();
    return RUN(argc, argv, {"echo", echo}, {"large", large}, {"cancelled", cancelled},
               {"listener_stops", listener_stops}, {"blocked", blocked}, {"thousands", thousands},
               {"killed", killed}, {"stopped", stopped}, {"liars", liars}, {"elsewhere", elsewhere},
               {"beside_grpc", beside_grpc});
}
