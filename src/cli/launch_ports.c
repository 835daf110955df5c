/* launch_ports.c -- free ports of the loopback address.
 *
 * Ports are chosen below the range of ephemeral ports, so that no outgoing connection takes one
 * before its task listens; the search starts at a random port, so that two launches do not choose
 * the same. All sockets stay bound until the last port is found, then they are closed: the tasks
 * bind the ports themselves.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch.h"

enum { FIRST = 20000, COUNT = 12000 };

/* A socket that is bound to the port, or -1. */
static int hold(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

leat_status launch_find_ports(launch *l)
{
    unsigned start = 0;
    if (getrandom(&start, sizeof(start), 0) < 0)
        start = (unsigned)getpid();
    int *held = cli_array((size_t)l->n, sizeof(int)), found = 0;
    for (unsigned i = 0; i < COUNT && found < l->n; i++) {
        int port = FIRST + (int)((start + i) % COUNT), fd = hold(port);
        if (fd < 0)
            continue;
        held[found] = fd;
        l->tasks[found++].port = port;
    }
    leat_status s = NULL;
    if (found < l->n)
        s = leat_error(RESOURCE_EXHAUSTED, "only %d of %d free ports found on 127.0.0.1 (%s)",
                       found, l->n, strerror(errno));
    for (int i = 0; i < found; i++)
        close(held[i]);
    free(held);
    return s;
}
