/* worker.h -- a process as others use it: the devices of its tasks, sessions on them, graphs
 * registered for them, and the steps that run those graphs. Serves TensorFlow's WorkerService. */
#ifndef LEAT_CLUSTER_WORKER_H
#define LEAT_CLUSTER_WORKER_H

#include "cluster/exchange.h"
#include "cluster/peers.h"
#include "proto/cluster.pb-c.h"
#include "runtime/plan.h"

typedef struct leat_worker leat_worker;

/* Has the devices of that task, and then those of all other tasks at the same address. Borrows
 * peers. */
leat_status leat_worker_new(const char *job, int task, const leat_server_options *o,
                            leat_peers *peers, leat_worker **out) LEAT_MUST_CHECK;
void leat_worker_stop(leat_worker *w, leat_status why); /* steps end with this; borrows why */
bool leat_worker_idle(leat_worker *w);                  /* no step is under way */
void leat_worker_free(leat_worker *w);
const char *leat_worker_task(const leat_worker *w); /* "/job:ps/replica:0/task:0" */
leat_device *const *leat_worker_devices(const leat_worker *w, int *n_out);
leat_exchanges *leat_worker_exchanges(leat_worker *w);
int leat_worker_graphs(leat_worker *w);                             /* that are registered now */
void leat_worker_clear(leat_worker *w, const char *container);      /* NULL: all */
Leat__DeviceAttributes *leat_device_to_proto(const leat_device *d); /* leat_proto_free */

/* worker_session.c: a master's session on this task. */
typedef struct leat_worker_session leat_worker_session;
typedef struct leat_worker_session_options {
    bool isolate; /* the session has variables of its own */
    /* The session's devices on all tasks; none: its master does not tell. */
    Leat__DeviceAttributes *const *cluster;
    size_t n_cluster;
} leat_worker_session_options;
/* The other tasks of the session, for the functions that graphs of it call; shared. */
void leat_worker_session_use_far(leat_worker_session *s, leat_far *far);
leat_status leat_worker_session_open(leat_worker *w, const char *handle,
                                     const leat_worker_session_options *o,
                                     leat_worker_session **out) LEAT_MUST_CHECK;
leat_device *const *leat_worker_session_devices(const leat_worker_session *s);
/* Its graphs are forgotten; those that run go on. */
void leat_worker_session_close(leat_worker *w, const char *handle);

/* True if the method is one of WorkerService; the reply is then sent, now or later. */
bool leat_worker_serve(leat_worker *w, leat_server_call *a, const char *method,
                       const leat_incoming *in);

/* reply.c: replies with a message of protobuf-c, NULL for an empty one; takes status, borrows m. */
void leat_reply_message(leat_server_call *a, leat_status status, const void *m);
/* Gives the message of a request; free with leat_proto_free. */
leat_status leat_request_message(const ProtobufCMessageDescriptor *d, const leat_incoming *in,
                                 ProtobufCMessage **out) LEAT_MUST_CHECK;
#define LEAT_REQUEST(type, in, out)                                                                \
    leat_request_message(&leat__##type##__descriptor, (in), (ProtobufCMessage **)(out))

#endif
