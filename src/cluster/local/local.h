/* local.h -- calls between tasks of one process: request and reply are handed over as they are,
 * tensors by reference.
 *
 * 1. A call is one object, which caller and handler share. It ends once for its caller: when it is
 *    replied to or cancelled, when its deadline passes, or when its link is freed or its endpoint
 *    stopped, whichever comes first.
 * 2. Handlers and reply functions are jobs (jobs.h). They run in another thread, or in the thread
 *    that made the call or the reply, after leat_channel_call or leat_server_call_reply returned.
 * 3. A link has a reference to the endpoint that it leads to, and is dead once the endpoint was
 *    stopped.
 */
#ifndef LEAT_CLUSTER_LOCAL_H
#define LEAT_CLUSTER_LOCAL_H

#include <pthread.h>

#include "cluster/gone.h"
#include "cluster/local/jobs.h"
#include "cluster/transport_int.h"

typedef struct leat_local_endpoint {
    leat_endpoint base;
    leat_handler_fn handler;
    void *arg;
    int64_t max_message;
    int max_calls;
    uint32_t stopped; /* Atomic: 1 once links to the endpoint are dead. */
    /* Guarded by leat_local.lock: */
    unsigned long long number; /* Identifies the endpoint in its offer. */
    int refs;                  /* One for the listener, one for each link and each accepted call. */
    int calls;                 /* Calls that were accepted and not replied to. */
    int jobs;                  /* Jobs run_handler and run_gone that have not returned. */
    bool stopping;             /* No more calls are accepted. */
    struct leat_local_endpoint *next; /* In leat_local.endpoints. */
} leat_local_endpoint;

typedef struct leat_local_link {
    leat_link base;
    leat_local_endpoint *to;
    char *address, *peer;
    int calls; /* Calls whose reply function has not returned; guarded by leat_local.lock. */
} leat_local_link;

typedef struct leat_local_call {
    leat_call caller;
    leat_server_call server;
    leat_local_job handler_job, reply_job, gone_job;
    leat_local_link *link;   /* Valid until the reply function has returned. */
    leat_local_endpoint *to; /* A reference; NULL if the call was not accepted. */
    const char *method;
    leat_reply_fn fn;
    void *arg;
    int64_t started_ns, deadline_ns;
    leat_outgoing request, reply;
    leat_status status; /* The status that the reply function gets. */
    leat_gone gone;
    /* Guarded by leat_local.lock: */
    int refs;   /* One for run_reply, one until the handler's reply, one for run_gone. */
    bool ended; /* status and reply are set, and run_reply was submitted or is about to be. */
    struct leat_local_call *next, **at; /* In leat_local.calls until the call has ended. */
} leat_local_call;

/* The listeners and open calls of this process. */
typedef struct leat_local_process {
    pthread_once_t once;
    unsigned long long identity; /* A random number that identifies this process in offers. */
    /* Guards the fields below. No other lock is taken while it is held. */
    pthread_mutex_t lock;
    pthread_cond_t changed;       /* Signalled when calls or jobs of an endpoint or link change. */
    pthread_cond_t watch;         /* Wakes the watch. */
    unsigned long long listeners; /* Endpoints that were ever made. */
    leat_local_endpoint *endpoints; /* Endpoints that were not stopped. */
    leat_local_call *calls;         /* Calls that have not ended. */
} leat_local_process;
extern leat_local_process leat_local;
void leat_local_init(void); /* Called before a listener or link is made. */

/* ---- Calls (call.c) ---- */
/* Begins a call to e, with the lock not held: e accepts it, or its reply function gets an error. */
void leat_local_call_start(leat_local_call *k, leat_local_endpoint *e);
/* Runs the reply function of a call that has ended. The lock is not held. */
void leat_local_call_answer(leat_local_call *k);
/* An error that names the call's peer and method, and how long the call took. */
leat_status leat_local_failure(const leat_local_call *k, leat_code code, const char *what);
/* Ends all calls of link l, or all calls to endpoint e; the other argument is NULL. The lock is not
 * held. */
void leat_local_give_up_all(const leat_local_link *l, const leat_local_endpoint *e, leat_code code,
                            const char *what);
/* For the functions below the lock is held. */
void leat_local_endpoint_unref(leat_local_endpoint *e);
void leat_local_call_unref(leat_local_call *k);
/* Takes the call, which has ended for its caller, out of leat_local.calls. */
void leat_local_call_close(leat_local_call *k);
/* Ends a call with an error, and tells its handler that the caller is lost. Releases the lock. */
void leat_local_call_give_up(leat_local_call *k, leat_code code, const char *what);

/* ---- The watch (watch.c) ---- */
leat_status leat_local_watch_start(void) LEAT_MUST_CHECK;
void leat_local_watch_stop(void); /* When all jobs are done. */
/* A call with this deadline begins; 0: it has none. The lock is held. */
void leat_local_watch_deadline(int64_t deadline_ns);
/* Runs a job for which no other thread can be started. The lock is not held. */
void leat_local_watch_job(leat_local_job *j);

/* ---- Listeners (listener.c) ---- */
leat_status leat_local_listen(const char *address, const leat_listen_options *options,
                              leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                              leat_endpoint **out) LEAT_MUST_CHECK;
void leat_local_stop(leat_endpoint *base, int64_t deadline_ns);
/* The endpoint accepts the call, or an error says why it does not. The lock is held. */
leat_status leat_local_accept(leat_local_call *k, leat_local_endpoint *e) LEAT_MUST_CHECK;

#endif
