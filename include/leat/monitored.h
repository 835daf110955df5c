/* monitored.h -- sessions for training programs: the chief initialises the model, or restores it
 * from a checkpoint; the other workers wait until the chief has done so; hooks count, log, save and
 * stop; a run that fails because a task is lost is repeated on a new session as soon as the task is
 * back.
 *
 *     leat_monitored *ms;
 *     LEAT_TRY(leat_monitored_open(g, &ms, .master = leat_server_target(server),
 *                                  .is_chief = task == 0, .checkpoint_dir = dir,
 *                                  .last_step = 20000));
 *     while (!leat_monitored_should_stop(ms))
 *         LEAT_TRY(leat_monitored_run(ms, LEAT_FEED({x, images}), LEAT_NO_FETCH,
 *                                     LEAT_TARGET(train)));
 *     return leat_monitored_close(ms);
 *
 * Behaviour and defaults are those of TensorFlow's MonitoredTrainingSession; but every wait ends
 * after max_wait_secs, with a message that names what was waited for, a chief keeps a model that is
 * there already, and the chief saves before a task ends that was told to.
 */
#ifndef LEAT_MONITORED_H
#define LEAT_MONITORED_H

#include <leat/coordinator.h>
#include <leat/saver.h>
#include <leat/session.h>
#include <leat/summary.h>
#include <leat/train.h>

/* ---- Hooks: what is done around every run ----
 * A hook of your own is a struct whose first member is a leat_hook, and a table of functions. Each
 * function may be NULL. If one returns an error, the run ends with it. */
typedef struct leat_hook leat_hook;
typedef struct leat_run_context leat_run_context; /* what hooks see of one run */
typedef struct leat_hook_ops {
    const char *name;
    /* Called once, before the session is made: may still add nodes. */
    leat_status (*begin)(leat_hook *h, leat_graph *g);
    /* Called for every new session, also after a recovery. */
    leat_status (*after_create_session)(leat_hook *h, leat_session *s, leat_coordinator *coord);
    leat_status (*before_run)(leat_hook *h, leat_run_context *c); /* may add fetches and feeds */
    /* Only after a run that succeeded. */
    leat_status (*after_run)(leat_hook *h, leat_run_context *c);
    /* Called before a session is closed, for whatever reason: threads that run on the session must
     * end now. */
    void (*before_close)(leat_hook *h, leat_session *s);
    leat_status (*end)(leat_hook *h, leat_session *s); /* called once; not after an error */
    void (*free)(leat_hook *h);
} leat_hook_ops;
struct leat_hook {
    const leat_hook_ops *ops;
};
LEAT_API void leat_hook_free(leat_hook *h); /* of NULL does nothing */

/* leat_run_fetch, in before_run, adds x to the fetches. leat_run_value, in after_run, gives the
 * value of x, borrowed; NULL if x was not fetched. */
LEAT_API void leat_run_fetch(leat_run_context *c, leat_out x);
LEAT_API const leat_tensor *leat_run_value(const leat_run_context *c, leat_out x);
/* In before_run: feeds x; shares the value. FAILED_PRECONDITION if x is fed already. */
LEAT_API leat_status leat_run_feed(leat_run_context *c, leat_out x,
                                   const leat_tensor *value) LEAT_MUST_CHECK;
/* leat_run_trace, in before_run, has the run traced, over all tasks that take part in it.
 * leat_run_metadata, in after_run, gives times and memory of its nodes, borrowed; NULL if the run
 * was not traced. */
LEAT_API void leat_run_trace(leat_run_context *c);
LEAT_API const leat_metadata *leat_run_metadata(const leat_run_context *c);
LEAT_API leat_session *leat_run_session(const leat_run_context *c);
LEAT_API void leat_run_request_stop(leat_run_context *c); /* no run after this one */

/* ---- The usual hooks. Options that are not written have TensorFlow's defaults. Hooks that write
 * events do not end training if a file cannot be written (a full disk, a directory without
 * permission): that is logged once, as a warning. ---- */
typedef struct leat_stop_at_step_options {
    leat_given given; /* set by the macro */
    /* Exactly one of num_steps (stop after so many more steps) and last_step (stop at that global
     * step) is set. At least one run is done before the hook stops. */
    int64_t num_steps;
    int64_t last_step; /* see num_steps */
} leat_stop_at_step_options;
LEAT_API leat_hook *leat_stop_at_step_hook_new(const leat_stop_at_step_options *o);
#define leat_stop_at_step_hook(...)                                                                \
    leat_stop_at_step_hook_new(LEAT_GIVEN_OPTIONS(leat_stop_at_step_options, __VA_ARGS__))

