/* service_int.h -- sessions of clients from the inside: service.c opens, extends and closes them,
 * service_run.c runs steps, service_partial.c runs them in several calls, and callables. */
#ifndef LEAT_CLUSTER_SERVICE_INT_H
#define LEAT_CLUSTER_SERVICE_INT_H

#include <pthread.h>

#include "cluster/service.h"
#include "cluster/tensor_wire.h"
#include "core/map.h"

/* A session of a client. */
typedef struct leat_client {
    atomic_int refs;
    char handle[24];
    leat_graph *graph;
    leat_session *session; /* NULL once closed */
    int64_t operation_ms;  /* of steps that set no time themselves; 0: none */
    pthread_rwlock_t use;  /* read: a call that uses the session; write: closing it */
    pthread_mutex_t lock;  /* guards what follows */
    int64_t version;       /* of the graph */
    leat_map partials;     /* handle -> leat_client_partial */
    leat_map callables;    /* number -> leat_callable */
    int64_t next_callable, next_partial;
} leat_client;

/* Names of tensors and nodes, as clients send them. */
typedef struct leat_names {
    char **v;
    int n, cap;
} leat_names;
leat_status leat_names_add(leat_names *names, const leat_wire_field *f) LEAT_MUST_CHECK;
void leat_names_release(leat_names *names);

/* What a run asks for: feeds with their tensors, fetches, targets. */
typedef struct leat_ask {
    leat_names feeds, fetches, targets;
    leat_tensor **fed; /* one a feed, or none at all */
    int cap_fed;
    leat_out *outs; /* resolved: feeds, then fetches, then targets */
} leat_ask;
void leat_ask_release(leat_ask *a);
/* Finds the nodes; NOT_FOUND and INVALID_ARGUMENT in TensorFlow's words. */
leat_status leat_ask_resolve(const leat_client *c, leat_ask *a) LEAT_MUST_CHECK;

/* The client of a handle; shares. ABORTED, in TensorFlow's words, if there is none. */
leat_status leat_service_find(leat_service *s, const char *handle,
                              leat_client **out) LEAT_MUST_CHECK;
void leat_client_unref(leat_client *c);
/* The session may be used until leat_client_leave; CANCELLED once it is closed. */
leat_status leat_client_enter(leat_client *c) LEAT_MUST_CHECK;
void leat_client_leave(leat_client *c);
typedef struct leat_step_call {
    leat_client *client;
    leat_asked *asked;
    Leat__RunOptions *options;
    leat_cancellation *cancellation; /* lives until the answer has been given */
    bool errors_in_body;
} leat_step_call;
leat_step_call leat_step_call_of(leat_asked *a); /* ended by */
void leat_step_call_release(leat_step_call *k);  /* after the answer */
/* Runs what was asked for. */
leat_status leat_client_run(leat_step_call *k, const leat_ask *a, leat_tensor **fetched,
                            leat_strbuf *metadata) LEAT_MUST_CHECK;

void leat_service_run_step(leat_service *s, leat_asked *a, const leat_incoming *in);
void leat_service_partial_setup(leat_service *s, leat_asked *a, const leat_incoming *in);
leat_status leat_client_partial_run(leat_client *c, const char *handle, const leat_ask *a,
                                    leat_tensor **fetched) LEAT_MUST_CHECK;
void leat_client_partials_free(leat_client *c);
void leat_service_make_callable(leat_service *s, leat_asked *a, const leat_incoming *in);
void leat_service_run_callable(leat_service *s, leat_asked *a, const leat_incoming *in);
void leat_service_release_callable(leat_service *s, leat_asked *a, const leat_incoming *in);
void leat_client_callables_free(leat_client *c);

#endif
