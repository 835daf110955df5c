/* sync_watch.c -- the thread of every replica that shows that the replica is alive. It increments
 * the replica's lease, reads how many of its gradients were dropped, and logs what a long step
 * waits for. On the chief it also decides which replicas are present. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "core/threadpool.h"
#include "train/session_manager.h"
#include "train/sync_run.h"

typedef struct watch {
    leat_sync_run *r;
    bool counts;    /* the parameter servers count dropped gradients */
    int64_t logged; /* number of dropped gradients at the last log message */
    double logged_at, log_at;
    int64_t step; /* the global step, and when it was last seen to change */
    double step_moved;
} watch;

/* ---- Dropped gradients ---- */

static void log_dropped(watch *w, int64_t n)
{
    leat_sync *y = w->r->y;
    double now = leat_now();
    atomic_store(&y->n_dropped, n);
    if (n <= w->logged || now < w->logged_at + 10)
        return;
    LEAT_LOG(WARNING,
             "%" PRId64 " gradients of replica %d came too late and were dropped, %" PRId64
             " of them since this was last said. The mean of a round has %d gradients of %d "
             "replicas: see replicas_to_aggregate",
             n, y->replica, n - w->logged, y->aggregate, y->total);
    w->logged = n;
    w->logged_at = now;
}

/* ---- Which replicas are present ---- */

static void name_missing(const leat_sync_run *r, leat_strbuf *b)
{
    double now = leat_now();
    int n = 0;
    for (int i = 0; i < r->y->total; i++) {
        const leat_sync_member *m = &r->members[i];
        const char *sep = n ? ", " : "";
        if (!m->seen)
            leat_strbuf_printf(b, "%sreplica %d has not been seen yet", sep, i), n++;
        else if (m->count < 0)
            leat_strbuf_printf(b, "%sreplica %d has left", sep, i), n++;
        else if (now - m->moved > 2)
            leat_strbuf_printf(b, "%sreplica %d is silent for %.0f s", sep, i, now - m->moved), n++;
    }
    if (!n)
        leat_strbuf_puts(b, "all replicas are alive");
}

/* The lock is held. Gives the number of replicas that were lost since the last call. */
static int look(leat_sync_run *r, const int64_t *leases)
{
    double now = leat_now();
    int lost = 0, present = 0;
    for (int i = 0; i < r->y->total; i++) {
        leat_sync_member *m = &r->members[i];
        if (m->recalled) {
            m->recalled = false;
            m->count = leases[i];
        }
        /* 0: a parameter server was started again, and the replica has not been there since. */
        if (leases[i] != m->count && leases[i]) {
            m->seen = true;
            m->count = leases[i];
            m->moved = now;
        }
        bool absent = m->seen && (m->count < 0 || now - m->moved > r->y->lease_secs);
        lost += absent && !m->absent;
        if (absent && !m->absent && r->chief)
            LEAT_LOG(WARNING, "Replica %d %s: rounds go on without it", i,
                     m->count < 0 ? "has left" : "is silent");
        if (!absent && m->absent && r->chief)
            LEAT_LOG(INFO, "Replica %d is back", i);
        m->absent = absent;
        present += !absent;
    }
    r->present = present > 0 ? present : 1;
    return lost;
}

