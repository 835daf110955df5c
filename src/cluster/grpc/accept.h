/* accept.h -- keeps gRPC from accepting more connections than the process has descriptors for.
 *
 * Versions of gRPC before 1.54 never accept a connection again after one attempt that failed for
 * lack of descriptors (EMFILE): whoever can connect often enough would cut a task off. So when few
 * descriptors are left, the listening sockets drop the packets that open connections, by a filter,
 * until there are more. Peers that connect meanwhile try again by themselves (TCP's
 * retransmission). The sockets are known through gRPC's socket mutator (tuning.c).
 */
#ifndef LEAT_CLUSTER_GRPC_ACCEPT_H
#define LEAT_CLUSTER_GRPC_ACCEPT_H

#include <stdbool.h>

/* gRPC has made a socket that it will listen at. */
void leat_accept_socket(int fd);
/* gRPC listens now. Shortens the queue of connections that wait to be accepted, since these are
 * still accepted after the filter was set. */
void leat_accept_started(void);
/* gRPC has accepted a connection, with this descriptor. True: few descriptors are left, and the
 * sockets accept no more. */
bool leat_accept_accepted(int fd);
/* Whether the sockets accept no connections; if there are descriptors again, they accept from now
 * on. To be called now and then after leat_accept_accepted has given true. */
bool leat_accept_is_paused(void);

#endif
