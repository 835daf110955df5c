/* tls.h -- TLS on a TCP connection, with what leat_security says, as gRPC does it: TLS 1.2 or
 * newer; a client checks the server's certificate and its name; a server checks a client's
 * certificate if the TLS is mutual.
 */
#ifndef LEAT_CLUSTER_SOCKET_TLS_H
#define LEAT_CLUSTER_SOCKET_TLS_H

#include <leat/cluster.h>
#include <sys/types.h>
#include <sys/uio.h>

/* ---- What the connections of a listener, or those to a peer, have in common ---- */
typedef struct ssl_ctx_st leat_tls_context;
bool leat_tls_wanted(const leat_security *s); /* s may be NULL */
/* The files are read now. Errors name the file. NOT_FOUND also if there is no OpenSSL. */
leat_status leat_tls_server(const leat_security *s, leat_tls_context **out) LEAT_MUST_CHECK;
leat_status leat_tls_client(const leat_security *s, leat_tls_context **out) LEAT_MUST_CHECK;
void leat_tls_context_free(leat_tls_context *c);

/* ---- One connection ---- */
typedef struct leat_tls leat_tls;
/* Shares c. name: the server's, which its certificate must have; NULL: this is the server. */
leat_status leat_tls_new(leat_tls_context *c, const char *name, leat_tls **out) LEAT_MUST_CHECK;
void leat_tls_free(leat_tls *t);

typedef enum leat_tls_state {
    LEAT_TLS_DONE,
    LEAT_TLS_READS,  /* call again when there is something to be read */
    LEAT_TLS_WRITES, /* call again when something can be written */
    LEAT_TLS_FAILED, /* leat_tls_error says why; the peer was told, if that could be sent */
} leat_tls_state;
/* Goes on with the handshake, without waiting. */
leat_tls_state leat_tls_handshake(leat_tls *t, int fd);
/* Why the handshake failed, or the first bytes after it could not be read; "" if nothing did. By
 * the thread that got the failure. */
const char *leat_tls_error(const leat_tls *t);

/* As recvmsg and as sendmsg with MSG_DONTWAIT, after the handshake. Calls of one may run at the
 * same time as calls of the other, and not at the same time as each other. errno is EBADMSG if what
 * the peer sent is no TLS. What has been given to leat_tls_send, and was not sent because of
 * EAGAIN, must be given again by the next call, in front; it may be given with more. */
ssize_t leat_tls_receive(leat_tls *t, int fd, const struct iovec *v, int n, int flags);
ssize_t leat_tls_send(leat_tls *t, int fd, const struct iovec *v, int n);

/* After so many records a connection changes the key that it writes with. Tests lower it. */
extern int64_t leat_tls_key_records;

#endif
