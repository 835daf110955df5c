/* worker.h -- TensorFlow's WorkerService in this process: the devices of its tasks, the sessions
 * that masters opened on them, the graphs that masters registered, and the steps that run those
 * graphs. */
#ifndef LEAT_CLUSTER_WORKER_H
#define LEAT_CLUSTER_WORKER_H

#include "cluster/connections.h"
#include "cluster/exchange.h"
#include "cluster/peers.h"
#include "proto/cluster.pb-c.h"
#include "runtime/plan.h"

typedef struct leat_worker leat_worker;

/* The worker's devices are those of the given task, followed by those of all other tasks that the
 * cluster has at the same address. Borrows peers. */
leat_status leat_worker_new(const char *job, int task, const leat_server_options *o,
                            leat_peers *peers, leat_worker **out) LEAT_MUST_CHECK;
/* Fails all running steps with the error why, which is borrowed, and all later steps. */
void leat_worker_stop(leat_worker *w, leat_status why);
bool leat_worker_idle(leat_worker *w); /* True if no step is under way. */
void leat_worker_free(leat_worker *w);
const char *leat_worker_task(const leat_worker *w); /* "/job:ps/replica:0/task:0" */
/* The incarnation of the first device: another one each time the process is started. */
uint64_t leat_worker_incarnation(const leat_worker *w);
leat_device *const *leat_worker_devices(const leat_worker *w, int *n_out);
leat_exchanges *leat_worker_exchanges(leat_worker *w);
int leat_worker_graphs(leat_worker *w);   /* The number of graphs that are registered now. */
int leat_worker_sessions(leat_worker *w); /* The number of sessions of masters elsewhere. */
/* Clears a container of resources on all devices; NULL: all containers. */
void leat_worker_clear(leat_worker *w, const char *container);
/* Gives the message; free it with leat_proto_free. */
Leat__DeviceAttributes *leat_device_to_proto(const leat_device *d);

/* worker_session.c: a master's session on this task. */
typedef struct leat_worker_session leat_worker_session;
typedef struct leat_worker_session_options {
    bool isolate; /* The session has variables of its own. */
    bool own;     /* The master is in this process: only the master closes the session. */
    /* The master's task and the incarnation of its first device; "" and 0 if the master does not
     * send them, as TensorFlow 1's do. */
    const char *master_task;
    uint64_t master_incarnation;
    const char *peer; /* The master's address, from leat_server_call_peer; NULL: unknown. */
    /* The session's devices on all tasks. Empty if its master, a TensorFlow one, does not send
     * them. */
    Leat__DeviceAttributes *const *cluster;
    size_t n_cluster;
} leat_worker_session_options;
/* Sets the other tasks of the session, on which functions called by its graphs may have nodes.
 * Shares far. */
void leat_worker_session_use_far(leat_worker_session *s, leat_far *far);
/* Closes the sessions that the same task opened when it had another incarnation.
 * RESOURCE_EXHAUSTED beyond max_worker_sessions of leat_server_options. */
leat_status leat_worker_session_open(leat_worker *w, const char *handle,
                                     const leat_worker_session_options *o,
                                     leat_worker_session **out) LEAT_MUST_CHECK;
leat_device *const *leat_worker_session_devices(const leat_worker_session *s);
/* Deregisters the session's graphs. Steps that are under way continue. */
void leat_worker_session_close(leat_worker *w, const char *handle);

/* worker_idle.c: closes the sessions of masters that have gone: those that had no call for idle_ns,
 * whose masters' connections, to be looked for in `open`, are closed, and whose masters, if they
 * are known, do not reply to GetStatus with the same incarnation. Also closes the sessions that
 * Leat's masters reply to have closed: their DeleteWorkerSession was lost. May wait for seconds for
 * these replies; the cancellation ends the wait. */
void leat_worker_expire(leat_worker *w, const leat_connections *open, int64_t idle_ns,
                        leat_cancellation *cancellation);
/* worker_run.c: fails the RunGraph calls that are under way for longer than limit_ns. */
void leat_worker_end_old_runs(leat_worker *w, int64_t limit_ns);

/* Returns true if the method is one of WorkerService. The reply to the call is then sent, maybe
 * after the return. */
bool leat_worker_serve(leat_worker *w, leat_server_call *a, const char *method,
                       const leat_incoming *in);

/* True for the methods that wait for other tasks, compile a graph, or free much. */
bool leat_worker_may_block(const char *method);

/* reply.c: replies to the call with m, a message of protobuf-c; NULL is an empty message. Takes
 * status, borrows m. */
void leat_reply_message(leat_server_call *a, leat_status status, const void *m);
/* reply.c: gives the message of a request; free it with leat_proto_free. */
leat_status leat_request_message(const ProtobufCMessageDescriptor *d, const leat_incoming *in,
                                 ProtobufCMessage **out) LEAT_MUST_CHECK;
#define LEAT_REQUEST(type, in, out)                                                                \
    leat_request_message(&leat__##type##__descriptor, (in), (ProtobufCMessage **)(out))

#endif
