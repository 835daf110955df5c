/* transport_bench.c -- what a call between two processes of this machine costs: over gRPC, over
 * Leat's own socket (a Unix socket, and TCP with TLS), through shared memory, and, to compare, over
 * a plain TCP connection with blocking reads and writes.
 *
 *     build/bench/transport_bench [SECONDS a figure, 0.5] [ROUNDS, 3] [ONLY those named so]
 *
 * Interleaved rounds, medians. "callback": the function that gets a reply makes the next call.
 * "waiting": a thread waits for each reply. CPU times are those of both processes together. Plain
 * TCP uses the machine's congestion control; "Reno" uses Reno, without the pacing of BBR, as Leat's
 * own sockets do within a machine. Large messages are copied from the socket to their place at most
 * once more: plain TCP reads them there, gRPC's parts are copied there, shared memory is used in
 * place.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/socket/socket.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/threadpool.h"

enum { SMALL = 64, BIG = 100 << 20, ROUNDS_MAX = 20 };

static double seconds = 0.5;
static char *landing; /* the memory that large messages are copied to */

static double now(void)
{
    return (double)leat_now_ns() / 1e9;
}

static double cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* ---- TLS ---- */
/* A certificate that is its own authority, made by the openssl command; removed when the program
 * ends. */
static char directory[] = "/tmp/leat-transport-bench-XXXXXX", certificate[64], key[64];
static leat_security tls = {.certificate = certificate, .key = key, .authority = certificate};

static void name_files(const char *in)
{
    snprintf(certificate, sizeof certificate, "%s/c.pem", in);
    snprintf(key, sizeof key, "%s/c.key", in);
}

static bool make_certificate(void)
{
    char command[300];
    if (!mkdtemp(directory))
        return false;
    name_files(directory);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bench -addext "
             "subjectAltName=IP:127.0.0.1 -keyout %s -out %s >%s/log 2>&1",
             key, certificate, directory);
    return system(command) == 0;
}

static void remove_certificate(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    if (system(command))
        fprintf(stderr, "%s is left\n", directory);
}

/* ---- The other process ---- */
static leat_tensor *big;

static void handle(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    leat_outgoing out = {0};
    if (strcmp(method, "/bench/Small") == 0) {
        for (int i = 0; i < in->n; i++)
            leat_strbuf_add(&out.text, in->slices[i].data, in->slices[i].n);
    } else if (strcmp(method, "/bench/Big") == 0) {
        leat_outgoing_tensor(&out, big);
    } else {
        double used = cpu();
        leat_strbuf_add(&out.text, &used, sizeof used);
    }
    leat_server_call_reply(a, NULL, &out);
}

static bool all(int fd, char *p, size_t n, bool out)
{
    while (n) {
        ssize_t k = out ? write(fd, p, n) : read(fd, p, n);
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static void set_up(int fd, bool reno)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (reno)
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

typedef struct tcp_end {
    int fd;
    leat_event *ended;
} tcp_end;

static void *serve_tcp(void *arg)
{
    tcp_end *e = arg;
    char small[SMALL];
    while (all(e->fd, small, SMALL, false)) { /* the first byte says which reply is wanted */
        double used = cpu();
        memcpy(small + 8, &used, sizeof used);
        char *p = small[0] == 'b' ? (char *)leat_tensor_data(big) : small;
        if (!all(e->fd, p, small[0] == 'b' ? BIG : SMALL, true))
            break;
    }
    leat_event_set(e->ended);
    return NULL;
}

/* Prints its port, and what it offers. */
static void serve_with(const leat_security *security)
{
    leat_listener *l;
    leat_offers offers = {0};
    leat_listen_options o = {.transports = UINT32_MAX, .offers = &offers, .security = security};
    LEAT_DIE_ON_ERROR(leat_listen("127.0.0.1:0", &o, handle, NULL, &l));
    printf("%d %d\n", leat_listener_port(l), offers.n);
    for (int i = 0; i < offers.n; i++) {
        printf("%s ", offers.v[i].transport);
        for (size_t k = 0; k < offers.v[i].data.n; k++)
            printf("%02x", (uint8_t)offers.v[i].data.s[k]);
        printf("\n");
    }
}

static int serve(void)
{
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_UINT8, leat_shape(BIG), &big));
    memset(leat_tensor_mutable(big), 7, BIG);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    if (bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 2) ||
        getsockname(s, (struct sockaddr *)&a, &n))
        return 1;
    serve_with(NULL);
    serve_with(&tls);
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    leat_event ended[2];
    for (int i = 0; i < 2; i++) {
        tcp_end *e = leat_new(tcp_end);
        *e = (tcp_end){accept(s, NULL, NULL), &ended[i]};
        leat_event_init(&ended[i]);
        set_up(e->fd, i == 1);
        pthread_t t;
        pthread_create(&t, NULL, serve_tcp, e);
        pthread_detach(t);
    }
    for (int i = 0; i < 2; i++)
        leat_event_wait(&ended[i], 0);
    return 0;
}

