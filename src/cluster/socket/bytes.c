/* bytes.c -- sends and receives bytes on a socket, with or without TLS. */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "cluster/socket/socket.h"

ssize_t leat_socket_receive(int fd, leat_tls *tls, struct iovec *v, int n, int flags)
{
    struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)n};
    return tls ? leat_tls_receive(tls, fd, v, n, flags) : recvmsg(fd, &m, flags);
}

ssize_t leat_socket_send(int fd, leat_tls *tls, struct iovec *v, int n)
{
    struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)n};
    return tls ? leat_tls_send(tls, fd, v, n) : sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}
