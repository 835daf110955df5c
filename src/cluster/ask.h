/* ask.h -- one question to several tasks at once, and the wait for all their answers. */
#ifndef LEAT_CLUSTER_ASK_H
#define LEAT_CLUSTER_ASK_H

#include "cluster/peers.h"
#include "core/threadpool.h"
#include "runtime/session_int.h"

typedef struct leat_question {
    leat_peer *peer;
    leat_outgoing request; /* taken */
    leat_status status;    /* the answer: to be freed, */
    void *reply;           /* with free() */
    size_t size;
    int64_t middle_ns; /* CLOCK_REALTIME half-way between question and answer */
    /* Its own. */
    struct leat_round *round;
    leat_call *call; /* NULL: answered; the round's lock guards it */
} leat_question;

/* With wait_ready every call waits for its task to come up until the deadline. Says in the log,
 * every ten seconds, who has not answered to `what`. Gives the first error; all questions have an
 * answer then. The cancellation, which may be NULL, ends the calls. */
leat_status leat_ask_all(leat_question *q, int n, const char *method, const char *what,
                         int64_t deadline_ns, bool wait_ready,
                         leat_cancellation *cancellation) LEAT_MUST_CHECK;
/* Without waiting for the answer. */
void leat_tell(leat_peer *p, const char *method, leat_outgoing *request);

#endif
