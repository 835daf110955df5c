/* shm.h -- calls between two tasks of one machine through shared memory.
 *
 * A task offers the name of a socket, a secret, and which machine it is on (leat_shm_name). A peer
 * on the same machine connects there, shows the secret and hands over memory with two rings. The
 * socket stays open: its end tells that the other one died.
 */
#ifndef LEAT_CLUSTER_SHM_H
#define LEAT_CLUSTER_SHM_H

#include "cluster/transport_int.h"

typedef struct leat_shm_name {
    char host[96];   /* leat_machine_id */
    char socket[48]; /* of an abstract Unix socket, without its leading NUL */
    uint64_t secret;
} leat_shm_name;

/* As it stands in an offer. INVALID_ARGUMENT if that is none. */
void leat_shm_name_write(const leat_shm_name *name, leat_strbuf *out);
leat_status leat_shm_name_read(const leat_strbuf *offer, leat_shm_name *out) LEAT_MUST_CHECK;

/* As leat_transport has it: waiter.c. */
int leat_shm_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
extern const leat_transport leat_transport_shm;

#endif
