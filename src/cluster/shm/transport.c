/* transport.c -- shared memory as a transport: the Unix socket at which peers of this machine
 * connect, and the handshake, in which a peer sends the secret and memory with two rings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/shm/handshake.h"
#include "cluster/shm/rings.h"
#include "cluster/address.h"
#include "cluster/shm/shm.h"
#include "core/alloc.h"
#include "core/log.h"
#include "core/threadpool.h"

enum { WAITING_MAX = 64 };
static const int64_t PATIENCE_NS = INT64_C(3000000000), ACCEPT_PAUSE_NS = INT64_C(100000000),
                     LOG_PAUSE_NS = INT64_C(1000000000);

/* A connection whose handshake has not come. */
typedef struct waiting {
    int socket;
    int64_t deadline_ns; /* When the connection is closed. */
} waiting;

typedef struct listener {
    leat_endpoint base;
    leat_stream_server *server;
    uint64_t secret;
    int listening, timer;
    /* Its socket is an epoll instance with the listening socket, the timer and the connections that
     * wait, so that the watch notices all of them. */
    leat_accept_watch accept;
    /* Used by on_connect alone: */
    waiting waiting[WAITING_MAX]; /* The oldest first; it is closed when the table is full. */
    int n_waiting;
    int64_t accept_ns; /* Until this time no connections are accepted; 0: they are. */
    int64_t log_ns;    /* From this time on a failure to accept is logged again. */
} listener;

/* ---- Connecting ---- */
static leat_status connect_to(const leat_shm_name *name, const char *peer, int *socket_out)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strnlen(name->socket, sizeof name->socket);
    memcpy(a.sun_path + 1, name->socket, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&a,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n))) {
        *socket_out = fd;
        return NULL;
    }
    leat_status s =
        leat_error(UNAVAILABLE, "%s cannot be reached by shared memory: %s", peer, strerror(errno));
    if (fd >= 0)
        close(fd);
    return s;
}

/* Sends the handshake with a descriptor of the memory, and waits for the reply. */
static leat_status hand_over(int socket, int memory, uint64_t secret, const char *peer)
{
    leat_shm_handshake handshake = {LEAT_SHM_MAGIC, LEAT_SHM_VERSION, secret};
    struct iovec v = {&handshake, sizeof handshake};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &memory, sizeof(int));
    struct timeval patience = {.tv_sec = 5};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char accepted = 0;
    LEAT_REQUIRE(sendmsg(socket, &m, MSG_NOSIGNAL) == sizeof handshake &&
                     recv(socket, &accepted, 1, 0) == 1 && accepted == LEAT_SHM_ACCEPTED,
                 UNAVAILABLE, "%s does not take part in shared memory: wrong secret, or no answer",
                 peer);
    return NULL;
}

static leat_status open_link(const leat_link_target *to, leat_link **out)
{
    leat_shm_name name;
    leat_ring_pair rings;
    int socket = -1, memory;
    LEAT_TRY(leat_shm_name_read(&to->offer->data, &name));
    LEAT_REQUIRE(*leat_machine_id() && strcmp(leat_machine_id(), name.host) == 0,
                 FAILED_PRECONDITION, "%s is not on this machine", to->peer);
    LEAT_TRY(leat_rings_make(&rings, &memory));
    leat_status s = connect_to(&name, to->peer, &socket);
    if (!s)
        s = hand_over(socket, memory, name.secret, to->peer);
    close(memory);
    if (s) {
        leat_rings_release(&rings);
        if (socket >= 0)
            close(socket);
        return s;
    }
    leat_stream_link *l = leat_stream_link_new(to, "shared memory");
    s = leat_stream_link_start(l, leat_rings_stream_new(rings, socket));
    if (s)
        leat_stream_link_base(l)->ops->free(leat_stream_link_base(l));
    else
        *out = leat_stream_link_base(l);
    return s;
}

/* ---- Listening ---- */
/* Shared memory is for the tasks of one user: a process of another user is refused before anything
 * of it is read. Its tasks are called by another transport. */
