/* rings.h -- a pair of rings as a stream of frames. */
#ifndef LEAT_CLUSTER_SHM_RINGS_H
#define LEAT_CLUSTER_SHM_RINGS_H

#include "cluster/shm/ring.h"
#include "cluster/stream/conn.h"

typedef struct leat_rings_stream {
    leat_stream base;
    leat_ring_pair rings;
} leat_rings_stream;
/* Takes rings and socket. The socket carries no bytes; its end is the connection's (end_fd). */
leat_stream *leat_rings_stream_new(leat_ring_pair rings, int socket);
leat_rings_stream *leat_rings_of(leat_conn *c); /* NULL: c's stream is not a pair of rings. */

bool leat_rings_any(void); /* Whether this process has a stream of rings. */
/* For the thread that has c's reader role: whether there are bytes to read, or chores to do, or the
 * connection has ended. */
bool leat_rings_has_news(leat_conn *c);
/* Whether threads that wait for an event read the connections (waiter.c). If so, a connection's own
 * reader gives the reader role up when there is nothing to read. */
bool leat_waiter_reads(void);

#endif
