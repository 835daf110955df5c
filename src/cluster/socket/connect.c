/* connect.c -- a link by a socket is opened by a thread of its own, so that nobody waits for a peer
 * behind a firewall; until it lives, calls go another way. A peer that was started anew has another
 * offer, which replaces the link. */
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
#include <sys/un.h>
#include <unistd.h>

#include "cluster/address.h"
#include "cluster/cluster_spec.h"
#include "cluster/socket/socket.h"
#include "core/alloc.h"
#include "core/bind.h"
#include "core/log.h"
#include "core/threadpool.h"

static const int64_t PATIENCE_NS = INT64_C(5000000000), PAUSE_NS = INT64_C(2000000000),
                     PAUSE_MAX_NS = INT64_C(60000000000);

typedef struct opening {
    leat_stream_link *link;
    leat_socket_name name;
    char *address, *peer;
    int cancel; /* an eventfd: nobody wants the link any more */
    pthread_t thread;
} opening;

/* Until fd is ready. False: the time is up, or nobody wants the link any more. */
static bool await(const opening *o, int fd, short events, int64_t deadline_ns)
{
    struct pollfd p[2] = {{fd, events, 0}, {o->cancel, POLLIN, 0}};
    int64_t left;
    do {
        left = deadline_ns - leat_now_ns();
        int n = poll(p, 2, left > 0 ? (int)(left / 1000000) + 1 : 0);
        if (p[1].revents)
            return false;
        if (n > 0)
            return true;
    } while (left > 0);
    return false;
}

/* Nobody wants the link any more, or will not within that time. */
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
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(o->name.local);
    memcpy(a.sun_path + 1, o->name.local, n);
    return connect_to(o, (struct sockaddr *)&a,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n), deadline_ns);
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

static bool shake_hands(const opening *o, int fd, int64_t deadline_ns)
{
    leat_socket_handshake h;
    char yes = 0;
    leat_socket_handshake_init(&h, o->name.secret);
    return send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h && await(o, fd, POLLIN, deadline_ns) &&
           recv(fd, &yes, 1, 0) == 1 && yes == LEAT_SOCKET_ACCEPTED;
}

/* One attempt: a socket that was accepted, or -1. */
static int try_once(const opening *o, bool first)
{
    int64_t deadline_ns = leat_now_ns() + PATIENCE_NS;
    bool local = strcmp(o->name.host, leat_machine_id()) == 0 && strcmp(o->name.local, "-") != 0;
    int fd = local ? connect_local(o, deadline_ns) : connect_tcp(o, deadline_ns);
    bool reached = fd >= 0;
    if (reached && shake_hands(o, fd, deadline_ns))
        return fd;
    if (reached)
        close(fd);
    if (first)
        LEAT_LOG(INFO, "No socket to %s at %s, port %d: %s. Calls go another way meanwhile",
                 o->peer, o->address, o->name.port,
                 reached ? "the connection was not accepted" : "it cannot be reached");
    return -1;
}

/* Tries until it comes about or nobody wants the link any more, ever more rarely. */
static void *open_it(void *arg)
{
    opening *o = arg;
    pthread_setname_np(pthread_self(), "leat-connect");
    int64_t pause_ns = PAUSE_NS;
    int fd = try_once(o, true);
    while (fd < 0) {
        if (is_cancelled(o, pause_ns))
            return NULL;
        pause_ns = pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : pause_ns;
        fd = try_once(o, false);
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* reads wait from now on */
    leat_stream_link_start(o->link, leat_socket_stream_new(fd));
    return NULL;
}

static void cancel(void *arg)
{
    const opening *o = arg;
    uint64_t one = 1;
    (void)!write(o->cancel, &one, sizeof one);
}

static void before_free(void *arg)
{
    opening *o = arg;
    pthread_join(o->thread, NULL);
    close(o->cancel);
    free(o->address);
    free(o->peer);
    free(o);
}

leat_status leat_socket_open(const leat_link_target *to, leat_link **out)
{
    leat_socket_name name;
    LEAT_TRY(leat_socket_name_read(&to->offer->data, &name));
    bool here = *leat_machine_id() && strcmp(name.host, leat_machine_id()) == 0;
    LEAT_REQUIRE(name.port || (here && strcmp(name.local, "-") != 0), FAILED_PRECONDITION,
                 "%s offers no socket to tasks of other machines", to->peer);
    opening *o = leat_new(opening);
    *o = (opening){.link = leat_stream_link_new(to, "socket"),
                   .name = name,
                   .address = leat_xstrdup(to->address),
                   .peer = leat_xstrdup(to->peer),
                   .cancel = eventfd(0, EFD_CLOEXEC)};
    leat_unbind();
    if (o->cancel < 0 || pthread_create(&o->thread, NULL, open_it, o)) {
        leat_status s = leat_error(RESOURCE_EXHAUSTED, "No thread to connect to %s", to->peer);
        leat_stream_link_fail(o->link);
        leat_stream_link_base(o->link)->ops->free(leat_stream_link_base(o->link));
        close(o->cancel);
        free(o->address);
        free(o->peer);
        free(o);
        return s;
    }
    *out = leat_stream_link_base(o->link);
    leat_stream_link_on_free(o->link, cancel, before_free, o);
    return NULL;
}
