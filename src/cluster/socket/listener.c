/* listener.c -- the sockets at which peers connect, and the one thread that hears their handshakes.
 *
 * 1. A connection that has not shown the secret costs one entry of a table and one descriptor. The
 *    table is small; when it is full, the oldest entry, which has had the most time, is closed.
 * 2. An entry is closed when its time is up, or with the first handshake that is wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/address.h"
#include "cluster/cluster_spec.h"
#include "cluster/socket/socket.h"
#include "core/alloc.h"
#include "core/bind.h"
#include "core/threadpool.h"

enum { WAITING_MAX = 64, SOCKETS_MAX = LEAT_BIND_MAX + 1, BACKLOG = 128 };
static const int64_t PATIENCE_NS = INT64_C(3000000000);

/* A connection whose handshake is not complete. */
typedef struct waiting {
    int fd;
    bool local;
    int64_t deadline_ns;
    size_t got;
    leat_socket_handshake handshake;
} waiting;

typedef struct listener {
    leat_endpoint base;
    leat_stream_server *server;
    leat_socket_name name;
    int sockets[SOCKETS_MAX], n_sockets;
    bool local[SOCKETS_MAX];
    int quit; /* an eventfd */
    pthread_t thread;
    /* The thread's alone: */
    waiting waiting[WAITING_MAX]; /* the oldest first */
    int n_waiting;
} listener;

/* ---- Callers ---- */
static void remove_waiting(listener *l, int i)
{
    memmove(&l->waiting[i], &l->waiting[i + 1], sizeof(waiting) * (size_t)(--l->n_waiting - i));
}

static void describe(int fd, bool local, char *out, size_t size)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } a;
    socklen_t n = sizeof a;
    struct ucred who = {0};
    socklen_t who_n = sizeof who;
    char host[48] = "?", port[8] = "?";
    if (local) {
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_n);
        snprintf(out, size, "socket of process %d", (int)who.pid);
        return;
    }
    if (!getpeername(fd, &a.any, &n))
        getnameinfo(&a.any, n, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, size, "socket of %s:%s", host, port);
}

static void let_in(listener *l, const waiting *w)
{
    char peer[64], yes = LEAT_SOCKET_ACCEPTED;
    if (send(w->fd, &yes, 1, MSG_NOSIGNAL) != 1) {
        close(w->fd);
        return;
    }
    fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) & ~O_NONBLOCK); /* reads wait from now on */
    describe(w->fd, w->local, peer, sizeof peer);
    leat_stream_server_add(l->server, leat_socket_stream_new(w->fd), peer);
}

/* Some bytes of a handshake came, or the connection ended. */
static void on_bytes(listener *l, int i)
{
    waiting *w = &l->waiting[i];
    ssize_t n = recv(w->fd, (char *)&w->handshake + w->got, sizeof w->handshake - w->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    w->got += n > 0 ? (size_t)n : 0;
    if (n > 0 && w->got < sizeof w->handshake)
        return;
    waiting done = *w;
    remove_waiting(l, i);
    if (n > 0 && leat_socket_handshake_right(&done.handshake, l->name.secret))
        let_in(l, &done);
    else
        close(done.fd);
}

static void on_connect(listener *l, int socket, bool local)
{
    for (int fd; (fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
        leat_socket_set_up(fd, local);
        if (l->n_waiting == WAITING_MAX) {
            close(l->waiting[0].fd);
            remove_waiting(l, 0);
        }
        l->waiting[l->n_waiting++] =
            (waiting){.fd = fd, .local = local, .deadline_ns = leat_now_ns() + PATIENCE_NS};
        on_bytes(l, l->n_waiting - 1); /* it is often there already */
    }
}

/* Closes those whose time is up. Gives the milliseconds until the next one's is; -1: there is none.
 */
static int close_late(listener *l)
{
    int64_t now = leat_now_ns();
    while (l->n_waiting && l->waiting[0].deadline_ns <= now) {
        close(l->waiting[0].fd);
        remove_waiting(l, 0);
    }
    return l->n_waiting ? (int)((l->waiting[0].deadline_ns - now) / 1000000) + 1 : -1;
}

static void *listen_on(void *arg)
{
    listener *l = arg;
    pthread_setname_np(pthread_self(), "leat-accept");
    for (;;) {
        struct pollfd p[1 + SOCKETS_MAX + WAITING_MAX];
        int ms = close_late(l), n = 0, waiting = l->n_waiting;
        p[n++] = (struct pollfd){l->quit, POLLIN, 0};
        for (int i = 0; i < l->n_sockets; i++)
            p[n++] = (struct pollfd){l->sockets[i], POLLIN, 0};
        for (int i = 0; i < waiting; i++)
            p[n++] = (struct pollfd){l->waiting[i].fd, POLLIN, 0};
        if (poll(p, (nfds_t)n, ms) < 0 && errno != EINTR)
            usleep(10000); /* no memory for the moment */
        if (p[0].revents)
            break;
        for (int i = waiting - 1; i >= 0; i--) /* backwards: entries are removed */
            if (p[1 + l->n_sockets + i].revents)
                on_bytes(l, i);
        for (int i = 0; i < l->n_sockets; i++)
            if (p[1 + i].revents)
                on_connect(l, l->sockets[i], l->local[i]);
    }
    while (l->n_waiting)
        close(l->waiting[--l->n_waiting].fd);
    return NULL;
}

/* ---- The sockets ---- */
static bool add_socket(listener *l, const struct sockaddr *a, socklen_t n)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0)
        return false;
    if (a->sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, a, n) || listen(fd, BACKLOG)) {
        close(fd);
        return false;
    }
    l->local[l->n_sockets] = a->sa_family == AF_UNIX;
    l->sockets[l->n_sockets++] = fd;
    return true;
}

