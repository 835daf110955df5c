/* monitored_int.h -- internals of a monitored session. */
#ifndef LEAT_MONITORED_INT_H
#define LEAT_MONITORED_INT_H

#include "train/hook_int.h"
#include "train/session_manager.h"
#include "core/object.h"

struct leat_monitored {
    leat_object object;
    leat_graph *g;
    leat_session_maker maker;
    bool chief;
    double stop_grace_secs;
    char *target, *checkpoint_dir;
    leat_saver *saver;       /* made by leat_monitored_open */
    leat_hook *checkpointer; /* the checkpoint hook, if leat_monitored_open made it */

    leat_hook **hooks; /* owned; called in this order */
    int n_hooks, cap_hooks;

    leat_session *session; /* NULL while there is none */
    leat_coordinator *coord;
    leat_cancellation *cancellation; /* cancels all runs on the session */
    leat_run_context run;            /* the current run; its memory is used again */
    bool stop;                       /* a hook has requested a stop */
    bool failed; /* a run has returned an error: the hooks' end functions are not called */
};

/* monitored_session.c */
/* Makes a session on which the model is ready, starts its threads, calls the hooks. */
leat_status leat_monitored_create(leat_monitored *ms) LEAT_MUST_CHECK;
/* Closes the session and ends its threads. Gives the error for which a thread stopped. */
leat_status leat_monitored_drop(leat_monitored *ms) LEAT_MUST_CHECK;

#endif
