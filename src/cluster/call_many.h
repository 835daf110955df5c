/* call_many.h -- one method called on several tasks at once, and the wait for all the replies. */
#ifndef LEAT_CLUSTER_CALL_MANY_H
#define LEAT_CLUSTER_CALL_MANY_H

#include "cluster/peers.h"
#include "core/threadpool.h"
#include "runtime/session_int.h"

typedef struct leat_pending_call {
    leat_peer *peer;
    leat_outgoing request; /* taken */
    leat_status status;    /* the call's; leat_pending_calls_free frees it */
    void *reply;           /* from malloc; leat_pending_calls_free frees it */
    size_t size;
    int64_t middle_ns; /* CLOCK_REALTIME half-way between request and reply */
    /* For call_many.c alone. */
    struct leat_call_group *group;
    leat_call *call; /* guarded by the group's lock; NULL: the call has ended */
} leat_pending_call;

/* Calls the method and waits until all n calls have ended. With wait_ready a call waits for its
 * task to start, until the deadline. Every ten seconds the tasks that have not replied are logged,
 * with `what` they are waited for. Gives the first error. The cancellation, which may be NULL, ends
 * the calls. */
leat_status leat_call_many(leat_pending_call *q, int n, const char *method, const char *what,
                           int64_t deadline_ns, bool wait_ready,
                           leat_cancellation *cancellation) LEAT_MUST_CHECK;
/* Frees the array, and what its calls hold. */
void leat_pending_calls_free(leat_pending_call *q, int n);
/* Makes a call whose reply is dropped. request is a message of protobuf-c; one that cannot be
 * packed is logged. */
void leat_peer_notify(leat_peer *p, const char *method, const void *request);

#endif