/* ---- One figure ---- */
typedef struct run {
    leat_channel *channel;
    const char *method;
    double end;
    int calls;
    leat_event done;
    bool share; /* a large message need not be copied */
} run;

static bool in_place(const leat_incoming *in)
{
    return in->owner || in->slices[in->n - 1].owner;
}

static void next(run *r);

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    run *r = arg;
    LEAT_DIE_ON_ERROR(s);
    size_t at = 0;
    for (int i = 0; in->size > SMALL && !(r->share && in_place(in)) && i < in->n; i++) {
        memcpy(landing + at, in->slices[i].data, in->slices[i].n);
        at += in->slices[i].n;
    }
    r->calls++;
    if (now() < r->end)
        next(r);
    else
        leat_event_set(&r->done);
}

static void next(run *r)
{
    char bytes[SMALL] = {0};
    leat_outgoing out = {0};
    leat_strbuf_add(&out.text, bytes, SMALL);
    leat_channel_call(r->channel, r->method, &out, NULL, on_reply, r, NULL);
}

static double other_cpu(leat_channel *c)
{
    void *p;
    size_t n;
    leat_outgoing out = {0};
    double used;
    LEAT_DIE_ON_ERROR(leat_channel_call_wait(c, "/bench/Cpu", &out, NULL, &p, &n));
    memcpy(&used, p, sizeof used);
    free(p);
    return used;
}

typedef struct figure {
    double per_call, cpu_per_call; /* seconds */
} figure;

static figure by_callback(leat_channel *c, const char *method, bool share)
{
    run r = {.channel = c, .method = method, .share = share};
    leat_event_init(&r.done);
    r.end =
        now() + seconds / 4; /* not measured: memory for large messages is allocated meanwhile */
    next(&r);
    leat_event_wait(&r.done, 0);
    leat_event_init(&r.done);
    double used = cpu() + other_cpu(c), begin = now();
    r.end = begin + seconds;
    r.calls = 0;
    next(&r);
    leat_event_wait(&r.done, 0);
    double took = now() - begin;
    used = cpu() + other_cpu(c) - used;
    return (figure){took / r.calls, used / r.calls};
}

static figure by_waiting(leat_channel *c)
{
    double used = cpu() + other_cpu(c), begin = now();
    int calls = 0;
    for (; now() < begin + seconds; calls++) {
        void *p;
        size_t n;
        char bytes[SMALL] = {0};
        leat_outgoing out = {0};
        leat_strbuf_add(&out.text, bytes, SMALL);
        LEAT_DIE_ON_ERROR(leat_channel_call_wait(c, "/bench/Small", &out, NULL, &p, &n));
        free(p);
    }
    double took = now() - begin;
    return (figure){took / calls, (cpu() + other_cpu(c) - used) / calls};
}

