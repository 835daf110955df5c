/* pattern_bench.c -- the calls of a parameter server and two workers, without the rest of Leat:
 * over each of its transports and, to compare, over plain sockets with a thread per connection.
 *
 *     pattern_bench ways                                       prints the values of WAY, one a line
 *     pattern_bench WAY SECONDS                                on this machine
 *     pattern_bench WAY SECONDS HOST SERVER CLIENT CLIENT      each in the network namespace (ip
 *                                          netns) of that name, HOST being the server's address
 *
 * One server process and two client processes. A client's step fetches 320 KB, computes for 0.3 ms,
 * and sends 320 KB, which the server computes on for 0.1 ms before it replies. Computing is using
 * that much CPU time of the thread. Both sides have a message's 320 KB in one piece of memory when
 * they begin to compute. Prints the steps/s of both clients together, and the CPU time of a step.
 * Exit code 3: the server cannot be reached by this WAY (by shared memory from another namespace,
 * say).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/transport_int.h"
#include "core/alloc.h"

enum {
    PAYLOAD = 320 << 10, /* bytes */
    CLIENT_NS = 300000,  /* CPU time that a client computes in a step */
    SERVER_NS = 100000,
    CLIENTS = 2,
    WARM_STEPS = 50, /* steps of each client that are not measured */
    PATIENCE_S = 30, /* time limit for the warm steps */
    UNREACHABLE = 3, /* exit code */
};

/* Memory that all processes share. */
static struct board {
    atomic_int listening;
    atomic_long steps[CLIENTS];
    char host[64];    /* the server's address */
    int port;         /* the server's, of gRPC or of a plain TCP socket */
    char path[64];    /* of a plain Unix socket: an abstract name without its leading NUL */
    char offer[1024]; /* the server's offer of the transport that is measured */
    size_t offer_size;
} * board;

static double now(void)
{
    return (double)leat_now_ns() / 1e9;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Computes for ns of the thread's CPU time: time without a core does not count. */
static void compute(int64_t ns)
{
    volatile double x = 1;
    for (int64_t end = thread_cpu_ns() + ns; thread_cpu_ns() < end;)
        for (int i = 0; i < 500; i++)
            x = x * 1.000001 + 1e-9;
}

static void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static void fail_to_connect(const char *why)
{
    fprintf(stderr, "pattern_bench: cannot connect: %s\n", why);
    _exit(UNREACHABLE);
}

static char *payload(void)
{
    static _Thread_local char *memory;
    if (!memory) {
        memory = leat_xmalloc(PAYLOAD);
        memset(memory, 1, PAYLOAD);
    }
    return memory;
}

/* ---- Plain sockets ---- */

static bool read_all(int fd, void *to, size_t n)
{
    for (char *p = to; n;) {
        ssize_t k = read(fd, p, n);
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* Writes the byte `kind`, and n bytes of payload. */
static bool write_all(int fd, char kind, size_t n)
{
    struct iovec v[2] = {{&kind, 1}, {payload(), n}};
    for (struct iovec *at = v; at < v + 2;) {
        ssize_t k = writev(fd, at, (int)(v + 2 - at));
        if (k < 0)
            return false;
        while (at < v + 2 && (size_t)k >= at->iov_len)
            k -= (ssize_t)(at++)->iov_len;
        if (at < v + 2) {
            at->iov_base = (char *)at->iov_base + k;
            at->iov_len -= (size_t)k;
        }
    }
    return true;
}

static void *serve_connection(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char kind;
    bool ok = true;
    while (ok && read_all(fd, &kind, 1)) {
        if (kind == 'f') {
            ok = write_all(fd, 'r', PAYLOAD);
        } else {
            ok = read_all(fd, payload(), PAYLOAD);
            compute(SERVER_NS);
            ok = ok && write_all(fd, 'r', 0);
        }
    }
    close(fd);
    return NULL;
}

static void set_options(int fd, bool reno)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (reno)
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static struct sockaddr_in tcp_address(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)board->port)};
    inet_pton(AF_INET, board->host, &a.sin_addr);
    return a;
}

static struct sockaddr_un unix_address(socklen_t *size_out)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", board->path);
    *size_out = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(board->path));
    return a;
}

static void serve_sockets(int s, bool tcp, bool reno)
{
    if (listen(s, CLIENTS))
        fail("listen");
    atomic_store(&board->listening, 1);
    for (;;) {
        pthread_t t;
        int fd = accept(s, NULL, NULL);
        if (fd < 0)
            fail("accept");
        if (tcp)
            set_options(fd, reno);
        pthread_create(&t, NULL, serve_connection, (void *)(intptr_t)fd);
        pthread_detach(t);
    }
}

static void serve_tcp(bool reno)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = tcp_address();
    socklen_t n = sizeof(a);
    if (bind(s, (struct sockaddr *)&a, sizeof(a)) || getsockname(s, (struct sockaddr *)&a, &n))
        fail("bind");
    board->port = ntohs(a.sin_port);
    serve_sockets(s, true, reno);
}

