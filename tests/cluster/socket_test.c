/* socket_test.c -- calls over a direct socket: the cases of all streams, by a Unix socket and by
 * TCP; and callers that are slow, send wrong data, or never complete the handshake. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cluster/address.h"
#include "cluster/socket_offer.h"
#include "core/alloc.h"
#include "core/threadpool.h"
#include "descriptors.h"

/* ---- A caller by hand ---- */
/* 1: accepted; 0: the connection was closed. */
static int answer(int fd)
{
    char yes = 0;
    ssize_t n = recv(fd, &yes, 1, 0);
    CHECK(n >= 0 || errno == ECONNRESET);
    return n == 1 && yes == LEAT_ACCEPTED;
}

static void shake_hands(int fd)
{
    leat_stream_name n = socket_name();
    leat_handshake h;
    leat_handshake_init(&h, LEAT_HANDSHAKE_SOCKET, n.secret);
    CHECK(send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h);
    CHECK_INT(answer(fd), 1);
}

static int connect_as_peer(void)
{
    int fd = connect_raw();
    shake_hands(fd);
    return fd;
}

/* A peer that connects while no descriptor is to be had is accepted later, and nothing spins. */
static void no_descriptors(void)
{
    start();
    leat_stream_name n = socket_name();
    leat_handshake h;
    leat_handshake_init(&h, LEAT_HANDSHAKE_SOCKET, n.secret);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)n.port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    descriptors_refuse();
    CHECK(connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
    CHECK(idle_for_ms(500));
    descriptors_allow();
    CHECK(send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h);
    CHECK_INT(answer(fd), 1);
    close(fd);
    stop();
}

/* A call on a channel whose only link is not open yet fails, and so does one on a link that could
 * not be opened. */
static void not_open_yet(void)
{
    listen_here();
    leat_stream_name n = socket_name();
    transport->stop(listener, 0);
    set_offer(&n);
    leat_offer o = {.data = offer};
    leat_link_target to = {"127.0.0.1:2222", "/job:ps/task:0", NULL, &o};
    CHECK_OK(leat_channel_open_link(transport, &to, &channel));
    CHECK_INT(leat_channel_state(channel), LEAT_LINK_OPENING);
    CHECK_ERROR(ask("/test/Echo", "", NULL, 0, 5000), UNAVAILABLE,
                "/job:ps/task:0 (127.0.0.1:2222, socket) cannot be called: the connection is not "
                "open yet");
    result r;
    leat_call *k;
    call("/test/Echo", &r, &k);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "not open yet");
    leat_channel_free(channel);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

static void wrong_handshakes(void)
{
    char reply[8];
    start();
    leat_stream_name n = socket_name();
    leat_handshake h;
    for (size_t at = 0; at < sizeof h; at++) { /* any byte of it */
        leat_handshake_init(&h, LEAT_HANDSHAKE_SOCKET, n.secret);
        ((uint8_t *)&h)[at] ^= 0x40;
        int fd = connect_raw();
        CHECK(send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h);
        CHECK_INT(answer(fd), 0);
        close(fd);
    }
    /* A correct handshake, byte by byte. */
    leat_handshake_init(&h, LEAT_HANDSHAKE_SOCKET, n.secret);
    int fd = connect_raw();
    for (size_t at = 0; at < sizeof h; at++) {
        CHECK(send(fd, (char *)&h + at, 1, MSG_NOSIGNAL) == 1);
        usleep(200);
    }
    CHECK_INT(answer(fd), 1);
    close(fd);
    /* The first half of a handshake, and nothing more: the connection is closed at its deadline. */
    fd = connect_raw();
    CHECK(send(fd, &h, sizeof h / 2, MSG_NOSIGNAL) == sizeof h / 2);
    int64_t begin = leat_now_ns();
    CHECK(is_closed(fd));
    CHECK(leat_now_ns() - begin > 1000000000);
    close(fd);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    stop();
}

/* Connections that send nothing keep no other caller out, and use few resources. */
static void silent_crowd(void)
{
    enum { N = 1000, LATER = 10 };
    static int fds[N], later[LATER];
    char reply[8];
    start();
    int before = open_files();
    for (int i = 0; i < N; i++)
        fds[i] = connect_raw();
    CHECK(open_files() <
          before + N + 100); /* this test's connection, and at most those that may wait */
    /* The oldest ones make room, not one that came a moment ago and is about to shake hands. */
    int peer = connect_raw();
    for (int i = 0; i < LATER; i++)
        later[i] = connect_raw();
    shake_hands(peer);
    close(peer);
    leat_channel *other;
    CHECK_OK(open_by(&offer, &other));
    CHECK(leat_channel_state(other) == LEAT_LINK_LIVES);
    CHECK_OK(echo_call(other, "/test/Echo", "hello", reply, sizeof reply, NULL));
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    leat_channel_free(other);
    for (int i = 0; i < N; i++) {
        CHECK(is_closed(fds[i]));
        close(fds[i]);
    }
    for (int i = 0; i < LATER; i++)
        close(later[i]);
    stop();
}

