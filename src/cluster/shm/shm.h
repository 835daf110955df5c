/* shm.h -- calls between two tasks of one machine through shared memory. A descriptor of memory
 * with two rings is sent with the handshake (cluster/stream/handshake.h). The socket of the
 * handshake stays open: when one process dies, the other one notices its end. */
#ifndef LEAT_CLUSTER_SHM_H
#define LEAT_CLUSTER_SHM_H

#include "cluster/transport_int.h"

/* The function wait of leat_transport_shm (waiter.c). */
int leat_shm_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
extern const leat_transport leat_transport_shm;

#endif