static figure by_tcp(int fd, bool large)
{
    char bytes[SMALL] = {large ? 'b' : 's'}, probe[SMALL] = {'s'};
    double first, last;
    all(fd, probe, SMALL, true);
    all(fd, probe, SMALL, false);
    memcpy(&first, probe + 8, sizeof first);
    double used = cpu(), begin = now();
    int calls = 0;
    for (; now() < begin + seconds; calls++) {
        all(fd, bytes, SMALL, true);
        all(fd, large ? landing : probe, large ? BIG : SMALL, false);
    }
    double took = now() - begin;
    used = cpu() - used;
    all(fd, probe, SMALL, true);
    all(fd, probe, SMALL, false);
    memcpy(&last, probe + 8, sizeof last);
    return (figure){took / calls, (used + last - first) / calls};
}

/* ---- All figures ---- */
static int compare(const void *a, const void *b)
{
    double x = ((const figure *)a)->per_call, y = ((const figure *)b)->per_call;
    return (x > y) - (x < y);
}

static leat_channel *grpc, *sock, *shm, *grpc_tls, *sock_tls;
static int plain, reno;

static int connect_tcp(int port, bool with_reno)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&a, sizeof a))
        exit(1);
    set_up(fd, with_reno);
    return fd;
}

/* A channel that uses only the transport that the other process offers; with TLS as if that process
 * was on another machine. */
static leat_channel *open_offer(const char *address, const leat_security *security,
                                const char *name, const char *hex)
{
    leat_offer offer = {{0}};
    leat_channel *c = NULL;
    unsigned byte;
    for (const char *p = hex; sscanf(p, "%2x", &byte) == 1; p += 2)
        leat_strbuf_putc(&offer.data, (char)byte);
    if (security) {
        leat_stream_name n;
        LEAT_DIE_ON_ERROR(leat_stream_name_read(&offer.data, "a socket", &n));
        n.host[0] ^= 1;
        leat_strbuf_release(&offer.data);
        leat_stream_name_write(&n, &offer.data);
    }
    leat_link_target to = {address, "the other process", security, &offer};
    for (int i = 0; leat_transports[i]; i++)
        if (strcmp(leat_transports[i]->name, name) == 0)
            LEAT_DIE_ON_ERROR(leat_channel_open_link(leat_transports[i], &to, &c));
    while (leat_channel_state(c) == LEAT_LINK_OPENING)
        usleep(1000);
    leat_strbuf_release(&offer.data);
    return c;
}

static bool open_links(FILE *other, const leat_security *security, leat_channel **by_grpc,
                       leat_channel **by_socket)
{
    int port = 0, n = 0;
    char address[32], name[16], hex[1024];
    if (fscanf(other, "%d %d", &port, &n) != 2)
        return false;
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    LEAT_DIE_ON_ERROR(leat_channel_open(address, "the other process", security, by_grpc));
    for (int i = 0; i < n && fscanf(other, "%15s %1023s", name, hex) == 2; i++)
        if (strcmp(name, "socket") == 0)
            *by_socket = open_offer(address, security, name, hex);
        else if (!security && strcmp(name, "shm") == 0)
            shm = open_offer(address, security, name, hex);
    return *by_socket && shm;
}

static bool open_all(FILE *other)
{
    int tcp = 0;
    if (!other || !open_links(other, NULL, &grpc, &sock) ||
        !open_links(other, &tls, &grpc_tls, &sock_tls) || fscanf(other, "%d", &tcp) != 1)
        return false;
    plain = connect_tcp(tcp, false);
    reno = connect_tcp(tcp, true);
    landing = leat_xmalloc(BIG);
    memset(landing, 1, BIG);
    return true;
}

