/* tls.h -- TLS on a TCP connection, set up by leat_security as in gRPC: TLS 1.2 or newer; a client
 * checks the server's certificate and the name in it; a server checks the client's certificate if
 * the TLS is mutual.
 */
#ifndef LEAT_CLUSTER_SOCKET_TLS_H
#define LEAT_CLUSTER_SOCKET_TLS_H

#include <leat/cluster.h>
#include <sys/types.h>
#include <sys/uio.h>

/* ---- Contexts: certificates and authorities ---- */
/* Shared by the connections of one listener, or by those to one peer. */
typedef struct ssl_ctx_st leat_tls_context;
/* Whether s asks for TLS. s may be NULL. */
bool leat_tls_wanted(const leat_security *s);
/* Read the files that s names. Errors name the file. NOT_FOUND: OpenSSL cannot be loaded. */
leat_status leat_tls_server(const leat_security *s, leat_tls_context **out) LEAT_MUST_CHECK;
leat_status leat_tls_client(const leat_security *s, leat_tls_context **out) LEAT_MUST_CHECK;
void leat_tls_context_free(leat_tls_context *c);
/* Checks the task's own certificate and key, which are both given. INVALID_ARGUMENT: they do not
 * fit, or the certificate has expired or is not valid yet. NULL as well if OpenSSL cannot be
 * loaded. */
leat_status leat_tls_check_own(const leat_security *s) LEAT_MUST_CHECK;

/* ---- One connection ---- */
typedef struct leat_tls leat_tls;
/* Shares c. A client gives the name that the server's certificate must have, a server NULL. */
leat_status leat_tls_new(leat_tls_context *c, const char *name, leat_tls **out) LEAT_MUST_CHECK;
void leat_tls_free(leat_tls *t);

typedef enum leat_tls_state {
    LEAT_TLS_DONE,
    LEAT_TLS_READS,  /* Call leat_tls_handshake again when fd is readable. */
    LEAT_TLS_WRITES, /* Call leat_tls_handshake again when fd is writable. */
    LEAT_TLS_FAILED, /* leat_tls_error says why. TLS's alert was sent to the peer, if possible. */
} leat_tls_state;
/* Goes on with the handshake, without waiting. */
leat_tls_state leat_tls_handshake(leat_tls *t, int fd);
/* Says why the handshake or leat_tls_receive failed; "" if neither has. Must be called by the
 * thread that made the call that failed. */
const char *leat_tls_error(const leat_tls *t);

/* As recvmsg, and as sendmsg with MSG_DONTWAIT and MSG_NOSIGNAL; to be used after the handshake.
 * One thread may receive while another one sends, but two threads must not both receive or both
 * send. errno is EBADMSG if the peer's bytes are not TLS. When leat_tls_send fails with EAGAIN, the
 * bytes of the next call must begin with the same bytes, after which further ones may follow. */
ssize_t leat_tls_receive(leat_tls *t, int fd, const struct iovec *v, int n, int flags);
ssize_t leat_tls_send(leat_tls *t, int fd, const struct iovec *v, int n);

/* After so many records a TLS 1.3 connection changes the key that it encrypts with. Tests lower the
 * number. */
extern int64_t leat_tls_key_records;

#endif
