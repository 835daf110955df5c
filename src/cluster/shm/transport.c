/* transport.c -- shared memory as a transport: the Unix socket at which peers of this machine
 * connect, and the handshake, with which a peer sends memory with two rings. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/address.h"
#include "cluster/shm/rings.h"
#include "cluster/shm/shm.h"
#include "cluster/stream/acceptor.h"
#include "cluster/stream/handshake.h"
#include "core/alloc.h"

typedef struct listener {
    leat_stream_server *server;
    leat_stream_name name;
    leat_acceptor *acceptor;
} listener;

/* Memory for a message with a handshake and one descriptor. */
typedef struct handshake_message {
    leat_handshake handshake;
    struct iovec v;
    struct msghdr header;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
} handshake_message;

static void message_init(handshake_message *m)
{
    memset(m, 0, sizeof *m);
    m->v = (struct iovec){&m->handshake, sizeof m->handshake};
    m->header = (struct msghdr){.msg_iov = &m->v,
                                .msg_iovlen = 1,
                                .msg_control = m->control.bytes,
                                .msg_controllen = sizeof m->control.bytes};
}

/* ---- Connecting ---- */
/* Sends the handshake with a descriptor of the memory, and waits for the reply. */
static leat_status hand_over(int socket, int memory, const leat_stream_name *name, const char *peer)
{
    struct sockaddr_un a;
    socklen_t size = leat_unix_address(name, &a);
    LEAT_REQUIRE(socket >= 0 && !connect(socket, (struct sockaddr *)&a, size), UNAVAILABLE,
                 "%s cannot be reached by shared memory: %s", peer, strerror(errno));
    handshake_message m;
    message_init(&m);
    leat_handshake_init(&m.handshake, LEAT_HANDSHAKE_SHM, name->secret);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m.header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &memory, sizeof(int));
    struct timeval patience = {.tv_sec = 5};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char reply = 0;
    LEAT_REQUIRE(sendmsg(socket, &m.header, MSG_NOSIGNAL) == sizeof m.handshake &&
                     recv(socket, &reply, 1, 0) == 1 && reply == LEAT_ACCEPTED,
                 UNAVAILABLE,
                 "%s does not take part in shared memory: wrong secret, no answer, or no thread or "
                 "memory there",
                 peer);
    return NULL;
}

static leat_status open_link(const leat_link_target *to, leat_link **out)
{
    leat_stream_name name;
    leat_ring_pair rings;
    int memory;
    LEAT_TRY(leat_stream_name_read(&to->offer->data, "shared memory", &name));
    LEAT_REQUIRE(leat_stream_name_is_local(&name), FAILED_PRECONDITION, "%s is not on this machine",
                 to->peer);
    LEAT_TRY(leat_rings_make(&rings, &memory));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    leat_status s = hand_over(fd, memory, &name, to->peer);
    close(memory);
    if (s) {
        leat_rings_release(&rings);
        if (fd >= 0)
            close(fd);
        return s;
    }
    leat_stream_link *l = leat_stream_link_new(to, "shared memory");
    s = leat_stream_link_start(l, leat_rings_stream_new(rings, fd));
    if (s)
        leat_stream_link_base(l)->ops->free(leat_stream_link_base(l));
    else
        *out = leat_stream_link_base(l);
    return s;
}

/* ---- Listening ---- */
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

/* Maps the memory that came with a handshake, and closes its descriptor. */
static bool take_memory(const listener *l, const handshake_message *m, ssize_t n, int fd,
                        leat_ring_pair *out)
{
    if (fd < 0)
        return false;
    if (n != sizeof m->handshake ||
        !leat_handshake_right(&m->handshake, LEAT_HANDSHAKE_SHM, l->name.secret)) {
        close(fd);
        return false;
    }
    leat_status s = leat_rings_take(out, fd);
    leat_status_free(s);
    return !s;
}

/* Ends the handshake. A peer that does not get this byte uses another transport. */
static void accept_peer(void *arg)
{
    const char yes = LEAT_ACCEPTED;
    const int *socket = arg;
    if (send(*socket, &yes, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        shutdown(*socket, SHUT_RDWR);
}

/* Shared memory is for the tasks of one user: processes of others were refused by the acceptor, and
 * their calls go by another transport. */
static bool on_handshake(void *arg, int socket)
{
    listener *l = arg;
    handshake_message m;
    message_init(&m);
    ssize_t n = recvmsg(socket, &m.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    leat_ring_pair rings = {0};
    char peer[48];
    if (!take_memory(l, &m, n, n >= 0 ? only_descriptor(&m.header) : -1, &rings)) {
        leat_rings_release(&rings);
        close(socket);
        return true;
    }
    snprintf(peer, sizeof peer, "shared memory of process %d", leat_unix_peer_of(socket).pid);
    leat_stream_server_add(l->server, leat_rings_stream_new(rings, socket), peer, accept_peer,
                           &socket);
    return true;
}

static void close_listener(void *arg)
{
    listener *l = arg;
    leat_acceptor_free(l->acceptor);
    free(l);
}

static leat_status open_socket(listener *l)
{
    LEAT_TRY(leat_stream_name_init(&l->name));
    LEAT_REQUIRE(*leat_machine_id(), UNAVAILABLE,
                 "Shared memory cannot be used: this machine does not say who it is");
    int fd = leat_unix_listen("leat", &l->name);
    LEAT_REQUIRE(fd >= 0, UNAVAILABLE, "Cannot open a socket for shared memory: %s",
                 strerror(errno));
    return leat_acceptor_new(fd, "shared memory", on_handshake, l, &l->acceptor);
}

static leat_status start(const char *address, const leat_listen_options *options,
                         leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                         leat_endpoint **out)
{
    listener *l = leat_new(listener);
    l->server = leat_stream_server_new(options, handler, arg, close_listener, l);
    leat_endpoint *base = leat_stream_server_base(l->server);
    leat_status s = open_socket(l);
    if (s) {
        leat_stream_server_stop(base, 0);
        return s;
    }
    leat_stream_name_write(&l->name, offer_out);
    *out = base;
    return NULL;
}

const leat_transport leat_transport_shm = {
    .name = "shm",
    .listen = start,
    .stop = leat_stream_server_stop,
    .open = open_link,
    .wait = leat_shm_wait,
};