typedef struct leat_checkpoint_listener {
    void *arg;
    leat_status (*before_save)(void *arg, leat_session *s, int64_t step);
    /* Called after each save; may set *stop to request a stop. */
    leat_status (*after_save)(void *arg, leat_session *s, int64_t step, bool *stop);
    leat_status (*end)(void *arg, leat_session *s, int64_t step);
} leat_checkpoint_listener;
typedef struct leat_checkpoint_hook_options {
    leat_given given; /* set by the macro */
    const char *checkpoint_dir;
    /* Exactly one of save_secs and save_steps is set; 0: after every step. */
    double save_secs;
    int64_t save_steps;
    leat_saver *saver;               /* borrowed; NULL: a saver of all variables */
    const char *checkpoint_basename; /* "model.ckpt" */
    const leat_checkpoint_listener *listeners; /* copied */
    int n_listeners;
} leat_checkpoint_hook_options;
LEAT_API leat_hook *leat_checkpoint_hook_new(const leat_checkpoint_hook_options *o);
#define leat_checkpoint_hook(...)                                                                  \
    leat_checkpoint_hook_new(LEAT_GIVEN_OPTIONS(leat_checkpoint_hook_options, __VA_ARGS__))

/* Writes steps per second to the log and as a summary. */
typedef struct leat_step_counter_options {
    leat_given given;      /* set by the macro */
    int64_t every_n_steps; /* default 100 */
    double every_n_secs;   /* if set, used instead of every_n_steps */
    const char *output_dir;
    leat_summary_writer *writer; /* borrowed; used instead of output_dir */
} leat_step_counter_options;
LEAT_API leat_hook *leat_step_counter_hook_new(const leat_step_counter_options *o);
#define leat_step_counter_hook(...)                                                                \
    leat_step_counter_hook_new(LEAT_GIVEN_OPTIONS(leat_step_counter_options, __VA_ARGS__))

/* Writes values to the log at level info: "loss = 0.25, step = 100 (1.230 sec)". */
typedef struct leat_logging_options {
    leat_given given;        /* set by the macro */
    const leat_out *tensors; /* copied */
    const char *const *tags; /* copied; NULL: the tensors' names */
    int n;
    /* At most one of every_n_iter, which is positive, and every_n_secs is set; if neither is, the
     * values are logged at the end only. */
    int64_t every_n_iter;
    double every_n_secs;
    bool at_end;
} leat_logging_options;
LEAT_API leat_hook *leat_logging_hook_new(const leat_logging_options *o);
#define leat_logging_hook(...)                                                                     \
    leat_logging_hook_new(LEAT_GIVEN_OPTIONS(leat_logging_options, __VA_ARGS__))

/* A loss that is NaN fails the run with INVALID_ARGUMENT, or requests a stop without an error. */
typedef struct leat_nan_options {
    leat_out loss;
    bool stop_only;
} leat_nan_options;
LEAT_API leat_hook *leat_nan_hook_new(const leat_nan_options *o);
#define leat_nan_hook(...) leat_nan_hook_new(LEAT_OPTIONS(leat_nan_options, __VA_ARGS__))

typedef struct leat_summary_hook_options {
    leat_given given;    /* set by the macro */
    leat_out summary_op; /* NULL node: all summaries of the collection "summaries", merged */
    /* Exactly one of save_steps and save_secs is set; 0: after every step. */
    int64_t save_steps;
    double save_secs;
    const char *output_dir;
    leat_summary_writer *writer; /* borrowed; used instead of output_dir */
} leat_summary_hook_options;
LEAT_API leat_hook *leat_summary_hook_new(const leat_summary_hook_options *o);
#define leat_summary_hook(...)                                                                     \
    leat_summary_hook_new(LEAT_GIVEN_OPTIONS(leat_summary_hook_options, __VA_ARGS__))

/* Traces runs, each over all tasks that take part in it, and writes them to
 * OUTPUT_DIR/timeline-STEP.json, Chrome traces (chrome://tracing, Perfetto) with a row for each
 * device of each task, and as run metadata "step_STEP" to the event file. Traced are those runs
 * that save_steps or save_secs choose, but not the first one, or those that reach one of `steps`.
 * A file that cannot be written does not end training: that is logged once. */
typedef struct leat_profiler_options {
    leat_given given; /* set by the macro */
    /* Exactly one of save_steps, save_secs and steps is set. */
    int64_t save_steps;
    double save_secs;
    const int64_t *steps; /* n_steps global steps; copied */
    int n_steps;
    const char *output_dir;
} leat_profiler_options;
LEAT_API leat_hook *leat_profiler_hook_new(const leat_profiler_options *o);
#define leat_profiler_hook(...)                                                                    \
    leat_profiler_hook_new(LEAT_GIVEN_OPTIONS(leat_profiler_options, __VA_ARGS__))