static int open_tcp(bool reno)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = tcp_address();
    set_options(fd, reno);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
        fail_to_connect(strerror(errno));
    return fd;
}

static void serve_tcp_reno(void)
{
    serve_tcp(true);
}

static void serve_tcp_default(void)
{
    serve_tcp(false);
}

static void serve_unix(void)
{
    snprintf(board->path, sizeof(board->path), "leat-pattern-bench-%d", (int)getpid());
    socklen_t n;
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = unix_address(&n);
    if (bind(s, (struct sockaddr *)&a, n))
        fail("bind");
    serve_sockets(s, false, false);
}

typedef struct client {
    int fd;                /* for a plain socket */
    leat_channel *channel; /* for a transport of Leat */
    leat_tensor *gradient;
} client;

static void open_tcp_reno(client *c)
{
    c->fd = open_tcp(true);
}

static void open_tcp_default(client *c)
{
    c->fd = open_tcp(false);
}

static void open_unix(client *c)
{
    socklen_t n;
    struct sockaddr_un a = unix_address(&n);
    c->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&a, n))
        fail_to_connect(strerror(errno));
}

static void socket_step(client *c)
{
    char kind;
    if (!write_all(c->fd, 'f', 0) || !read_all(c->fd, &kind, 1) ||
        !read_all(c->fd, payload(), PAYLOAD))
        fail("fetch");
    compute(CLIENT_NS);
    if (!write_all(c->fd, 's', PAYLOAD) || !read_all(c->fd, &kind, 1))
        fail("send");
}

/* ---- Leat's transports ---- */

static leat_tensor *parameters; /* what the server sends */

/* Brings the payload into one piece of memory: copies it, unless it has come in one that may be
 * kept. */
static void bring_together(const leat_incoming *in)
{
    size_t at = 0;
    for (int i = 0; i < in->n; i++)
        if (in->slices[i].n == PAYLOAD && (in->owner || in->slices[i].owner))
            return;
    for (int i = 0; i < in->n && at + in->slices[i].n <= PAYLOAD; i++) {
        memcpy(payload() + at, in->slices[i].data, in->slices[i].n);
        at += in->slices[i].n;
    }
}

static void handle(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    leat_outgoing out = {0};
    if (strcmp(method, "/bench/Fetch") == 0) {
        leat_outgoing_tensor(&out, parameters);
    } else {
        bring_together(in);
        compute(SERVER_NS);
    }
    leat_server_call_reply(a, NULL, &out);
}

static leat_tensor *new_payload(void)
{
    leat_tensor *t;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_UINT8, leat_shape(PAYLOAD), &t));
    memset(leat_tensor_mutable(t), 7, PAYLOAD);
    return t;
}

static const leat_transport *transport; /* the one that is measured */

static void serve_transport(void)
{
    char address[80];
    leat_endpoint *e;
    leat_strbuf offer = {0};
    parameters = new_payload();
    snprintf(address, sizeof(address), "%s:0", board->host);
    LEAT_DIE_ON_ERROR(transport->listen(address, &(leat_listen_options){0}, handle, NULL,
                                        transport->by_address ? NULL : &offer, &e));
    board->port = transport->by_address ? transport->port(e) : 0;
    board->offer_size = offer.n;
    if (offer.n > sizeof(board->offer))
        fail("an offer of that size");
    memcpy(board->offer, leat_strbuf_text(&offer), offer.n);
    atomic_store(&board->listening, 1);
}

static void open_transport(client *c)
{
    char address[80];
    leat_offer offer = {0};
    snprintf(address, sizeof(address), "%s:%d", board->host, board->port);
    leat_strbuf_add(&offer.data, board->offer, board->offer_size);
    leat_link_target to = {
        .address = address, .peer = "the server", .offer = transport->by_address ? NULL : &offer};
    leat_status s = leat_channel_open_link(transport, &to, &c->channel);
    if (s)
        fail_to_connect(leat_status_message(s));
    while (leat_channel_state(c->channel) == LEAT_LINK_OPENING)
        usleep(1000);
    if (leat_channel_state(c->channel) == LEAT_LINK_DEAD)
        fail_to_connect("the link is dead");
}

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    LEAT_DIE_ON_ERROR(s);
    bring_together(in);
    leat_event_set(arg);
}

static void call(client *c, const char *method, leat_outgoing *request)
{
    leat_event done;
    leat_event_init(&done);
    leat_channel_call(c->channel, method, request, NULL, on_reply, &done, NULL);
    leat_event_wait(&done, 0);
}

static void channel_step(client *c)
{
    leat_outgoing fetch = {0}, send = {0};
    if (!c->gradient)
        c->gradient = new_payload();
    call(c, "/bench/Fetch", &fetch);
    compute(CLIENT_NS);
    leat_outgoing_tensor(&send, c->gradient);
    call(c, "/bench/Send", &send);
}

