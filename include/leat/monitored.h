/* monitored.h -- sessions for training programs: the chief initialises the model, or restores it
 * from a checkpoint; workers wait until it has; hooks count, log, save and stop; what fails because
 * a task went away is tried again on a new session when it is back.
 *
 *     leat_monitored *ms;
 *     LEAT_TRY(leat_monitored_open(g, &ms, .master = leat_server_target(server),
 *                                  .is_chief = task == 0, .checkpoint_dir = dir,
 *                                  .last_step = 20000));
 *     while (!leat_monitored_should_stop(ms))
 *         LEAT_TRY(leat_monitored_run(ms, LEAT_FEED({x, images}), LEAT_NO_FETCH, LEAT_TARGET(train)));
 *     return leat_monitored_close(ms);
 *
 * It means what TensorFlow's MonitoredTrainingSession means, with its defaults; but every wait ends
 * by max_wait_secs, with a message that says what was waited for.
 */
#ifndef LEAT_MONITORED_H
#define LEAT_MONITORED_H

#include <leat/coordinator.h>
#include <leat/saver.h>
#include <leat/session.h>
#include <leat/summary.h>
#include <leat/train.h>

/* ---- Hooks: what is done around every run ----
 * One of your own is a struct that begins with leat_hook, and a table. All functions may be NULL.
 * An error of one of them ends the run with that error. */
typedef struct leat_hook leat_hook;
typedef struct leat_run_context leat_run_context; /* one run */
typedef struct leat_hook_ops {
    const char *name;
    /* Once, before there is a session: may still add nodes. */
    leat_status (*begin)(leat_hook *h, leat_graph *g);
    /* For every new session, also after a recovery. */
    leat_status (*after_create_session)(leat_hook *h, leat_session *s, leat_coordinator *coord);
    leat_status (*before_run)(leat_hook *h, leat_run_context *c); /* may ask for fetches, feeds */
    leat_status (*after_run)(leat_hook *h, leat_run_context *c);  /* of a run that succeeded */
    /* A session goes, for whatever reason: what runs on it in other threads ends now. */
    void (*before_close)(leat_hook *h, leat_session *s);
    leat_status (*end)(leat_hook *h, leat_session *s); /* once; not after an error */
    void (*free)(leat_hook *h);
} leat_hook_ops;
struct leat_hook {
    const leat_hook_ops *ops;
};
LEAT_API void leat_hook_free(leat_hook *h); /* of NULL does nothing */

/* In before_run: x is fetched, too. In after_run: its value, borrowed; NULL if it was not asked
 * for. */
LEAT_API void leat_run_fetch(leat_run_context *c, leat_out x);
LEAT_API const leat_tensor *leat_run_value(const leat_run_context *c, leat_out x);
/* In before_run: x is fed; shares the value. FAILED_PRECONDITION if it is fed already. */
LEAT_API leat_status leat_run_feed(leat_run_context *c, leat_out x,
                                   const leat_tensor *value) LEAT_MUST_CHECK;
LEAT_API leat_session *leat_run_session(const leat_run_context *c);
LEAT_API void leat_run_request_stop(leat_run_context *c); /* no run after this one */

/* ---- The usual hooks. Options that are not set (zero) have TensorFlow's defaults. ---- */
typedef struct leat_stop_at_step_options {
    int64_t num_steps; /* after so many more, */
    int64_t last_step; /* or at this one; exactly one of them */
} leat_stop_at_step_options;
LEAT_API leat_hook *leat_stop_at_step_hook_new(const leat_stop_at_step_options *o);
#define leat_stop_at_step_hook(...)                                                                \
    leat_stop_at_step_hook_new(&(const leat_stop_at_step_options){__VA_ARGS__})

typedef struct leat_checkpoint_listener {
    void *arg;
    leat_status (*before_save)(void *arg, leat_session *s, int64_t step);
    /* May ask to stop. */
    leat_status (*after_save)(void *arg, leat_session *s, int64_t step, bool *stop);
    leat_status (*end)(void *arg, leat_session *s, int64_t step);
} leat_checkpoint_listener;
typedef struct leat_checkpoint_hook_options {
    const char *checkpoint_dir;
    double save_secs;   /* exactly one of */
    int64_t save_steps; /* them */
    leat_saver *saver;  /* borrowed; NULL: one of all variables */
    const char *checkpoint_basename; /* "model.ckpt" */
    const leat_checkpoint_listener *listeners; /* copied */
    int n_listeners;
} leat_checkpoint_hook_options;
LEAT_API leat_hook *leat_checkpoint_hook_new(const leat_checkpoint_hook_options *o);
#define leat_checkpoint_hook(...)                                                                  \
    leat_checkpoint_hook_new(&(const leat_checkpoint_hook_options){__VA_ARGS__})

