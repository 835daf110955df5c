/* coordinator.h -- threads that stop together, and threads that fill queues.
 *
 *     leat_coordinator *c = leat_coordinator_new();
 *     LEAT_TRY(leat_start_queue_runners(g, session, c));
 *     while (!leat_coordinator_should_stop(c)) { ... }
 *     leat_coordinator_request_stop(c, NULL);
 *     leat_status s = leat_coordinator_join(c);      -- the first error of a thread, if there was one
 *     leat_coordinator_free(c);
 */
#ifndef LEAT_COORDINATOR_H
#define LEAT_COORDINATOR_H

#include <leat/session.h>

typedef struct leat_coordinator leat_coordinator;

LEAT_API leat_coordinator *leat_coordinator_new(void);
/* A thread that has not stopped keeps the parts of c that it needs until it ends. Of NULL does
 * nothing. */
LEAT_API void leat_coordinator_free(leat_coordinator *c);

/* Requests all threads to stop; takes s, the reason. The first error is kept for
 * leat_coordinator_join; OUT_OF_RANGE, the end of a queue, is not an error. */
LEAT_API void leat_coordinator_request_stop(leat_coordinator *c, leat_status s);
LEAT_API bool leat_coordinator_should_stop(const leat_coordinator *c);
/* Returns false if timeout_ms passed first; below 0: no limit. */
LEAT_API bool leat_coordinator_wait_for_stop(leat_coordinator *c, int64_t timeout_ms);
LEAT_API void leat_coordinator_clear_stop(leat_coordinator *c); /* also forgets the error */
/* a copy of the first error. */
LEAT_API leat_status leat_coordinator_status(leat_coordinator *c) LEAT_MUST_CHECK;
LEAT_API bool leat_coordinator_joined(leat_coordinator *c);

/* Runs fn(arg) in a thread of this name, which leat_coordinator_join waits for. If fn returns an
 * error, all threads are requested to stop. */
typedef leat_status (*leat_thread_fn)(void *arg);
LEAT_API leat_status leat_coordinator_start(leat_coordinator *c, const char *name,
                                            leat_thread_fn fn, void *arg) LEAT_MUST_CHECK;
/* Calls fn(arg) every interval_ms (0: without a pause) until the coordinator stops. */
LEAT_API leat_status leat_coordinator_loop(leat_coordinator *c, const char *name,
                                           int64_t interval_ms, leat_thread_fn fn,
                                           void *arg) LEAT_MUST_CHECK;

typedef struct leat_join_options {
    leat_given given; /* set by the macro */
    /* How long threads have to end after a stop was requested; default: two minutes; 0: they are
     * not waited for. */
    int64_t grace_ms;
    bool ignore_live_threads;
} leat_join_options;
/* Waits until all threads have ended, or until a stop was requested and grace_ms has passed. Gives
 * the error for which the threads stopped, else DEADLINE_EXCEEDED with the names of threads that
 * still run, if there are any. */
#define leat_coordinator_join(c, ...)                                                              \
    leat_coordinator_join_with(c, LEAT_GIVEN_OPTIONS(leat_join_options, __VA_ARGS__))
LEAT_API leat_status leat_coordinator_join_with(leat_coordinator *c,
                                                const leat_join_options *o) LEAT_MUST_CHECK;

/* ---- Queue runners: a thread for each enqueue op of a queue ---- */
typedef struct leat_queue_runner_options {
    leat_out close_op;  /* run when all threads have ended; made if not set */
    leat_out cancel_op; /* run when the coordinator stops; made if not set */
} leat_queue_runner_options;
/* Adds a queue runner to the graph (to TensorFlow's collection "queue_runners"). */
#define leat_queue_runner(queue, enqueue_ops, n, ...)                                              \
    leat_queue_runner_at(LEAT_AT, queue, enqueue_ops, n,                                           \
                         LEAT_OPTIONS(leat_queue_runner_options, __VA_ARGS__))
LEAT_API void leat_queue_runner_at(leat_loc at, leat_out queue, const leat_out *enqueue_ops, int n,
                                   const leat_queue_runner_options *o);
/* Starts all queue runners of g in s, except those that already run in s. A thread runs its op
 * until the op gives OUT_OF_RANGE or CANCELLED; the last such thread closes the queue. Any other
 * error stops all threads. Join c before s is closed. */
LEAT_API leat_status leat_start_queue_runners(leat_graph *g, leat_session *s,
                                              leat_coordinator *c) LEAT_MUST_CHECK;

#endif
