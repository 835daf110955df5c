/* worker_int.h -- a worker from the inside: worker_session.c keeps sessions, worker.c
 * graphs, worker_run.c runs them. */
#ifndef LEAT_CLUSTER_WORKER_INT_H
#define LEAT_CLUSTER_WORKER_INT_H

#include <pthread.h>

#include "cluster/worker.h"
#include "core/map.h"

struct leat_worker_session {
    atomic_int refs;
    char *handle;
    leat_device **devices; /* the worker's, as this session has them */
    int n_devices;
    struct leat_registered *graphs; /* linked; guarded by the worker's lock */
    char **known;                   /* devices of the session on all tasks, as its master told */
    int n_known;
    pthread_mutex_t far_lock; /* guards what follows, and is held while the other tasks are asked */
    leat_far *far;            /* the other tasks; NULL until a graph calls functions */
    bool joined;              /* far is closed with this session, and not by the master here */
};

/* A graph that a master registered. */
typedef struct leat_registered {
    atomic_int refs;
    char handle[24];
    leat_worker_session *session; /* a reference */
    leat_plan *plan;
    struct leat_registered *next;
} leat_registered;

struct leat_worker {
    char task[128]; /* that the server was started for */
    leat_devices devices;
    leat_peers *peers;
    leat_exchanges *exchanges;
    pthread_mutex_t lock; /* guards what follows */
    leat_map sessions;    /* handle -> leat_worker_session */
    leat_map graphs;      /* handle -> leat_registered */
    uint64_t next_handle;
    struct leat_running *running; /* steps, linked */
    int runs;                     /* calls of RunGraph that use the worker, if only to end */
    pthread_cond_t no_runs;       /* `runs` has become 0 */
    bool stopping;
};

void leat_registered_unref(leat_registered *r);
/* ABORTED, in TensorFlow's words, if it is not there: the task has started anew. Shares. */
leat_status leat_worker_find_session(leat_worker *w, const char *handle,
                                     leat_worker_session **out) LEAT_MUST_CHECK;
void leat_worker_session_unref(leat_worker_session *s);
/* The other tasks of the session; found out on the first call, which waits for them. Borrowed from
 * the session. */
leat_status leat_worker_session_far(leat_worker *w, leat_worker_session *s,
                                    leat_far **out) LEAT_MUST_CHECK;
leat_status leat_worker_find_graph(leat_worker *w, const char *handle,
                                   leat_registered **out) LEAT_MUST_CHECK;
void leat_worker_run_graph(leat_worker *w, leat_server_call *a, const leat_incoming *in);
/* Returns when no call of RunGraph uses the worker any more. A listener that has stopped has waited
 * for replies only, and a run frees what it holds after its reply. */
void leat_worker_await_runs(leat_worker *w);

#endif
