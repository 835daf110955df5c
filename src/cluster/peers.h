/* peers.h -- the tasks of the cluster as this task reaches them.
 *
 * The first call to a task asks it, at the same time, who it is: another Leat task on this machine
 * is then reached through shared memory, any other through gRPC.
 */
#ifndef LEAT_CLUSTER_PEERS_H
#define LEAT_CLUSTER_PEERS_H

#include <stdatomic.h>

#include "cluster/shm.h"
#include "cluster/transport.h"
#include "proto/cluster.pb-c.h"

typedef struct leat_peers leat_peers;

typedef struct leat_peer {
    leat_peers *all;
    char name[128]; /* "/job:ps/replica:0/task:0" */
    const char *job, *address;
    int task;
    leat_channel *channel; /* on gRPC */
    atomic_bool asked;     /* who it is */
    /* What it said. */
    atomic_bool is_leat;
    _Atomic int64_t clock_ahead_ns; /* of our clock, against its; 0 where it does not say */
} leat_peer;

/* Opens channels, which connect when they are used. Copies what it is given. */
leat_status leat_peers_new(const leat_cluster *c, const leat_security *security,
                           leat_peers **out) LEAT_MUST_CHECK;
void leat_peers_free(leat_peers *p);
int leat_peers_count(const leat_peers *p);
leat_peer *leat_peers_at(leat_peers *p, int i);
/* By the beginning of a full device name; NULL if there is no such task. */
leat_peer *leat_peers_find(leat_peers *p, const char *device);
/* What this task says of itself; strings are borrowed. */
void leat_peers_self(leat_peers *p, Leat__LeatPeer *self);
/* Where others may knock; to be filled in before anybody can call this task. */
leat_shm_name *leat_peers_door(leat_peers *p);
/* A task said this of itself (NULL: it is none of ours), when our clock was at wall_ns (0: not
 * known). Opens the
 * fastest way to it; may wait for seconds if it hangs. */
void leat_peer_introduce(leat_peer *p, const Leat__LeatPeer *said, int64_t wall_ns);
/* As leat_channel_call, over the fastest way there is. */
void leat_peer_call(leat_peer *p, const char *method, leat_outgoing *request,
                    const leat_call_options *options, leat_reply_fn fn, void *arg,
                    leat_call **call_out);

#endif
