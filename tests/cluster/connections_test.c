/* connections_test.c -- which connections count as open. */
#include "cluster/connections.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

/* The name by which a server knows the other end of a connection. */
static void name_of(int fd, char *out, size_t size)
{
    struct sockaddr_in a = {0};
    socklen_t n = sizeof a;
    CHECK(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    snprintf(out, size, "ipv4:127.0.0.1:%d", ntohs(a.sin_port));
}

static bool is_open(int port, const char *peer)
{
    leat_connections *c = leat_connections_read(port);
    bool open = leat_connections_has(c, peer);
    leat_connections_free(c);
    return open;
}

static void open_and_closed(void)
{
    char name[64];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listening, (struct sockaddr *)&a, n) == 0 && listen(listening, 1) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&a, &n) == 0);
    CHECK(connect(fd, (struct sockaddr *)&a, n) == 0);
    int accepted = accept(listening, NULL, NULL);
    name_of(fd, name, sizeof name);
    CHECK(is_open(ntohs(a.sin_port), name));
    CHECK(!is_open(ntohs(a.sin_port) + 1, name));
    CHECK(!is_open(ntohs(a.sin_port), "this process"));
    close(fd);
    close(accepted);
    CHECK(!is_open(ntohs(a.sin_port), name));
    close(listening);
}

/* A table that cannot be read says nothing about connections: they count as open. */
static void no_descriptors(void)
{
    struct rlimit before, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    CHECK(!is_open(1, "ipv4:127.0.0.1:1"));
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    bool open = is_open(1, "ipv4:127.0.0.1:1"), other = is_open(1, "this process");
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(open && !other);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"open_and_closed", open_and_closed},
               {"no_descriptors", no_descriptors});
}
