/* session.h -- running graphs.
 *
 *     leat_session *s;
 *     LEAT_TRY(leat_session_open(g, &s));
 *     LEAT_TRY(leat_session_run(s, LEAT_FEED({x, images}), LEAT_FETCH({loss, &value}),
 * LEAT_TARGET(train)));
 *
 * Any tensor can be fed. A run executes what the fetches and targets need, once each. What a run
 * needs is compiled when its signature (which tensors are fed, fetched and run) is first seen.
 * Any number of threads may run at once; the graph may grow between runs.
 */
#ifndef LEAT_SESSION_H
#define LEAT_SESSION_H

#include <leat/graph.h>

typedef struct leat_session leat_session;

/* Zero means default. */
typedef struct leat_session_options {
    const char *target;        /* "": in this process; "grpc://host:port": by a server */
    int cpu_devices;           /* CPU devices to have; 1 */
    int intra_op_threads;      /* that one kernel may use; as many as are idle of the next */
    int inter_op_threads;      /* for kernels that run side by side; $LEAT_NUM_THREADS, or cores */
    bool allow_soft_placement; /* a node whose device does not exist goes where it can run */
    bool log_device_placement; /* to the log, at level info */
    bool no_optimization;      /* run the graph as it is: no folding, merging, fusing */
    int64_t timeout_ms;        /* of every run that sets none; 0: none */
    int64_t open_timeout_ms;   /* for the tasks of a cluster to answer; 0: timeout_ms, else 2 min */
    const struct leat_security *security; /* of a server elsewhere; outlives the session */
    /* The tasks of a cluster that it may use, and waits for when it is opened: {"/job:ps",
     * "/job:worker/task:0", NULL}; NULL: all of them. Outlives the session. */
    const char *const *device_filters;
    struct leat_cancellation *cancellation; /* ends the wait for tasks when it is opened */
} leat_session_options;

#define leat_session_open(g, session_out, ...)                                                     \
    leat_session_open_with((g), &(const leat_session_options){__VA_ARGS__}, (session_out))
/* Borrows g, which must outlive the session. */
LEAT_API leat_status leat_session_open_with(leat_graph *g, const leat_session_options *options,
                                            leat_session **session_out) LEAT_MUST_CHECK;
/* Ends runs that are under way with CANCELLED, and frees the session with its variables. */
LEAT_API void leat_session_close(leat_session *s);

typedef struct leat_feed {
    leat_out x;
    const leat_tensor *value; /* borrowed */
} leat_feed;
typedef struct leat_fetch {
    leat_out x;
    leat_tensor **value; /* given: free with leat_tensor_unref. Written only on success */
} leat_fetch;
typedef struct leat_feeds {
    const leat_feed *v;
    int n;
} leat_feeds;
typedef struct leat_fetches {
    const leat_fetch *v;
    int n;
} leat_fetches;
typedef struct leat_targets {
    const leat_out *v;
    int n;
} leat_targets;
#define LEAT_LIST(list, item, ...)                                                                 \
    ((list){(const item[]){__VA_ARGS__}, (int)(sizeof((const item[]){__VA_ARGS__}) / sizeof(item))})
#define LEAT_FEED(...) LEAT_LIST(leat_feeds, leat_feed, __VA_ARGS__)
#define LEAT_FETCH(...) LEAT_LIST(leat_fetches, leat_fetch, __VA_ARGS__)
#define LEAT_TARGET(...) LEAT_LIST(leat_targets, leat_out, __VA_ARGS__)
#define LEAT_NO_FEED ((leat_feeds){0})
#define LEAT_NO_FETCH ((leat_fetches){0})
#define LEAT_NO_TARGET ((leat_targets){0})

LEAT_API leat_status leat_session_run(leat_session *s, leat_feeds feeds, leat_fetches fetches,
                                      leat_targets targets) LEAT_MUST_CHECK;

typedef struct leat_cancellation leat_cancellation; /* ends runs from another thread */
LEAT_API leat_cancellation *leat_cancellation_new(void);
LEAT_API void leat_cancellation_free(leat_cancellation *c);
LEAT_API void
leat_cancel_runs(leat_cancellation *c); /* all that were, or will be, started with it */
LEAT_API bool leat_is_cancelled(leat_cancellation *c); /* of NULL: false */

typedef struct leat_metadata leat_metadata; /* what a traced run took */

typedef struct leat_run_options {
    int64_t timeout_ms; /* then the run ends with DEADLINE_EXCEEDED; 0: the session's */
    leat_cancellation *cancellation;
    leat_metadata **metadata_out; /* not NULL: times and memory of each node; given */
    bool output_partition_graphs; /* the metadata has the graphs that were run, too */
} leat_run_options;
LEAT_API leat_status leat_session_run_with(leat_session *s, const leat_run_options *options,
                                           leat_feeds feeds, leat_fetches fetches,
                                           leat_targets targets) LEAT_MUST_CHECK;

LEAT_API void leat_metadata_free(leat_metadata *m);
/* A RunMetadata message with its StepStats. Free with free(). */
LEAT_API leat_status leat_metadata_to_binary(const leat_metadata *m, void **bytes_out,
                                             size_t *size_out) LEAT_MUST_CHECK;
/* A Chrome trace (chrome://tracing, Perfetto). Free with free(). */
LEAT_API leat_status leat_metadata_to_chrome(const leat_metadata *m,
                                             char **json_out) LEAT_MUST_CHECK;

/* ---- A run in several calls: each feeds and fetches some of what was announced ---- */
typedef struct leat_partial leat_partial;
LEAT_API leat_status leat_session_partial(leat_session *s, const leat_out *feeds, int n_feeds,
                                          const leat_out *fetches, int n_fetches,
                                          const leat_out *targets, int n_targets,
                                          leat_partial **partial_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_partial_run(leat_partial *p, leat_feeds feeds,
                                      leat_fetches fetches) LEAT_MUST_CHECK;
LEAT_API void leat_partial_free(leat_partial *p);

/* The names of the session's devices; lives as long as the session. */
LEAT_API const char *const *leat_session_devices(const leat_session *s, int *count_out);

/* ---- Are gradients right? ---- */
typedef struct leat_check_options {
    double delta; /* how far an element is moved; 0: 1e-2 for float, 1e-5 for double */
    int elements; /* of each x that are tried; 0: 100 */
} leat_check_options;
/* Compares d(a weighted sum of y)/dx with central differences: writes the greatest difference over
 * the elements of all xs, relative for those beyond 1. xs must be fed, and be, like y, float or
 * double. Adds nodes to the graph. leat_check_gradients(s, loss, &w, 1, LEAT_FEED({w, value}),
 * &worst) */
#define leat_check_gradients(s, y, xs, n_x, feeds, worst_out, ...)                                 \
    leat_check_gradients_with(s, y, xs, n_x, feeds, &(const leat_check_options){__VA_ARGS__},      \
                              worst_out)
LEAT_API leat_status leat_check_gradients_with(leat_session *s, leat_out y, const leat_out *xs,
                                               int n_x, leat_feeds feeds,
                                               const leat_check_options *options,
                                               double *worst_out) LEAT_MUST_CHECK;

#endif
