/* worker.h -- TensorFlow's WorkerService in this process: the devices of its tasks, the sessions
 * that masters opened on them, the graphs that masters registered, and the steps that run those
 * graphs. */
#ifndef LEAT_CLUSTER_WORKER_H
#define LEAT_CLUSTER_WORKER_H

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
leat_device *const *leat_worker_devices(const leat_worker *w, int *n_out);
leat_exchanges *leat_worker_exchanges(leat_worker *w);
int leat_worker_graphs(leat_worker *w); /* The number of graphs that are registered now. */
/* Clears a container of resources on all devices; NULL: all containers. */
void leat_worker_clear(leat_worker *w, const char *container);
/* Gives the message; free it with leat_proto_free. */
Leat__DeviceAttributes *leat_device_to_proto(const leat_device *d);

/* worker_session.c: a master's session on this task. */
typedef struct leat_worker_session leat_worker_session;
typedef struct leat_worker_session_options {
    bool isolate; /* The session has variables of its own. */
    /* The session's devices on all tasks. Empty if its master, a TensorFlow one, does not send
     * them. */
    Leat__DeviceAttributes *const *cluster;
    size_t n_cluster;
} leat_worker_session_options;
/* Sets the other tasks of the session, on which functions called by its graphs may have nodes.
 * Shares far. */
void leat_worker_session_use_far(leat_worker_session *s, leat_far *far);
leat_status leat_worker_session_open(leat_worker *w, const char *handle,
                                     const leat_worker_session_options *o,
                                     leat_worker_session **out) LEAT_MUST_CHECK;
leat_device *const *leat_worker_session_devices(const leat_worker_session *s);
/* Deregisters the session's graphs. Steps that are under way continue. */
void leat_worker_session_close(leat_worker *w, const char *handle);

/* Returns true if the method is one of WorkerService. The reply to the call is then sent, maybe
 * after the return. */
bool leat_worker_serve(leat_worker *w, leat_server_call *a, const char *method,
                       const leat_incoming *in);

/* reply.c: replies to the call with m, a message of protobuf-c; NULL is an empty message. Takes
 * status, borrows m. */
void leat_reply_message(leat_server_call *a, leat_status status, const void *m);
/* reply.c: gives the message of a request; free it with leat_proto_free. */
leat_status leat_request_message(const ProtobufCMessageDescriptor *d, const leat_incoming *in,
                                 ProtobufCMessage **out) LEAT_MUST_CHECK;
#define LEAT_REQUEST(type, in, out)                                                                \
    leat_request_message(&leat__##type##__descriptor, (in), (ProtobufCMessage **)(out))

#endif
