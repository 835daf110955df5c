/* address.c -- see address.h. gRPC does not say why it could not bind. So each address is bound
 * here first, by a socket that is closed again, to give the reason. */
#include "cluster/address.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

/* host:port or [host]:port. */
static leat_status split(const char *address, char host[256], char port[8])
{
    const char *colon = strrchr(address, ':'), *begin = address, *end = colon;
    if (colon && *begin == '[' && end > begin && end[-1] == ']')
        begin++, end--;
    char *rest = NULL;
    long n = colon ? strtol(colon + 1, &rest, 10) : -1;
    LEAT_REQUIRE(colon && end > begin && end - begin < 256 && rest != colon + 1 && !*rest &&
                     n >= 0 && n <= 65535,
                 INVALID_ARGUMENT, "\"%s\" is no address: it should be host:port", address);
    snprintf(host, 256, "%.*s", (int)(end - begin), begin);
    snprintf(port, 8, "%ld", n);
    return NULL;
}

static int try_bind(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int e = bind(fd, a->ai_addr, a->ai_addrlen) ? errno : 0;
    close(fd);
    return e;
}

static bool is_loopback(const struct addrinfo *a)
{
    if (a->ai_family == AF_INET)
        return ntohl(((struct sockaddr_in *)a->ai_addr)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr);
}

static void add(leat_bind_list *b, const struct addrinfo *a)
{
    char host[48], port[8];
    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    snprintf(b->text[b->n++], sizeof b->text[0], a->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
             host, port);
    b->loopback = b->loopback && is_loopback(a);
}

static leat_status cannot(const char *address, int e)
{
    if (e == EADDRINUSE)
        return leat_error(ALREADY_EXISTS,
                          "Cannot listen on %s: the address is in use: another process, or "
                          "another server of this one, listens there. Stop it, or give this task "
                          "another port",
                          address);
    if (e == EADDRNOTAVAIL)
        return leat_error(UNAVAILABLE,
                          "Cannot listen on %s: this is not an address of this machine. Is the "
                          "task started on the host that the cluster names for it?",
                          address);
    if (e == EACCES)
        return leat_error(PERMISSION_DENIED,
                          "Cannot listen on %s: this user may not use that port; ports from 1024 "
                          "on are free for all",
                          address);
    return leat_error(UNAVAILABLE, "Cannot listen on %s: %s", address, strerror(e));
}

leat_status leat_bind_find(const char *address, leat_bind_list *out)
{
    char host[256], port[8];
    LEAT_TRY(split(address, host, port));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all;
    int rc = getaddrinfo(host, port, &hints, &all);
    LEAT_REQUIRE(!rc, UNAVAILABLE,
                 "Cannot listen on %s: the name \"%s\" does not resolve: %s. Check its spelling, "
                 "/etc/hosts and DNS",
                 address, host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    /* A port that the system picks for one address need not be free on the other addresses. */
    int most = atoi(port) ? LEAT_BIND_MAX : 1, error = EADDRNOTAVAIL;
    leat_bind_list b = {.loopback = true};
    for (const struct addrinfo *a = all; a && b.n < most; a = a->ai_next) {
        int e = try_bind(a);
        if (!e)
            add(&b, a);
        else if (e != EADDRNOTAVAIL && e != EAFNOSUPPORT)
            error = e;
    }
    freeaddrinfo(all);
    if (!b.n || error == EADDRINUSE)
        return cannot(address, error);
    *out = b;
    return NULL;
}

const char *leat_machine_id(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char host[96];
    pthread_mutex_lock(&lock);
    if (!*host) {
        char boot[40] = "", net[40] = "";
        FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
        ssize_t n = readlink("/proc/self/ns/net", net, sizeof net - 1);
        if (f && fscanf(f, "%39s", boot) == 1 && n > 0)
            snprintf(host, sizeof host, "%s %s", boot, net);
        if (f)
            fclose(f);
    }
    pthread_mutex_unlock(&lock);
    return host;
}
