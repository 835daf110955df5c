/* session_int.h -- a session from the inside. */
#ifndef LEAT_SESSION_INT_H
#define LEAT_SESSION_INT_H

#include <leat/session.h>

#include "runtime/plan.h"

/* Who is to be told when a leat_cancellation is cancelled: fn(arg), once. */
typedef struct leat_cancel_watch {
    void (*fn)(void *arg);
    void *arg;
    struct leat_cancel_watch *next, *prev;
} leat_cancel_watch;

/* A step under way, so that closing the session can end it. */
typedef struct leat_live_step {
    leat_step step;
    struct leat_live_step *next, *prev; /* of the session's */
    leat_cancel_watch cancel;
} leat_live_step;

/* Another kind of session than those that are driven from this process. */
typedef struct leat_session_ops {
    leat_status (*run)(leat_session *s, const leat_run_options *o, leat_feeds feeds,
                       leat_fetches fetches, leat_targets targets);
    leat_status (*partial)(leat_session *s, const leat_request *q, leat_partial **out);
    leat_status (*partial_run)(leat_partial *p, leat_feeds feeds, leat_fetches fetches);
    void (*partial_free)(leat_partial *p);
    void (*close)(leat_session *s); /* frees it */
} leat_session_ops;

/* Sessions by the beginning of their target; listed by the cluster room, ended by NULL. */
typedef struct leat_session_kind {
    const char *prefix; /* "grpc://" */
    leat_status (*open)(leat_graph *g, const leat_session_options *o, leat_session **out);
} leat_session_kind;
extern const leat_session_kind *const leat_session_kinds[];

struct leat_session {
    const leat_session_ops *ops; /* NULL: driven from here, by what follows */
    leat_graph *graph;
    leat_session_options options;
    leat_device **devices;
    const char **device_names;
    int n_devices;
    leat_pool *pool;
    bool borrows;  /* devices and pool are somebody else's */
    leat_far *far; /* other tasks, or NULL; owned */
    atomic_ullong next_step;
    pthread_mutex_t lock; /* guards what follows; the graph's and a step's lock come after it */
    pthread_cond_t idle;
    leat_map plans; /* signature -> leat_plan */
    leat_live_step *live;
    int runs; /* under way */
    bool closed;
};

/* A session on devices that outlive it. Takes far, even on failure. */
leat_status leat_session_new_on(leat_graph *g, const leat_session_options *o,
                                leat_device *const *devices, int n, leat_far *far,
                                leat_session **out) LEAT_MUST_CHECK;
/* The plan of this signature, compiled if it is new. */
leat_status leat_session_plan(leat_session *s, const leat_request *q,
                              leat_plan **out) LEAT_MUST_CHECK;
leat_status leat_session_begin(leat_session *s) LEAT_MUST_CHECK; /* CANCELLED once it is closed */
void leat_session_end(leat_session *s);
/* Runs under way end with CANCELLED soon, and no other begins. */
void leat_session_end_steps(leat_session *s);
void leat_session_enlist(leat_session *s, leat_live_step *l);
void leat_session_delist(leat_session *s, leat_live_step *l);
leat_status leat_feed_check(leat_out x, const leat_tensor *t) LEAT_MUST_CHECK;

/* cancellation.c; c may be NULL. Watching tells w at once if c was cancelled before; after unwatch
 * fn does not run any more, and is not running. */
void leat_cancellation_watch(leat_cancellation *c, leat_cancel_watch *w);
void leat_cancellation_unwatch(leat_cancellation *c, leat_cancel_watch *w);
/* Ends a step so. */
void leat_cancellation_join(leat_cancellation *c, leat_live_step *l);
void leat_cancellation_part(leat_cancellation *c, leat_live_step *l);
leat_metadata *leat_metadata_of(leat_trace *t); /* takes t */
/* A StepStats message. Free with free(). */
leat_status leat_metadata_stats(const leat_metadata *m, void **bytes_out,
                                size_t *size_out) LEAT_MUST_CHECK;
leat_status leat_isa_check(void) LEAT_MUST_CHECK; /* this CPU can run what was compiled */

#endif
