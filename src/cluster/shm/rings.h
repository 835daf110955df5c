/* rings.h -- a pair of rings as a stream of frames. */
#ifndef LEAT_CLUSTER_SHM_RINGS_H
#define LEAT_CLUSTER_SHM_RINGS_H

#include "cluster/shm/ring.h"
#include "cluster/stream/conn.h"

typedef struct leat_rings_stream {
    leat_stream base;
    leat_ring_pair rings;
    bool garbled; /* guarded by the connection's send_lock: the reader tells what cannot be */
} leat_rings_stream;
/* Takes both; nothing comes on the socket but its end. */
leat_stream *leat_rings_stream_new(leat_ring_pair rings, int socket);
leat_rings_stream *leat_rings_of(leat_conn *c); /* NULL: it has another stream */

bool leat_rings_any(void);              /* this process has such a stream */
bool leat_rings_has_news(leat_conn *c); /* bytes, chores or the end: for who has the reader role */
/* A thread waits and reads meanwhile (waiter.c): readers give their role up when there is nothing
 * to be read. */
bool leat_waiter_reads(void);

#endif
