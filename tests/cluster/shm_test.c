/* shm_test.c -- calls through shared memory: the cases of all stream transports, and callers that
 * send wrong data. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cluster/shm/rings.h"
#include "cluster/shm/shm.h"
#include "cluster/stream/handshake.h"
#include "cluster/stream_cases.h"
#include "descriptors.h"

static leat_stream_name shm_name(void)
{
    leat_stream_name n;
    CHECK_OK(leat_stream_name_read(&offer, "shared memory", &n));
    return n;
}

static leat_status open_name(const leat_stream_name *n, leat_channel **out)
{
    leat_strbuf data = {0};
    leat_stream_name_write(n, &data);
    leat_status s = open_by(&data, out);
    leat_strbuf_release(&data);
    return s;
}

/* ---- Callers that lie ---- */
/* Sends a handshake with n descriptors of the memory, 1 or 2. */
static int hand_over_many(const leat_stream_name *name, int memory, int n)
{
    struct sockaddr_un a;
    socklen_t size = leat_unix_address(name, &a);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&a, size) == 0);
    leat_handshake handshake;
    leat_handshake_init(&handshake, LEAT_HANDSHAKE_SHM, name->secret);
    int fds[2] = {memory, memory};
    char control[CMSG_SPACE(sizeof fds)] = {0};
    struct iovec v = {&handshake, sizeof handshake};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n);
    CHECK(sendmsg(fd, &m, MSG_NOSIGNAL) > 0);
    return fd;
}

static int hand_over(int memory)
{
    leat_stream_name name = shm_name();
    return hand_over_many(&name, memory, 1);
}

static bool accepted(int fd)
{
    char c = 0;
    return recv(fd, &c, 1, 0) == 1;
}

static void connect_silent(int fd)
{
    leat_stream_name name = shm_name();
    struct sockaddr_un a;
    socklen_t size = leat_unix_address(&name, &a);
    CHECK(connect(fd, (struct sockaddr *)&a, size) == 0);
}

/* Peers that connect and send nothing do not delay others. */
static void silent(void)
{
    enum { N = 40 };
    char reply[8];
    int fds[N];
    start();
    for (int i = 0; i < N; i++)
        connect_silent(fds[i] = socket(AF_UNIX, SOCK_STREAM, 0));
    leat_channel *joins;
    int64_t began = leat_now_ns();
    CHECK_OK(open_by(&offer, &joins));
    CHECK_OK(echo_call(joins, "/test/Echo", "hello", reply, sizeof reply, NULL));
    CHECK(leat_now_ns() - began < INT64_C(2000000000)); /* 4 s if each was waited for. */
    leat_channel_free(joins);
    CHECK(!accepted(fds[0])); /* It is closed after some seconds. */
    for (int i = 0; i < N; i++)
        close(fds[i]);
    stop();
}

/* A peer that connects while no descriptor is to be had is accepted later, and nothing spins. */
static void no_descriptors(void)
{
    char reply[8];
    start();
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    descriptors_refuse();
    connect_silent(fd);
    CHECK(idle_for_ms(500));
    descriptors_allow();
    CHECK(!accepted(fd)); /* Closed by the listener after some seconds. */
    close(fd);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    stop();
}

