/* admit.h -- which masters may open sessions on this server: those that were started for the same
 * cluster. A master with other lists of tasks would initialise, or train, the model of a cluster
 * that it does not belong to. */
#ifndef LEAT_CLUSTER_ADMIT_H
#define LEAT_CLUSTER_ADMIT_H

#include "cluster/peers.h"

/* master: the request by which the master opens a session, with the cluster that its server was
 * started with. That cluster is another one if a task has
 * different addresses in both lists, or if each list has a task that the other one does not have;
 * one list may be a part of the other (Kubeflow's sparse clusters). The entry of a server in its
 * own list may name its address in another way (0.0.0.0): the address that this process has for
 * the master is then asked which server replies there. FAILED_PRECONDITION: another cluster, with
 * both lists. UNAVAILABLE: nobody replies at that address. A master that is admitted counts as
 * heard of. */
leat_status leat_peers_admit(leat_peers *p,
                             const Leat__CreateWorkerSessionRequest *master) LEAT_MUST_CHECK;

#endif
