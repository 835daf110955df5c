/* session.h -- running graphs.
 *
 *     leat_session *s;
 *     LEAT_TRY(leat_session_open(g, &s));
 *     LEAT_TRY(leat_session_run(s, LEAT_FEED({x, images}), LEAT_FETCH({loss, &value}),
 *                               LEAT_TARGET(train)));
 *
 * Any tensor can be fed. A run executes each node that the fetches and targets need once. A run is
 * compiled when its signature (which tensors are fed and fetched, which nodes are targets) is first
 * seen. Any number of threads may run one session at the same time; nodes may be added to the graph
 * between runs.
 */
#ifndef LEAT_SESSION_H
#define LEAT_SESSION_H

#include <leat/graph.h>

typedef struct leat_session leat_session;

/* Which GPUs a process uses, and how much of their memory. A field that is zero has its default,
 * which the environment gives. LEAT_VISIBLE_DEVICES, or, where that is not set,
 * CUDA_VISIBLE_DEVICES says which GPUs of the machine there are for a process, and in which order:
 * "2,0" makes GPU:0 of the machine's number 2, and "" leaves none. Memory is taken as it is needed
 * (what TensorFlow calls allow_growth). */
typedef struct leat_gpu_options {
    /* "1,0": of the GPUs that the environment leaves, these, in this order; NULL or "": all. */
    const char *visible_devices;
    /* Tensors on a GPU take at most this fraction of its memory, above 0 to 1; default:
     * $LEAT_GPU_MEMORY_FRACTION, else no limit. */
    double memory_fraction;
    /* And at most so many bytes; default: $LEAT_GPU_MEMORY_LIMIT, as "512m", else no limit. */
    int64_t memory_limit;
} leat_gpu_options;

/* Reads a number of bytes: "4096", "64k", "512m", "2g". */
LEAT_API leat_status leat_bytes_read(const char *text, int64_t *bytes_out) LEAT_MUST_CHECK;

/* A field that is zero has its default. */
typedef struct leat_session_options {
    const char *target;   /* "": run in this process; "grpc://host:port": run by a server */
    const char *devices;  /* how many of which kind, "cpu:2,gpu:1"; see leat_devices_list */
    int cpu_devices;      /* number of CPU devices, if `devices` does not give it; default 1 */
    leat_gpu_options gpu; /* of a session in this process; a server has its own */
    /* Threads that one kernel may use; default: all that inter_op_threads gives. */
    int intra_op_threads;
    /* Threads for kernels that run at the same time; default: $LEAT_NUM_THREADS, else the number of
     * cores. */
    int inter_op_threads;
    /* a node whose device does not exist is placed on one that can run it. */
    bool allow_soft_placement;
    bool log_device_placement; /* write each node's device to the log, at level info */
    bool no_optimization;      /* run the graph as it is, without folding, merging, fusing */
    int64_t timeout_ms;        /* for every run that sets none; 0: no limit */
    /* How long the tasks of a cluster have to reply when the session is opened; default:
     * timeout_ms, else 2 minutes. */
    int64_t open_timeout_ms;
    const struct leat_security *security; /* for connecting to the target; outlives the session */
    /* The tasks of a cluster that the session uses, and that leat_session_open waits for:
     * {"/job:ps", "/job:worker/task:0", NULL}; NULL: all of them. Outlives the session. */
    const char *const *device_filters;
    struct leat_cancellation *cancellation; /* ends the wait of leat_session_open for tasks */
} leat_session_options;

#define leat_session_open(g, session_out, ...)                                                     \
    leat_session_open_with((g), LEAT_OPTIONS(leat_session_options, __VA_ARGS__), (session_out))
/* Borrows g, which must outlive the session. */
LEAT_API leat_status leat_session_open_with(leat_graph *g, const leat_session_options *options,
                                            leat_session **session_out) LEAT_MUST_CHECK;
/* Ends runs that are in progress with CANCELLED, and frees the session with its variables. */
LEAT_API void leat_session_close(leat_session *s);

