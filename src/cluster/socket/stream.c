/* stream.c -- a socket as a stream of frames. A tensor's bytes are written from its own memory, and
 * read to the memory that the received tensor keeps. The reader blocks in recv. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/socket/socket.h"
#include "core/alloc.h"
#include "core/bind.h"
#include "core/later.h"

enum {
    BUFFER = 16 << 10,    /* The bytes of the buffer that small reads go through. */
    DIRECT = 4 << 10,     /* Reads of at least so many bytes do not go through the buffer. */
    PUSH_BYTES = 1 << 20, /* Bytes that one push writes; the writing thread writes the rest. */
    PUSH_PARTS = 64,      /* Parts of memory in one write. */
    ROOM_MS = 1,          /* How long push waits until the peer has read and more fits. */
};

typedef struct socket_stream {
    leat_stream base;
    int fd;
    leat_tls *tls;   /* NULL: the connection is not encrypted. */
    int cpu;         /* The CPU that the reader is bound to; -1: to none. */
    size_t from, to; /* buffer[from .. to-1] was received and not read yet. */
    uint8_t buffer[BUFFER];
} socket_stream;

static atomic_int streams; /* The number of socket streams of the process. */

static socket_stream *of(leat_conn *c)
{
    return (socket_stream *)c->stream;
}

/* Gives the reason of the connection's end for an errno of its socket. */
static leat_conn_end reason(int error)
{
    bool silent =
        error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN;
    return silent             ? LEAT_CONN_SILENT
           : error == EBADMSG ? LEAT_CONN_GARBAGE /* The peer's bytes are not TLS. */
                              : LEAT_CONN_CLOSED;
}

/* ---- Reading ---- */
/* Receives at least one byte: if n is large, up to n bytes to `to` and what follows to the buffer,
 * else all to the buffer. Gives how many bytes are at `to`; -1: the connection has ended, and errno
 * says why (0: the peer closed it). */
static ssize_t receive(socket_stream *s, void *to, uint64_t n)
{
    bool direct = to && n >= DIRECT;
    struct iovec v[2] = {{to, n}, {s->buffer, BUFFER}};
    ssize_t got;
    leat_later_now();
    if (s->cpu >= 0)
        leat_bind(s->cpu);
    do
        got = leat_socket_receive(s->fd, s->tls, direct ? v : v + 1, direct ? 2 : 1, 0);
    while (got < 0 && errno == EINTR);
    if (!got)
        errno = 0;
    if (got <= 0)
        return -1;
    size_t placed = !direct ? 0 : (uint64_t)got < n ? (size_t)got : (size_t)n;
    s->from = 0;
    s->to = (size_t)got - placed;
    return (ssize_t)placed;
}

static bool read_bytes(leat_conn *c, void *to, uint64_t n)
{
    socket_stream *s = of(c);
    while (n) {
        size_t here = s->to - s->from < n ? s->to - s->from : (size_t)n;
        if (to && here)
            memcpy(to, s->buffer + s->from, here);
        s->from += here;
        to = to ? (uint8_t *)to + here : NULL;
        n -= here;
        if (!n)
            break;
        if (__atomic_load_n(&c->end, __ATOMIC_SEQ_CST) > LEAT_CONN_CLOSED)
            return false;
        ssize_t placed = receive(s, to, n);
        if (placed < 0) {
            leat_conn_finish(c, reason(errno));
            return false;
        }
        leat_conn_heard(c); /* A large frame may take longer than leat_ping_after_ns. */
        to = to ? (uint8_t *)to + placed : NULL;
        n -= (uint64_t)placed;
    }
    return true;
}

/* ---- Writing ---- */
/* Lists unsent bytes, `most` at most, in v. Gives the number of entries. send_lock is held. */
static int gather(const leat_conn *c, struct iovec *v, size_t most)
{
    int n = 0;
    for (const leat_unsent *u = c->unsent; u && n < PUSH_PARTS && most; u = u->next) {
        size_t at = u->at;
        for (int p = u->part; p < u->parts && n < PUSH_PARTS && most; p++, at = 0) {
            size_t here = u->part_list[p].n - at < most ? u->part_list[p].n - at : most;
            v[n++] = (struct iovec){(void *)(u->part_list[p].data + at), here};
            most -= here;
        }
    }
    return n;
}

/* The next n unsent bytes were written. send_lock is held. */
static void advance(leat_conn *c, size_t n)
{
    for (leat_unsent *u = c->unsent; u; u = u->next)
        for (; u->part < u->parts; u->part++, u->at = 0) {
            size_t left = u->part_list[u->part].n - u->at;
            if (n < left) {
                u->at += n;
                return;
            }
            n -= left;
        }
}

static bool all_written(const leat_conn *c)
{
    const leat_unsent *u = c->unsent;
    while (u && u->part == u->parts)
        u = u->next;
    return !u;
}

