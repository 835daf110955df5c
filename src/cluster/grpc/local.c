/* local.c -- sockets whose two ends are on one machine do without pacing.
 *
 * Where the system's congestion control is BBR, as on many servers, it measures even the loopback
 * device, and holds packets back by timers: half of what memory would carry. Nothing is lost or
 * queued there, so plain Reno, which every Linux has and everybody may choose, just sends.
 *
 * gRPC takes such settings by an object whose layout is not in its public headers, but has been the
 * same since version 1.40. Others than those known are left alone.
 */
#include "cluster/grpc/local.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { CLIENT_SOCKET = 0, SERVER_SOCKET = 2 };
enum { CORE_FIRST = 18, CORE_LAST = 46 }; /* of gRPC's core, as grpc_version_string has it */

typedef struct mutator mutator;
typedef struct mutated {
    int fd, usage;
} mutated;
typedef struct mutator_ops {
    bool (*mutate_old)(int fd, mutator *m);
    int (*compare)(mutator *a, mutator *b);
    void (*destroy)(mutator *m);
    bool (*mutate)(const mutated *what, mutator *m);
} mutator_ops;
struct mutator {
    const mutator_ops *ops;
    intptr_t refs; /* gRPC's count of its own; ours stays, so it is never destroyed */
};

bool leat_local_address(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncasecmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

/* Both ends of a connection have the same address. */
static bool is_local(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } here, there;
    socklen_t n = sizeof here, m = sizeof there;
    if (getsockname(fd, &here.any, &n) || getpeername(fd, &there.any, &m) ||
        here.any.sa_family != there.any.sa_family)
        return false;
    if (here.any.sa_family == AF_INET)
        return here.v4.sin_addr.s_addr == there.v4.sin_addr.s_addr ||
               ntohl(there.v4.sin_addr.s_addr) >> 24 == 127;
    return here.any.sa_family == AF_INET6 &&
           memcmp(&here.v6.sin6_addr, &there.v6.sin6_addr, sizeof here.v6.sin6_addr) == 0;
}

static bool mutate(const mutated *what, mutator *m)
{
    if (what->usage == CLIENT_SOCKET || (what->usage == SERVER_SOCKET && is_local(what->fd)))
        (void)!setsockopt(what->fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    return true;
}

static int compare(mutator *a, mutator *b)
{
    return 0;
}

static void destroy(mutator *m) {}

static void *copy(void *p)
{
    return p;
}

static void forget(void *p) {}

static int compare_args(void *a, void *b)
{
    return a < b ? -1 : a > b;
}

bool leat_local_arg(grpc_arg *out)
{
    static const mutator_ops ops = {NULL, compare, destroy, mutate};
    static const grpc_arg_pointer_vtable pointer_ops = {copy, forget, compare_args};
    static mutator m = {&ops, 1};
    int core = atoi(grpc_version_string());
    if (core < CORE_FIRST || core > CORE_LAST)
        return false;
    *out =
        (grpc_arg){GRPC_ARG_POINTER, GRPC_ARG_SOCKET_MUTATOR, .value.pointer = {&m, &pointer_ops}};
    return true;
}