/* Steps per second, to the log and as a summary. */
typedef struct leat_step_counter_options {
    int64_t every_n_steps; /* 100 */
    double every_n_secs;   /* instead */
    const char *output_dir;
    leat_summary_writer *writer; /* borrowed; instead of output_dir */
} leat_step_counter_options;
LEAT_API leat_hook *leat_step_counter_hook_new(const leat_step_counter_options *o);
#define leat_step_counter_hook(...)                                                                \
    leat_step_counter_hook_new(&(const leat_step_counter_options){__VA_ARGS__})

/* Values to the log, at level info: "loss = 0.25, step = 100 (1.230 sec)". */
typedef struct leat_logging_options {
    const leat_out *tensors; /* copied */
    const char *const *tags; /* copied; NULL: the tensors' names */
    int n;
    int64_t every_n_iter; /* at most one of them; neither: at the end only */
    double every_n_secs;
    bool at_end;
} leat_logging_options;
LEAT_API leat_hook *leat_logging_hook_new(const leat_logging_options *o);
#define leat_logging_hook(...) leat_logging_hook_new(&(const leat_logging_options){__VA_ARGS__})

/* A loss that is not a number fails the run with INVALID_ARGUMENT, or stops without an error. */
typedef struct leat_nan_options {
    leat_out loss;
    bool stop_only;
} leat_nan_options;
LEAT_API leat_hook *leat_nan_hook_new(const leat_nan_options *o);
#define leat_nan_hook(...) leat_nan_hook_new(&(const leat_nan_options){__VA_ARGS__})

typedef struct leat_summary_hook_options {
    leat_out summary_op; /* NULL node: all of the collection "summaries", merged */
    int64_t save_steps;  /* exactly one of */
    double save_secs;    /* them */
    const char *output_dir;
    leat_summary_writer *writer; /* borrowed; instead of output_dir */
} leat_summary_hook_options;
LEAT_API leat_hook *leat_summary_hook_new(const leat_summary_hook_options *o);
#define leat_summary_hook(...)                                                                     \
    leat_summary_hook_new(&(const leat_summary_hook_options){__VA_ARGS__})

/* Run when all is done; the values of x are written through its `value` pointers. */
typedef struct leat_final_ops_options {
    leat_feeds feeds;
    leat_fetches fetches; /* both are copied, not what they point to */
    leat_targets targets;
} leat_final_ops_options;
LEAT_API leat_hook *leat_final_ops_hook_new(const leat_final_ops_options *o);
#define leat_final_ops_hook(...)                                                                   \
    leat_final_ops_hook_new(&(const leat_final_ops_options){__VA_ARGS__})

/* The first run waits until the global step has come so far: workers that start one by one. */
LEAT_API leat_hook *leat_global_step_waiter_hook(int64_t wait_until_step);

/* fn is asked before each run, and feeds what it likes with leat_run_feed. */
LEAT_API leat_hook *leat_feed_fn_hook(leat_status (*fn)(void *arg, leat_run_context *c), void *arg);

/* ---- What makes a model ready. A NULL node: as TensorFlow's Scaffold builds it. ---- */
typedef struct leat_scaffold {
    leat_out init_op;       /* the chief runs it if there is no checkpoint */
    leat_feeds init_feeds;  /* with these */
    leat_status (*init_fn)(void *arg, leat_session *s); /* and then calls this */
    void *init_arg;
    leat_out ready_op;                /* gives the names of what is not ready, as strings */
    leat_out ready_for_local_init_op; /* the same, before local_init_op can run */
    leat_out local_init_op;           /* every task runs it for each session */
    leat_out summary_op;              /* the summary of the model */
    leat_saver *saver;                /* borrowed; NULL: of all variables */
} leat_scaffold;

/* ---- Sessions ---- */
typedef struct leat_monitored leat_monitored; /* for one thread at a time */
typedef struct leat_monitored_options {
    const char *master; /* "grpc://host:port"; "": in this process, which is the chief then */
    bool is_chief;      /* one task of a cluster is: it initialises, restores and saves */
    const char *checkpoint_dir; /* NULL: nothing is saved, nothing restored */
    const char *summary_dir;    /* checkpoint_dir */
    const leat_scaffold *scaffold;
    /* NULL-ended lists; the hooks are taken, also on failure. */
    leat_hook *const *hooks;
    leat_hook *const *chief_only_hooks;
    int64_t last_step, num_steps;  /* if set: a stop_at_step hook */
    double save_checkpoint_secs;   /* 600; below 0: never */
    int64_t save_checkpoint_steps; /* instead */
    int64_t save_summaries_steps;  /* 100; below 0: never */
    double save_summaries_secs;    /* instead */
    int64_t log_step_count_steps;  /* 100; below 0: never */
    double stop_grace_secs;        /* 120: for threads of the session to end */
    double max_wait_secs;          /* 7200: for other tasks, at the start and after a failure */
    /* Cancelled by another thread, it asks for the end: waits for other tasks end with CANCELLED, a
     * step under way goes on, then leat_monitored_should_stop. Outlives the session. */
    leat_cancellation *stop;
    /* Its target does not count. Without device_filters, only tasks that the graph's nodes ask for
     * are needed. */
    const leat_session_options *config;
} leat_monitored_options;
#define leat_monitored_open(g, ms_out, ...)                                                        \
    leat_monitored_open_with((g), &(const leat_monitored_options){__VA_ARGS__}, (ms_out))
