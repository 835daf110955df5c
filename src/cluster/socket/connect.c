/* connect.c -- opens a link by a socket. Each link has a thread that connects, so that no step
 * waits for a peer behind a firewall; until the link lives, calls go by gRPC. A peer that was
 * restarted has another offer, from which the channel opens a new link. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/cluster_spec.h"
#include "cluster/socket/socket.h"
#include "core/alloc.h"
#include "core/log.h"
#include "core/thread.h"
#include "core/threadpool.h"

/* The deadline of one attempt; the pauses between attempts, which double up to PAUSE_MAX_NS. */
static const int64_t PATIENCE_NS = INT64_C(5000000000), PAUSE_NS = INT64_C(2000000000),
                     PAUSE_MAX_NS = INT64_C(60000000000);

typedef struct opening {
    leat_stream_link *link;
    leat_stream_name name;
    char *address, *peer;
    leat_tls_context *tls; /* NULL: the connection is not encrypted. */
    char host[256];        /* The name that the peer's certificate must have, if tls is set. */
    int cancel;            /* An eventfd, readable once the link was replaced or is being freed. */
    pthread_t thread;
} opening;

/* Waits until fd is ready. False: the deadline has passed, or the link was cancelled. */
static bool await(const opening *o, int fd, short events, int64_t deadline_ns)
{
    struct pollfd p[2] = {{fd, events, 0}, {o->cancel, POLLIN, 0}};
    for (int64_t left; (left = deadline_ns - leat_now_ns()) > 0;) {
        int n = poll(p, 2, (int)(left / 1000000) + 1);
        if (p[1].revents)
            return false;
        if (n > 0)
            return true;
    }
    return false;
}

/* Waits for within_ns at most. True if the link was cancelled before or within that time. */
static bool is_cancelled(const opening *o, int64_t within_ns)
{
    struct pollfd p = {o->cancel, POLLIN, 0};
    return poll(&p, 1, (int)(within_ns / 1000000)) > 0;
}

/* Gives a connected socket, or -1. */
static int connect_to(const opening *o, const struct sockaddr *a, socklen_t n, int64_t deadline_ns)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    socklen_t size = sizeof error;
    if (fd < 0)
        return -1;
    if (!connect(fd, a, n) || (errno == EINPROGRESS && await(o, fd, POLLOUT, deadline_ns) &&
                               !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) && !error)) {
        leat_socket_set_up(fd, a->sa_family == AF_UNIX);
        return fd;
    }
    close(fd);
    return -1;
}

static int connect_local(const opening *o, int64_t deadline_ns)
{
    struct sockaddr_un a;
    socklen_t n = leat_unix_address(&o->name, &a);
    return connect_to(o, (struct sockaddr *)&a, n, deadline_ns);
}

