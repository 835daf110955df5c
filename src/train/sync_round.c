/* sync_round.c -- the chief's thread, which runs one round after another.
 *
 * 1. A round waits for Q gradients and issues P tokens. While all replicas are present, Q and P are
 * the constants in the graph; else they are fed. Q is never above the number of tokens of the round
 * before, since only so many gradients can be computed. 2. When a replica is lost, a round that
 * waits for its gradient is cancelled and repeated with a smaller Q. The cancelled round may have
 * taken gradients from some accumulators, which are lost; the accumulators' steps are set back, and
 * new tokens of the current step make the workers compute gradients again. So all gradients that
 * are averaged were computed at the current step. 3. A round that is cancelled between its first
 * and its last update is repeated, too: some variables are then updated twice and others once, as
 * in asynchronous training. This happens only if a gradient arrives at the moment in which its
 * sender is declared lost.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/log.h"
#include "train/hook_int.h"
#include "train/sync_run.h"

typedef struct plan {
    int required, tokens;
    bool usual; /* Q and P are those of the graph */
    leat_cancellation *cancellation;
} plan;

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Returns false if the thread should stop. */
static bool next_plan(leat_sync_run *r, plan *p)
{
    leat_sync *y = r->y;
    pthread_mutex_lock(&r->lock);
    bool go_on = !r->stop;
    bool several = y->aggregate > y->total; /* a worker computes more than one gradient a round */
    p->tokens = several ? y->aggregate : r->present;
    p->required = least(several ? y->aggregate : least(y->aggregate, r->present), r->issued);
    p->usual = p->required == y->aggregate && (several || p->tokens == y->total);
    p->cancellation = r->round;
    pthread_mutex_unlock(&r->lock);
    atomic_store(&y->quorum, p->required);
    return go_on && !leat_coordinator_should_stop(r->coord);
}

static leat_status run_round(leat_sync_run *r, const plan *p)
{
    leat_sync *y = r->y;
    leat_run_options o = {.cancellation = p->cancellation};
    if (p->usual)
        return leat_session_run_with(r->session, &o, LEAT_NO_FEED, LEAT_NO_FETCH,
                                     LEAT_TARGET(y->round));
    const int32_t tokens = p->tokens, gradients = p->required;
    leat_tensor *required = NULL, *few = NULL;
    leat_feed *feeds = leat_new_array(leat_feed, y->n + 1);
    leat_status e = leat_tensor_copy_of(LEAT_INT32, leat_shape(), &gradients, &required);
    if (!e)
        e = leat_tensor_copy_of(LEAT_INT32, leat_shape(1), &tokens, &few);
    for (int i = 0; i < y->n; i++)
        feeds[i] = (leat_feed){y->required[i], required};
    feeds[y->n] = (leat_feed){y->few, few};
    if (!e)
        e = leat_session_run_with(r->session, &o, (leat_feeds){feeds, y->n + 1}, LEAT_NO_FETCH,
                                  LEAT_TARGET(y->few_round));
    leat_tensor_unref(required);
    leat_tensor_unref(few);
    free(feeds);
    return e;
}

static leat_status least_waiting(leat_sync_run *r, int *least_out)
{
    leat_sync *y = r->y;
    leat_tensor **n = leat_new_array(leat_tensor *, y->n);
    leat_fetch *fetches = leat_new_array(leat_fetch, y->n);
    for (int i = 0; i < y->n; i++)
        fetches[i] = (leat_fetch){y->waiting[i], &n[i]};
    leat_status e = leat_sync_do(r, LEAT_NO_FEED, (leat_fetches){fetches, y->n}, (leat_out){0}, 30);
    *least_out = 1 << 30;
    for (int i = 0; i < y->n; i++) {
        if (!e)
            *least_out = least(*least_out, (int)leat_tensor_at(n[i], 0));
        leat_tensor_unref(n[i]);
    }
    free(n);
    free(fetches);
    return e;
}

/* After a cancelled round: see rule 2. */
static leat_status repair(leat_sync_run *r)
{
    leat_sync *y = r->y;
    int waiting = 0;
    plan p;
    if (!next_plan(r, &p))
        return NULL;
    LEAT_TRY(leat_sync_do(r, LEAT_NO_FEED, LEAT_NO_FETCH, y->set_steps, 30));
    LEAT_TRY(leat_read_step(r->session, y->global_step, &r->step));
    LEAT_TRY(least_waiting(r, &waiting));
    int32_t more = p.required - waiting;
    if (more <= 0)
        return NULL;
    if (more < p.tokens)
        more = p.tokens;
    leat_tensor *n = NULL;
    LEAT_TRY(leat_tensor_copy_of(LEAT_INT32, leat_shape(1), &more, &n));
    leat_status e = leat_sync_do(r, LEAT_FEED({y->n_more, n}), LEAT_NO_FETCH, y->more, 30);
    leat_tensor_unref(n);
    LEAT_LOG(INFO, "Round %" PRId64 " begins again: %d tokens for new gradients", r->step, more);
    return e;
}

/* Whether the round ended because a replica was lost; then it can be repeated. */
static bool take_again(leat_sync_run *r)
{
    pthread_mutex_lock(&r->lock);
    bool again = r->again && !r->stop;
    if (again) {
        r->again = false;
        leat_cancellation_free(r->round);
        r->round = leat_cancellation_new();
    }
    pthread_mutex_unlock(&r->lock);
    return again;
}

void *leat_sync_rounds(void *run)
{
    leat_sync_run *r = run;
    plan p;
    leat_status e = NULL;
    while (!e && next_plan(r, &p)) {
        e = run_round(r, &p);
        if (!e) {
            pthread_mutex_lock(&r->lock);
            r->issued = p.tokens;
            r->step++;
            pthread_mutex_unlock(&r->lock);
        }
        bool again = take_again(r);
        if (e && again && leat_status_code(e) != LEAT_UNAVAILABLE) {
            leat_status_free(e);
            e = repair(r);
        }
    }
    pthread_mutex_lock(&r->lock);
    bool stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    if (e && !stop) {
        leat_coordinator_request_stop(r->coord,
                                      leat_status_prefix(e, "The chief's round of updates: "));
        if (r->main)
            leat_cancel_runs(r->main);
    } else {
        leat_status_free(e);
    }
    return NULL;
}