typedef struct row {
    const char *name, *figure; /* the row's name for people, and for bench/cluster */
    const int *fd;             /* plain TCP; NULL: `channel` is used */
    leat_channel **channel;
    bool large, waiting, share;
} row;
static const row rows[] = {
    {"64 bytes, TCP", "tcp_us", .fd = &plain},
    {"64 bytes, TCP with Reno", "reno_us", .fd = &reno},
    {"64 bytes, gRPC, callback", "grpc_us", .channel = &grpc},
    {"64 bytes, gRPC, waiting", "grpc_waiting_us", .channel = &grpc, .waiting = true},
    {"64 bytes, socket, callback", "socket_us", .channel = &sock},
    {"64 bytes, socket, waiting", "socket_waiting_us", .channel = &sock, .waiting = true},
    {"64 bytes, shm, callback", "shm_us", .channel = &shm},
    {"64 bytes, shm, waiting", "shm_waiting_us", .channel = &shm, .waiting = true},
    {"64 bytes, gRPC with TLS", "grpc_tls_us", .channel = &grpc_tls},
    {"64 bytes, socket with TLS", "socket_tls_us", .channel = &sock_tls},
    {"100 MB, TCP", "tcp_gb_per_s", .fd = &plain, .large = true},
    {"100 MB, gRPC", "grpc_gb_per_s", .channel = &grpc, .large = true, .share = true},
    {"100 MB, TCP with Reno", "reno_gb_per_s", .fd = &reno, .large = true},
    {"100 MB, socket", "socket_gb_per_s", .channel = &sock, .large = true, .share = true},
    {"100 MB, gRPC with TLS", "grpc_tls_gb_per_s", .channel = &grpc_tls, .large = true,
     .share = true},
    {"100 MB, socket with TLS", "socket_tls_gb_per_s", .channel = &sock_tls, .large = true,
     .share = true},
    {"100 MB, shm, copied", "shm_copied_gb_per_s", .channel = &shm, .large = true},
    {"100 MB, shm, shared", "shm_gb_per_s", .channel = &shm, .large = true, .share = true},
};
enum { ROWS = sizeof rows / sizeof *rows };

static figure measure(const row *r)
{
    if (r->fd)
        return by_tcp(*r->fd, r->large);
    if (r->waiting)
        return by_waiting(*r->channel);
    return by_callback(*r->channel, r->large ? "/bench/Big" : "/bench/Small", r->share);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        name_files(argv[2]);
        return serve();
    }
    int rounds = argc > 2 ? atoi(argv[2]) : 3;
    seconds = argc > 1 ? atof(argv[1]) : seconds;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    const char *only = argc > 3 ? argv[3] : "";
    char command[100];
    bool made = make_certificate();
    snprintf(command, sizeof command, "exec /proc/$PPID/exe --serve %s", directory);
    FILE *other = made ? popen(command, "r") : NULL;
    bool opened = open_all(other);
    remove_certificate();
    if (!opened)
        return 1;
    static figure f[ROWS][ROUNDS_MAX];
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < ROWS; i++)
            if (strstr(rows[i].name, only))
                f[i][r] = measure(&rows[i]);
    printf("| call | us | CPU us | GB/s |\n|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++) {
        if (!strstr(rows[i].name, only))
            continue;
        qsort(f[i], (size_t)rounds, sizeof(figure), compare);
        figure m = f[i][rounds / 2];
        double gb = BIG / m.per_call / 1e9;
        printf("| %s | %.1f | %.1f | ", rows[i].name, m.per_call * 1e6, m.cpu_per_call * 1e6);
        printf(rows[i].large ? "%.2f |\n" : "- |\n", gb);
        printf("%s %.3f\n", rows[i].figure, rows[i].large ? gb : m.per_call * 1e6);
    }
    close(plain);
    close(reno);
    leat_channel_free(grpc);
    leat_channel_free(sock);
    leat_channel_free(grpc_tls);
    leat_channel_free(sock_tls);
    leat_channel_free(shm);
    free(landing);
    pclose(other);
    return 0;
}