static void send_frame(int fd, const leat_frame *f, const void *rest, size_t n)
{
    (void)!send(fd, f, sizeof *f, MSG_NOSIGNAL | MSG_MORE);
    (void)!send(fd, rest, n, MSG_NOSIGNAL);
}

/* Bytes that are no frame close their connection, and no other. */
static void garbage(void)
{
    char reply[8];
    start();
    uint64_t lengths[2] = {50, 50}, huge[2] = {UINT64_MAX - 5, 106};
    uint8_t rest[sizeof lengths + 4 + 100] = "/a/b";
    const struct {
        leat_frame frame;
        const uint64_t *lengths;
    } bad[] = {
        {{.kind = 0, .method = 4}, lengths},
        {{.kind = 99, .method = 4}, lengths},
        {{.kind = LEAT_FRAME_REQUEST, .method = 100000}, lengths},
        {{.kind = LEAT_FRAME_REQUEST, .method = 4, .segments = UINT32_MAX, .size = 100}, lengths},
        {{.kind = LEAT_FRAME_REQUEST, .method = 4, .segments = 2, .size = UINT64_MAX}, lengths},
        {{.kind = LEAT_FRAME_REQUEST, .method = 4, .segments = 2, .size = 99}, lengths},
        {{.kind = LEAT_FRAME_REQUEST, .method = 4, .segments = 2, .size = 101}, lengths},
        {{.kind = LEAT_FRAME_REQUEST, .method = 4, .segments = 2, .size = 100}, huge},
        {{.kind = LEAT_FRAME_SKIP, .size = UINT64_MAX}, lengths},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int fd = connect_as_peer();
        memcpy(rest + 4, bad[i].lengths, sizeof lengths);
        send_frame(fd, &bad[i].frame, rest, sizeof rest);
        CHECK(is_closed(fd));
        close(fd);
    }
    unsigned seed = 11;
    for (int i = 0; i < 200; i++) { /* any bytes */
        uint8_t bytes[300];
        int fd = connect_as_peer();
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)rand_r(&seed);
        bytes[0] = (uint8_t)(i % 9);
        bytes[1] = bytes[2] = bytes[3] = 0;
        (void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        close(fd);
    }
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    stop();
}

/* Half a frame is dropped with its connection. */
static void half_frames(void)
{
    char reply[8];
    start();
    leat_frame f = {.kind = LEAT_FRAME_REQUEST, .id = 1, .method = 10, .segments = 1, .size = 1000};
    uint64_t length = 1000;
    uint8_t rest[10 + sizeof length] = "/test/Echo";
    memcpy(rest + 10, &length, sizeof length);
    for (size_t n = 1; n < sizeof f + sizeof rest + 100; n += 7) {
        uint8_t bytes[sizeof f + sizeof rest + 100] = {0};
        memcpy(bytes, &f, sizeof f);
        memcpy(bytes + sizeof f, rest, sizeof rest);
        int fd = connect_as_peer();
        CHECK(send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
        shutdown(fd, SHUT_WR);
        CHECK(is_closed(fd));
        close(fd);
    }
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 0));
    stop();
}

/* A caller that does not read its replies delays no other caller. */
static void slow_reader(void)
{
    enum { N = 100, BYTES = 1 << 20 };
    char reply[8], *text = leat_xmalloc(BYTES);
    start();
    int fd = connect_as_peer();
    memset(text, 'x', BYTES);
    uint64_t length = BYTES;
    leat_frame f = {.kind = LEAT_FRAME_REQUEST, .method = 10, .segments = 1, .size = BYTES};
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    for (int i = 0; i < N; i++) {
        f.id = (uint64_t)i + 1;
        if (send(fd, &f, sizeof f, flags) != sizeof f || send(fd, "/test/Echo", 10, flags) != 10 ||
            send(fd, &length, sizeof length, flags) != sizeof length ||
            send(fd, text, BYTES, flags) != BYTES)
            break; /* the listener's buffers are full */
        usleep(1000);
    }
    for (int i = 0; i < 100; i++)
        CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 5000));
    close(fd);
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 5000));
    free(text);
    stop();
}

