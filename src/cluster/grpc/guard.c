/* guard.c -- see guard.h.
 *
 * The thread waits by epoll for bytes at the accepted sockets. Each socket is reported once
 * (EPOLLONESHOT) and armed again after LOOK_NS, so that idle connections cost nothing and busy ones
 * one look in that time. gRPC owns the descriptors and closes them at any time, after which their
 * numbers may be used again: a connection is known by its socket's cookie, which never is. What is
 * disconnected is a duplicate whose cookie was checked.
 */
#define _GNU_SOURCE
#include "cluster/grpc/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cluster/grpc/accept.h"
#include "core/alloc.h"
#include "core/log.h"
#include "core/thread.h"
#include "core/threadpool.h"

enum {
    LOOK_NS = 10 * 1000 * 1000,
    /* CPU time of the polling thread. A client that makes 5000 calls at once takes 150 ms. */
    SLOW_NS = 500 * 1000 * 1000,
    SLOW_KNOWN_NS = 1000 * 1000 * 1000, /* For a connection on which a call came as a whole. */
    SLOW_FLOODED_NS = 100 * 1000 * 1000,
    SLOW_MEMORY = 128 << 20, /* Bytes; 4500 calls at once take about half of it. */
    OVER_NS = 30 * 1000 * 1000,
    OVER_FLOODED_NS = 5 * 1000 * 1000,
    SLOW_BYTES_PER_MS = 16 * 1000, /* What gRPC parses at least, on slow machines and with TLS. */
    SLOW_LEAST = 16 << 10,         /* Bytes that a connection has brought if it is to be blamed. */
    UNFINISHED_MAX = 2000,
    PAUSED_MS = 100, /* How often descriptors are counted while none is accepted. */
};
static const int64_t SECOND_NS = INT64_C(1000000000), COUNT_NS = INT64_C(3000000000),
                     FLOOD_NS = INT64_C(3000000000), IDLE_NS = INT64_C(1000000000),
                     TRIM_LAST_NS = INT64_C(30000000000);

typedef struct conn {
    struct conn *next, **link;
    uint64_t number; /* The socket's cookie. */
    int fd;          /* gRPC's; perhaps closed already, and used again. */
    struct sockaddr_in6 peer;
    int calls, receiving; /* Under way; those that were accepted and have no whole message. */
    bool known;           /* A call was accepted, and its message came as a whole. */
    bool cut;
    clockid_t over_clock; /* The clock of over_ns; -1: rule 1's limit is not passed. */
    int64_t over_ns;      /* The CPU time of the polling thread when the limit was passed. */
    uint64_t over_bytes;  /* bytes at that time. */
    int64_t since_ns;     /* When the connection was accepted. */
    int unfinished;       /* See rule 3; since second_ns. */
    int64_t second_ns;
    uint64_t bytes, bytes_then; /* Read by gRPC; when rule 2 began to count. */
} conn;

/* Guards users to runs; held while the thread is started or its end is awaited. Taken before lock.
 */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static pthread_t thread;
static bool runs; /* There is a thread. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* Guards what follows; taken last. */
static conn *conns;
static int poller = -1, wake_fd = -1; /* -1: there is no thread. */
static bool quits;                    /* The thread has to end. */
static int64_t log_ns;                /* From this time on a connection that was ended is logged. */
static int unlogged;                  /* Connections that were ended and not logged. */
static int64_t cut_ns;                /* When the last connection was ended; 0: none was. */
static int64_t trim_ns;               /* When freed memory is given back next; 0: it is not. */

/* Atomic: what leat_guard_polls has counted, and the clock of the thread that called it last. */
static uint64_t polls;
static clockid_t poll_clock = -1;
/* Used by the thread alone: polls, that clock's time, the time and the resident memory when rule 2
 * began to count. */
static uint64_t polls_then;
static int64_t clock_then, time_then, memory_then;

