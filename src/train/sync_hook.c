/* sync_hook.c -- the hook of synchronous replicas; a monitored session adds it if its graph was
 * built with leat_sync_replicas. */
#include <stdlib.h>

#include "train/hook_int.h"
#include "train/sync_run.h"

typedef struct sync_hook {
    leat_hook base;
    leat_sync *y;
    leat_sync_start_options o;
    leat_cancellation *const *main;
    leat_sync_run *run;
} sync_hook;

static leat_status begin(leat_hook *h, leat_graph *g)
{
    sync_hook *p = (sync_hook *)h;
    p->y = leat_sync_of(g);
    LEAT_REQUIRE(p->y, INVALID_ARGUMENT,
                 "SyncReplicasOptimizer.apply_gradient should be called before using the hook.");
    if (p->o.chief)
        p->o.tokens = leat_sync_tokens(p->y, p->y->aggregate);
    return leat_graph_status(g);
}

static leat_status after_create_session(leat_hook *h, leat_session *s, leat_coordinator *coord)
{
    sync_hook *p = (sync_hook *)h;
    p->o.main = *p->main;
    return leat_sync_start(p->y, s, coord, &p->o, &p->run);
}

static leat_status before_run(leat_hook *h, leat_run_context *c)
{
    leat_sync_running(((sync_hook *)h)->run, true);
    return NULL;
}

static leat_status after_run(leat_hook *h, leat_run_context *c)
{
    leat_sync_running(((sync_hook *)h)->run, false);
    return NULL;
}

static leat_status end(leat_hook *h, leat_session *s)
{
    sync_hook *p = (sync_hook *)h;
    if (p->run)
        leat_sync_finish(p->run);
    return NULL;
}

static void before_close(leat_hook *h, leat_session *s)
{
    sync_hook *p = (sync_hook *)h;
    leat_sync_stop(p->run);
    p->run = NULL;
}

static void release(leat_hook *h)
{
    leat_sync_stop(((sync_hook *)h)->run);
    free(h);
}

leat_hook *leat_sync_hook_new(bool chief, double max_wait_secs, leat_cancellation *const *main)
{
    static const leat_hook_ops ops = {.name = "SyncReplicasOptimizerHook",
                                      .begin = begin,
                                      .after_create_session = after_create_session,
                                      .before_run = before_run,
                                      .after_run = after_run,
                                      .before_close = before_close,
                                      .end = end,
                                      .free = release};
    sync_hook *p = leat_hook_new(sizeof(*p), &ops);
    p->o = (leat_sync_start_options){.chief = chief, .max_wait_secs = max_wait_secs};
    p->main = main;
    return &p->base;
}
