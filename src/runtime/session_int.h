/* session_int.h -- a session from the inside. */
#ifndef LEAT_SESSION_INT_H
#define LEAT_SESSION_INT_H

#include <leat/session.h>

#include "runtime/plan_cache.h"

/* fn(arg) is called once when a leat_cancellation is cancelled. */
typedef struct leat_cancel_watch {
    void (*fn)(void *arg);
    void *arg;
    struct leat_cancel_watch *next, *prev;
} leat_cancel_watch;

/* Ends a step when its run is cancelled or its session is closed. */
typedef struct leat_step_guard {
    leat_cancel_watch run, session;
} leat_step_guard;

/* The functions of a session whose master is in another process. */
typedef struct leat_session_ops {
    leat_status (*run)(leat_session *s, const leat_run_options *o, leat_feeds feeds,
                       leat_fetches fetches, leat_targets targets);
    leat_status (*partial)(leat_session *s, const leat_request *q, leat_partial **out);
    leat_status (*partial_run)(leat_partial *p, leat_feeds feeds, leat_fetches fetches);
    void (*partial_free)(leat_partial *p);
    void (*hold)(leat_session *s, bool on); /* leat_session_hold, leat_session_let_go */
    const char *(*ending)(leat_session *s); /* leat_session_ending */
    void (*close)(leat_session *s);         /* frees it */
} leat_session_ops;

/* A kind of session is chosen by the beginning of the target. src/cluster lists the kinds; NULL
 * ends the list. */
typedef struct leat_session_kind {
    const char *prefix; /* "grpc://" */
    leat_status (*open)(leat_graph *g, const leat_session_options *o, leat_session **out);
} leat_session_kind;
extern const leat_session_kind *const leat_session_kinds[];

struct leat_session {
    leat_object object;
    const leat_session_ops *ops; /* NULL: the master is this process, and uses what follows */
    leat_graph *graph;
    leat_session_options options;
    leat_device *const *devices;
    const char **device_names;
    int n_devices;
    leat_pool *pool;
    leat_devices owned; /* devices and pool, if the session made them */
    leat_far *far;      /* other tasks, or NULL; a reference */
    atomic_ullong next_step;
    leat_plan_cache plans;
    leat_placements *placements; /* NULL: log_device_placement is not set */
    leat_cancellation *closing; /* cancelled when the session is closed */
    pthread_mutex_t lock;       /* guards what follows */
    pthread_cond_t idle;
    int runs; /* number of runs under way */
    bool closed;
};

/* A session on devices that outlive it. Takes far, even on failure. */
leat_status leat_session_new_on(leat_graph *g, const leat_session_options *o,
                                leat_device *const *devices, int n, leat_far *far,
                                leat_session **out) LEAT_MUST_CHECK;
/* The plan of this signature, compiled if it is new. The deadline (0: none), the cancellation
 * (NULL: none) and the end of the session end the wait for other threads and tasks. */
leat_status leat_session_plan(leat_session *s, const leat_request *q, int64_t deadline_ns,
                              leat_cancellation *cancellation, leat_plan **out) LEAT_MUST_CHECK;
/* Count the runs under way. leat_session_begin gives CANCELLED once the session is closed. */
leat_status leat_session_begin(leat_session *s) LEAT_MUST_CHECK;
void leat_session_end(leat_session *s);
/* Cancels the runs under way, and lets no other begin. */
void leat_session_end_steps(leat_session *s);
/* From guard to unguard, the cancellation (NULL: none) and the end of the session fail the step;
 * at once, if either has come already. */
void leat_session_guard(leat_session *s, leat_cancellation *c, leat_step *step, leat_step_guard *g);
void leat_session_unguard(leat_session *s, leat_cancellation *c, leat_step_guard *g);
/* The status of a run that was ended by closing its session. */
leat_status leat_session_closed_error(void) LEAT_MUST_CHECK;
/* Other tasks of the session that are about to end wait, as long as their grace allows, until
 * leat_session_let_go is called or the session is closed, so that their variables can be saved.
 * A session of this process alone has no such tasks. */
void leat_session_hold(leat_session *s);
void leat_session_let_go(leat_session *s);
/* The name of a task that waits so; NULL: none. Valid as long as the session. */
const char *leat_session_ending(leat_session *s);
/* Fails a partial run of a session in this process. Takes why. */
void leat_partial_end(leat_partial *p, leat_status why);
leat_status leat_feed_check(leat_out x, const leat_tensor *t) LEAT_MUST_CHECK;

/* cancellation.c; c may be NULL. leat_cancellation_watch calls w->fn at once if c was cancelled
 * before; after leat_cancellation_unwatch w->fn is not called any more and is not running. */
void leat_cancellation_watch(leat_cancellation *c, leat_cancel_watch *w);
void leat_cancellation_unwatch(leat_cancellation *c, leat_cancel_watch *w);
leat_metadata *leat_metadata_of(leat_trace *t); /* takes t */
const leat_trace *leat_metadata_trace(const leat_metadata *m);
/* A StepStats message. Free with free(). */
leat_status leat_metadata_stats(const leat_metadata *m, void **bytes_out,
                                size_t *size_out) LEAT_MUST_CHECK;

#endif