/* Does one run at the end of training; its fetches are written through their `value` pointers. */
typedef struct leat_final_ops_options {
    leat_feeds feeds;
    leat_fetches fetches; /* feeds and fetches are copied, the tensors they point to are not */
    leat_targets targets;
} leat_final_ops_options;
LEAT_API leat_hook *leat_final_ops_hook_new(const leat_final_ops_options *o);
#define leat_final_ops_hook(...)                                                                   \
    leat_final_ops_hook_new(LEAT_OPTIONS(leat_final_ops_options, __VA_ARGS__))

/* The first run waits until the global step has reached this value, so that workers can be started
 * one by one. */
LEAT_API leat_hook *leat_global_step_waiter_hook(int64_t wait_until_step);

/* fn is called before each run; it feeds tensors with leat_run_feed. */
LEAT_API leat_hook *leat_feed_fn_hook(leat_status (*fn)(void *arg, leat_run_context *c), void *arg);

/* ---- What makes a model ready. A field whose node is NULL is built as TensorFlow's Scaffold
 * does. ---- */
typedef struct leat_scaffold {
    leat_out init_op;      /* run by the chief if there is no checkpoint */
    leat_feeds init_feeds; /* feeds of the run of init_op */
    leat_status (*init_fn)(void *arg, leat_session *s); /* called by the chief after init_op */
    void *init_arg;
    leat_out ready_op; /* gives the names of variables that are not ready, as strings */
    /* The same, for what must be ready before local_init_op runs. */
    leat_out ready_for_local_init_op;
    leat_out local_init_op; /* run by every task for each session */
    leat_out summary_op;    /* all summaries of the model, merged */
    leat_saver *saver;      /* borrowed; NULL: a saver of all variables */
} leat_scaffold;

/* ---- Sessions ---- */
typedef struct leat_monitored leat_monitored; /* to be used by one thread at a time */
typedef struct leat_monitored_options {
    leat_given given; /* set by the macro */
    /* "grpc://host:port"; "" runs in this process, which then is the chief. */
    const char *master;
    bool is_chief; /* true for one task of a cluster: it initialises, restores and saves */
    const char *checkpoint_dir; /* NULL: nothing is saved or restored */
    const char *summary_dir;    /* default: checkpoint_dir */
    const leat_scaffold *scaffold;
    /* Lists that end with NULL; takes the hooks, also on failure. */
    leat_hook *const *hooks;
    leat_hook *const *chief_only_hooks;
    /* If one of both is set, a stop_at_step hook is added; below 0: not set. */
    int64_t last_step, num_steps;
    double save_checkpoint_secs;   /* default 600; 0 or below: never */
    int64_t save_checkpoint_steps; /* used instead of save_checkpoint_secs, if it is above 0 */
    int64_t save_summaries_steps;  /* default 100; 0 or below: never */
    double save_summaries_secs;    /* used instead of save_summaries_steps, if it is above 0 */
    int64_t log_step_count_steps;  /* default 100; 0 or below: never */
    double stop_grace_secs;        /* default 120: how long the session's threads have to end */
    /* Default 7200: how long to wait for other tasks, at the start and after a failure; 0: not at
     * all. */
    double max_wait_secs;
    /* When another thread cancels `stop`, waits for other tasks end with CANCELLED; a step that is
     * running is completed, and then leat_monitored_should_stop gives true. Outlives the
     * session. */
    leat_cancellation *stop;
    /* The chief of a first session finds all variables with values, on tasks that kept running: it
     * keeps them, unless their step is before that of the newest checkpoint. If this is set, it
     * restores the newest checkpoint, or else initialises, as TensorFlow does. */
    bool discard_live;
    /* Options of the sessions; their target is ignored. Without device_filters, the session needs
     * only the tasks on which nodes of the graph are placed. */
    const leat_session_options *config;
} leat_monitored_options;
#define leat_monitored_open(g, ms_out, ...)                                                        \
    leat_monitored_open_with((g), LEAT_GIVEN_OPTIONS(leat_monitored_options, __VA_ARGS__), (ms_out))
/* Borrows g, and adds to it what the scaffold does not have. */
LEAT_API leat_status leat_monitored_open_with(leat_graph *g, const leat_monitored_options *options,
                                              leat_monitored **ms_out) LEAT_MUST_CHECK;
/* One run with all hooks. UNAVAILABLE and ABORTED mean that a task is lost: a new session is made
 * and the run is repeated. OUT_OF_RANGE, the end of the input, is not an error to
 * leat_monitored_close. */
LEAT_API leat_status leat_monitored_run(leat_monitored *ms, leat_feeds feeds, leat_fetches fetches,
                                        leat_targets targets) LEAT_MUST_CHECK;