static int connect_tcp(const opening *o, int64_t deadline_ns)
{
    char host[256], port[8];
    int own_port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all;
    leat_status s = leat_address_split(o->address, host, &own_port);
    snprintf(port, sizeof port, "%d", o->name.port);
    if (s || getaddrinfo(host, port, &hints, &all)) {
        leat_status_free(s);
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
        fd = connect_to(o, a->ai_addr, a->ai_addrlen, deadline_ns);
    freeaddrinfo(all);
    return fd;
}

/* One attempt to connect. */
typedef struct attempt {
    int fd;        /* -1: not connected. */
    leat_tls *tls; /* NULL: the connection is not encrypted. */
    int64_t deadline_ns;
    char why[500]; /* Why the attempt failed. */
} attempt;

static void fails(attempt *a, const char *why)
{
    snprintf(a->why, sizeof a->why, "%s", why);
}

static bool start_tls(const opening *o, attempt *a)
{
    leat_status s = leat_tls_new(o->tls, o->host, &a->tls);
    if (s) {
        fails(a, leat_status_message(s));
        leat_status_free(s);
        return false;
    }
    for (;;) {
        leat_tls_state state = leat_tls_handshake(a->tls, a->fd);
        if (state == LEAT_TLS_DONE)
            return true;
        if (state == LEAT_TLS_FAILED)
            fails(a, leat_tls_error(a->tls));
        else if (await(o, a->fd, state == LEAT_TLS_READS ? POLLIN : POLLOUT, a->deadline_ns))
            continue;
        else
            fails(a, "it does not go on with the TLS handshake");
        return false;
    }
}

static bool shake_hands(const opening *o, attempt *a)
{
    leat_handshake h;
    char yes = 0;
    struct iovec out = {&h, sizeof h}, in = {&yes, 1};
    if (o->tls && !start_tls(o, a))
        return false;
    leat_handshake_init(&h, LEAT_HANDSHAKE_SOCKET, o->name.secret);
    ssize_t n = leat_socket_send(a->fd, a->tls, &out, 1);
    if (n == sizeof h) {
        do
            n = leat_socket_receive(a->fd, a->tls, &in, 1, MSG_DONTWAIT);
        while (n < 0 && errno == EAGAIN && await(o, a->fd, POLLIN, a->deadline_ns));
        if (n == 1 && yes == LEAT_ACCEPTED)
            return true;
    }
    fails(a, a->tls && *leat_tls_error(a->tls) ? leat_tls_error(a->tls)
                                               : "the connection was not accepted");
    return false;
}

static void give_up(attempt *a)
{
    leat_tls_free(a->tls);
    if (a->fd >= 0)
        close(a->fd);
}

/* Connects and makes the handshake. False: a->why is set. In both cases a is initialised, and after
 * false the caller calls give_up. */
static bool try_once(const opening *o, attempt *a)
{
    bool local = leat_stream_name_is_local(&o->name);
    *a = (attempt){.fd = -1, .deadline_ns = leat_now_ns() + PATIENCE_NS};
    a->fd = local ? connect_local(o, a->deadline_ns) : connect_tcp(o, a->deadline_ns);
    if (a->fd >= 0)
        return shake_hands(o, a);
    fails(a, "it cannot be reached");
    return false;
}

/* The thread of a link: attempts to connect, after ever longer pauses, until an attempt succeeds or
 * the link is cancelled. */
static void *open_it(void *arg)
{
    opening *o = arg;
    pthread_setname_np(pthread_self(), "leat-connect");
    attempt a;
    bool told = false;
    for (int64_t pause_ns = PAUSE_NS; !try_once(o, &a);
         pause_ns = pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : pause_ns) {
        give_up(&a);
        if (!told)
            LEAT_LOG(INFO, "No socket to %s at %s, port %d: %s. Calls go another way meanwhile",
                     o->peer, o->address, o->name.port, a.why);
        told = true;
        if (is_cancelled(o, pause_ns))
            return NULL;
    }
    fcntl(a.fd, F_SETFL, fcntl(a.fd, F_GETFL) & ~O_NONBLOCK); /* The stream's reads block. */
    leat_status s = leat_stream_link_start(o->link, leat_socket_stream_new(a.fd, a.tls));
    if (s)
        LEAT_LOG(WARNING, "No socket to %s at %s: %s. Calls go another way meanwhile", o->peer,
                 o->address, leat_status_message(s));
    leat_status_free(s);
    return NULL;
}

static void cancel(void *arg)
{
    const opening *o = arg;
    uint64_t one = 1;
    (void)!write(o->cancel, &one, sizeof one);
}

static void free_opening(opening *o)
{
    if (o->cancel >= 0)
        close(o->cancel);
    leat_tls_context_free(o->tls);
    free(o->address);
    free(o->peer);
    free(o);
}

static void before_free(void *arg)
{
    opening *o = arg;
    pthread_join(o->thread, NULL);
    free_opening(o);
}

/* Sets o->host and o->tls, for a TCP connection with TLS. */
static leat_status prepare_tls(opening *o, const leat_link_target *to)
{
    int port;
    LEAT_TRY(leat_address_split(to->address, o->host, &port));
    const char *name = to->security->name;
    LEAT_REQUIRE(!name || strlen(name) < sizeof o->host, INVALID_ARGUMENT,
                 "The name that peers' certificates carry is too long: \"%s\"", name);
    if (name)
        snprintf(o->host, sizeof o->host, "%s", name);
    return leat_tls_client(to->security, &o->tls);
}

leat_status leat_socket_open(const leat_link_target *to, leat_link **out)
{
    leat_stream_name name;
    LEAT_TRY(leat_stream_name_read(&to->offer->data, "a socket", &name));
    LEAT_REQUIRE(name.port || leat_stream_name_is_local(&name), FAILED_PRECONDITION,
                 "%s offers no socket to tasks of other machines", to->peer);
    opening *o = leat_new(opening);
    *o = (opening){.name = name,
                   .address = leat_xstrdup(to->address),
                   .peer = leat_xstrdup(to->peer),
                   .cancel = eventfd(0, EFD_CLOEXEC)};
    leat_status s = NULL;
    if (leat_tls_wanted(to->security) && !leat_stream_name_is_local(&name))
        s = prepare_tls(o, to);
    if (s) {
        free_opening(o);
        return s;
    }
    o->link = leat_stream_link_new(to, "socket");
    if (o->cancel < 0 || leat_thread_start(&o->thread, open_it, o)) {
        leat_stream_link_fail(o->link);
        leat_stream_link_base(o->link)->ops->free(leat_stream_link_base(o->link));
        free_opening(o);
        return leat_error(RESOURCE_EXHAUSTED, "No thread to connect to %s. %s", to->peer,
                          LEAT_NO_THREAD_HINT);
    }
    *out = leat_stream_link_base(o->link);
    leat_stream_link_on_free(o->link, cancel, before_free, o);
    return NULL;
}
