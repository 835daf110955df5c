/* accept.c -- see accept.h. */
#define _GNU_SOURCE
#include "cluster/grpc/accept.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.h"

enum { SOCKETS = 64, RESERVE_MAX = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* Guards what follows; taken last. */
static struct {
    int fd;          /* gRPC's; perhaps closed, and used again. */
    uint64_t cookie; /* The socket's, which is never used again. */
} sockets[SOCKETS];
static int next_socket; /* The entry that is used next: the oldest one. */
static bool paused;

static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t n = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &n) ? 0 : cookie;
}

/* Calls fn for all sockets that are still open. The lock is held. */
static void each(void (*fn)(int fd))
{
    for (int i = 0; i < SOCKETS; i++)
        if (sockets[i].cookie && cookie_of(sockets[i].fd) == sockets[i].cookie)
            fn(sockets[i].fd);
}

/* How many descriptors are kept for other uses, and the number of the first of them. */
static int reserve(int *first_out)
{
    struct rlimit r;
    int64_t limit =
        getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)r.rlim_cur;
    int64_t n = limit / 4 < RESERVE_MAX ? limit / 4 : RESERVE_MAX;
    *first_out = (int)(limit - n);
    return (int)n;
}

static void shorten_queue(int fd)
{
    int first;
    listen(fd, reserve(&first) / 2);
}

static void drop_packets(int fd)
{
    struct sock_filter drop = {BPF_RET | BPF_K, 0, 0, 0};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &(struct sock_fprog){1, &drop},
               sizeof(struct sock_fprog));
}

static void take_packets(int fd)
{
    int unused = 0;
    setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

void leat_accept_socket(int fd)
{
    pthread_mutex_lock(&lock);
    sockets[next_socket].fd = fd;
    sockets[next_socket].cookie = cookie_of(fd);
    next_socket = (next_socket + 1) % SOCKETS;
    pthread_mutex_unlock(&lock);
}

void leat_accept_started(void)
{
    pthread_mutex_lock(&lock);
    each(shorten_queue);
    pthread_mutex_unlock(&lock);
}

bool leat_accept_accepted(int fd)
{
    int first;
    reserve(&first);
    if (fd < first)
        return false;
    pthread_mutex_lock(&lock);
    bool was = paused;
    paused = true;
    if (!was)
        each(drop_packets);
    pthread_mutex_unlock(&lock);
    if (!was)
        LEAT_LOG(WARNING,
                 "No connection over gRPC is accepted now: %d descriptors are open, nearly as many "
                 "as this process may have. Raise the limit (ulimit -n)",
                 fd);
    return true;
}

bool leat_accept_is_paused(void)
{
    pthread_mutex_lock(&lock);
    bool still = paused;
    pthread_mutex_unlock(&lock);
    if (!still)
        return false;
    int first;
    reserve(&first);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* The lowest number that is free. */
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < first && paused) {
        each(take_packets);
        paused = false;
    }
    still = paused;
    pthread_mutex_unlock(&lock);
    if (fd >= 0)
        close(fd);
    return still;
}
