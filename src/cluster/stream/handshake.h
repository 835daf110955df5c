/* handshake.h -- how the two ends of a stream find and recognise each other, for the transports
 * whose connections begin at a socket (socket/ and shm/).
 *
 * A listening task's offer has the id of its machine, the name of a Unix socket, a port and a
 * secret (leat_stream_name). Peers get the offer by GetStatus, which only peers with the cluster's
 * token may call. A peer connects and sends a leat_handshake with the secret. If that is right, the
 * task replies with the byte LEAT_ACCEPTED, and frames follow; else the task closes the connection.
 */
#ifndef LEAT_CLUSTER_STREAM_HANDSHAKE_H
#define LEAT_CLUSTER_STREAM_HANDSHAKE_H

#include <leat/status.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/strbuf.h"

enum { LEAT_SECRET_BYTES = 32 };
typedef struct leat_stream_name {
    char host[96]; /* The task's leat_machine_id; "?": unknown. */
    /* The name of an abstract Unix socket, without its leading NUL; "-": there is none. */
    char local[48];
    int port; /* The TCP port at the host of the task's address; 0: there is none. */
    uint8_t secret[LEAT_SECRET_BYTES];
} leat_stream_name;
/* Makes a name of this machine with a new secret, without sockets. */
leat_status leat_stream_name_init(leat_stream_name *n) LEAT_MUST_CHECK;
/* Write the name as the text of an offer, and read it. INVALID_ARGUMENT: the text is not one; the
 * message says that it is an offer of `what`. */
void leat_stream_name_write(const leat_stream_name *n, leat_strbuf *out);
leat_status leat_stream_name_read(const leat_strbuf *offer, const char *what,
                                  leat_stream_name *out) LEAT_MUST_CHECK;
/* Whether the task that has this name is on this machine and has a Unix socket. */
bool leat_stream_name_is_local(const leat_stream_name *n);

/* The first bytes that the connecting side sends. The version grows with each change of frames,
 * rings or handshakes. */
enum { LEAT_HANDSHAKE_VERSION = 1, LEAT_ACCEPTED = 'y' };
typedef struct leat_handshake {
    char transport[8]; /* LEAT_HANDSHAKE_SOCKET or LEAT_HANDSHAKE_SHM, without the NUL. */
    uint32_t version;  /* Differs, too, if the two sides have different byte orders. */
    uint32_t frame;    /* sizeof(leat_frame) */
    uint8_t secret[LEAT_SECRET_BYTES];
} leat_handshake;
#define LEAT_HANDSHAKE_SOCKET "leatsock"
#define LEAT_HANDSHAKE_SHM "leat-shm"
void leat_handshake_init(leat_handshake *h, const char *transport, const uint8_t *secret);
/* Takes the same time for all wrong secrets, so that none can be guessed byte by byte. */
bool leat_handshake_right(const leat_handshake *h, const char *transport, const uint8_t *secret);

/* ---- Unix sockets with abstract names ---- */
/* Writes the address of n->local. Gives the size of the address. */
socklen_t leat_unix_address(const leat_stream_name *n, struct sockaddr_un *out);
/* Gives a listening socket that does not block, and sets n->local to its new name, which begins
 * with prefix. -1: errno says why there is none. */
int leat_unix_listen(const char *prefix, leat_stream_name *n);
/* The process at the other end of a connected socket, and whether its user is this process's or
 * root. */
typedef struct leat_unix_peer {
    int pid;
    bool same_user;
} leat_unix_peer;
leat_unix_peer leat_unix_peer_of(int fd);

#endif
