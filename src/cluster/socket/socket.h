/* socket.h -- a direct connection between two Leat tasks: TCP between machines, a Unix socket
 * within one.
 *
 * A task offers a port, the name of a Unix socket, which machine it is on, and a secret
 * (leat_socket_name). A peer connects, sends a handshake with the secret, and is let in, or the
 * connection is closed. Frames follow (cluster/stream/conn.h). The offer travels in GetStatus,
 * which only peers with the cluster's token may call. If the task's leat_security has TLS, all of
 * this goes by TLS on TCP connections; Unix sockets do not leave the machine.
 */
#ifndef LEAT_CLUSTER_SOCKET_H
#define LEAT_CLUSTER_SOCKET_H

#include "cluster/socket/tls.h"
#include "cluster/stream/conn.h"

enum { LEAT_SOCKET_SECRET = 32 };
typedef struct leat_socket_name {
    char host[96];  /* leat_machine_id */
    char local[48]; /* of an abstract Unix socket, without its leading NUL; "-": none */
    int port;       /* TCP, at the host of the task's address; 0: none */
    uint8_t secret[LEAT_SOCKET_SECRET];
} leat_socket_name;
/* As it stands in an offer. INVALID_ARGUMENT if that is none. */
void leat_socket_name_write(const leat_socket_name *name, leat_strbuf *out);
leat_status leat_socket_name_read(const leat_strbuf *offer, leat_socket_name *out) LEAT_MUST_CHECK;

/* What a caller sends first. The answer is one byte. */
#define LEAT_SOCKET_MAGIC "leatsock"
enum { LEAT_SOCKET_VERSION = 1, LEAT_SOCKET_ACCEPTED = 'y' };
typedef struct leat_socket_handshake {
    char magic[8];
    uint32_t version; /* also tells the byte order */
    uint32_t frame;   /* sizeof(leat_frame) */
    uint8_t secret[LEAT_SOCKET_SECRET];
} leat_socket_handshake;
void leat_socket_handshake_init(leat_socket_handshake *h, const uint8_t *secret);
/* Takes the same time for all wrong secrets. */
bool leat_socket_handshake_right(const leat_socket_handshake *h, const uint8_t *secret);

void leat_socket_set_up(int fd, bool local); /* buffers, delays, silent peers */
/* As recvmsg, and as sendmsg with MSG_DONTWAIT and MSG_NOSIGNAL; see leat_tls_send. tls NULL: the
 * connection is not encrypted. */
ssize_t leat_socket_receive(int fd, leat_tls *tls, struct iovec *v, int n, int flags);
ssize_t leat_socket_send(int fd, leat_tls *tls, struct iovec *v, int n);
leat_stream *leat_socket_stream_new(int fd, leat_tls *tls); /* takes both; see above */
leat_status leat_socket_open(const leat_link_target *to, leat_link **out) LEAT_MUST_CHECK;
/* As leat_transport has it. */
int leat_socket_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
extern const leat_transport leat_transport_socket;

#endif
