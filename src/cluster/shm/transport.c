/* transport.c -- shared memory as a transport: the Unix socket at which peers of this machine
 * connect, and the handshake, in which a peer sends the secret and memory with two rings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/shm/handshake.h"
#include "cluster/shm/rings.h"
#include "cluster/address.h"
#include "cluster/shm/shm.h"
#include "core/alloc.h"

typedef struct listener {
    leat_endpoint base;
    leat_stream_server *server;
    uint64_t secret;
    leat_accept_watch accept;
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
    leat_stream_link_start(l, leat_rings_stream_new(rings, socket));
    *out = leat_stream_link_base(l);
    return NULL;
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

/* Reads the handshake of a peer. Gives the descriptor of the peer's memory, or -1. */
static int read_handshake(listener *l, int socket)
{
    if (!same_user(socket))
        return -1;
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
    struct timeval patience = {.tv_usec = 100000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    int fd = n >= 0 ? only_descriptor(&m) : -1;
    if (fd >= 0 && (n != sizeof handshake || handshake.magic != LEAT_SHM_MAGIC ||
                    handshake.version != LEAT_SHM_VERSION || handshake.secret != l->secret)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void let_in(listener *l, int socket)
{
    leat_ring_pair rings;
    int fd = read_handshake(l, socket);
    leat_status s =
        fd >= 0 ? leat_rings_take(&rings, fd) : leat_error(UNAUTHENTICATED, "The secret is wrong");
    char yes = LEAT_SHM_ACCEPTED;
    if (!s && send(socket, &yes, 1, MSG_NOSIGNAL) != 1) {
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

static void on_connect(void *arg)
{
    listener *l = arg;
    for (int s; (s = accept4(l->accept.socket, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        let_in(l, s);
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
    l->accept = (leat_accept_watch){.socket = fd, .on_connect = on_connect, .arg = l};
    *name_out = made;
    return NULL;
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
    leat_watch_add_listener(&l->accept);
    *out = &l->base;
    return NULL;
}

static void stop(leat_endpoint *e, int64_t deadline_ns)
{
    listener *l = (listener *)e;
    leat_watch_remove_listener(&l->accept);
    close(l->accept.socket);
    leat_stream_server_stop(l->server, deadline_ns);
    free(l);
}

const leat_transport leat_transport_shm = {
    .name = "shm",
    .listen = start,
    .stop = stop,
    .open = open_link,
    .wait = leat_shm_wait,
};
