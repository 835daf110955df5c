/* socket.h -- a direct connection between two Leat tasks: TCP between machines, a Unix socket
 * within one.
 *
 * A peer connects to one of the sockets of the task's offer, and sends a handshake with the offer's
 * secret (cluster/stream/handshake.h). If the task's leat_security has TLS, TCP connections use
 * TLS, the handshake included. Unix sockets do not leave the machine and are not encrypted.
 */
#ifndef LEAT_CLUSTER_SOCKET_H
#define LEAT_CLUSTER_SOCKET_H

#include "cluster/socket/tls.h"
#include "cluster/stream/conn.h"
#include "cluster/stream/handshake.h"

/* Sets the socket's options: buffer sizes, no delays, and timeouts for a peer that falls silent.
 * local: a Unix socket. */
void leat_socket_set_up(int fd, bool local);
/* As recvmsg, and as sendmsg with MSG_DONTWAIT and MSG_NOSIGNAL. If tls is not NULL, the rules of
 * leat_tls_receive and leat_tls_send hold; if it is NULL, the connection is not encrypted. */
ssize_t leat_socket_receive(int fd, leat_tls *tls, struct iovec *v, int n, int flags);
ssize_t leat_socket_send(int fd, leat_tls *tls, struct iovec *v, int n);
/* Takes fd and tls, which may be NULL. */
leat_stream *leat_socket_stream_new(int fd, leat_tls *tls);
/* For a connection that was accepted, before it is served: if the process was told to use fewer
 * threads than it has CPUs (LEAT_NUM_THREADS), since other tasks use them, too, the reader of each
 * such connection is bound to one CPU, to each in turn. */
void leat_socket_stream_deal(leat_stream *s);
/* The functions open and wait of leat_transport_socket. */
leat_status leat_socket_open(const leat_link_target *to, leat_link **out) LEAT_MUST_CHECK;
int leat_socket_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
extern const leat_transport leat_transport_socket;

#endif