/* ---- Slow networks ---- */
typedef struct slow_peer {
    int listening;
    size_t request, reply; /* bytes of the segments */
} slow_peer;

enum { SLOW_STEPS = 40, SLOW_STEP_MS = 40 };

/* Reads a request, and sends a reply, each in many steps: longer than a silent peer is waited for,
 * but never silent for so long. */
static void *be_slow(void *arg)
{
    const slow_peer *p = arg;
    leat_handshake h;
    leat_frame f;
    size_t request = p->request / SLOW_STEPS, reply = p->reply / SLOW_STEPS;
    char *bytes = leat_xmalloc(request > reply ? request : reply), rest[300];
    int fd = accept(p->listening, NULL, NULL);
    CHECK(recv(fd, &h, sizeof h, MSG_WAITALL) == sizeof h && send(fd, "y", 1, 0) == 1);
    CHECK(recv(fd, &f, sizeof f, MSG_WAITALL) == sizeof f && f.kind == LEAT_FRAME_REQUEST);
    CHECK(f.segments == 1 && f.size == p->request && f.method < 200);
    ssize_t n = (ssize_t)(f.method + sizeof(uint64_t));
    CHECK(recv(fd, rest, (size_t)n, MSG_WAITALL) == n);
    for (int i = 0; i < SLOW_STEPS; i++) {
        CHECK(recv(fd, bytes, request, MSG_WAITALL) == (ssize_t)request);
        usleep(SLOW_STEP_MS * 1000);
    }
    uint64_t size = p->reply;
    f = (leat_frame){.kind = LEAT_FRAME_REPLY, .id = f.id, .size = size, .segments = 1};
    send_frame(fd, &f, &size, sizeof size);
    memset(bytes, 'x', reply);
    for (int i = 0; i < SLOW_STEPS; i++) {
        CHECK(send(fd, bytes, reply, MSG_NOSIGNAL) == (ssize_t)reply);
        usleep(SLOW_STEP_MS * 1000);
    }
    while (recv(fd, rest, sizeof rest, 0) > 0) /* pings */
        ;
    close(fd);
    free(bytes);
    return NULL;
}

/* A message that takes longer than a silent peer is waited for: bytes come and go all the time. */
static void slow_network(void)
{
    int64_t was = leat_ping_after_ns;
    leat_ping_after_ns = 200000000;
    slow_peer p = {.listening = socket(AF_INET, SOCK_STREAM, 0),
                   .request = SLOW_STEPS << 20,
                   .reply = SLOW_STEPS * 1000};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int bytes = 256 << 10;
    setsockopt(p.listening, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    CHECK(bind(p.listening, (struct sockaddr *)&a, n) == 0 && listen(p.listening, 1) == 0 &&
          getsockname(p.listening, (struct sockaddr *)&a, &n) == 0);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, be_slow, &p) == 0);
    leat_stream_name name = {.host = "elsewhere", .local = "-", .port = ntohs(a.sin_port)};
    leat_strbuf_release(&offer);
    leat_stream_name_write(&name, &offer);
    open_channel();
    leat_outgoing o = {0};
    leat_tensor *big;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape((int64_t)p.request), &big));
    memset(leat_tensor_mutable(big), 0, p.request);
    leat_outgoing_tensor(&o, big);
    leat_tensor_unref(big);
    void *reply = NULL;
    size_t size = 0;
    CHECK_OK(leat_channel_call_wait(channel, "/test/Slow", &o, NULL, &reply, &size));
    CHECK_INT((int64_t)size, (int64_t)p.reply);
    free(reply);
    leat_channel_free(channel);
    pthread_join(t, NULL);
    close(p.listening);
    leat_ping_after_ns = was;
}

/* ---- Links that cannot be had ---- */
static void never_opens(const leat_stream_name *n)
{
    leat_channel *c;
    leat_offer o = {0};
    leat_stream_name_write(n, &o.data);
    leat_link_target to = {"127.0.0.1:2222", "/job:ps/task:0", NULL, &o};
    CHECK_OK(leat_channel_open_link(transport, &to, &c));
    usleep(300000);
    CHECK(leat_channel_state(c) == LEAT_LINK_OPENING);
    CHECK(!leat_channel_degraded(c));
    int64_t begin = leat_now_ns();
    leat_channel_free(c);
    CHECK(leat_now_ns() - begin < 1000000000);
    leat_strbuf_release(&o.data);
}