static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t n = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &n) ? 0 : cookie;
}

static struct sockaddr_in6 mapped(struct in_addr a, in_port_t port)
{
    struct sockaddr_in6 out = {.sin6_family = AF_INET6, .sin6_port = port};
    out.sin6_addr.s6_addr[10] = out.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&out.sin6_addr.s6_addr[12], &a, sizeof a);
    return out;
}

static bool peer_of(int fd, struct sockaddr_in6 *out)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    socklen_t n = sizeof a;
    if (getpeername(fd, &a.any, &n))
        return false;
    *out = a.any.sa_family == AF_INET ? mapped(a.v4.sin_addr, a.v4.sin_port) : a.v6;
    return a.any.sa_family == AF_INET || a.any.sa_family == AF_INET6;
}

/* Reads what gRPC calls a peer: "ipv4:127.0.0.1:40312", "ipv6:[::1]:40312" or
 * "ipv6:%5B::1%5D:40312", the last perhaps with a scope. */
static bool read_peer(const char *text, struct sockaddr_in6 *out)
{
    char host[64];
    const char *port = strrchr(text, ':');
    bool v6 = strncmp(text, "ipv6:", 5) == 0;
    if ((!v6 && strncmp(text, "ipv4:", 5) != 0) || port < text + 5)
        return false;
    const char *from = text + 5, *end = port;
    if (v6 && strncmp(from, "%5B", 3) == 0)
        from += 3, end -= 3;
    else if (v6 && *from == '[')
        from++, end--;
    const char *scope = v6 ? memchr(from, '%', (size_t)(end > from ? end - from : 0)) : NULL;
    end = scope ? scope : end;
    if (end <= from || end - from >= (ptrdiff_t)sizeof host)
        return false;
    memcpy(host, from, (size_t)(end - from));
    host[end - from] = 0;
    in_port_t number = htons((uint16_t)atoi(port + 1));
    struct in_addr v4;
    if (v6) {
        *out = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = number};
        return inet_pton(AF_INET6, host, &out->sin6_addr) == 1;
    }
    if (inet_pton(AF_INET, host, &v4) != 1)
        return false;
    *out = mapped(v4, number);
    return true;
}

/* ---- Connections; the lock is held ---- */
static void forget(conn *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    free(c);
}

static conn *find(uint64_t number)
{
    conn *c = conns;
    while (c && c->number != number)
        c = c->next;
    return c;
}

static conn *find_peer(const struct sockaddr_in6 *peer)
{
    conn *c = conns;
    while (c && (c->peer.sin6_port != peer->sin6_port ||
                 memcmp(&c->peer.sin6_addr, &peer->sin6_addr, sizeof peer->sin6_addr) != 0))
        c = c->next;
    return c;
}

/* By system calls, since ThreadSanitizer takes a number that gRPC has closed, and that another
 * thread uses again, for a race. Epoll knows a file by its number and itself: the call does nothing
 * to another file of that number. */
static void arm(conn *c, int op)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.u64 = c->number};
    syscall(SYS_epoll_ctl, poller, op, c->fd, &e);
}

/* Sets c->bytes to what gRPC has read of the socket. False: gRPC has closed the socket. */
static bool count_bytes(conn *c)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;
    int unread = 0;
    if (cookie_of(c->fd) != c->number || getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) ||
        syscall(SYS_ioctl, c->fd, SIOCINQ, &unread)) /* As in arm. */
        return cookie_of(c->fd) == c->number;
    uint64_t bytes = info.tcpi_bytes_received - (uint64_t)unread;
    c->bytes = bytes > c->bytes && bytes <= info.tcpi_bytes_received ? bytes : c->bytes;
    return true;
}