static void decide(leat_sync_run *r, const int64_t *leases)
{
    leat_sync *y = r->y;
    pthread_mutex_lock(&r->lock);
    int lost = look(r, leases);
    atomic_store(&y->present, r->present);
    if (r->chief && lost && !r->stop &&
        (atomic_load(&y->quorum) > r->present || y->aggregate > y->total)) {
        r->again = true;
        leat_cancel_runs(r->round);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- What a step waits for ---- */

static void watch_step(watch *w, int64_t step)
{
    leat_sync_run *r = w->r;
    double now = leat_now();
    leat_strbuf who = {0};
    if (step != w->step) {
        w->step = step;
        w->step_moved = now;
    }
    pthread_mutex_lock(&r->lock);
    double since = r->run_began > w->step_moved ? r->run_began : w->step_moved;
    bool waits = r->run_began > 0 && now - since > 5;
    if (waits)
        name_missing(r, &who);
    pthread_mutex_unlock(&r->lock);
    if (waits && now >= w->log_at) {
        LEAT_LOG(INFO,
                 "This step has been waiting for round %" PRId64
                 " of all replicas for %.0f s of at "
                 "most %.0f s: %s",
                 step, now - since, r->max_wait_secs, leat_strbuf_text(&who));
        w->log_at = now + 10;
    }
    if (waits && now - since > r->max_wait_secs) {
        leat_coordinator_request_stop(
            r->coord, leat_error(DEADLINE_EXCEEDED,
                                 "Round %" PRId64 " of synchronous replicas has not ended in %.0f "
                                 "secs: %s. The chief ends rounds: check that it runs, or set "
                                 "max_wait_secs higher",
                                 step, now - since, leat_strbuf_text(&who)));
        if (r->main)
            leat_cancel_runs(r->main);
    }
    leat_strbuf_release(&who);
}

/* ---- One round of the thread ---- */

static leat_status read_state(watch *w, leat_tensor **lease, leat_tensor **step, int64_t *dropped)
{
    leat_sync *y = w->r->y;
    int n = w->counts ? y->n : 0;
    leat_tensor **v = leat_new_array(leat_tensor *, n + 1);
    leat_fetch *fetches = leat_new_array(leat_fetch, n + 2);
    fetches[0] = (leat_fetch){y->lease, lease};
    fetches[1] = (leat_fetch){y->global_step, step};
    for (int i = 0; i < n; i++)
        fetches[i + 2] = (leat_fetch){y->dropped[i], &v[i]};
    leat_status e = leat_sync_do(w->r, LEAT_NO_FEED, (leat_fetches){fetches, n + 2}, y->beat,
                                 y->lease_secs > 1 ? y->lease_secs : 1);
    *dropped = n && !e ? 0 : -1;
    for (int i = 0; i < n; i++) {
        int64_t d = e ? 0 : (int64_t)leat_tensor_at(v[i], 0);
        *dropped = !e && d > *dropped ? d : *dropped;
        leat_tensor_unref(v[i]);
    }
    free(v);
    free(fetches);
    return e;
}

static void look_once(watch *w)
{
    leat_tensor *lease = NULL, *step = NULL;
    int64_t dropped;
    leat_status e = read_state(w, &lease, &step, &dropped);
    leat_code code = leat_status_code(e);
    if (!e) {
        decide(w->r, leat_tensor_data(lease));
        watch_step(w, (int64_t)leat_tensor_at(step, 0));
        if (w->counts)
            log_dropped(w, dropped);
    } else if (w->counts && (code == LEAT_NOT_FOUND || code == LEAT_INVALID_ARGUMENT ||
                             code == LEAT_UNIMPLEMENTED)) {
        LEAT_LOG(INFO, "The parameter servers do not report how many gradients they drop: %s",
                 leat_status_message(e));
        w->counts = false;
        atomic_store(&w->r->y->n_dropped, -1);
    } /* otherwise the worker's own step fails, too, and reports the error */
    leat_status_free(e);
    leat_tensor_unref(lease);
    leat_tensor_unref(step);
}

/* Returns false if the thread should stop. */
static bool nap(leat_sync_run *r, double secs)
{
    int64_t until = leat_now_ns() + (int64_t)(secs * 1e9);
    pthread_mutex_lock(&r->lock);
    while (!r->stop && leat_cond_wait_until(&r->wake, &r->lock, until))
        ;
    bool go_on = !r->stop;
    pthread_mutex_unlock(&r->lock);
    return go_on;
}

void *leat_sync_leases(void *run)
{
    leat_sync_run *r = run;
    watch w = {.r = r, .counts = true, .step = -1, .step_moved = leat_now()};
    w.logged_at = -1e9;
    double every = r->y->lease_secs / 4 < 0.5 ? r->y->lease_secs / 4 : 0.5;
    do
        look_once(&w);
    while (nap(r, every));
    return NULL;
}