typedef struct leat_feed {
    leat_out x;
    const leat_tensor *value; /* borrowed */
} leat_feed;
typedef struct leat_fetch {
    leat_out x;
    leat_tensor **value; /* given on success only: free with leat_tensor_unref */
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
    LEAT_STRUCT(list, LEAT_ARRAY(item, __VA_ARGS__), LEAT_COUNT(item, __VA_ARGS__))
#define LEAT_FEED(...) LEAT_LIST(leat_feeds, leat_feed, __VA_ARGS__)
#define LEAT_FETCH(...) LEAT_LIST(leat_fetches, leat_fetch, __VA_ARGS__)
#define LEAT_TARGET(...) LEAT_LIST(leat_targets, leat_out, __VA_ARGS__)
#define LEAT_NO_FEED LEAT_STRUCT(leat_feeds, NULL, 0)
#define LEAT_NO_FETCH LEAT_STRUCT(leat_fetches, NULL, 0)
#define LEAT_NO_TARGET LEAT_STRUCT(leat_targets, NULL, 0)

LEAT_API leat_status leat_session_run(leat_session *s, leat_feeds feeds, leat_fetches fetches,
                                      leat_targets targets) LEAT_MUST_CHECK;

typedef struct leat_cancellation leat_cancellation; /* ends runs from another thread */
LEAT_API leat_cancellation *leat_cancellation_new(void);
LEAT_API void leat_cancellation_free(leat_cancellation *c);
LEAT_API void
leat_cancel_runs(leat_cancellation *c); /* all runs that were or will be started with c */
LEAT_API bool leat_is_cancelled(leat_cancellation *c); /* of NULL: false */

typedef struct leat_metadata leat_metadata; /* times and memory of a traced run */

typedef struct leat_run_options {
    int64_t timeout_ms; /* the run's limit, then DEADLINE_EXCEEDED; 0: the session's limit */
    leat_cancellation *cancellation;
    /* Not NULL: trace the run and give times and memory of each node. */
    leat_metadata **metadata_out;
    bool output_partition_graphs; /* the metadata also has the graphs that were run */
} leat_run_options;
LEAT_API leat_status leat_session_run_with(leat_session *s, const leat_run_options *options,
                                           leat_feeds feeds, leat_fetches fetches,
                                           leat_targets targets) LEAT_MUST_CHECK;

LEAT_API void leat_metadata_free(leat_metadata *m);
/* Gives a RunMetadata message with its StepStats. Free with free(). */
LEAT_API leat_status leat_metadata_to_binary(const leat_metadata *m, void **bytes_out,
                                             size_t *size_out) LEAT_MUST_CHECK;
/* Gives a Chrome trace (chrome://tracing, Perfetto). Free with free(). */
LEAT_API leat_status leat_metadata_to_chrome(const leat_metadata *m,
                                             char **json_out) LEAT_MUST_CHECK;

/* ---- A run in several calls: leat_session_partial names all feeds, fetches and targets; each call
 * then feeds and fetches some of them ---- */
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

/* A device that a session in this process would have. */
typedef struct leat_device_listing {
    char name[128]; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
    char kind[16];  /* "CPU" */
    /* Which of the machine's devices of this kind it is: what LEAT_VISIBLE_DEVICES calls it. */
    int ordinal;
    char description[128];
    int64_t memory; /* bytes for tensors; 0: unknown */
} leat_device_listing;
/* The devices of a spec such as "cpu:2,gpu:1", so many of each kind. Of kinds that the spec does
 * not name there are one CPU and all devices of the other kinds. Gives *n_out devices, to be freed
 * with free(). */
LEAT_API leat_status leat_devices_list(const char *devices, leat_device_listing **out,
                                       int *n_out) LEAT_MUST_CHECK;

/* ---- Checking gradients ---- */
typedef struct leat_check_options {
    leat_given given; /* set by the macro */
    double delta; /* by how much an element is changed; default 1e-2 for float, 1e-5 for double */
    int elements; /* how many elements of each x are tried; default 100 */
} leat_check_options;
/* Compares d(a weighted sum of y)/dx with central differences: writes the greatest difference over
 * the elements of all xs, relative for those beyond 1. xs must be fed, and be, like y, float or
 * double. Adds nodes to the graph. leat_check_gradients(s, loss, &w, 1, LEAT_FEED({w, value}),
 * &worst) */
#define leat_check_gradients(s, y, xs, n_x, feeds, worst_out, ...)                                 \
    leat_check_gradients_with(s, y, xs, n_x, feeds,                                                \
                              LEAT_GIVEN_OPTIONS(leat_check_options, __VA_ARGS__), worst_out)
LEAT_API leat_status leat_check_gradients_with(leat_session *s, leat_out y, const leat_out *xs,
                                               int n_x, leat_feeds feeds,
                                               const leat_check_options *options,
                                               double *worst_out) LEAT_MUST_CHECK;

#endif
