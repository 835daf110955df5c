/* shm.h -- calls between two tasks of one machine through shared memory.
 *
 * A task's offer has the name of a Unix socket, a secret, and the id of its machine
 * (leat_shm_name). A peer on the same machine connects to the socket, and sends the secret and a
 * descriptor of memory with two rings. The socket stays open: when one process dies, the other one
 * notices its end.
 */
#ifndef LEAT_CLUSTER_SHM_H
#define LEAT_CLUSTER_SHM_H

#include "cluster/transport_int.h"

typedef struct leat_shm_name {
    char host[96];   /* The task's leat_machine_id. */
    char socket[48]; /* The name of an abstract Unix socket, without its leading NUL. */
    uint64_t secret;
} leat_shm_name;

/* Write the name as the text of an offer, and read it. INVALID_ARGUMENT: the text is not one. */
void leat_shm_name_write(const leat_shm_name *name, leat_strbuf *out);
leat_status leat_shm_name_read(const leat_strbuf *offer, leat_shm_name *out) LEAT_MUST_CHECK;

/* The function wait of leat_transport_shm (waiter.c). */
int leat_shm_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
extern const leat_transport leat_transport_shm;

#endif
