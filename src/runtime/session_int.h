/* session_int.h -- a session from the inside. */
#ifndef LEAT_SESSION_INT_H
#define LEAT_SESSION_INT_H

#include <leat/session.h>

#include "runtime/plan.h"

/* A step under way, so that closing the session can end it. */
typedef struct leat_live_step {
    leat_step step;
    struct leat_live_step *next, *prev;               /* of the session's */
    struct leat_live_step *cancel_next, *cancel_prev; /* of a leat_cancellation's */
} leat_live_step;

struct leat_session {
    leat_graph *graph;
    leat_session_options options;
    leat_device **devices;
    const char **device_names;
    int n_devices;
    leat_pool *pool;
    atomic_ullong next_step;
    pthread_mutex_t lock; /* guards what follows; the graph's and a step's lock come after it */
    pthread_cond_t idle;
    leat_map plans; /* signature -> leat_plan */
    leat_live_step *live;
    int runs; /* under way */
    bool closed;
};

/* The plan of this signature, compiled if it is new. */
leat_status leat_session_plan(leat_session *s, const leat_request *q,
                              leat_plan **out) LEAT_MUST_CHECK;
leat_status leat_session_begin(leat_session *s) LEAT_MUST_CHECK; /* CANCELLED once it is closed */
void leat_session_end(leat_session *s);
void leat_session_enlist(leat_session *s, leat_live_step *l);
void leat_session_delist(leat_session *s, leat_live_step *l);
leat_status leat_feed_check(leat_out x, const leat_tensor *t) LEAT_MUST_CHECK;

/* cancellation.c; c may be NULL. */
void leat_cancellation_join(leat_cancellation *c, leat_live_step *l);
void leat_cancellation_part(leat_cancellation *c, leat_live_step *l);
leat_metadata *leat_metadata_of(leat_trace *t);
leat_status leat_isa_check(void) LEAT_MUST_CHECK; /* this CPU can run what was compiled */

#endif