/* Borrows g. Builds what is missing of the scaffold into it. */
LEAT_API leat_status leat_monitored_open_with(leat_graph *g, const leat_monitored_options *options,
                                              leat_monitored **ms_out) LEAT_MUST_CHECK;
/* One run with all hooks. UNAVAILABLE and ABORTED, which mean that a task went away, make a new
 * session, and the run is done again. OUT_OF_RANGE, which means that the input is used up, is no
 * error to leat_monitored_close. */
LEAT_API leat_status leat_monitored_run(leat_monitored *ms, leat_feeds feeds, leat_fetches fetches,
                                        leat_targets targets) LEAT_MUST_CHECK;
LEAT_API bool leat_monitored_should_stop(leat_monitored *ms);
LEAT_API leat_session *leat_monitored_session(leat_monitored *ms); /* borrowed; NULL: none now */
LEAT_API leat_coordinator *leat_monitored_coordinator(leat_monitored *ms);
/* Calls the hooks' end (not after an error), ends threads and the session, frees all of it. Gives
 * the first error that no run has given. Of NULL does nothing. */
LEAT_API leat_status leat_monitored_close(leat_monitored *ms) LEAT_MUST_CHECK;

/* ---- The supervisor: TensorFlow's older way. The session is the program's to run; what saves and
 * counts does so in threads of its own, by the clock. ----
 *
 *     LEAT_TRY(leat_supervisor_open(g, &sv, .is_chief = task == 0, .logdir = dir));
 *     LEAT_TRY(leat_supervisor_session(sv, leat_server_target(server), &s));
 *     while (!leat_supervisor_should_stop(sv) && step < n)
 *         LEAT_TRY(leat_session_run(s, feeds, LEAT_FETCH({step, &v}), LEAT_TARGET(train)));
 *     return leat_supervisor_close(sv);
 */
typedef struct leat_supervisor leat_supervisor;
typedef struct leat_supervisor_options {
    bool is_chief;
    const char *logdir; /* for checkpoints and events; NULL: none are written */
    const leat_scaffold *scaffold;
    double save_model_secs;     /* 600; below 0: never */
    double save_summaries_secs; /* 120; also of counting steps; below 0: never */
    double max_wait_secs;       /* 7200: for other tasks */
    leat_cancellation *stop;    /* ends that wait, as in leat_monitored_options */
    double stop_grace_secs;     /* 120 */
    const char *checkpoint_basename; /* "model.ckpt" */
    const leat_session_options *config; /* as in leat_monitored_options */
    bool no_services; /* neither threads that save and count, nor queue runners are started */
} leat_supervisor_options;
#define leat_supervisor_open(g, sv_out, ...)                                                       \
    leat_supervisor_open_with((g), &(const leat_supervisor_options){__VA_ARGS__}, (sv_out))
/* Borrows g. Builds what is missing of the scaffold into it. */
LEAT_API leat_status leat_supervisor_open_with(leat_graph *g,
                                               const leat_supervisor_options *options,
                                               leat_supervisor **sv_out) LEAT_MUST_CHECK;
/* prepare_or_wait_for_session: the chief initialises or restores, others wait for it; then the
 * services start. The session is the supervisor's, borrowed until the next call or the close. After
 * UNAVAILABLE or ABORTED from a run, another call gives a new one. */
LEAT_API leat_status leat_supervisor_session(leat_supervisor *sv, const char *master,
                                             leat_session **session_out) LEAT_MUST_CHECK;
LEAT_API bool leat_supervisor_should_stop(leat_supervisor *sv);
LEAT_API void leat_supervisor_request_stop(leat_supervisor *sv, leat_status s); /* takes s */
/* False if timeout_ms passed first; below 0: waits for ever. */
LEAT_API bool leat_supervisor_wait_for_stop(leat_supervisor *sv, int64_t timeout_ms);
/* Calls fn(arg) every interval_ms until all stop. After leat_supervisor_session. */
LEAT_API leat_status leat_supervisor_loop(leat_supervisor *sv, int64_t interval_ms,
                                          leat_thread_fn fn, void *arg) LEAT_MUST_CHECK;
/* A summary that the program fetched itself; of this step, or the present one if it is below 0. */
LEAT_API leat_status leat_supervisor_summary(leat_supervisor *sv, const leat_tensor *summary,
                                             int64_t step) LEAT_MUST_CHECK;
LEAT_API leat_coordinator *leat_supervisor_coordinator(leat_supervisor *sv);
/* The global step, as it is now. */
LEAT_API leat_status leat_supervisor_step(leat_supervisor *sv, int64_t *step_out) LEAT_MUST_CHECK;
/* Stops all threads, closes the session, frees. Gives the error that they stopped for. Of NULL does
 * nothing. */
LEAT_API leat_status leat_supervisor_close(leat_supervisor *sv) LEAT_MUST_CHECK;

#endif