static void cut(conn *c, const char *why)
{
    /* Disconnected, not shut down: gRPC would go on to read what has come already. */
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0), own = fd < 0 ? c->fd : fd; /* -1: EMFILE. */
    if (cookie_of(own) == c->number && connect(own, &nobody, sizeof nobody))
        shutdown(own, SHUT_RDWR);
    if (fd >= 0)
        close(fd);
    int64_t now = leat_now_ns();
    c->cut = true;
    cut_ns = now;
    trim_ns = now + SECOND_NS;
    unlogged++;
    if (now < log_ns)
        return;
    char host[INET6_ADDRSTRLEN] = "?", more[64] = "";
    inet_ntop(AF_INET6, &c->peer.sin6_addr, host, sizeof host);
    if (unlogged > 1)
        snprintf(more, sizeof more, "; so were %d others since the last such line", unlogged - 1);
    LEAT_LOG(WARNING, "The connection of %s port %d over gRPC was closed: %s%s", host,
             ntohs(c->peer.sin6_port), why, more);
    log_ns = now + SECOND_NS;
    unlogged = 0;
}

/* Whether a connection was ended a short time ago. */
static bool is_flooded(void)
{
    return cut_ns && leat_now_ns() < cut_ns + FLOOD_NS;
}

/* The CPU time of the thread that polls gRPC, and the clock that tells it. False: unknown. */
static bool poll_time(clockid_t *clock_out, int64_t *time_out)
{
    struct timespec t;
    *clock_out = __atomic_load_n(&poll_clock, __ATOMIC_RELAXED);
    if (*clock_out == -1 || clock_gettime(*clock_out, &t))
        return false;
    *time_out = t.tv_sec * SECOND_NS + t.tv_nsec;
    return true;
}

/* The resident memory of the process, in bytes; 0: unknown. */
static int64_t resident_memory(void)
{
    char text[128];
    long long size, pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return sscanf(text, "%lld %lld", &size, &pages) == 2 ? pages * sysconf(_SC_PAGESIZE) : 0;
}

/* Whether few bytes were read in so much CPU time: messages are read faster. */
static bool is_slow(uint64_t bytes, int64_t took_ns)
{
    return bytes < (uint64_t)(took_ns / 1000000) * SLOW_BYTES_PER_MS;
}

/* Rule 1. A call may have come that the polling thread has not got to yet: it is given some CPU
 * time for that. */
static void check_first(conn *c)
{
    clockid_t clock;
    int64_t now;
    bool flooded = is_flooded();
    if (c->cut || c->known || c->receiving || !poll_time(&clock, &now) ||
        c->bytes <= (flooded ? LEAT_GUARD_FIRST_FLOODED : LEAT_GUARD_FIRST)) {
        c->over_clock = -1;
        return;
    }
    if (c->over_clock != clock) {
        c->over_clock = clock;
        c->over_ns = now;
        c->over_bytes = c->bytes;
    }
    int64_t took = now - c->over_ns;
    if ((took > (flooded ? OVER_FLOODED_NS : OVER_NS) && is_slow(c->bytes - c->over_bytes, took)) ||
        c->bytes > LEAT_GUARD_FIRST_AT_MOST)
        cut(c,
            "it sent many bytes without making a call that this task accepts, as no client does");
}

/* Counts the bytes of all connections, and forgets those that gRPC has closed. Gives the bytes
 * since rule 2 began to count, and the connection that brought the most of them, or NULL. */
static uint64_t count_all(bool begin, conn **most_out)
{
    uint64_t all = 0;
    *most_out = NULL;
    for (conn *c = conns, *next; c; c = next) {
        next = c->next;
        if (!count_bytes(c)) {
            forget(c);
            continue;
        }
        c->bytes_then = begin ? c->bytes : c->bytes_then;
        uint64_t here = c->bytes - c->bytes_then;
        all += here;
        if (!c->cut && (!*most_out || here > (*most_out)->bytes - (*most_out)->bytes_then))
            *most_out = c;
    }
    return all;
}

/* Rule 2. It begins to count when the polling thread has come back with an event, and after
 * COUNT_NS: work that took seconds in all since an event hours ago is no flood. */