static leat_conn_end push(leat_conn *c)
{
    socket_stream *s = of(c);
    struct iovec v[PUSH_PARTS];
    for (size_t left = PUSH_BYTES; left && !all_written(c);) {
        ssize_t n = leat_socket_send(s->fd, s->tls, v, gather(c, v, left));
        if (n >= 0) {
            advance(c, (size_t)n);
            left -= (size_t)n;
            if (c->writing) /* The socket was full before, so the peer has read since. */
                leat_conn_heard(c);
        } else if (errno == EAGAIN) {
            /* A peer that is reading soon makes room: waiting costs less than waking the writing
             * thread. */
            struct pollfd p = {s->fd, POLLOUT, 0};
            if (poll(&p, 1, ROOM_MS) <= 0)
                break;
        } else if (errno != EINTR) {
            return reason(errno);
        }
    }
    return LEAT_CONN_LIVES;
}

static void await_room(leat_conn *c)
{
    enum { LOOK_MS = 1000 };
    struct pollfd p = {of(c)->fd, POLLOUT, 0};
    if (!leat_conn_ended(c))
        poll(&p, 1, LOOK_MS);
}

/* ---- Waiting ---- */
/* The thread parks at once. Spinning would keep the CPU from the process that the thread waits for:
 * with a parameter server and two workers on two cores, steps took a sixth longer. */
int leat_socket_wait(leat_pool *p, leat_event *e, int64_t deadline_ns)
{
    bool any = atomic_load_explicit(&streams, memory_order_relaxed) > 0;
    return any ? leat_pool_park(p, e, deadline_ns) : -1;
}

/* ---- Beginning and end ---- */
static void wake(leat_conn *c)
{
    if (leat_conn_ended(c))
        shutdown(of(c)->fd, SHUT_RDWR);
}

static void free_stream(leat_stream *base)
{
    socket_stream *s = (socket_stream *)base;
    atomic_fetch_sub(&streams, 1);
    leat_tls_free(s->tls);
    close(s->fd);
    free(s);
}

leat_stream *leat_socket_stream_new(int fd, leat_tls *tls)
{
    static const leat_stream_ops ops = {
        .read = read_bytes,
        .push = push,
        .await_room = await_room,
        .wake = wake,
        .free = free_stream,
        .gathers = true,
        .read_blocks = true,
    };
    socket_stream *s = leat_xmalloc(sizeof *s);
    atomic_fetch_add(&streams, 1);
    s->base = (leat_stream){&ops, -1};
    s->fd = fd;
    s->tls = tls;
    s->cpu = -1;
    s->from = s->to = 0;
    return &s->base;
}

/* Linux wakes several readers on one CPU when all CPUs are busy for the moment, and leaves them
 * there while the other CPUs become idle. If one reader then sends the variables to a worker and
 * another one waits for its turn, both workers wait: with a parameter server and two workers on two
 * cores, synchronous steps took a fifth longer. Where the CPUs are the process's own, they are not
 * as busy, and readers stay free to move. */
void leat_socket_stream_deal(leat_stream *base)
{
    static atomic_uint dealt;
    cpu_set_t cpus;
    if (leat_default_threads() >= leat_cpu_count() || sched_getaffinity(0, sizeof cpus, &cpus))
        return;
    int skip = (int)(atomic_fetch_add(&dealt, 1) % (unsigned)leat_cpu_count());
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus) && skip-- == 0)
            ((socket_stream *)base)->cpu = cpu;
}

/* Replaces BBR by Reno if the round trip takes less than NEAR_US microseconds. BBR sends by timers,
 * at a rate that it estimates: on a short way a message of some 100 KB arrives later than it could,
 * and costs more CPU time. Reno sends at once; every Linux has it, and every user may choose it.
 * Other algorithms are left as they are. */
static void choose_congestion_control(int fd)
{
    enum { NEAR_US = 1000 };
    char name[16] = "";
    socklen_t n = sizeof name - 1, n_info = sizeof(struct tcp_info);
    struct tcp_info info = {0};
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) == 0 && strcmp(name, "bbr") == 0 &&
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n_info) == 0 && info.tcpi_rtt < NEAR_US)
        (void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

void leat_socket_set_up(int fd, bool local)
{
    enum { LOCAL_BYTES = 4 << 20 };
    int one = 1, bytes = LOCAL_BYTES;
    if (local) {
        /* The default buffer holds 200 KB, which is less than many steps send. */
        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
            (void)!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        return;
    }
    /* The connection ends when the peer has acknowledged nothing for 2 * leat_ping_after_ns, the
     * time after which a peer that replies to no ping is lost, too. */
    int idle = (int)(leat_ping_after_ns / 1000000000), interval = idle / 2 + 1, probes = 2,
        timeout_ms = (int)(2 * leat_ping_after_ns / 1000000);
    choose_congestion_control(fd);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}
