/* port.h -- ports for servers that a test starts later, in this process or another one. */
#ifndef LEAT_TEST_PORT_H
#define LEAT_TEST_PORT_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* True if no other test has the port: each holds a Unix socket of a name that says which one, until
 * its process ends. */
static inline bool port_claim(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "leat-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (bind(fd, (struct sockaddr *)&name, size) == 0)
        return true;
    close(fd);
    return false;
}

static inline bool port_free(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool ok = bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
    close(fd);
    return ok;
}

/* A port that nobody listens on, and that no other test is given while this process lives. It is
 * below those that Linux gives to outgoing connections and to port 0: one of these could be taken
 * before the server starts. */
static inline int free_port(void)
{
    enum { FIRST = 10000, LAST = 19999 };
    for (;;) {
        unsigned r;
        if (getrandom(&r, sizeof(r), 0) != sizeof(r))
            abort();
        int port = FIRST + (int)(r % (LAST - FIRST + 1));
        if (port_claim(port) && port_free(port))
            return port;
    }
}

#endif
