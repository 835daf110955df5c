/* shm.h -- calls between two tasks of one machine through shared memory, beside gRPC.
 *
 * A task learns by GetStatus what another one's door is called (a leat_shm_name) and that it is on
 * the same machine; it knocks with the secret and hands over memory with two rings. The socket
 * stays open: its end tells that the other died.
 */
#ifndef LEAT_CLUSTER_SHM_H
#define LEAT_CLUSTER_SHM_H

#include "cluster/transport.h"
#include "core/threadpool.h"

typedef struct leat_shm_name {
    char host[96];   /* the machine, its boot, and the network that the socket's name lives in */
    char socket[48]; /* of an abstract Unix socket, without its leading NUL */
    uint64_t secret;
} leat_shm_name;

/* What host is in this process; "" if shared memory cannot be used here. */
const char *leat_shm_host(void);

typedef struct leat_shm_listener leat_shm_listener;
/* Calls are handled as those of leat_listen, on the thread that read them. A handler that is going
 * to block should say so first: leat_asked_leave. name_out: to be told to others; it is
 * there before anybody can come in. */
leat_status leat_shm_listen(leat_handler_fn handler, void *arg, const leat_listen_options *options,
                            leat_shm_name *name_out, leat_shm_listener **out) LEAT_MUST_CHECK;
/* As leat_listener_stop. */
void leat_shm_stop(leat_shm_listener *l, int64_t deadline_ns);

/* Lets the calls of any channel to that task go by shared memory from now on, for as long as the
 * connection lives; then, and if this fails, they go their old way. May wait for some seconds if
 * the other one hangs. May be called again: nothing is done unless the task was started anew. */
leat_status leat_channel_use_shm(leat_channel *c, const leat_shm_name *name, const char *address,
                                 const char *peer) LEAT_MUST_CHECK;
/* A channel that goes this way alone; once the connection is lost all its calls fail. peer and
 * address are for messages. */
leat_status leat_channel_open_shm(const leat_shm_name *name, const char *address, const char *peer,
                                  leat_channel **out) LEAT_MUST_CHECK;
bool leat_channel_shm_lives(leat_channel *c);
bool leat_channel_shm_leads_to(leat_channel *c, const leat_shm_name *name); /* and lives */

/* As leat_pool_wait, but reads what comes from other tasks meanwhile and works on it: a handler or
 * a reply function may run in this thread. p NULL: there will be no work here. */
int leat_shm_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);

#endif
