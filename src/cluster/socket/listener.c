/* listener.c -- the sockets at which peers connect, and the thread that makes the handshakes.
 *
 * 1. A connection whose handshake is not complete costs a descriptor and an entry of a table of
 *    WAITING_MAX entries. When the table is full, the oldest connection, which has had the most
 *    time, is closed.
 * 2. A connection is closed when its handshake is wrong, or not complete after PATIENCE_NS. After a
 *    TLS handshake that failed, the connection stays open until the peer, which reads the reason,
 *    closes it, or until PATIENCE_NS have passed.
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
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/address.h"
#include "cluster/cluster_spec.h"
#include "cluster/socket/socket.h"
#include "core/alloc.h"
#include "core/log.h"
#include "core/thread.h"
#include "core/threadpool.h"

enum { WAITING_MAX = 64, SOCKETS_MAX = LEAT_BIND_MAX + 1, BACKLOG = 128 };
static const int64_t PATIENCE_NS = INT64_C(3000000000), LOG_PAUSE_NS = INT64_C(1000000000),
                     ACCEPT_PAUSE_NS = INT64_C(100000000);

/* A connection whose handshake is not complete. */
typedef struct waiting {
    int fd;
    bool local;
    leat_tls *tls;            /* NULL: the connection is not encrypted. */
    leat_tls_state tls_state; /* LEAT_TLS_DONE if the connection is not encrypted. */
    int64_t deadline_ns;
    size_t got; /* Bytes of handshake that were received. */
    leat_handshake handshake;
} waiting;

typedef struct listener {
    leat_stream_server *server;
    leat_stream_name name;
    leat_tls_context *tls; /* NULL: connections are not encrypted. */
    int sockets[SOCKETS_MAX], n_sockets;
    bool local[SOCKETS_MAX]; /* local[i]: sockets[i] is a Unix socket. */
    int quit;                /* An eventfd, readable once the thread has to end. */
    bool runs;               /* There is a thread. */
    pthread_t thread;
    /* Used by the thread alone: */
    waiting waiting[WAITING_MAX]; /* The oldest connection first. */
    int n_waiting;
    int64_t log_ns;    /* From this time on a failure is logged again. */
    int64_t accept_ns; /* Until this time no connections are accepted; 0: they are. */
} listener;

/* ---- Handshakes ---- */
static waiting take_waiting(listener *l, int i)
{
    waiting w = l->waiting[i];
    memmove(&l->waiting[i], &l->waiting[i + 1], sizeof(waiting) * (size_t)(--l->n_waiting - i));
    return w;
}

static void drop(waiting w)
{
    leat_tls_free(w.tls);
    close(w.fd);
}

/* Writes the peer's name for logs and leat_server_call_peer. */
static void describe(int fd, bool local, char *out, size_t size)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } a;
    socklen_t n = sizeof a;
    char host[48] = "?", port[8] = "?";
    if (local) {
        snprintf(out, size, "socket of process %d", leat_unix_peer_of(fd).pid);
        return;
    }
    if (!getpeername(fd, &a.any, &n))
        getnameinfo(&a.any, n, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, size, "socket of %s:%s", host, port);
}

static void let_in(listener *l, const waiting *w)
{
    char peer[64], yes = LEAT_ACCEPTED;
    if (leat_socket_send(w->fd, w->tls, &(struct iovec){&yes, 1}, 1) != 1) {
        drop(*w);
        return;
    }
    fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) & ~O_NONBLOCK); /* The stream's reads block. */
    describe(w->fd, w->local, peer, sizeof peer);
    leat_stream_server_add(l->server, leat_socket_stream_new(w->fd, w->tls), peer);
}

/* Every process that can connect may make TLS handshakes fail: one failure per LOG_PAUSE_NS is
 * logged. */
static void refuse_tls(listener *l, const waiting *w)
{
    char peer[64];
    int64_t now = leat_now_ns();
    if (now >= l->log_ns) {
        describe(w->fd, w->local, peer, sizeof peer);
        LEAT_LOG(INFO, "No TLS with the %s: %s", peer, leat_tls_error(w->tls));
        l->log_ns = now + LOG_PAUSE_NS;
    }
    shutdown(w->fd, SHUT_WR);
}

