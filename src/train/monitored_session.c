/* monitored_session.c -- makes and closes the sessions that a monitored session uses one after
 * another, and calls the hooks for each. Corresponds to TensorFlow's coordinated and recoverable
 * sessions. */
#include <string.h>

#include "core/log.h"
#include "train/monitored_int.h"

static leat_status create_once(leat_monitored *ms)
{
    LEAT_TRY(ms->chief ? leat_session_prepare(&ms->maker, &ms->session)
                       : leat_session_wait(&ms->maker, &ms->session));
    ms->maker.again = true;
    ms->coord = leat_coordinator_new();
    ms->run.session = ms->session;
    LEAT_TRY(leat_start_queue_runners(ms->g, ms->session, ms->coord));
    for (int i = 0; i < ms->n_hooks; i++) {
        const leat_hook_ops *ops = ms->hooks[i]->ops;
        if (ops->after_create_session)
            LEAT_TRY(ops->after_create_session(ms->hooks[i], ms->session, ms->coord));
    }
    return NULL;
}

leat_status leat_monitored_create(leat_monitored *ms)
{
    double began = leat_now(), nap = 0.01;
    for (;;) {
        leat_status e = create_once(ms);
        if (!e)
            return NULL;
        leat_status_free(leat_monitored_drop(ms));
        double waited = leat_now() - began;
        if (!leat_is_preemption(e) || waited > ms->maker.max_wait_secs ||
            leat_is_cancelled(ms->maker.stop))
            return e;
        LEAT_LOG(INFO,
                 "A task went away while a session was being created, %.1f s ago; trying again: %s",
                 waited, leat_status_message(e));
        leat_status_free(e);
        leat_nap(nap);
        nap = nap < 1 ? nap * 2 : 1;
    }
}

leat_status leat_monitored_drop(leat_monitored *ms)
{
    leat_status e = NULL;
    for (int i = 0; ms->session && i < ms->n_hooks; i++)
        if (ms->hooks[i]->ops->before_close)
            ms->hooks[i]->ops->before_close(ms->hooks[i], ms->session);
    if (ms->coord) {
        leat_coordinator_request_stop(ms->coord, NULL);
        e = leat_coordinator_join(ms->coord, .grace_ms = (int64_t)(ms->stop_grace_secs * 1000),
                                  .ignore_live_threads = true);
    }
    if (ms->session)
        leat_session_close(ms->session);
    leat_coordinator_free(ms->coord);
    ms->session = NULL;
    ms->coord = NULL;
    ms->run.session = NULL;
    return e;
}
