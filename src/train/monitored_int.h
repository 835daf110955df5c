/* monitored_int.h -- the inside of a monitored session. */
#ifndef LEAT_MONITORED_INT_H
#define LEAT_MONITORED_INT_H

#include "train/hook_int.h"
#include "train/session_manager.h"

struct leat_monitored {
    leat_graph *g;
    leat_session_maker maker;
    bool chief;
    double stop_grace_secs;
    char *target, *checkpoint_dir;
    leat_saver *saver;       /* made here */
    leat_hook *checkpointer; /* the hook that saves, if it was made here */

    leat_hook **hooks; /* owned; called in this order */
    int n_hooks, cap_hooks;

    leat_session *session; /* NULL between two */
    leat_coordinator *coord;
    leat_cancellation *cancellation; /* of all runs on the session */
    leat_run_context run;            /* the one under way; its memory is used again */
    bool stop;                       /* a hook asked for it */
    bool failed;                     /* a run gave an error: hooks are not told of the end */
};

/* monitored_session.c */
/* Makes a session on which the model is ready, starts what runs beside it, tells the hooks. */
leat_status leat_monitored_create(leat_monitored *ms) LEAT_MUST_CHECK;
/* Ends it, with all that runs on it. Gives the error that a thread stopped for. */
leat_status leat_monitored_drop(leat_monitored *ms) LEAT_MUST_CHECK;

#endif
