/* socket.h -- a direct connection between two Leat tasks: TCP between machines, a Unix socket
 * within one.
 *
 * A task's offer has a port, the name of a Unix socket, the id of its machine, and a secret
 * (leat_socket_name). A peer connects and sends a handshake with the secret. If the secret is
 * right, the task accepts the connection, and frames follow (cluster/stream/conn.h); else it closes
 * the connection. Peers get the offer by GetStatus, which only peers with the cluster's token may
 * call. If the task's leat_security has TLS, TCP connections use TLS, the handshake included. Unix
 * sockets do not leave the machine and are not encrypted.
 */
#ifndef LEAT_CLUSTER_SOCKET_H
#define LEAT_CLUSTER_SOCKET_H

#include "cluster/socket/tls.h"
#include "cluster/stream/conn.h"

enum { LEAT_SOCKET_SECRET = 32 };
typedef struct leat_socket_name {
    char host[96]; /* The task's leat_machine_id. */
    /* The name of an abstract Unix socket, without its leading NUL; "-": there is none. */
    char local[48];
    int port; /* The TCP port at the host of the task's address; 0: there is none. */
    uint8_t secret[LEAT_SOCKET_SECRET];
} leat_socket_name;
/* Write the name as the text of an offer, and read it. INVALID_ARGUMENT: the text is not one. */
void leat_socket_name_write(const leat_socket_name *name, leat_strbuf *out);
leat_status leat_socket_name_read(const leat_strbuf *offer, leat_socket_name *out) LEAT_MUST_CHECK;

/* The first bytes that the connecting side sends. The reply is the byte LEAT_SOCKET_ACCEPTED. */
#define LEAT_SOCKET_MAGIC "leatsock"
enum { LEAT_SOCKET_VERSION = 1, LEAT_SOCKET_ACCEPTED = 'y' };
typedef struct leat_socket_handshake {
    char magic[8];
    uint32_t version; /* Differs, too, if the two sides have different byte orders. */
    uint32_t frame;   /* sizeof(leat_frame) */
    uint8_t secret[LEAT_SOCKET_SECRET];
} leat_socket_handshake;
void leat_socket_handshake_init(leat_socket_handshake *h, const uint8_t *secret);
/* Takes the same time for all wrong secrets, so that none can be guessed byte by byte. */
bool leat_socket_handshake_right(const leat_socket_handshake *h, const uint8_t *secret);

/* Sets the socket's options: buffer sizes, no delays, and timeouts for a peer that falls silent.
 * local: a Unix socket. */
void leat_socket_set_up(int fd, bool local);
/* As recvmsg, and as sendmsg with MSG_DONTWAIT and MSG_NOSIGNAL. If tls is not NULL, the rules of
 * leat_tls_receive and leat_tls_send hold; if it is NULL, the connection is not encrypted. */
ssize_t leat_socket_receive(int fd, leat_tls *tls, struct iovec *v, int n, int flags);
ssize_t leat_socket_send(int fd, leat_tls *tls, struct iovec *v, int n);
/* Takes fd and tls, which may be NULL. */
leat_stream *leat_socket_stream_new(int fd, leat_tls *tls);
/* The functions open and wait of leat_transport_socket. */
leat_status leat_socket_open(const leat_link_target *to, leat_link **out) LEAT_MUST_CHECK;
int leat_socket_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
extern const leat_transport leat_transport_socket;

#endif
