/* done_peers.h -- which processes of the cluster are done, so that a server knows when it is not
 * needed any more, and what happens before a server ends.
 *
 * A server that is stopped calls Done on the Leat processes with tasks of other jobs. Rules:
 * 1. Done names the sender's task and incarnation, and counts if the task confirms it: the server
 *    at the task's address has that incarnation, and says that it is stopping. If nobody replies
 *    there any more, the incarnation has to be the one that was heard of last.
 * 2. A process is done until another incarnation of its server is heard of (peers.h).
 * 3. A process that has not replied for GONE_SECONDS counts as done, once another one is.
 * 4. Before a server ends because all are done, it asks them once more. One that replies and is not
 *    stopping was started again, or was cut off for a while: it is not done.
 * 5. The reply to Done comes when no session of this process holds the sender any more
 *    (leat_session_hold), or after the time that the sender waits: the chief saves meanwhile.
 * 6. A server with sessions of clients goes on: a client waits for a ps that was drained to come
 *    back, and makes a new session then.
 */
#ifndef LEAT_CLUSTER_DONE_PEERS_H
#define LEAT_CLUSTER_DONE_PEERS_H

#include "cluster/peers.h"

typedef struct leat_done_peers leat_done_peers;

/* For the server of this job and task; borrows peers and texts. */
leat_done_peers *leat_done_peers_new(leat_peers *peers, const char *job, const char *task);
void leat_done_peers_free(leat_done_peers *d); /* d may be NULL. */
/* The clients of this process's server. */
typedef struct leat_done_clients {
    void (*tell_ending)(void *arg); /* A peer has said that it is about to end. */
    bool (*any)(void *arg);         /* Rule 6. */
    void *arg;
} leat_done_clients;
/* To be set before the first call can arrive. */
void leat_done_peers_use_clients(leat_done_peers *d, const leat_done_clients *clients);
/* Handles a call of Done, in a thread of its own. */
void leat_done_peers_serve(leat_done_peers *d, leat_server_call *a, const leat_incoming *in);
/* Waits until all processes with tasks of other jobs are done, and logs which. False if
 * leat_done_peers_stop was called before. */
bool leat_done_peers_wait(leat_done_peers *d);
/* Ends leat_done_peers_wait, and the waits of rule 5. */
void leat_done_peers_stop(leat_done_peers *d);
/* Returns when all calls of leat_done_peers_serve were replied to. To be called after
 * leat_done_peers_stop. */
void leat_done_peers_finish(leat_done_peers *d);
/* Calls Done, and waits for the replies until the deadline. */
void leat_done_peers_say(leat_done_peers *d, int64_t deadline_ns);

#endif
