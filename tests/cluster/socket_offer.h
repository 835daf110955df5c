/* socket_offer.h -- a listener's offer of a socket, changed by tests, and TCP connections to it by
 * hand. */
#ifndef LEAT_TEST_SOCKET_OFFER_H
#define LEAT_TEST_SOCKET_OFFER_H

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "cluster/socket/socket.h"
#include "cluster/stream_cases.h"

static inline leat_stream_name socket_name(void)
{
    leat_stream_name n;
    CHECK_OK(leat_stream_name_read(&offer, "a socket", &n));
    return n;
}

static inline void set_offer(const leat_stream_name *n)
{
    leat_strbuf_release(&offer);
    leat_stream_name_write(n, &offer);
}

/* As if the peer was on another machine. */
static inline void from_afar(leat_strbuf *o)
{
    leat_stream_name n = socket_name();
    CHECK(n.port > 0);
    n.host[0] ^= 1;
    set_offer(&n);
}

static inline int connect_raw(void)
{
    leat_stream_name n = socket_name();
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)n.port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
    struct timeval patience = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static inline bool is_closed(int fd)
{
    char byte;
    ssize_t n;
    while ((n = recv(fd, &byte, 1, 0)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

#endif
