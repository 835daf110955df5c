/* session_manager.h -- making a session on which the model is ready: initialised, restored, or made
 * ready by the chief. Shared by the monitored session and the supervisor. */
#ifndef LEAT_SESSION_MANAGER_H
#define LEAT_SESSION_MANAGER_H

#include <leat/monitored.h>

/* Builds what a scaffold does not have, like TensorFlow's Scaffold.finalize: takes ops from the
 * collections "init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op" if
 * they have one, else makes them and adds them there. The caller makes the saver. */
leat_status leat_scaffold_finish(leat_graph *g, leat_scaffold *s) LEAT_MUST_CHECK;

typedef struct leat_session_maker {
    leat_graph *g;
    leat_session_options config;
    leat_scaffold scaffold;     /* complete */
    const char *checkpoint_dir; /* NULL: nothing is restored */
    double max_wait_secs;
    leat_cancellation *stop; /* ends waits with CANCELLED; may be NULL */
    /* The chief's first session restores or initialises the model even if all variables have
     * values, which it keeps otherwise. */
    bool discard_live;
    bool again; /* not the first session: the values are this program's own */
} leat_session_maker;

/* For the chief: opens a session, and runs the local initialisation. If not all variables have
 * values, or their step is before that of the newest checkpoint, restores that, or else
 * initialises. Waits, up to max_wait_secs, for tasks that do not reply. */
leat_status leat_session_prepare(const leat_session_maker *m,
                                 leat_session **session_out) LEAT_MUST_CHECK;
/* For other tasks: waits until the chief has made the model ready. */
leat_status leat_session_wait(const leat_session_maker *m,
                              leat_session **session_out) LEAT_MUST_CHECK;

/* Runs an op that gives names of variables that are not ready. Gives NULL if there are none, else
 * "Variables not initialized: w, b", to be freed with free(). A NULL node gives NULL. */
leat_status leat_session_ready(leat_session *s, leat_out op, const leat_run_options *o,
                               char **why_not_out) LEAT_MUST_CHECK;

/* graph_tasks.c: the tasks that nodes are placed on, "/job:ps/task:0", as a list that ends with
 * NULL; NULL if there are none. */
const char *const *leat_graph_tasks(leat_graph *g);
void leat_graph_tasks_free(const char *const *v);

/* Whether the error means that a task was lost, which may be restarted. */
static inline bool leat_is_preemption(leat_status s)
{
    leat_code c = leat_status_code(s);
    return c == LEAT_UNAVAILABLE || c == LEAT_ABORTED;
}

double leat_now(void); /* seconds of a monotonic clock */
void leat_nap(double secs);

#endif
