/* master.h -- a session over several tasks, driven from this task. */
#ifndef LEAT_CLUSTER_MASTER_H
#define LEAT_CLUSTER_MASTER_H

#include <leat/session.h>

#include "cluster/worker.h"

typedef struct leat_master_options {
    const char *const *filters; /* Device filters; without any, the session uses all tasks. */
    int n_filters;
    /* The session uses at most counts[i].n devices of kind counts[i].type of each task; -1 is no
     * limit. */
    const leat_device_count *counts;
    int n_counts;
    const char *const *known; /* The names of the session's devices; without any, all devices. */
    int n_known;
    bool isolate;                    /* The session has variables of its own. */
    int64_t open_ms;                 /* How long tasks may take to reply; 0: two minutes. */
    leat_cancellation *cancellation; /* Ends the wait for the replies; may be NULL. */
    const char *handle;              /* The name of the session on all tasks. */
} leat_master_options;

/* Returns when all tasks have replied. Borrows g, w and peers. */
leat_status leat_master_open(leat_graph *g, const leat_session_options *o,
                             const leat_master_options *m, leat_worker *w, leat_peers *peers,
                             leat_session **out) LEAT_MUST_CHECK;
/* Gives a reference to the other tasks of a session (m->handle) that another task's master has
 * opened on this task. Functions that nodes of this task call may have nodes on those tasks.
 * m->known has the session's devices. If m->known is empty, because a TensorFlow master does not
 * send the list, the devices of all tasks that reply within ten seconds are used. Borrows w and
 * peers. */
leat_status leat_master_join(const leat_master_options *m, leat_worker *w, leat_peers *peers,
                             leat_far **out) LEAT_MUST_CHECK;
/* Returns the number of devices of all tasks of a session that leat_master_open made. The first
 * *n_own_out of them are this task's. */
int leat_master_devices(const leat_far *f, const Leat__DeviceAttributes *const **out,
                        int *n_own_out);

#endif