/* ---- All ways ---- */

typedef struct way {
    const char *name;
    void (*serve)(void);
    void (*open)(client *c);
    void (*step)(client *c);
} way;
static const way ways[] = {
    {"tcp", serve_tcp_reno, open_tcp_reno, socket_step},
    {"tcp-default", serve_tcp_default, open_tcp_default, socket_step},
    {"unix", serve_unix, open_unix, socket_step},
};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

/* Finds a way by its name; the names of Leat's transports have "leat-" before them. */
static const way *find_way(const char *name)
{
    static const way leat = {"leat", serve_transport, open_transport, channel_step};
    for (int i = 0; i < WAYS; i++)
        if (strcmp(name, ways[i].name) == 0)
            return &ways[i];
    for (int i = 0; leat_transports[i]; i++)
        if (strncmp(name, "leat-", 5) == 0 && strcmp(name + 5, leat_transports[i]->name) == 0) {
            transport = leat_transports[i];
            return &leat;
        }
    return NULL;
}

static void enter(const char *namespace)
{
    char path[256];
    snprintf(path, sizeof(path), "/run/netns/%s", namespace);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET))
        fail(path);
    close(fd);
}

/* Starts the process of client i, or of the server if i is negative, in a network namespace if one
 * is named. The process ends with its parent. */
static pid_t spawn(const way *w, int i, const char *namespace)
{
    pid_t parent = getpid(), p = fork();
    if (p < 0)
        fail("fork");
    if (p > 0)
        return p;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    if (namespace)
        enter(namespace);
    if (i < 0) {
        w->serve();
        for (;;)
            pause();
    }
    client c = {0};
    while (!atomic_load(&board->listening))
        usleep(1000);
    w->open(&c);
    for (;;) {
        w->step(&c);
        atomic_fetch_add(&board->steps[i], 1);
    }
}

static double cpu_of(pid_t p)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(p, &clock) != 0 || clock_gettime(clock, &t) != 0)
        fail("CPU time of a process");
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct sample {
    double at, client_cpu, server_cpu; /* seconds */
    long steps;
} sample;

static sample take_sample(const pid_t *p)
{
    sample s = {.server_cpu = cpu_of(p[0]), .at = now()};
    for (int i = 0; i < CLIENTS; i++) {
        s.steps += atomic_load(&board->steps[i]);
        s.client_cpu += cpu_of(p[1 + i]);
    }
    return s;
}

/* 0, or the exit code of this program if a server or client process has ended. */
static int check_live(void)
{
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) == 0)
        return 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == UNREACHABLE ? UNREACHABLE : 1;
}

static int warm_up(void)
{
    double end = now() + PATIENCE_S;
    for (int i = 0, code; i < CLIENTS; i++)
        while (atomic_load(&board->steps[i]) < WARM_STEPS) {
            if ((code = check_live()) != 0)
                return code;
            if (now() > end) {
                fprintf(stderr, "pattern_bench: no %d steps in %d s\n", WARM_STEPS, PATIENCE_S);
                return 1;
            }
            usleep(1000);
        }
    return 0;
}

static int run(const way *w, double seconds, char *const *namespaces)
{
    pid_t p[1 + CLIENTS];
    for (int i = 0; i <= CLIENTS; i++)
        p[i] = spawn(w, i - 1, namespaces ? namespaces[i] : NULL);
    int code = warm_up();
    sample a = {0}, b = {0};
    if (code == 0) {
        a = take_sample(p);
        usleep((useconds_t)(seconds * 1e6));
        code = check_live();
    }
    if (code == 0)
        b = take_sample(p);
    for (int i = 0; i <= CLIENTS; i++)
        kill(p[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    double steps = (double)(b.steps - a.steps);
    if (code != 0 || steps <= 0)
        return code ? code : 1;
    printf("steps_per_s %.1f\n", steps / (b.at - a.at));
    printf("client_cpu_us %.1f\n", (b.client_cpu - a.client_cpu) / steps * 1e6);
    printf("server_cpu_us %.1f\n", (b.server_cpu - a.server_cpu) / steps * 1e6);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "ways") == 0) {
        for (int i = 0; i < WAYS; i++)
            printf("%s\n", ways[i].name);
        for (int i = 0; leat_transports[i]; i++)
            printf("leat-%s\n", leat_transports[i]->name);
        return 0;
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        fail("mmap");
    snprintf(board->host, sizeof(board->host), "%s", argc == 7 ? argv[3] : "127.0.0.1");
    const way *w = argc == 3 || argc == 7 ? find_way(argv[1]) : NULL;
    if (w)
        return run(w, atof(argv[2]), argc == 7 ? argv + 4 : NULL);
    fprintf(stderr, "usage: pattern_bench ways\n"
                    "       pattern_bench WAY SECONDS [HOST SERVER CLIENT CLIENT]\n");
    return 2;
}
