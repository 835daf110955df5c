/* peers.h -- the processes of the cluster and the channels to them. A peer is the process at one
 * address; it serves all tasks that the cluster has at that address.
 *
 * Together with the first call to a peer, its status is requested (GetStatus). The status of a Leat
 * process has offers of the transports that it listens on; once it has arrived, calls use the best
 * of these transports. When that link breaks, calls use gRPC, and every few seconds the status is
 * requested again.
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
    const char *name, *address; /* name is that of the peer's first task. */
    leat_task **tasks;          /* The tasks that the peer serves. */
    int n_tasks;
    leat_channel *channel;
    atomic_bool status_requested;
    _Atomic int64_t status_ns; /* When the status was last requested (CLOCK_MONOTONIC); 0: never. */
    atomic_bool is_leat;       /* The peer's status has the part that only Leat sends. */
    /* This process's CLOCK_REALTIME minus the peer's; 0 while it is not known. */
    _Atomic int64_t clock_ahead_ns;
    /* The incarnation of the peer's server: the one that was heard of last, by its status or when
     * it opened a session here. 0: none, or a server that is not Leat's. */
    _Atomic uint64_t incarnation;
    /* The incarnation that has said that it is about to end, and waits for the holds; 0: none. */
    _Atomic uint64_t ending;
    /* The number of sessions of this process that want to run steps before the peer ends. */
    atomic_int holds;
} leat_peer;

/* Opens channels, which connect when they are first used. Copies c. Borrows security, which must
 * outlive the leat_peers. */
leat_status leat_peers_new(const leat_cluster *c, const leat_security *security,
                           leat_peers **out) LEAT_MUST_CHECK;
void leat_peers_free(leat_peers *p);
int leat_peers_count(const leat_peers *p);
leat_peer *leat_peers_at(leat_peers *p, int i);
/* Returns the peer that serves a task, NULL if the cluster has no such task. device is the name of
 * the task or of one of its devices. */
leat_peer *leat_peers_find(leat_peers *p, const char *device);
/* The part of this process's status that only Leat sends. Texts and bytes are borrowed from the
 * leat_peers. */
typedef struct leat_self {
    Leat__LeatPeer message;
    Leat__LeatOffer offers[LEAT_TRANSPORTS_MAX], *offer_list[LEAT_TRANSPORTS_MAX];
} leat_self;
void leat_peers_self(leat_peers *p, leat_self *self);
/* Sets the task that this process's server was started for, and the server's incarnation, which is
 * that of its first device. To be called before the first call can arrive. */
void leat_peers_set_task(leat_peers *p, const char *task, uint64_t incarnation);
/* The process's own peer; NULL before leat_peers_set_task. */
leat_peer *leat_peers_own(leat_peers *p);
uint64_t leat_peers_incarnation(const leat_peers *p);
const leat_cluster *leat_peers_cluster(const leat_peers *p);
/* The cluster as a message, borrowed from p. */
Leat__ClusterDef *leat_peers_message(const leat_peers *p);
/* From now on this process's status says that it is about to end. */
void leat_peers_set_stopping(leat_peers *p);
/* The offers of the transports that this process listens on. Borrowed from p. leat_listen fills
 * them in before the first call can arrive. */
leat_offers *leat_peers_offers(leat_peers *p);
/* Sets which transports calls to peers may use: bit i of mask stands for transport i. Until this is
 * called, all may be used. To be called before the first leat_peer_call. */
void leat_peers_use_transports(leat_peers *p, uint32_t mask);
/* Records the status of a peer and opens the best link that it offers. said is NULL for a process
 * that is not Leat's. wall_ns is this process's CLOCK_REALTIME when the peer made the status, 0 if
 * that is not known. May wait for seconds if a process on this machine does not react. */
void leat_peer_use_status(leat_peer *p, const Leat__LeatPeer *said, int64_t wall_ns);
/* Opens another channel to the peer's address. Its first call connects at once, whereas gRPC waits
 * for some seconds before it connects again on a channel where that has failed. */
leat_status leat_peer_connect(const leat_peer *p, leat_channel **out) LEAT_MUST_CHECK;
/* Asks the server at the peer's address, by a new connection, which one it is. *incarnation_out is
 * 0 if it is not Leat's. The peer's incarnation is then this one. */
leat_status leat_peer_ask(leat_peer *p, int64_t deadline_ns, uint64_t *incarnation_out,
                          bool *stopping_out) LEAT_MUST_CHECK;
/* The same as leat_channel_call, and requests the peer's status where it is needed. */
void leat_peer_call(leat_peer *p, const char *method, leat_outgoing *request,
                    const leat_call_options *options, leat_reply_fn fn, void *arg,
                    leat_call **call_out);

#endif