static void listen_local(listener *l)
{
    uint64_t random;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(l->name.local, sizeof l->name.local, "-");
    snprintf(l->name.host, sizeof l->name.host, "%s", *leat_machine_id() ? leat_machine_id() : "?");
    if (!*leat_machine_id() || getrandom(&random, sizeof random, 0) != sizeof random)
        return;
    char name[sizeof l->name.local];
    size_t n = (size_t)snprintf(name, sizeof name, "leat-socket-%d-%016llx", (int)getpid(),
                                (unsigned long long)random);
    memcpy(a.sun_path + 1, name, n);
    if (add_socket(l, (struct sockaddr *)&a,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)))
        memcpy(l->name.local, name, n + 1);
}

/* At the host of the task's address, and the port that the options name. */
static leat_status listen_tcp(listener *l, const char *address, int port)
{
    char host[256], text[300], number[8];
    int own_port;
    leat_bind_list b;
    LEAT_TRY(leat_address_split(address, host, &own_port));
    snprintf(text, sizeof text, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    LEAT_TRY(leat_bind_find(text, &b));
    for (int i = 0; i < b.n; i++) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *a;
        LEAT_TRY(leat_address_split(b.text[i], host, &port));
        snprintf(number, sizeof number, "%d", port);
        if (getaddrinfo(host, number, &hints, &a))
            continue;
        bool ok = add_socket(l, a->ai_addr, a->ai_addrlen);
        freeaddrinfo(a);
        LEAT_REQUIRE(ok, UNAVAILABLE, "Cannot listen on %s: %s", b.text[i], strerror(errno));
    }
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    LEAT_REQUIRE(b.n && !getsockname(l->sockets[l->n_sockets - 1], (struct sockaddr *)&a, &n),
                 UNAVAILABLE, "Cannot listen on %s", text);
    l->name.port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                                 : ((struct sockaddr_in *)&a)->sin_port);
    return NULL;
}

static void free_listener(listener *l)
{
    for (int i = 0; i < l->n_sockets; i++)
        close(l->sockets[i]);
    if (l->quit >= 0)
        close(l->quit);
    free(l);
}

static leat_status open_sockets(listener *l, const char *address, const leat_listen_options *o)
{
    const leat_security *security = o->security;
    LEAT_REQUIRE(getrandom(l->name.secret, sizeof l->name.secret, 0) == sizeof l->name.secret &&
                     l->quit >= 0,
                 UNAVAILABLE, "No random numbers, or no descriptor: %s", strerror(errno));
    listen_local(l);
    /* What travels between machines is to be encrypted: that is gRPC's. */
    if (!security || !(security->certificate || security->authority))
        LEAT_TRY(listen_tcp(l, address, o->data_port));
    return NULL;
}

static leat_status start(const char *address, const leat_listen_options *options,
                         leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                         leat_endpoint **out)
{
    listener *l = leat_new(listener);
    l->quit = eventfd(0, EFD_CLOEXEC);
    leat_status s = open_sockets(l, address, options);
    if (!s) {
        l->server = leat_stream_server_new(options, handler, arg);
        leat_socket_name_write(&l->name, offer_out);
        leat_unbind();
        if (!pthread_create(&l->thread, NULL, listen_on, l)) {
            *out = &l->base;
            return NULL;
        }
        leat_stream_server_stop(l->server, 0);
        s = leat_error(RESOURCE_EXHAUSTED, "No thread to listen at a socket");
    }
    free_listener(l);
    return s;
}

static void stop(leat_endpoint *e, int64_t deadline_ns)
{
    listener *l = (listener *)e;
    uint64_t one = 1;
    (void)!write(l->quit, &one, sizeof one);
    pthread_join(l->thread, NULL);
    leat_stream_server_stop(l->server, deadline_ns);
    free_listener(l);
}

const leat_transport leat_transport_socket = {
    .name = "socket",
    .listen = start,
    .stop = stop,
    .open = leat_socket_open,
    .wait = leat_socket_wait,
};