static void check_slow(void)
{
    clockid_t clock;
    uint64_t polls_now = __atomic_load_n(&polls, __ATOMIC_ACQUIRE);
    int64_t clock_now = 0, now = leat_now_ns();
    bool has_clock = poll_time(&clock, &clock_now);
    bool begin = !has_clock || polls_now != polls_then || now > time_then + COUNT_NS;
    conn *most;
    uint64_t all = count_all(begin, &most);
    int64_t took = clock_now - clock_then;
    int64_t limit = is_flooded() ? SLOW_FLOODED_NS : most && most->known ? SLOW_KNOWN_NS : SLOW_NS;
    bool slow = !begin && took > SLOW_FLOODED_NS && is_slow(all, took) &&
                (took > limit ||
                 (memory_then && resident_memory() - memory_then > SLOW_MEMORY));
    if (slow && most && most->bytes - most->bytes_then > SLOW_LEAST) {
        cut(most, "what it sends takes this task long to read, as nothing that clients send does");
        count_all(begin = true, &most);
    }
    if (begin) {
        polls_then = polls_now;
        clock_then = clock_now;
        time_then = now;
        memory_then = resident_memory();
    }
}

/* Descriptors are short: ends connections that have made no call for a while. */
static void make_room(void)
{
    int64_t before = leat_now_ns() - IDLE_NS;
    pthread_mutex_lock(&lock);
    for (conn *c = conns; c; c = c->next)
        if (!c->cut && !c->known && !c->receiving && c->since_ns < before)
            cut(c, "it made no call, and descriptors are short");
    pthread_mutex_unlock(&lock);
}

