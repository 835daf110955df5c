/* hook_int.h -- what hooks and the sessions that call them share. */
#ifndef LEAT_HOOK_INT_H
#define LEAT_HOOK_INT_H

#include <leat/monitored.h>

/* The context of one run. Its arrays are used again for the next run. */
struct leat_run_context {
    leat_session *session;
    double max_wait_secs;            /* limit for hooks that wait */
    leat_cancellation *stop_request; /* ends their waits; may be NULL */
    bool stop;                       /* a hook has requested a stop */
    bool traced;                     /* a hook wants the run's times */
    leat_metadata *metadata;         /* those times, after the run */
    leat_feed *feeds; /* the user's feeds, then the hooks', whose values are shared */
    int n_feeds, cap_feeds, n_user_feeds;
    leat_fetch *fetches; /* the user's fetches, then the hooks', whose results are in values */
    int n_fetches, cap_fetches, n_user_fetches;
    leat_tensor **values; /* results of the hooks' fetches */
    int cap_values;
};
void leat_run_context_clear(leat_run_context *c); /* drops the values, keeps the memory */
void leat_run_context_release(leat_run_context *c);

/* Something that is due every so many steps or seconds; 0: at every step. */
typedef struct leat_timer {
    double every_secs;   /* below 0: not set */
    int64_t every_steps; /* below 0: not set; if neither is set, it is never due again */
    bool began;
    int64_t last_step;
    double last_time;
} leat_timer;
/* Whether exactly one of both intervals is set. */
leat_status leat_timer_check(const leat_timer *t, const char *hook) LEAT_MUST_CHECK;
bool leat_timer_due(const leat_timer *t, int64_t step);
/* Records that it was done at this step. Returns false the first time; else gives the time and
 * steps since the last. */
bool leat_timer_mark(leat_timer *t, int64_t step, double *secs_out, int64_t *steps_out);

/* The graph's global step; INVALID_ARGUMENT if it has none: "Global step should be created to use
 * StopAtStepHook." */
leat_status leat_hook_step(leat_graph *g, const char *hook, leat_out *step_out) LEAT_MUST_CHECK;
leat_status leat_read_step(leat_session *s, leat_out step, int64_t *value_out) LEAT_MUST_CHECK;

/* writer_cache.c: the writer of a directory; call leat_writer_put once for each leat_writer_get. A
 * writer without a file, if none can be made: all writing then gives the error. */
leat_summary_writer *leat_writer_get(const char *dir);
void leat_writer_put(leat_summary_writer *w); /* of NULL does nothing */
/* summary_writer.c: a writer, with or without a file. */
leat_summary_writer *leat_summary_writer_try(const char *dir, const leat_writer_options *o);
/* Takes an error that writing has given. Training does not end for it, but the first one of a
 * writer is logged as a warning. */
void leat_writer_tell(leat_summary_writer *w, leat_status s);

/* Says that the model is saved because a task (leat_session_ending) is about to end; of NULL does
 * nothing. */
void leat_log_ending(const char *task, const char *path, int64_t step);

/* Makes a summary hook that was made without an op use that of the scaffold, which outlives it. */
void leat_summary_hook_use(leat_hook *h, const leat_scaffold *scaffold);
/* Sets the saver of a checkpoint hook that was made without one; borrowed. */
void leat_checkpoint_hook_use(leat_hook *h, leat_saver *saver);

void *leat_hook_new(size_t size, const leat_hook_ops *ops);

#endif