LEAT_API bool leat_monitored_should_stop(leat_monitored *ms);
/* Borrowed; NULL if there is no session at present. */
LEAT_API leat_session *leat_monitored_session(leat_monitored *ms);
LEAT_API leat_coordinator *leat_monitored_coordinator(leat_monitored *ms);
/* Calls the hooks' end (not after an error), ends the threads, closes the session, frees
 * everything. Gives the first error that no run has returned. Of NULL does nothing. */
LEAT_API leat_status leat_monitored_close(leat_monitored *ms) LEAT_MUST_CHECK;

/* ---- The supervisor: TensorFlow's older interface. The program runs the session itself; saving
 * and counting are done at intervals by threads of their own. ----
 *
 *     LEAT_TRY(leat_supervisor_open(g, &sv, .is_chief = task == 0, .logdir = dir));
 *     LEAT_TRY(leat_supervisor_session(sv, leat_server_target(server), &s));
 *     while (!leat_supervisor_should_stop(sv) && step < n)
 *         LEAT_TRY(leat_session_run(s, feeds, LEAT_FETCH({step, &v}), LEAT_TARGET(train)));
 *     return leat_supervisor_close(sv);
 */
typedef struct leat_supervisor leat_supervisor;
typedef struct leat_supervisor_options {
    leat_given given; /* set by the macro */
    bool is_chief;
    const char *logdir; /* for checkpoints and event files; NULL: none are written */
    const leat_scaffold *scaffold;
    double save_model_secs; /* default 600; 0 or below: never */
    /* Default 120; interval of summaries and step counts; 0 or below: never. */
    double save_summaries_secs;
    /* Default 7200: how long to wait for other tasks; 0: not at all. */
    double max_wait_secs;
    leat_cancellation *stop;         /* ends waits for other tasks, as in leat_monitored_options */
    bool discard_live;               /* as in leat_monitored_options */
    double stop_grace_secs;          /* default 120 */
    const char *checkpoint_basename; /* "model.ckpt" */
    const leat_session_options *config; /* as in leat_monitored_options */
    bool no_services; /* start no threads that save and count, and no queue runners */
} leat_supervisor_options;
#define leat_supervisor_open(g, sv_out, ...)                                                       \
    leat_supervisor_open_with((g), LEAT_GIVEN_OPTIONS(leat_supervisor_options, __VA_ARGS__),       \
                              (sv_out))
/* Borrows g, and adds to it what the scaffold does not have. */
LEAT_API leat_status leat_supervisor_open_with(leat_graph *g,
                                               const leat_supervisor_options *options,
                                               leat_supervisor **sv_out) LEAT_MUST_CHECK;
/* prepare_or_wait_for_session: the chief initialises or restores, the other workers wait for the
 * chief; then the services start. The session belongs to the supervisor and is borrowed until the
 * next call of this function or leat_supervisor_close. After UNAVAILABLE or ABORTED from a run,
 * another call gives a new session. */
LEAT_API leat_status leat_supervisor_session(leat_supervisor *sv, const char *master,
                                             leat_session **session_out) LEAT_MUST_CHECK;
LEAT_API bool leat_supervisor_should_stop(leat_supervisor *sv);
LEAT_API void leat_supervisor_request_stop(leat_supervisor *sv, leat_status s); /* takes s */
/* False if timeout_ms passed first; below 0: no limit. */
LEAT_API bool leat_supervisor_wait_for_stop(leat_supervisor *sv, int64_t timeout_ms);
/* Calls fn(arg) every interval_ms until the supervisor stops. Call this after
 * leat_supervisor_session. */
LEAT_API leat_status leat_supervisor_loop(leat_supervisor *sv, int64_t interval_ms,
                                          leat_thread_fn fn, void *arg) LEAT_MUST_CHECK;
/* Writes a summary that the program has fetched, for this global step; step below 0: the current
 * one. If the event file cannot be written, that is logged once and is no error. */
LEAT_API leat_status leat_supervisor_summary(leat_supervisor *sv, const leat_tensor *summary,
                                             int64_t step) LEAT_MUST_CHECK;
/* Saves a checkpoint now, beside those that are saved at intervals. Only the chief may, and only
 * with a logdir. Gives the checkpoint's path, unless path_out is NULL; free with free(). */
LEAT_API leat_status leat_supervisor_save(leat_supervisor *sv, char **path_out) LEAT_MUST_CHECK;
LEAT_API leat_coordinator *leat_supervisor_coordinator(leat_supervisor *sv);
/* The current global step. */
LEAT_API leat_status leat_supervisor_step(leat_supervisor *sv, int64_t *step_out) LEAT_MUST_CHECK;
/* Stops all threads, closes the session, frees. Gives the error for which the threads stopped. Of
 * NULL does nothing. */
LEAT_API leat_status leat_supervisor_close(leat_supervisor *sv) LEAT_MUST_CHECK;

#endif