static void liars(void)
{
    char reply[8];
    start();
    leat_ring_pair rings;
    int memory, fd;
    CHECK_OK(leat_rings_make(&rings, &memory));
    leat_stream_name wrong = shm_name();
    wrong.secret[LEAT_SECRET_BYTES - 1]++;
    fd = hand_over_many(&wrong, memory, 1);
    CHECK(!accepted(fd));
    close(fd);
    int other = memfd_create(
        "x", 0); /* a file that the caller could truncate while the listener reads it */
    CHECK(ftruncate(other, 4096 + 2 * LEAT_RING_BYTES) == 0);
    fd = hand_over(other);
    CHECK(!accepted(fd));
    close(fd);
    close(other);
    unsigned seed = 7;
    for (int i = 0; i < 40; i++) {
        leat_ring_pair p;
        int m;
        CHECK_OK(leat_rings_make(&p, &m));
        fd = hand_over(m);
        CHECK(accepted(fd));
        if (i % 4 == 0) { /* positions that a correct writer never has */
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
            leat_ring_show_written(&p.out);
            leat_ring_wake_reader(&p.out);
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

static int open_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* What comes with a message that is refused is closed. */
static void two_descriptors(void)
{
    char reply[8];
    start();
    leat_ring_pair rings;
    int memory, before = 0;
    CHECK_OK(leat_rings_make(&rings, &memory));
    for (int i = 0; i < 20; i++) {
        leat_stream_name name = shm_name();
        int fd = hand_over_many(&name, memory, 2);
        CHECK(!accepted(fd));
        close(fd);
        before = before ? before : open_descriptors();
    }
    CHECK_SOON(open_descriptors() <= before);
    close(memory);
    leat_rings_release(&rings);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    stop();
}

/* A process of another user is refused, even if it knows the secret. */
static void other_user(void)
{
    if (geteuid() != 0)
        SKIP("only root can become another user");
    start();
    leat_ring_pair rings;
    int memory, code = 1;
    CHECK_OK(leat_rings_make(&rings, &memory));
    pid_t child = fork();
    if (!child)
        _exit(setuid(65534) != 0 || accepted(hand_over(memory)));
    CHECK(waitpid(child, &code, 0) == child);
    CHECK_INT(code, 0);
    close(memory);
    leat_rings_release(&rings);
    stop();
}

static void elsewhere(void)
{
    start();
    leat_channel *c;
    leat_stream_name n = shm_name();
    n.host[0] ^= 1;
    CHECK_ERROR(open_name(&n, &c), FAILED_PRECONDITION, "not on this machine");
    n = shm_name();
    n.secret[0]++;
    CHECK_ERROR(open_name(&n, &c), UNAVAILABLE, "wrong secret");
    n = shm_name();
    n.local[6]++;
    CHECK_ERROR(open_name(&n, &c), UNAVAILABLE, "refused");
    stop();
}

/* Bytes that are no offer are refused. */
static void bad_offers(void)
{
    static const char *const bad[] = {"", "x", "host\nsocket\n", "host\nsocket\nxyz", "h\ns\n1 2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        leat_strbuf b = {0};
        leat_stream_name n;
        leat_strbuf_puts(&b, bad[i]);
        CHECK_ERROR(leat_stream_name_read(&b, "shared memory", &n), INVALID_ARGUMENT,
                    "cannot be read");
        leat_strbuf_release(&b);
    }
}

/* A channel uses shared memory while it has such a link, and gRPC otherwise. */
static void beside_grpc(void)
{
    char reply[64], address[32];
    leat_listener *l;
    leat_offers offers = {0};
    uint32_t mask;
    CHECK_OK(leat_transports_parse("shm", &mask));
    leat_listen_options o = {.transports = mask, .offers = &offers};
    echo_begin();
    CHECK_OK(leat_listen("127.0.0.1:0", &o, handle, NULL, &l));
    CHECK_INT(offers.n, 1);
    CHECK_STR(offers.v[0].transport, "shm");
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(l));
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
    CHECK_OK(ask("/test/Peer", "", reply, sizeof reply, 5000));
    CHECK(strncmp(reply, "ipv4:127", 8) == 0);
    leat_channel_use_offers(channel, &offers, ~mask);
    CHECK_OK(ask("/test/Peer", "", reply, sizeof reply, 5000));
    CHECK(strncmp(reply, "ipv4:127", 8) == 0);
    leat_channel_use_offers(channel, &offers, mask);
    CHECK_OK(ask("/test/Peer", "", reply, sizeof reply, 5000));
    CHECK(strncmp(reply, "shared memory", 13) == 0);
    leat_channel_free(channel);
    leat_listener_stop(l, in_ms(500));
    leat_offers_release(&offers);
}

static bool blocks(const char *method)
{
    return strcmp(method, "/test/Block") == 0;
}

typedef struct late {
    leat_event set;
    int64_t after_ms;
} late;

static void *set_later(void *arg)
{
    late *l = arg;
    await(&entered, 1);
    usleep((useconds_t)l->after_ms * 1000);
    leat_event_set(&l->set);
    return NULL;
}

static void *release_later(void *arg)
{
    usleep(3000000);
    leat_event_set(&released[0]);
    return NULL;
}

/* A thread that waits for something, and reads connections meanwhile, does not run handlers that
 * block. */
static void blocks_apart(void)
{
    leat_pool *p = leat_pool_new(1, "test");
    pthread_t threads[2];
    listen_with(&(leat_listen_options){.may_block = blocks});
    open_channel();
    leat_event_init(&released[0]);
    /* After some waits that no other one overlaps, waiting threads read. */
    result r;
    for (int i = 0; i < 100; i++) {
        call("/test/Echo", &r, NULL);
        CHECK(leat_shm_wait(p, &r.done, in_ms(10000)) == 1);
        CHECK_OK(r.status);
    }
    late l = {.after_ms = 50};
    leat_event_init(&l.set);
    CHECK(pthread_create(&threads[0], NULL, set_later, &l) == 0);
    CHECK(pthread_create(&threads[1], NULL, release_later, NULL) == 0);
    int64_t began = leat_now_ns();
    call("/test/Block", &r, NULL);
    CHECK(leat_shm_wait(p, &l.set, in_ms(10000)) == 1);
    CHECK(leat_now_ns() - began < INT64_C(2000000000)); /* The handler blocks for three seconds. */
    CHECK(!leat_event_is_set(&r.done));
    CHECK(leat_shm_wait(p, &r.done, in_ms(10000)) == 1);
    CHECK_OK(r.status);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    stop();
    leat_pool_free(p);
}

int main(int argc, char **argv)
{
    transport = &leat_transport_shm;
    in_words = "/job:ps/task:0 (127.0.0.1:2222, shared memory)";
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return serve();
    return RUN(argc, argv, STREAM_CASES, {"silent", silent}, {"no_descriptors", no_descriptors},
               {"liars", liars}, {"two_descriptors", two_descriptors}, {"other_user", other_user},
               {"elsewhere", elsewhere}, {"bad_offers", bad_offers}, {"beside_grpc", beside_grpc},
               {"blocks_apart", blocks_apart});
}