/* Goes on with the TLS handshake, or receives bytes of our own handshake. Gives what recv gives. */
static ssize_t hear(listener *l, waiting *w)
{
    if (w->tls && (w->tls_state == LEAT_TLS_READS || w->tls_state == LEAT_TLS_WRITES)) {
        w->tls_state = leat_tls_handshake(w->tls, w->fd);
        if (w->tls_state == LEAT_TLS_FAILED)
            refuse_tls(l, w);
    }
    struct iovec v = {(char *)&w->handshake + w->got, sizeof w->handshake - w->got};
    if (w->tls_state == LEAT_TLS_DONE)
        return leat_socket_receive(w->fd, w->tls, &v, 1, MSG_DONTWAIT);
    if (w->tls_state != LEAT_TLS_FAILED) {
        errno = EAGAIN;
        return -1;
    }
    /* Reads and drops what the peer has sent. If the socket were closed with unread bytes, the
     * system would reset the connection, perhaps before the peer has read why TLS failed. */
    char rest[4096];
    ssize_t n = recv(w->fd, rest, sizeof rest, MSG_DONTWAIT);
    if (n > 0)
        errno = EAGAIN;
    return n > 0 ? -1 : n;
}

/* The connection of entry i is readable, is writable for TLS, or has ended. */
static void on_bytes(listener *l, int i)
{
    waiting *w = &l->waiting[i];
    ssize_t n = hear(l, w);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    w->got += n > 0 ? (size_t)n : 0;
    if (n > 0 && w->got < sizeof w->handshake)
        return;
    waiting done = take_waiting(l, i);
    if (n > 0 && leat_handshake_right(&done.handshake, LEAT_HANDSHAKE_SOCKET, l->name.secret))
        let_in(l, &done);
    else
        drop(done);
}

/* The sockets stay readable while connections cannot be accepted: they are left out of poll for
 * ACCEPT_PAUSE_NS. A connection whose handshake is not complete makes room for another. */
static void pause_accept(listener *l, int e)
{
    int64_t now = leat_now_ns();
    l->accept_ns = now + ACCEPT_PAUSE_NS;
    if (l->n_waiting)
        drop(take_waiting(l, 0));
    if (now >= l->log_ns)
        LEAT_LOG(WARNING,
                 "No connection by a socket can be accepted now: %s. Too many descriptors are open "
                 "(ulimit -n)",
                 strerror(e));
    l->log_ns = now >= l->log_ns ? now + LOG_PAUSE_NS : l->log_ns;
}

static void on_connect(listener *l, int socket, bool local)
{
    int fd;
    while ((fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        waiting w = {.fd = fd, .local = local, .deadline_ns = leat_now_ns() + PATIENCE_NS};
        leat_socket_set_up(fd, local);
        if (l->tls && !local) {
            w.tls_state = LEAT_TLS_READS;
            leat_status s = leat_tls_new(l->tls, NULL, &w.tls);
            if (s) { /* Out of memory. The peer's calls go by gRPC, and it connects again later. */
                leat_status_free(s);
                close(fd);
                continue;
            }
        }
        if (l->n_waiting == WAITING_MAX)
            drop(take_waiting(l, 0));
        l->waiting[l->n_waiting++] = w;
        on_bytes(l, l->n_waiting - 1); /* The handshake has often come already. */
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        pause_accept(l, errno);
}

/* Closes connections whose deadline has passed. Gives the milliseconds until the next deadline; -1:
 * there is none. */
static int close_late(listener *l)
{
    int64_t now = leat_now_ns();
    while (l->n_waiting && l->waiting[0].deadline_ns <= now)
        drop(take_waiting(l, 0));
    int64_t next = l->n_waiting ? l->waiting[0].deadline_ns : INT64_MAX;
    if (l->accept_ns)
        next = l->accept_ns < next ? l->accept_ns : next;
    return next < INT64_MAX ? (int)((next - now) / 1000000) + 1 : -1;
}

/* Whether connections are to be accepted now. */
static bool accepts(listener *l)
{
    if (leat_now_ns() >= l->accept_ns)
        l->accept_ns = 0;
    return !l->accept_ns;
}

static short wanted(const waiting *w)
{
    return w->tls_state == LEAT_TLS_WRITES ? POLLOUT : POLLIN;
}

static void *listen_on(void *arg)
{
    listener *l = arg;
    pthread_setname_np(pthread_self(), "leat-accept");
    for (;;) {
        struct pollfd p[1 + SOCKETS_MAX + WAITING_MAX];
        bool accepting = accepts(l);
        int ms = close_late(l), n = 0, waiting = l->n_waiting;
        p[n++] = (struct pollfd){l->quit, POLLIN, 0};
        for (int i = 0; i < l->n_sockets; i++)
            p[n++] = (struct pollfd){l->sockets[i], accepting ? POLLIN : 0, 0};
        for (int i = 0; i < waiting; i++)
            p[n++] = (struct pollfd){l->waiting[i].fd, wanted(&l->waiting[i]), 0};
        if (poll(p, (nfds_t)n, ms) < 0 && errno != EINTR)
            usleep(10000); /* ENOMEM: try again later. */
        if (p[0].revents)
            break;
        for (int i = waiting - 1; i >= 0; i--) /* Backwards, since on_bytes removes entries. */
            if (p[1 + l->n_sockets + i].revents)
                on_bytes(l, i);
        for (int i = 0; i < l->n_sockets; i++)
            if (p[1 + i].revents & POLLIN)
                on_connect(l, l->sockets[i], l->local[i]);
    }
    while (l->n_waiting)
        drop(take_waiting(l, l->n_waiting - 1));
    return NULL;
}

/* ---- The sockets ---- */
static void add_socket(listener *l, int fd, bool local)
{
    l->local[l->n_sockets] = local;
    l->sockets[l->n_sockets++] = fd;
}

static bool listen_at(listener *l, const struct sockaddr *a, socklen_t n)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, a, n) || listen(fd, BACKLOG)) {
        close(fd);
        return false;
    }
    add_socket(l, fd, false);
    return true;
}

