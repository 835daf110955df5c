/* sync_run.c -- starts and ends a replica on a session: initialisation, threads, leaving. */
#include "train/sync_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/log.h"
#include "core/thread.h"
#include "train/hook_int.h"
#include "train/session_manager.h"

static leat_run_options run_options(const leat_sync_run *r, double secs)
{
    return (leat_run_options){.timeout_ms = (int64_t)(secs * 1000) + 1, .cancellation = r->quiet};
}

leat_status leat_sync_do(leat_sync_run *r, leat_feeds feeds, leat_fetches fetches, leat_out op,
                         double secs)
{
    leat_run_options o = run_options(r, secs);
    return leat_session_run_with(r->session, &o, feeds, fetches,
                                 op.node ? LEAT_TARGET(op) : LEAT_NO_TARGET);
}

static leat_status join_lease(leat_sync_run *r)
{
    leat_sync *y = r->y;
    leat_tensor *there = NULL;
    if (!y->lease.node)
        return NULL;
    LEAT_TRY(leat_sync_do(r, LEAT_NO_FEED, LEAT_FETCH({y->lease_exists, &there}), (leat_out){0},
                          r->max_wait_secs));
    bool exists = leat_tensor_at(there, 0) != 0;
    leat_tensor_unref(there);
    if (!exists)
        LEAT_TRY(leat_sync_do(r, LEAT_NO_FEED, LEAT_NO_FETCH, y->lease_init, r->max_wait_secs));
    if (!y->join.node)
        return NULL;
    return leat_sync_do(r, LEAT_NO_FEED, LEAT_NO_FETCH, y->join, r->max_wait_secs);
}

static leat_status initialize(leat_sync_run *r, leat_out tokens)
{
    leat_sync *y = r->y;
    leat_out op = r->chief ? y->chief_init : y->local_init;
    char *why = NULL;
    leat_run_options o = run_options(r, r->max_wait_secs);
    LEAT_TRY(leat_session_ready(r->session, y->ready_for_local_init, &o, &why));
    leat_status e = NULL;
    if (why)
        e = leat_error(FAILED_PRECONDITION,
                       "Init operations did not make model ready for SyncReplicasOptimizer "
                       "local_init. Init op: %s, error: %s",
                       leat_node_name(op.node), why);
    free(why);
    LEAT_TRY(e);
    LEAT_TRY(leat_sync_do(r, LEAT_NO_FEED, LEAT_NO_FETCH, op, r->max_wait_secs));
    LEAT_TRY(join_lease(r));
    LEAT_TRY(leat_read_step(r->session, y->global_step, &r->step));
    if (r->chief && tokens.node)
        LEAT_TRY(leat_sync_do(r, LEAT_NO_FEED, LEAT_NO_FETCH, tokens, r->max_wait_secs));
    return NULL;
}

/* ---- What is known of the replicas ---- */

static pthread_mutex_t members_lock = PTHREAD_MUTEX_INITIALIZER; /* guards members of a leat_sync */

/* A replica that was absent when the last session ended stays so until its lease changes. The
 * leases of the others begin anew: perhaps they could not be reached, since a parameter server was
 * lost. */
static void recall(leat_sync_run *r)
{
    leat_sync *y = r->y;
    const double now = leat_now();
    r->members = leat_new_array(leat_sync_member, y->total);
    r->present = 0;
    pthread_mutex_lock(&members_lock);
    for (int i = 0; i < y->total; i++) {
        if (y->members)
            r->members[i] = y->members[i];
        leat_sync_member *m = &r->members[i];
        m->recalled = m->absent;
        m->moved = m->absent ? fmin(m->moved, now - 2 * y->lease_secs) : now;
        r->present += !m->absent;
    }
    pthread_mutex_unlock(&members_lock);
    r->present = r->present > 0 ? r->present : 1;
}

static void remember(leat_sync_run *r)
{
    leat_sync *y = r->y;
    pthread_mutex_lock(&members_lock);
    if (!y->members)
        y->members = leat_arena_array(&y->g->arena, leat_sync_member, y->total);
    memcpy(y->members, r->members, sizeof(*r->members) * (size_t)y->total);
    pthread_mutex_unlock(&members_lock);
}

leat_status leat_sync_start(leat_sync *y, leat_session *s, leat_coordinator *coord,
                            const leat_sync_start_options *o, leat_sync_run **out)
{
    leat_sync_run *r = leat_new(leat_sync_run);
    *r = (leat_sync_run){.y = y, .session = s, .coord = coord, .chief = o->chief, .main = o->main};
    r->max_wait_secs = o->max_wait_secs;
    r->quiet = leat_cancellation_new();
    r->round = leat_cancellation_new();
    recall(r);
    r->issued = y->total > y->aggregate ? y->total : y->aggregate;
    pthread_mutex_init(&r->lock, NULL);
    leat_cond_init(&r->wake);
    leat_status e = initialize(r, o->tokens);
    if (!e && r->chief)
        r->has_rounds = leat_thread_start(&r->rounds, leat_sync_rounds, r) == 0;
    if (!e && y->lease.node)
        r->has_leases = leat_thread_start(&r->leases, leat_sync_leases, r) == 0;
    if (!e && ((r->chief && !r->has_rounds) || (y->lease.node && !r->has_leases)))
        e = leat_error(RESOURCE_EXHAUSTED,
                       "No thread can be started for the %s of synchronous replicas. %s",
                       r->chief && !r->has_rounds ? "rounds" : "leases", LEAT_NO_THREAD_HINT);
    if (e) {
        leat_sync_stop(r);
        return e;
    }
    *out = r;
    return NULL;
}

/* Ends the threads and cancels their runs. */
static void end_threads(leat_sync_run *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    leat_cancel_runs(r->round);
    leat_cancel_runs(r->quiet);
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
    if (r->has_rounds)
        pthread_join(r->rounds, NULL);
    if (r->has_leases)
        pthread_join(r->leases, NULL);
    r->has_rounds = r->has_leases = false;
}

void leat_sync_finish(leat_sync_run *r)
{
    leat_sync *y = r->y;
    if (!y->lease.node)
        return;
    end_threads(r);
    leat_cancellation_free(r->quiet);
    r->quiet = leat_cancellation_new();
    leat_status e = NULL;
    /* There will be no more rounds: workers that wait for a token get one, with the last step. */
    if (r->chief) {
        leat_tensor *n = NULL;
        int32_t total = y->total;
        e = leat_tensor_copy_of(LEAT_INT32, leat_shape(1), &total, &n);
        if (!e)
            e = leat_sync_do(r, LEAT_FEED({y->n_more, n}), LEAT_NO_FETCH, y->more, 5);
        leat_tensor_unref(n);
    }
    if (!e && y->leave.node)
        e = leat_sync_do(r, LEAT_NO_FEED, LEAT_NO_FETCH, y->leave, 5);
    if (e)
        LEAT_LOG(INFO, "This replica leaves, but the others could not be told: %s",
                 leat_status_message(e));
    leat_status_free(e);
}

void leat_sync_stop(leat_sync_run *r)
{
    if (!r)
        return;
    end_threads(r);
    remember(r);
    leat_cancellation_free(r->round);
    leat_cancellation_free(r->quiet);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    free(r->members);
    free(r);
}

void leat_sync_running(leat_sync_run *r, bool running)
{
    pthread_mutex_lock(&r->lock);
    r->run_began = running ? leat_now() : 0;
    pthread_mutex_unlock(&r->lock);
}
