/* transport_bench.c -- what a call between two processes of this machine costs: over gRPC, through
 * shared memory, and, to compare, over a plain TCP connection with blocking reads and writes.
 *
 *     build/bench/transport_bench [SECONDS a figure, 0.5] [ROUNDS, 3]
 *
 * Interleaved rounds, medians. "callback": the reply's function makes the next call. "waiting": a
 * thread waits for each reply. CPU is of both processes together.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/shm.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/threadpool.h"

enum { SMALL = 64, BIG = 100 << 20, ROUNDS_MAX = 20 };

static double seconds = 0.5;
static char *landing; /* where large messages are copied to */

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

/* ---- The other process ---- */
static leat_tensor *big;

static void handle(void *arg, leat_asked *a, const char *method, const leat_incoming *in)
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
    leat_asked_reply(a, NULL, &out);
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

static int serve(void)
{
    leat_listener *l;
    leat_shm_listener *m;
    leat_shm_name name;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_UINT8, leat_shape(BIG), &big));
    memset(leat_tensor_mutable(big), 7, BIG);
    LEAT_DIE_ON_ERROR(leat_listen("127.0.0.1:0", NULL, handle, NULL, &l));
    LEAT_DIE_ON_ERROR(leat_shm_listen(handle, NULL, NULL, &name, &m));
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    if (bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 1) ||
        getsockname(s, (struct sockaddr *)&a, &n))
        return 1;
    printf("%d %d %s %llu\n", leat_listener_port(l), ntohs(a.sin_port), name.socket,
           (unsigned long long)name.secret);
    fflush(stdout);
    int c = accept(s, NULL, NULL);
    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char small[SMALL];
    while (all(c, small, SMALL, false)) { /* the first byte says what is wanted */
        double used = cpu();
        memcpy(small + 8, &used, sizeof used);
        char *p = small[0] == 'b' ? (char *)leat_tensor_data(big) : small;
        if (!all(c, p, small[0] == 'b' ? BIG : SMALL, true))
            break;
    }
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

static void next(run *r);

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    run *r = arg;
    LEAT_DIE_ON_ERROR(s);
    size_t at = 0;
    for (int i = 0; in->size > SMALL && !(r->share && in->owner) && i < in->n; i++) {
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
    LEAT_DIE_ON_ERROR(leat_channel_ask(c, "/bench/Cpu", &out, NULL, &p, &n));
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
    double used = cpu() + other_cpu(c), begin = now();
    r.end = begin + seconds;
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
        LEAT_DIE_ON_ERROR(leat_channel_ask(c, "/bench/Small", &out, NULL, &p, &n));
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

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--serve") == 0)
        return serve();
    int rounds = argc > 2 ? atoi(argv[2]) : 3;
    seconds = argc > 1 ? atof(argv[1]) : seconds;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    FILE *other = popen("exec /proc/$PPID/exe --serve", "r");
    int port = 0, tcp = 0;
    unsigned long long secret = 0;
    leat_shm_name name = {0};
    if (!other || fscanf(other, "%d %d %47s %llu", &port, &tcp, name.socket, &secret) != 4)
        return 1;
    name.secret = secret;
    snprintf(name.host, sizeof name.host, "%s", leat_shm_host());
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    leat_channel *grpc, *shm;
    LEAT_DIE_ON_ERROR(leat_channel_open(address, "the other process", NULL, &grpc));
    LEAT_DIE_ON_ERROR(leat_channel_open_shm(&name, address, "the other process", &shm));
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)tcp),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&a, sizeof a))
        return 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    landing = leat_xmalloc(BIG);
    memset(landing, 1, BIG);

    static const char *const names[] = {"64 bytes, TCP",
                                        "64 bytes, gRPC, callback",
                                        "64 bytes, gRPC, waiting",
                                        "64 bytes, shm, callback",
                                        "64 bytes, shm, waiting",
                                        "100 MB, TCP",
                                        "100 MB, gRPC",
                                        "100 MB, shm, copied",
                                        "100 MB, shm, shared"};
    enum { N = sizeof names / sizeof *names };
    static figure f[N][ROUNDS_MAX];
    for (int r = 0; r < rounds; r++) {
        f[0][r] = by_tcp(fd, false);
        f[1][r] = by_callback(grpc, "/bench/Small", false);
        f[2][r] = by_waiting(grpc);
        f[3][r] = by_callback(shm, "/bench/Small", false);
        f[4][r] = by_waiting(shm);
        f[5][r] = by_tcp(fd, true);
        f[6][r] = by_callback(grpc, "/bench/Big", false);
        f[7][r] = by_callback(shm, "/bench/Big", false);
        f[8][r] = by_callback(shm, "/bench/Big", true);
    }
    printf("| call | us | CPU us | GB/s |\n|---|---|---|---|\n");
    for (int i = 0; i < N; i++) {
        qsort(f[i], (size_t)rounds, sizeof(figure), compare);
        figure m = f[i][rounds / 2];
        printf("| %s | %.1f | %.1f | %.2f |\n", names[i], m.per_call * 1e6, m.cpu_per_call * 1e6,
               i < 5 ? 0 : BIG / m.per_call / 1e9);
    }
    close(fd);
    leat_channel_free(grpc);
    leat_channel_free(shm);
    free(landing);
    pclose(other);
    return 0;
}
