/* listener.c -- the sockets at which peers connect, and the thread that makes the handshakes.
 *
 * Connections whose handshake is not complete are in a table (stream/pending.h). After a TLS
 * handshake that failed, the connection stays there until the peer, which reads the reason, closes
 * it, or until its time is over.
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
#include "cluster/stream/pending.h"
#include "core/alloc.h"
#include "core/log.h"
#include "core/thread.h"
#include "core/threadpool.h"

enum { SOCKETS_MAX = LEAT_BIND_MAX + 1, BACKLOG = 128 };

/* The state of a connection whose handshake is not complete. */
typedef struct waiting {
    bool local;
    leat_tls *tls;            /* NULL: the connection is not encrypted. */
    leat_tls_state tls_state; /* LEAT_TLS_DONE if the connection is not encrypted. */
    size_t got;               /* Bytes of handshake that were received. */
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
    leat_pending_table pending; /* The state of each is a waiting. */
} listener;

/* ---- Handshakes ---- */
static void free_waiting(void *state)
{
    waiting *w = state;
    leat_tls_free(w->tls);
    free(w);
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

/* A connection whose handshake is right. */
typedef struct arriving {
    int fd;
    leat_tls *tls;
} arriving;

/* Ends the handshake. A peer that does not get this byte uses another transport. */
static void accept_peer(void *arg)
{
    const arriving *a = arg;
    char yes = LEAT_ACCEPTED;
    if (leat_socket_send(a->fd, a->tls, &(struct iovec){&yes, 1}, 1) != 1)
        shutdown(a->fd, SHUT_RDWR);
}

/* The handshake of entry i is complete and right. */
static void let_in(listener *l, int i)
{
    char peer[64];
    leat_pending p = leat_pending_take(&l->pending, i);
    waiting *w = p.state;
    arriving a = {p.socket, w->tls};
    fcntl(a.fd, F_SETFL, fcntl(a.fd, F_GETFL) & ~O_NONBLOCK); /* The stream's reads block. */
    describe(a.fd, w->local, peer, sizeof peer);
    free(w);
    leat_stream *stream = leat_socket_stream_new(a.fd, a.tls);
    leat_socket_stream_deal(stream);
    leat_stream_server_add(l->server, stream, peer, accept_peer, &a);
}

/* Every process that can connect may make TLS handshakes fail: one failure a second is logged. */
static void refuse_tls(listener *l, const waiting *w, int fd)
{
    char peer[64];
    if (leat_pending_may_log(&l->pending)) {
        describe(fd, w->local, peer, sizeof peer);
        LEAT_LOG(INFO, "No TLS with the %s: %s", peer, leat_tls_error(w->tls));
    }
    shutdown(fd, SHUT_WR);
}

/* Goes on with the TLS handshake, or receives bytes of our own handshake. Gives what recv gives. */
static ssize_t hear(listener *l, waiting *w, int fd)
{
    if (w->tls && (w->tls_state == LEAT_TLS_READS || w->tls_state == LEAT_TLS_WRITES)) {
        w->tls_state = leat_tls_handshake(w->tls, fd);
        if (w->tls_state == LEAT_TLS_FAILED)
            refuse_tls(l, w, fd);
    }
    struct iovec v = {(char *)&w->handshake + w->got, sizeof w->handshake - w->got};
    if (w->tls_state == LEAT_TLS_DONE)
        return leat_socket_receive(fd, w->tls, &v, 1, MSG_DONTWAIT);
    if (w->tls_state != LEAT_TLS_FAILED) {
        errno = EAGAIN;
        return -1;
    }
    /* Reads and drops what the peer has sent. If the socket were closed with unread bytes, the
     * system would reset the connection, perhaps before the peer has read why TLS failed. */
    char rest[4096];
    ssize_t n = recv(fd, rest, sizeof rest, MSG_DONTWAIT);
    if (n > 0)
        errno = EAGAIN;
    return n > 0 ? -1 : n;
}

/* The connection of entry i is readable, is writable for TLS, or has ended. */
static void on_bytes(listener *l, int i)
{
    waiting *w = l->pending.v[i].state;
    ssize_t n = hear(l, w, l->pending.v[i].socket);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    w->got += n > 0 ? (size_t)n : 0;
    if (n > 0 && w->got < sizeof w->handshake)
        return;
    if (n > 0 && leat_handshake_right(&w->handshake, LEAT_HANDSHAKE_SOCKET, l->name.secret))
        let_in(l, i);
    else
        leat_pending_close(&l->pending, i);
}

static void on_connect(listener *l, int socket, bool local)
{
    int fd;
    while ((fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        waiting *w = leat_new(waiting);
        w->local = local;
        leat_socket_set_up(fd, local);
        if (l->tls && !local) {
            w->tls_state = LEAT_TLS_READS;
            leat_status s = leat_tls_new(l->tls, NULL, &w->tls);
            if (s) { /* Out of memory. The peer's calls go by gRPC, and it connects again later. */
                leat_status_free(s);
                free(w);
                close(fd);
                continue;
            }
        }
        leat_pending_add(&l->pending, fd, w);
        on_bytes(l, l->pending.n - 1); /* The handshake has often come already. */
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        leat_pending_pause(&l->pending, errno);
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
        struct pollfd p[1 + SOCKETS_MAX + LEAT_PENDING_MAX];
        int64_t next = leat_pending_expire(&l->pending), now = leat_now_ns();
        int ms = !next ? -1 : next > now ? (int)((next - now) / 1000000) + 1 : 0;
        int n = 0, pending = l->pending.n;
        p[n++] = (struct pollfd){l->quit, POLLIN, 0};
        for (int i = 0; i < l->n_sockets; i++)
            p[n++] = (struct pollfd){l->sockets[i], l->pending.accept_ns ? 0 : POLLIN, 0};
        for (int i = 0; i < pending; i++)
            p[n++] = (struct pollfd){l->pending.v[i].socket, wanted(l->pending.v[i].state), 0};
        if (poll(p, (nfds_t)n, ms) < 0 && errno != EINTR)
            usleep(10000); /* ENOMEM: try again later. */
        if (p[0].revents)
            break;
        for (int i = pending - 1; i >= 0; i--) /* Backwards, since on_bytes removes entries. */
            if (p[1 + l->n_sockets + i].revents)
                on_bytes(l, i);
        for (int i = 0; i < l->n_sockets; i++)
            if (p[1 + i].revents & POLLIN)
                on_connect(l, l->sockets[i], l->local[i]);
    }
    leat_pending_close_all(&l->pending);
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
    l->pending.what = "a socket";
    l->pending.free_state = free_waiting;
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
