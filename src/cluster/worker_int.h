/* worker_int.h -- a worker from the inside: worker_session.c keeps sessions, worker_idle.c closes
 * those that their masters left behind, worker.c keeps registered graphs, worker_run.c runs their
 * steps. */
#ifndef LEAT_CLUSTER_WORKER_INT_H
#define LEAT_CLUSTER_WORKER_INT_H

#include <pthread.h>

#include "cluster/usage.h"
#include "cluster/worker.h"
#include "core/map.h"

struct leat_worker_session {
    atomic_int refs;
    char *handle;
    bool own;
    char *master_task;
    uint64_t master_incarnation;
    leat_usage usage;
    int64_t asked_ns;      /* When the master was last asked for its sessions; for worker_idle.c. */
    uint64_t number;       /* Different for all sessions of the process; marks their exchanges. */
    bool closed;           /* Guarded by the worker's lock. */
    leat_device **devices; /* The worker's devices, with the resources that this session sees. */
    int n_devices;
    struct leat_registered *graphs; /* Linked by next; guarded by the worker's lock. */
    char **known; /* Names of the session's devices on all tasks, from its master. */
    int n_known;
    pthread_mutex_t far_lock; /* Guards the following; held during leat_master_join. */
    bool far_closed;          /* The session is closed: no other task may be joined. */
    leat_far *far;            /* The other tasks; NULL until a graph calls functions. */
    /* far is from leat_master_join, so closing this session closes it. Otherwise the master in this
     * process closes it. */
    bool joined;
};

/* A graph that a master registered. */
typedef struct leat_registered {
    atomic_int refs;
    char handle[24];
    leat_worker_session *session; /* A reference. */
    leat_plan *plan;
    struct leat_registered *next; /* In session->graphs. */
} leat_registered;

struct leat_worker {
    char task[128]; /* The task that the server was started for. */
    leat_devices devices;
    leat_peers *peers;
    leat_exchanges *exchanges;
    int max_sessions, max_graphs;
    pthread_mutex_t lock; /* Guards what follows. */
    leat_map sessions;    /* handle -> leat_worker_session */
    int n_far;            /* The number of sessions of masters elsewhere. */
    leat_map graphs;      /* handle -> leat_registered */
    uint64_t next_handle;
    struct leat_running *running; /* Steps under way, linked by next and prev. */
    int runs;                     /* RunGraph calls that may still use the worker. */
    pthread_cond_t no_runs;       /* Signalled when runs becomes 0. */
    bool stopping;
};

void leat_registered_unref(leat_registered *r);
/* Shares the session. ABORTED, with TensorFlow's message, if there is none: then this process was
 * probably restarted. leat_worker_find_graph below does the same for graphs. */
leat_status leat_worker_find_session(leat_worker *w, const char *handle,
                                     leat_worker_session **out) LEAT_MUST_CHECK;
void leat_worker_session_unref(leat_worker_session *s);
/* Closes s unless it was closed before. With idle_ns > 0 only if s had no call for as long. True if
 * it was closed now. */
bool leat_worker_session_end(leat_worker *w, leat_worker_session *s, int64_t idle_ns);
/* *out: the other tasks of the session, borrowed from it. The first call gets their devices, and
 * waits for their replies. */
leat_status leat_worker_session_far(leat_worker *w, leat_worker_session *s,
                                    leat_far **out) LEAT_MUST_CHECK;
leat_status leat_worker_find_graph(leat_worker *w, const char *handle,
                                   leat_registered **out) LEAT_MUST_CHECK;
void leat_worker_run_graph(leat_worker *w, leat_server_call *a, const leat_incoming *in);
/* Returns when no RunGraph call uses the worker any more. It is not enough that the listener has
 * stopped, because the listener waits only for replies, and RunGraph frees its step after its
 * reply. */
void leat_worker_await_runs(leat_worker *w);

#endif
