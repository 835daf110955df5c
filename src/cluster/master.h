/* master.h -- a session over several tasks, driven from this one. */
#ifndef LEAT_CLUSTER_MASTER_H
#define LEAT_CLUSTER_MASTER_H

#include <leat/session.h>

#include "cluster/worker.h"

typedef struct leat_master_options {
    const char *const *filters; /* device filters; none: all tasks */
    int n_filters;
    /* The session uses no more devices of these kinds of any task than this; -1 is no limit. */
    const leat_device_count *counts;
    int n_counts;
    const char *const *known; /* the devices of the session; none: all */
    int n_known;
    bool isolate;                    /* variables of its own */
    int64_t open_ms;                 /* how long tasks may take to answer; 0: two minutes */
    leat_cancellation *cancellation; /* ends that wait; may be NULL */
    const char *handle;              /* names the session on all tasks */
} leat_master_options;

/* Waits until all tasks have answered. Borrows g, w and peers. */
leat_status leat_master_open(leat_graph *g, const leat_session_options *o,
                             const leat_master_options *m, leat_worker *w, leat_peers *peers,
                             leat_session **out) LEAT_MUST_CHECK;
/* The other tasks of a session that another task's master has opened here (m->handle), for
 * functions over several tasks that nodes of this task call. Its devices are m->known; if its
 * master, one of TensorFlow's, did not tell them, all that answer within seconds. Borrows w and
 * peers. Gives a reference. */
leat_status leat_master_join(const leat_master_options *m, leat_worker *w, leat_peers *peers,
                             leat_far **out) LEAT_MUST_CHECK;
/* The devices of all tasks of a session that leat_master_open made: this task's come first. */
int leat_master_devices(const leat_far *f, const Leat__DeviceAttributes *const **out,
                        int *n_own_out);

#endif
