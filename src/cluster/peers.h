/* peers.h -- the processes of the cluster as this one reaches them: one for each address, which
 * serves all tasks that the cluster has there.
 *
 * The first call to a process requests its status, at the same time: another one of Leat's offers
 * the transports that it listens on, and calls go by the best of them from then on. When that link
 * breaks, calls go by gRPC, and the status is requested again from time to time.
 */
#ifndef LEAT_CLUSTER_PEERS_H
#define LEAT_CLUSTER_PEERS_H

#include <stdatomic.h>

#include "cluster/transport.h"
#include "proto/cluster.pb-c.h"

typedef struct leat_peers leat_peers;

typedef struct leat_task {
    char name[128]; /* "/job:ps/replica:0/task:0" */
    const char *job;
    int index;
} leat_task;
typedef struct leat_peer {
    leat_peers *all;
    const char *name, *address; /* name: that of its first task */
    leat_task **tasks;          /* that it serves */
    int n_tasks;
    leat_channel *channel;
    atomic_bool status_requested;
    _Atomic int64_t status_ns; /* CLOCK_MONOTONIC when it was requested last */
    /* What its status told. */
    atomic_bool is_leat;
    _Atomic int64_t clock_ahead_ns; /* of our clock, against its; 0 where it does not say */
} leat_peer;

/* Opens channels, which connect when they are used. Copies what it is given. */
leat_status leat_peers_new(const leat_cluster *c, const leat_security *security,
                           leat_peers **out) LEAT_MUST_CHECK;
void leat_peers_free(leat_peers *p);
int leat_peers_count(const leat_peers *p);
leat_peer *leat_peers_at(leat_peers *p, int i);
/* The one that serves a task, by the task's name or that of one of its devices; NULL if there is no
 * such task. */
leat_peer *leat_peers_find(leat_peers *p, const char *device);
/* The part of this task's status that is Leat's own; what it points to is borrowed from p. */
typedef struct leat_self {
    Leat__LeatPeer message;
    Leat__LeatOffer offers[LEAT_TRANSPORTS_MAX], *offer_list[LEAT_TRANSPORTS_MAX];
} leat_self;
void leat_peers_self(leat_peers *p, leat_self *self);
/* By which transports this task can be reached; to be filled in before anybody can call it. */
leat_offers *leat_peers_offers(leat_peers *p);
/* A set of bits: by which transports peers may be reached; all, until this is called. Before the
 * first call. */
void leat_peers_use_transports(leat_peers *p, uint32_t mask);
/* Takes note of a task's status (NULL: it is not Leat's), which was made when our clock was at
 * wall_ns (0: not known), and opens the best link that it offers; may wait for seconds if a task of
 * this machine hangs. */
void leat_peer_use_status(leat_peer *p, const Leat__LeatPeer *said, int64_t wall_ns);
/* As leat_channel_call. */
void leat_peer_call(leat_peer *p, const char *method, leat_outgoing *request,
                    const leat_call_options *options, leat_reply_fn fn, void *arg,
                    leat_call **call_out);

#endif
