/* call_many.h -- one method called on several tasks at once, and the wait for all the replies. */
#ifndef LEAT_CLUSTER_CALL_MANY_H
#define LEAT_CLUSTER_CALL_MANY_H

#include "cluster/peers.h"
#include "core/threadpool.h"
#include "runtime/session_int.h"

typedef struct leat_pending_call {
    leat_peer *peer;
    leat_outgoing request; /* taken */
    leat_status status;    /* of the call: to be freed, */
    void *reply;           /* with free() */
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
/* A call whose reply nobody waits for. */
void leat_peer_notify(leat_peer *p, const char *method, leat_outgoing *request);

#endif
