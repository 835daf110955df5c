/* tuning.c -- four settings that gRPC's public interface does not have. They change the
 * environment, malloc and gRPC's private structs, which a library should not, so they are all here,
 * and the build option LEAT_GRPC_TUNING=OFF leaves them out. What is lost without them:
 *
 * 1. The resolver. gRPC resolves names by c-ares, which knows /etc/hosts and DNS, instead of by the
 *    C library. Names that a cluster has from LDAP, NIS, mDNS or another module of nsswitch.conf
 *    are not found then, unless GRPC_DNS_RESOLVER=native is in the environment, which is gRPC's
 *    only way to choose. A variable that is set is not changed, so a program whose other threads
 *    may call getenv when it first uses a cluster sets it itself at its start.
 * 2. Memory. A large message comes in pieces of 64 KB, freed as soon as they were copied to their
 *    place. The C library gives their pages back to the system and takes new ones for the next
 *    pieces: receiving 100 MB takes up to twice the CPU time. MALLOC_MMAP_THRESHOLD_=16777216 and
 *    MALLOC_TRIM_THRESHOLD_=33554432 in the environment do the same for the whole program.
 * 3. Congestion control. Where the system's is BBR, as on many servers, it measures even the
 *    loopback device and holds packets back by timers, so that 100 MB within a machine take up to
 *    twice as long. Reno, which every Linux has and every user may choose, does not. Systems with
 *    another default lose nothing. gRPC takes socket options by an object whose layout is not in
 *    its public headers, but is the same since version 1.40. For other versions nothing is set.
 * 4. Floods. The same object tells of each connection that gRPC accepts, and guard.c ends those
 * that flood a listener. Without it an attacker that can connect needs no token to use up the
 * memory. accept.c keeps gRPC from running out of descriptors, after which it would accept nothing
 * more.
 */
#include "cluster/grpc/tuning.h"

#if LEAT_GRPC_TUNING
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "cluster/grpc/accept.h"
#include "cluster/grpc/guard.h"

/* ---- 1 and 2 ---- */

void leat_tuning_start(void)
{
    enum { LARGE = 16 << 20 };
    setenv("GRPC_DNS_RESOLVER", "native", 0);
    /* malloc keeps as much free memory as the largest block that it took from the system by itself
     * and that was freed again (M_MMAP_THRESHOLD in mallopt(3)). */
    void *volatile block = malloc(LARGE);
    free(block);
}

/* ---- 3 and 4 ---- */

enum { CLIENT_SOCKET, LISTENER_SOCKET, SERVER_SOCKET };
enum { CORE_FIRST = 18, CORE_LAST = 46 }; /* Versions of gRPC's core, as in grpc_version_string. */

/* gRPC's grpc_socket_mutator, which it calls for each socket. */
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
    intptr_t refs; /* This file's reference is never dropped, so that gRPC never calls destroy. */
};

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncasecmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

/* Both ends of the connection are on this machine. */
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
    if (what->usage == LISTENER_SOCKET)
        leat_accept_socket(what->fd);
    if (what->usage == SERVER_SOCKET)
        leat_guard_accepted(what->fd);
    if (what->usage == CLIENT_SOCKET || (what->usage == SERVER_SOCKET && is_local(what->fd)))
        (void)!setsockopt(what->fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    return true;
}

static int compare(mutator *a, mutator *b)
{
    return 0;
}

static void destroy(mutator *m) {}

static void *copy_arg(void *p)
{
    return p;
}

static void destroy_arg(void *p) {}

static int compare_args(void *a, void *b)
{
    return a < b ? -1 : a > b;
}

bool leat_tuning_server(grpc_arg *out)
{
    static const mutator_ops ops = {NULL, compare, destroy, mutate};
    static const grpc_arg_pointer_vtable pointer_ops = {copy_arg, destroy_arg, compare_args};
    static mutator m = {&ops, 1};
    int core = atoi(grpc_version_string());
    if (core < CORE_FIRST || core > CORE_LAST)
        return false;
    *out =
        (grpc_arg){GRPC_ARG_POINTER, GRPC_ARG_SOCKET_MUTATOR, .value.pointer = {&m, &pointer_ops}};
    return true;
}

bool leat_tuning_channel(const char *address, grpc_arg *out)
{
    return is_loopback(address) && leat_tuning_server(out);
}

#else

void leat_tuning_start(void) {}

bool leat_tuning_server(grpc_arg *out)
{
    return false;
}

bool leat_tuning_channel(const char *address, grpc_arg *out)
{
    return false;
}

#endif
