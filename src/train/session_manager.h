/* session_manager.h -- making a session on which the model is ready: initialised, restored, or
 * waited for. What the monitored session and the supervisor share. */
#ifndef LEAT_SESSION_MANAGER_H
#define LEAT_SESSION_MANAGER_H

#include <leat/monitored.h>

/* Builds what is missing of a scaffold, as TensorFlow's Scaffold.finalize: from the collections
 * "init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op" where they have
 * one, else anew, and puts it there. The saver is the caller's to make. */
leat_status leat_scaffold_finish(leat_graph *g, leat_scaffold *s) LEAT_MUST_CHECK;

typedef struct leat_session_maker {
    leat_graph *g;
    leat_session_options config;
    leat_scaffold scaffold;     /* finished */
    const char *checkpoint_dir; /* NULL: nothing is restored */
    double max_wait_secs;
    leat_cancellation *stop; /* ends the waits with CANCELLED; may be NULL */
    bool keep_live; /* a model whose variables all have values is taken as it is, even if there is
                       no checkpoint to tell that it is the same */
} leat_session_maker;

/* The chief's: opens a session, restores the newest checkpoint or else initialises, and runs the
 * local initialisation. Waits, up to max_wait_secs, for tasks that do not answer. */
leat_status leat_session_prepare(const leat_session_maker *m,
                                 leat_session **session_out) LEAT_MUST_CHECK;
/* The other tasks': waits until the chief has made the model ready. */
leat_status leat_session_wait(const leat_session_maker *m,
                              leat_session **session_out) LEAT_MUST_CHECK;

/* What an op of names says: NULL if there are none, else "Variables not initialized: w, b", to be
 * freed with free(). A NULL node gives none. */
leat_status leat_session_ready(leat_session *s, leat_out op, const leat_run_options *o,
                               char **why_not_out) LEAT_MUST_CHECK;

/* graph_tasks.c: the tasks that nodes ask for, "/job:ps/task:0", as a NULL-ended list; NULL if
 * there are none. */
const char *const *leat_graph_tasks(leat_graph *g);
void leat_graph_tasks_free(const char *const *v);

/* A task went away; it, or one in its place, may come back. */
static inline bool leat_is_preemption(leat_status s)
{
    leat_code c = leat_status_code(s);
    return c == LEAT_UNAVAILABLE || c == LEAT_ABORTED;
}

double leat_now(void); /* seconds, of a clock that only goes forward */
void leat_nap(double secs);

#endif
