/* service_int.h -- what the files of MasterService share: service.c opens, extends and closes
 * sessions of clients, service_idle.c closes those that their clients left behind, service_run.c
 * runs steps, service_partial.c has partial runs and callables, service_hold.c holds tasks. */
#ifndef LEAT_CLUSTER_SERVICE_INT_H
#define LEAT_CLUSTER_SERVICE_INT_H

#include <pthread.h>

#include "cluster/messages/messages.h"
#include "cluster/service.h"
#include "cluster/usage.h"
#include "core/map.h"

struct leat_service {
    leat_worker *worker;
    leat_peers *peers;
    int max_sessions;     /* 0: the default */
    atomic_int port;      /* The port that clients connect to; 0 until it is known. */
    pthread_mutex_t lock; /* Guards clients and opening; taken before a leat_usage's lock. */
    leat_map clients;     /* handle -> leat_client */
    int opening;          /* CreateSession calls that will add a client, or fail. */
    int64_t used_ns;      /* When a client made its last call (CLOCK_MONOTONIC); guarded by lock. */
    leat_cancellation *stop; /* Cancelled when the server stops: ends the wait of those calls. */
    atomic_bool stopped;     /* The sessions are closed because the server stops. */
};

typedef struct leat_client_hold leat_client_hold;
/* A session of a client. */
typedef struct leat_client {
    atomic_int refs;
    leat_usage usage;
    char handle[24];
    leat_graph *graph;
    leat_session *session; /* NULL once closed */
    int64_t operation_ms;  /* the limit of steps whose options have none; 0: no limit */
    /* Held for reading by calls that use the session, for writing to close it. */
    pthread_rwlock_t use;
    pthread_mutex_t lock; /* guards what follows, and the names in graph */
    int64_t version;      /* of the graph */
    leat_map partials;    /* handle -> leat_client_partial */
    leat_map callables;   /* number -> leat_callable */
    int64_t next_callable, next_partial;
    leat_client_hold *hold; /* a call of Hold that waits; NULL: none */
} leat_client;

/* The feeds, fetches and targets of a run, by names that belong to the request. */
typedef struct leat_run_names {
    char *const *feeds, *const *fetches, *const *targets;
    int n_feeds, n_fetches, n_targets;
    leat_tensor *const *fed; /* one for each feed; NULL before a run */
    leat_out *outs;          /* feeds, then fetches, then targets; set by leat_run_names_resolve */
} leat_run_names;
void leat_run_names_release(leat_run_names *a);
/* Makes outs; NOT_FOUND, in TensorFlow's words, for a name that the graph does not have. */
leat_status leat_run_names_resolve(leat_client *c, leat_run_names *a) LEAT_MUST_CHECK;

/* The client of a handle, for call a: the client counts as used until leat_client_done. ABORTED, in
 * TensorFlow's words, if there is none. */
leat_status leat_service_find(leat_service *s, leat_server_call *a, const char *handle,
                              leat_client **out) LEAT_MUST_CHECK;
void leat_client_done(leat_client *c); /* c may be NULL. */
/* Ends the steps under way, then closes the session. The client is no longer in the service's
 * table; takes the table's reference. */
void leat_client_close(leat_client *c);
/* service_idle.c: lets one more client be opened; s->opening has counted it then. At the limit, the
 * session that was used longest ago is closed if its client's connection is closed.
 * RESOURCE_EXHAUSTED if there is none. */
leat_status leat_service_admit(leat_service *s) LEAT_MUST_CHECK;
/* Lets the caller use c->session until leat_client_leave. CANCELLED once the session is closed. */
leat_status leat_client_enter(leat_client *c) LEAT_MUST_CHECK;
void leat_client_leave(leat_client *c);
/* Takes the status of a run. UNAVAILABLE instead of CANCELLED if the server stops, which has closed
 * the session: the client may try again elsewhere, or when the server is back. */
leat_status leat_service_run_error(const leat_service *s, leat_status status) LEAT_MUST_CHECK;
/* A call of RunStep or RunCallable. */
typedef struct leat_step_call {
    leat_client *client;
    leat_server_call *call;
    const Leat__RunOptions *options; /* NULL: none */
    leat_cancellation *cancellation; /* lives until the reply was sent */
} leat_step_call;
/* Makes the cancellation, which is cancelled when the call's client is lost. To be released after
 * the reply. */
leat_step_call leat_step_call_of(leat_server_call *a);
void leat_step_call_release(leat_step_call *k);
/* Runs a step. Gives fetched[i]; adds the RunMetadata, if the options want one, to *metadata. */
leat_status leat_client_run(leat_step_call *k, const leat_run_names *a, leat_tensor **fetched,
                            leat_strbuf *metadata) LEAT_MUST_CHECK;

void leat_service_run_step(leat_service *s, leat_server_call *a, const leat_incoming *in);
void leat_service_partial_setup(leat_service *s, leat_server_call *a, const leat_incoming *in);
leat_status leat_client_partial_run(leat_step_call *k, const char *handle, const leat_run_names *a,
                                    leat_tensor **fetched) LEAT_MUST_CHECK;
void leat_client_partials_free(leat_client *c);
void leat_service_make_callable(leat_service *s, leat_server_call *a, const leat_incoming *in);
void leat_service_run_callable(leat_service *s, leat_server_call *a, const leat_incoming *in);
void leat_service_release_callable(leat_service *s, leat_server_call *a, const leat_incoming *in);
void leat_client_callables_free(leat_client *c);
void leat_service_hold(leat_service *s, leat_server_call *a, const leat_incoming *in);
void leat_client_hold_free(leat_client *c);

#endif