static bool same_user(int socket)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* The descriptor in a message that has exactly one; -1 if it has another number of them, which are
 * closed: a peer could fill this process's table with them. */
static int only_descriptor(struct msghdr *m)
{
    int only = -1, n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (char *)c + at, sizeof fd);
            if (n++ == 0)
                only = fd;
            else
                close(fd);
        }
    }
    if (n > 1)
        close(only);
    return n == 1 ? only : -1;
}

/* Reads the handshake of a peer, if it has come. Gives the descriptor of the peer's memory; -1: the
 * handshake is wrong; -2: it has not come. */
static int read_handshake(listener *l, int socket)
{
    leat_shm_handshake handshake = {0};
    struct iovec v = {&handshake, sizeof handshake};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -2;
    int fd = n >= 0 ? only_descriptor(&m) : -1;
    if (fd >= 0 && (n != sizeof handshake || handshake.magic != LEAT_SHM_MAGIC ||
                    handshake.version != LEAT_SHM_VERSION || handshake.secret != l->secret)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void let_in(listener *l, int socket, int fd)
{
    leat_ring_pair rings;
    leat_status s =
        fd >= 0 ? leat_rings_take(&rings, fd) : leat_error(UNAUTHENTICATED, "The secret is wrong");
    char yes = LEAT_SHM_ACCEPTED;
    if (!s && send(socket, &yes, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
        leat_rings_release(&rings);
        s = leat_error(UNAVAILABLE, "The caller has gone");
    }
    if (s) {
        leat_status_free(s);
        close(socket);
        return;
    }
    struct ucred who = {0};
    socklen_t n = sizeof who;
    char peer[48];
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &n);
    snprintf(peer, sizeof peer, "shared memory of process %d", (int)who.pid);
    leat_stream_server_add(l->server, leat_rings_stream_new(rings, socket), peer);
}

/* ---- Connections whose handshake has not come ---- */
static void close_waiting(listener *l, int i)
{
    close(l->waiting[i].socket);
    memmove(&l->waiting[i], &l->waiting[i + 1], sizeof *l->waiting * (size_t)(--l->n_waiting - i));
}

static void on_handshake(listener *l, int socket)
{
    int i = 0;
    while (i < l->n_waiting && l->waiting[i].socket != socket)
        i++;
    int fd = i < l->n_waiting ? read_handshake(l, socket) : -2;
    if (fd == -2)
        return;
    memmove(&l->waiting[i], &l->waiting[i + 1], sizeof *l->waiting * (size_t)(--l->n_waiting - i));
    epoll_ctl(l->accept.socket, EPOLL_CTL_DEL, socket, NULL);
    let_in(l, socket, fd);
}

/* Has the timer wake the listener at the time when it accepts again, or closes a connection. */
static void set_timer(listener *l)
{
    int64_t at = l->n_waiting ? l->waiting[0].deadline_ns : 0;
    if (l->accept_ns && (!at || l->accept_ns < at))
        at = l->accept_ns;
    struct itimerspec t = {.it_value = {at / 1000000000, at % 1000000000}};
    timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void watch_socket(listener *l, int socket, int op)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = socket};
    epoll_ctl(l->accept.socket, op, socket, &e);
}

/* Descriptors or memory have run out, and the listening socket stays readable: it is not looked at
 * for ACCEPT_PAUSE_NS. */
static void pause_accept(listener *l, int why)
{
    if (l->n_waiting)
        close_waiting(l, 0);
    epoll_ctl(l->accept.socket, EPOLL_CTL_DEL, l->listening, NULL);
    l->accept_ns = leat_now_ns() + ACCEPT_PAUSE_NS;
    if (leat_now_ns() >= l->log_ns)
        LEAT_LOG(WARNING,
                 "No connection by shared memory can be accepted now: %s. Too many descriptors are "
                 "open (ulimit -n)",
                 strerror(why));
    l->log_ns = leat_now_ns() + LOG_PAUSE_NS;
}

static void accept_all(listener *l)
{
    int s;
    while ((s = accept4(l->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (!same_user(s)) {
            close(s);
            continue;
        }
        if (l->n_waiting == WAITING_MAX)
            close_waiting(l, 0);
        l->waiting[l->n_waiting++] = (waiting){s, leat_now_ns() + PATIENCE_NS};
        watch_socket(l, s, EPOLL_CTL_ADD);
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        pause_accept(l, errno);
}

static void on_timer(listener *l)
{
    uint64_t count;
    int64_t now = leat_now_ns();
    (void)!read(l->timer, &count, sizeof count);
    while (l->n_waiting && l->waiting[0].deadline_ns <= now)
        close_waiting(l, 0);
    if (l->accept_ns && l->accept_ns <= now) {
        l->accept_ns = 0;
        watch_socket(l, l->listening, EPOLL_CTL_ADD);
    }
}

/* Runs in the watch's thread, which no peer may hold up: nothing here waits. */
static void on_connect(void *arg)
{
    listener *l = arg;
    struct epoll_event e[16];
    for (int n; (n = epoll_wait(l->accept.socket, e, 16, 0)) > 0;) {
        for (int i = 0; i < n; i++)
            if (e[i].data.fd == l->listening)
                accept_all(l);
            else if (e[i].data.fd == l->timer)
                on_timer(l);
            else
                on_handshake(l, e[i].data.fd);
        set_timer(l);
    }
}

static leat_status open_socket(listener *l, leat_shm_name *name_out)
{
    leat_shm_name made, *name = &made;
    uint64_t random[2];
    LEAT_REQUIRE(*leat_machine_id() && getrandom(random, sizeof random, 0) == sizeof random,
                 UNAVAILABLE, "Shared memory cannot be used: this machine does not say who it is");
    *name = (leat_shm_name){.secret = random[0]};
    snprintf(name->host, sizeof name->host, "%s", leat_machine_id());
    snprintf(name->socket, sizeof name->socket, "leat-%d-%016llx", (int)getpid(),
             (unsigned long long)random[1]);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name->socket);
    memcpy(a.sun_path + 1, name->socket, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *)&a,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) ||
        listen(fd, 128)) {
        leat_status s =
            leat_error(UNAVAILABLE, "Cannot open a socket for shared memory: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return s;
    }
    l->secret = name->secret;
    l->listening = fd;
    *name_out = made;
    return NULL;
}

static void free_listener(listener *l)
{
    while (l->n_waiting)
        close_waiting(l, 0);
    if (l->accept.socket >= 0)
        close(l->accept.socket);
    if (l->timer >= 0)
        close(l->timer);
    close(l->listening);
    free(l);
}

static leat_status watch_all(listener *l)
{
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    l->accept = (leat_accept_watch){
        .socket = epoll_create1(EPOLL_CLOEXEC), .on_connect = on_connect, .arg = l};
    LEAT_REQUIRE(l->timer >= 0 && l->accept.socket >= 0, RESOURCE_EXHAUSTED,
                 "No descriptors to listen for shared memory: %s", strerror(errno));
    watch_socket(l, l->listening, EPOLL_CTL_ADD);
    watch_socket(l, l->timer, EPOLL_CTL_ADD);
    return leat_watch_add_listener(&l->accept);
}

static leat_status start(const char *address, const leat_listen_options *options,
                         leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                         leat_endpoint **out)
{
    leat_shm_name name;
    listener *l = leat_new(listener);
    leat_status s = open_socket(l, &name);
    if (s) {
        free(l);
        return s;
    }
    l->server = leat_stream_server_new(options, handler, arg);
    leat_shm_name_write(&name, offer_out);
    s = watch_all(l);
    if (s) {
        leat_stream_server_stop(l->server, 0);
        free_listener(l);
        return s;
    }
    *out = &l->base;
    return NULL;
}

static void stop(leat_endpoint *e, int64_t deadline_ns)
{
    listener *l = (listener *)e;
    leat_watch_remove_listener(&l->accept);
    leat_stream_server_stop(l->server, deadline_ns);
    free_listener(l);
}

const leat_transport leat_transport_shm = {
    .name = "shm",
    .listen = start,
    .stop = stop,
    .open = open_link,
    .wait = leat_shm_wait,
};