/* Looks at the connections that have brought bytes. True: the thread has to end. */
static bool look(const struct epoll_event *e, int n)
{
    uint64_t count;
    pthread_mutex_lock(&lock);
    check_slow();
    for (int i = 0; i < n; i++) {
        conn *c = e[i].data.u64 ? find(e[i].data.u64) : NULL;
        if (!e[i].data.u64)
            (void)!read(wake_fd, &count, sizeof count);
        if (!c)
            continue;
        check_first(c);
        if (!(e[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
            arm(c, EPOLL_CTL_MOD);
    }
    bool ends = quits;
    pthread_mutex_unlock(&lock);
    return ends;
}

/* Gives memory that gRPC has freed after a flood back to the system, which the C library does not
 * do by itself while anything beyond it in its heap is in use. On a busy machine gRPC works on a
 * flood, and frees what it took, for some time after the connection was ended: memory is given back
 * after 1, 2, 4, 8, 16 and 32 seconds. True if that has to be done later. */
static bool trim(void)
{
    pthread_mutex_lock(&lock);
    int64_t now = leat_now_ns(), since_cut = now - cut_ns;
    bool due = trim_ns && now >= trim_ns;
    if (due)
        trim_ns = since_cut < TRIM_LAST_NS ? now + since_cut : 0;
    bool pending = trim_ns != 0;
    pthread_mutex_unlock(&lock);
    if (due)
        malloc_trim(0);
    return pending;
}

static void *watch(void *unused)
{
    pthread_setname_np(pthread_self(), "leat-guard");
    for (bool ends = false, pending = false, paused = false; !ends;) {
        struct epoll_event e[64];
        int n = epoll_wait(poller, e, 64, paused ? PAUSED_MS : pending ? 1000 : -1);
        if (n > 0) {
            nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
            ends = look(e, n);
        }
        pending = trim();
        paused = leat_accept_is_paused();
        if (paused)
            make_room();
    }
    return NULL;
}

/* ---- What the listeners call ---- */
static void wake_watch(void)
{
    uint64_t one = 1;
    (void)!write(wake_fd, &one, sizeof one);
}

void leat_guard_polls(void)
{
    static __thread clockid_t own = -1;
    if (own == -1 && pthread_getcpuclockid(pthread_self(), &own))
        own = -1;
    __atomic_store_n(&poll_clock, own, __ATOMIC_RELAXED);
    __atomic_store_n(&polls, __atomic_load_n(&polls, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}

void leat_guard_accepted(int fd)
{
    conn *c = leat_new(conn);
    c->fd = fd;
    c->over_clock = -1;
    c->number = cookie_of(fd);
    c->since_ns = leat_now_ns();
    bool crowded = leat_accept_accepted(fd);
    pthread_mutex_lock(&lock);
    if (crowded && poller >= 0)
        wake_watch();
    if (poller < 0 || !c->number || !peer_of(fd, &c->peer)) {
        free(c);
    } else {
        c->next = conns;
        c->link = &conns;
        if (conns)
            conns->link = &c->next;
        conns = c;
        arm(c, EPOLL_CTL_ADD);
    }
    pthread_mutex_unlock(&lock);
}

uint64_t leat_guard_call_begins(const char *peer, int *calls_out)
{
    struct sockaddr_in6 address;
    *calls_out = 1;
    if (!read_peer(peer, &address))
        return 0;
    pthread_mutex_lock(&lock);
    conn *c = find_peer(&address);
    if (c)
        *calls_out = ++c->calls;
    uint64_t number = c ? c->number : 0;
    pthread_mutex_unlock(&lock);
    return number;
}

void leat_guard_call_receives(uint64_t number)
{
    pthread_mutex_lock(&lock);
    conn *c = number ? find(number) : NULL;
    if (c)
        c->receiving++;
    pthread_mutex_unlock(&lock);
}

void leat_guard_call_came(uint64_t number)
{
    pthread_mutex_lock(&lock);
    conn *c = number ? find(number) : NULL;
    if (c) {
        c->receiving--;
        c->known = true;
    }
    pthread_mutex_unlock(&lock);
}

void leat_guard_call_ends(uint64_t number, bool unfinished)
{
    pthread_mutex_lock(&lock);
    conn *c = number ? find(number) : NULL;
    if (c) {
        c->calls--;
        c->receiving -= unfinished;
    }
    if (c && unfinished) {
        int64_t now = leat_now_ns();
        if (now > c->second_ns + SECOND_NS) {
            c->second_ns = now;
            c->unfinished = 0;
        }
        if (++c->unfinished > UNFINISHED_MAX && !c->cut) {
            cut(c, "it reset more than 2000 calls within a second before their message came");
            wake_watch(); /* The thread gives memory back later. */
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Without the thread floods are not noticed, which is no reason not to listen. */
static bool start_watch(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC), quit = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN};
    if (fd < 0 || quit < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, quit, &e)) {
        if (fd >= 0)
            close(fd);
        if (quit >= 0)
            close(quit);
        return false;
    }
    pthread_mutex_lock(&lock);
    poller = fd;
    quits = false;
    wake_fd = quit;
    pthread_mutex_unlock(&lock);
    return !leat_thread_start(&thread, watch, NULL);
}

void leat_guard_open(void)
{
    pthread_mutex_lock(&users_lock);
    if (!users++ && !(runs = start_watch()))
        LEAT_LOG(WARNING, "No thread or descriptor to notice floods of connections over gRPC. %s",
                 LEAT_NO_THREAD_HINT);
    pthread_mutex_unlock(&users_lock);
}

void leat_guard_close(void)
{
    pthread_mutex_lock(&users_lock);
    if (!--users) {
        pthread_mutex_lock(&lock);
        quits = true;
        pthread_mutex_unlock(&lock);
        if (runs) {
            wake_watch();
            pthread_join(thread, NULL);
        }
        pthread_mutex_lock(&lock);
        while (conns)
            forget(conns);
        if (poller >= 0)
            close(poller);
        if (wake_fd >= 0)
            close(wake_fd);
        poller = wake_fd = -1;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&users_lock);
}