/* Listens at the host of the task's address and the given port; 0: any free port. */
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
        bool ok = listen_at(l, a->ai_addr, a->ai_addrlen);
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

static void close_listener(void *arg)
{
    listener *l = arg;
    uint64_t one = 1;
    if (l->runs) {
        (void)!write(l->quit, &one, sizeof one);
        pthread_join(l->thread, NULL);
    }
    for (int i = 0; i < l->n_sockets; i++)
        close(l->sockets[i]);
    if (l->quit >= 0)
        close(l->quit);
    leat_tls_context_free(l->tls);
    free(l);
}

/* TLS is configured. If it cannot be used here, no TCP port is offered, and calls from other
 * machines go by gRPC. True if TLS can be used. */
static bool prepare_tls(listener *l, const leat_listen_options *o)
{
    leat_status s = leat_tls_server(o->security, &l->tls);
    if (!s)
        return true;
    const char *text = "No socket is offered to tasks of other machines: %s";
    if (o->data_port) /* The user chose the port, perhaps opened a firewall: a warning. */
        LEAT_LOG(WARNING, text, leat_status_message(s));
    else
        LEAT_LOG(INFO, text, leat_status_message(s));
    leat_status_free(s);
    return false;
}

static leat_status open_sockets(listener *l, const char *address, const leat_listen_options *o)
{
    LEAT_REQUIRE(l->quit >= 0, UNAVAILABLE, "No descriptor for a listener: %s", strerror(errno));
    LEAT_TRY(leat_stream_name_init(&l->name));
    int local = *leat_machine_id() ? leat_unix_listen("leat-socket", &l->name) : -1;
    if (local >= 0)
        add_socket(l, local, true);
    if (!leat_tls_wanted(o->security) || prepare_tls(l, o))
        LEAT_TRY(listen_tcp(l, address, o->data_port));
    return NULL;
}

static leat_status start(const char *address, const leat_listen_options *options,
                         leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                         leat_endpoint **out)
{
    listener *l = leat_new(listener);
    l->quit = eventfd(0, EFD_CLOEXEC);
    l->server = leat_stream_server_new(options, handler, arg, close_listener, l);
    leat_endpoint *base = leat_stream_server_base(l->server);
    leat_status s = open_sockets(l, address, options);
    if (!s) {
        l->runs = !leat_thread_start(&l->thread, listen_on, l);
        if (!l->runs)
            s = leat_error(RESOURCE_EXHAUSTED, "No thread to listen at a socket. %s",
                           LEAT_NO_THREAD_HINT);
    }
    if (s) {
        leat_stream_server_stop(base, 0);
        return s;
    }
    leat_stream_name_write(&l->name, offer_out);
    *out = base;
    return NULL;
}

const leat_transport leat_transport_socket = {
    .name = "socket",
    .listen = start,
    .stop = leat_stream_server_stop,
    .open = leat_socket_open,
    .wait = leat_socket_wait,
};