static void unreachable(void)
{
    leat_channel *c;
    listen_here();
    leat_stream_name good = socket_name(), n = good;
    n.secret[7] ^= 1;
    never_opens(&n);
    n = good;
    n.host[0] ^= 1;
    n.port = 1; /* nobody listens there */
    never_opens(&n);
    n.port = 0;
    set_offer(&n);
    CHECK_ERROR(open_by(&offer, &c), FAILED_PRECONDITION, "offers no socket to tasks of other");
    transport->stop(listener, in_ms(500));
}

/* The port is opened later: the link is made in the background. */
static void opened_later(void)
{
    leat_channel *c;
    listen_here();
    from_afar(&offer);
    leat_strbuf first = {0};
    leat_strbuf_add(&first, offer.s, offer.n);
    leat_stream_name n = socket_name();
    transport->stop(listener, in_ms(500));
    leat_offer o = {.data = first};
    leat_link_target to = {"127.0.0.1:2222", "/job:ps/task:0", NULL, &o};
    CHECK_OK(leat_channel_open_link(transport, &to, &c));
    usleep(200000);
    CHECK(leat_channel_state(c) == LEAT_LINK_OPENING);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)n.port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 1) == 0);
    int peer = accept(fd, NULL, NULL);
    leat_handshake h;
    CHECK(recv(peer, &h, sizeof h, MSG_WAITALL) == sizeof h);
    CHECK(leat_handshake_right(&h, LEAT_HANDSHAKE_SOCKET, n.secret));
    CHECK(send(peer, "y", 1, 0) == 1);
    for (int i = 0; i < 5000 && leat_channel_state(c) != LEAT_LINK_LIVES; i++)
        usleep(1000);
    CHECK(leat_channel_state(c) == LEAT_LINK_LIVES);
    leat_channel_free(c);
    close(peer);
    close(fd);
    leat_strbuf_release(&first);
}

/* Packets to the address are lost: neither opening nor freeing a link waits. */
static void black_hole(void)
{
    leat_channel *c;
    listen_here();
    from_afar(&offer);
    leat_offer o = {.data = offer};
    leat_link_target to = {"192.0.2.1:2222", "/job:ps/task:0", NULL, &o};
    int64_t begin = leat_now_ns();
    CHECK_OK(leat_channel_open_link(transport, &to, &c));
    leat_channel_free(c);
    CHECK(leat_now_ns() - begin < 2000000000);
    transport->stop(listener, in_ms(500));
}

static int connecting_threads(void)
{
    int n = 0;
    char path[400], name[32] = "";
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        n += f && fgets(name, sizeof name, f) && strcmp(name, "leat-connect\n") == 0;
        if (f)
            fclose(f);
    }
    closedir(d);
    return n;
}

/* A peer behind a firewall that is started anew has another offer each time: only one thread tries
 * to connect, for the last of them. */
static void replaced(void)
{
    leat_channel *c;
    listen_here();
    leat_stream_name n = socket_name();
    n.host[0] ^= 1;
    n.port = 1; /* nobody listens there */
    CHECK_OK(leat_channel_open("127.0.0.1:2222", "/job:ps/task:0", NULL, &c));
    for (int i = 0; i < 5; i++) {
        leat_offers offers = {.n = 1, .v = {{.transport = "socket"}}};
        n.secret[0]++;
        leat_stream_name_write(&n, &offers.v[0].data);
        leat_channel_use_offers(c, &offers, UINT32_MAX);
        leat_offers_release(&offers);
    }
    usleep(300000); /* all have begun */
    for (int i = 0; i < 5000 && connecting_threads() != 1; i++)
        usleep(1000);
    CHECK_INT(connecting_threads(), 1);
    leat_channel_free(c);
    CHECK_INT(connecting_threads(), 0);
    transport->stop(listener, in_ms(500));
}

static void bad_offers(void)
{
    static const char *const bad[] = {
        "", "x", "host\nsocket\n1\n", "host\nsocket\n1\nabc",
        ("host\nsocket\n70000\n0123456789abcdef0123456789abcdef01234567"
         "89abcdef0123456789abcdef")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        leat_strbuf b = {0};
        leat_stream_name n;
        leat_strbuf_puts(&b, bad[i]);
        CHECK_ERROR(leat_stream_name_read(&b, "a socket", &n), INVALID_ARGUMENT, "cannot be read");
        leat_strbuf_release(&b);
    }
}

static void chosen_port(void)
{
    leat_endpoint *second;
    leat_strbuf o = {0};
    listen_here();
    int port = socket_name().port;
    CHECK_ERROR(transport->listen("127.0.0.1:0", &(leat_listen_options){.data_port = port}, handle,
                                  NULL, &o, &second),
                ALREADY_EXISTS, "in use");
    transport->stop(listener, in_ms(500));
    listen_with(&(leat_listen_options){.data_port = port});
    CHECK_INT(socket_name().port, port);
    transport->stop(listener, in_ms(500));
}

