/* acceptor.h -- accepts the connections at a listening Unix socket, in the watch's thread (conn.h).
 *
 * 1. Nothing waits there: connections whose handshake has not come are in a table (pending.h).
 * 2. Processes of other users are refused before anything of theirs is read.
 */
#ifndef LEAT_CLUSTER_STREAM_ACCEPTOR_H
#define LEAT_CLUSTER_STREAM_ACCEPTOR_H

#include <leat/status.h>
#include <stdbool.h>

typedef struct leat_acceptor leat_acceptor;
/* Bytes have come from a connection, or it has ended. True if the handshake is over: then the
 * callee has taken the socket. Must not wait. */
typedef bool (*leat_acceptor_fn)(void *arg, int socket);
/* Takes the listening socket, which does not block, even if it fails. what: the transport's name in
 * messages, a literal. */
leat_status leat_acceptor_new(int listening, const char *what, leat_acceptor_fn fn, void *arg,
                              leat_acceptor **out) LEAT_MUST_CHECK;
void leat_acceptor_free(leat_acceptor *a); /* a may be NULL. fn is not called any more. */

#endif
