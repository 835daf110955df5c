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
    struct leat_call_group *round;
    leat_call *call; /* NULL: ended; the group's lock guards it */
} leat_pending_call;

/* With wait_ready every call waits for its task to come up until the deadline. Says in the log,
 * every ten seconds, who has not answered to `what`. Gives the first error; all calls have ended
 * then. The cancellation, which may be NULL, ends the calls. */
leat_status leat_call_many(leat_pending_call *q, int n, const char *method, const char *what,
                           int64_t deadline_ns, bool wait_ready,
                           leat_cancellation *cancellation) LEAT_MUST_CHECK;
/* Frees the array, and what its calls hold. */
void leat_pending_calls_free(leat_pending_call *q, int n);
/* A call whose reply nobody waits for. The request is a message of protobuf-c. */
void leat_peer_notify(leat_peer *p, const char *method, const void *request);

#endif