/* ---- Settings of a TCP connection ---- */
/* A connection to the loopback device, by a congestion control; false if that cannot be had. */
static bool connect_by(const char *congestion, int fd[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    fd[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&a, n) == 0 && listen(listener, 1) == 0 &&
          getsockname(listener, (struct sockaddr *)&a, &n) == 0);
    bool can = setsockopt(fd[0], IPPROTO_TCP, TCP_CONGESTION, congestion,
                          (socklen_t)strlen(congestion)) == 0;
    CHECK(connect(fd[0], (struct sockaddr *)&a, n) == 0);
    fd[1] = accept(listener, NULL, NULL);
    CHECK(fd[1] >= 0);
    close(listener);
    return can;
}

/* BBR is replaced between ends that are near each other; nothing else is. */
static void congestion_control(void)
{
    const char *const before[] = {"bbr", "cubic", "reno"}, *const after[] = {"reno", "cubic",
                                                                             "reno"};
    for (int i = 0; i < 3; i++) {
        int fd[2];
        char name[17] = "";
        socklen_t n = sizeof name - 1;
        bool can = connect_by(before[i], fd);
        leat_socket_set_up(fd[0], false);
        CHECK(getsockopt(fd[0], IPPROTO_TCP, TCP_CONGESTION, name, &n) == 0);
        if (can)
            CHECK_STR(name, after[i]);
        close(fd[0]);
        close(fd[1]);
    }
}

/* Counts, for each CPU, the threads of this process that read a connection and are bound to it. */
static int count_bound(int n_of[CPU_SETSIZE])
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    memset(n_of, 0, CPU_SETSIZE * sizeof *n_of);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], name[32] = "";
        cpu_set_t set;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        bool reads = f && fgets(name, sizeof name, f) && strcmp(name, "leat-read\n") == 0;
        if (f)
            fclose(f);
        if (!reads || sched_getaffinity(atoi(e->d_name), sizeof set, &set) || CPU_COUNT(&set) != 1)
            continue;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            n_of[cpu] += CPU_ISSET(cpu, &set) != 0;
        n++;
    }
    closedir(d);
    return n;
}

/* In a process that shares its CPUs, the readers of accepted connections are on all of them; a
 * process that has them for itself binds no reader. */
static void dealt_out(void)
{
    int n_of[CPU_SETSIZE], cpus = leat_cpu_count(), peers[64], n = cpus > 32 ? 64 : 2 * cpus;
    start(); /* One more connection. */
    for (int i = 0; i < n; i++)
        peers[i] = connect_as_peer();
    if (leat_default_threads() < cpus) {
        CHECK_SOON(count_bound(n_of) == n + 1);
        for (int cpu = 0, used = 0; cpu < CPU_SETSIZE; cpu++)
            if (n_of[cpu]) {
                CHECK(n_of[cpu] <= 3);
                CHECK(++used <= cpus);
            }
    } else {
        CHECK_INT(count_bound(n_of), 0);
    }
    for (int i = 0; i < n; i++)
        close(peers[i]);
    stop();
    if (leat_default_threads() == cpus && cpus > 1)
        CHECK_INT(system("LEAT_NUM_THREADS=1 /proc/$PPID/exe dealt_out >/dev/null"), 0);
}

int main(int argc, char **argv)
{
    transport = &leat_transport_socket;
    in_words = "/job:ps/task:0 (127.0.0.1:2222, socket)";
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return serve();
    int local = RUN(argc, argv, STREAM_CASES);
    change_offer = from_afar;
    int tcp = RUN(argc, argv, STREAM_CASES);
    change_offer = NULL;
    int rest = RUN(
        argc, argv, {"wrong_handshakes", wrong_handshakes}, {"silent_crowd", silent_crowd},
        {"no_descriptors", no_descriptors}, {"not_open_yet", not_open_yet}, {"garbage", garbage},
        {"half_frames", half_frames}, {"slow_reader", slow_reader}, {"slow_network", slow_network},
        {"unreachable", unreachable}, {"opened_later", opened_later}, {"black_hole", black_hole},
        {"replaced", replaced}, {"bad_offers", bad_offers}, {"chosen_port", chosen_port},
        {"congestion_control", congestion_control}, {"dealt_out", dealt_out});
    if (local == 1 || tcp == 1 || rest == 1)
        return 1;
    return local && tcp && rest; /* A case that was named is in one of them. */
}
