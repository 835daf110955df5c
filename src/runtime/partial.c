/* partial.c -- a run in several calls. The step is started when it is set up, on a thread of its
 * own; each call hands it some feeds and waits for some fetches. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/thread.h"
#include "runtime/late.h"
#include "runtime/session_int.h"
#include "runtime/where.h"

struct leat_partial {
    leat_object object; /* these two are first, in every kind of session */
    leat_session *session;
    leat_late *late;
    leat_step *step;
    leat_step_guard guard;
    leat_cancel cancel;
    leat_event over; /* the step has ended */
    leat_out *feeds, *fetches;
    bool *taken; /* for each fetch: it was given to the client */
    int n_feeds, n_fetches;
    pthread_mutex_t lock; /* guards status and taken */
    leat_status status;   /* of the step, once it ended */
};

static void on_cancel(void *arg, leat_status why)
{
    leat_partial *p = arg;
    leat_late_end(p->late, why);
}

static void run_step(void *arg)
{
    leat_partial *p = arg;
    leat_status s = leat_step_run(p->step);
    pthread_mutex_lock(&p->lock);
    p->status = s;
    pthread_mutex_unlock(&p->lock);
    leat_late_end(p->late, s);
    leat_event_set(&p->over);
}

static leat_status partial_new(leat_session *s, const leat_request *q, leat_partial **partial_out)
{
    leat_plan *plan;
    LEAT_TRY(leat_session_begin(s));
    leat_status status = leat_session_plan(s, q, 0, NULL, &plan);
    if (status) {
        leat_session_end(s);
        return status;
    }
    leat_partial *p = leat_new_object(leat_partial, PARTIAL);
    pthread_mutex_init(&p->lock, NULL);
    p->session = s;
    p->late = leat_late_new(q->n_feeds, q->n_fetches);
    p->feeds = leat_new_array(leat_out, q->n_feeds + 1);
    p->fetches = leat_new_array(leat_out, q->n_fetches + 1);
    p->taken = leat_new_array(bool, q->n_fetches + 1);
    p->n_feeds = q->n_feeds;
    p->n_fetches = q->n_fetches;
    if (q->n_feeds)
        memcpy(p->feeds, q->feeds, sizeof(*q->feeds) * (size_t)q->n_feeds);
    if (q->n_fetches)
        memcpy(p->fetches, q->fetches, sizeof(*q->fetches) * (size_t)q->n_fetches);
    leat_event_init(&p->over);
    p->step = leat_step_new(
        plan, &(leat_step_options){.id = atomic_fetch_add(&s->next_step, 1) + 1, .late = p->late});
    p->cancel = (leat_cancel){.fn = on_cancel, .arg = p};
    leat_step_on_cancel(p->step, &p->cancel);
    leat_session_guard(s, NULL, p->step, &p->guard);
    const int e = leat_pool_submit_blocking(s->pool, run_step, p);
    if (e) {
        leat_event_set(&p->over);
        leat_partial_free(p);
        return leat_error(RESOURCE_EXHAUSTED,
                          "No thread can be started for a partial run: %s. " LEAT_NO_THREAD_HINT,
                          strerror(e));
    }
    *partial_out = p;
    return NULL;
}

leat_status leat_session_partial(leat_session *s, const leat_out *feeds, int n_feeds,
                                 const leat_out *fetches, int n_fetches, const leat_out *targets,
                                 int n_targets, leat_partial **partial_out)
{
    LEAT_CHECK(SESSION, s);
    leat_request q = {.feeds = feeds,
                      .n_feeds = n_feeds,
                      .fetches = fetches,
                      .n_fetches = n_fetches,
                      .targets = targets,
                      .n_targets = n_targets,
                      .feed_later = true};
    leat_status status =
        s->ops ? s->ops->partial(s, &q, partial_out) : partial_new(s, &q, partial_out);
    return leat_status_where(status, s->graph);
}

static int find(const leat_out *v, int n, leat_out x)
{
    for (int i = 0; i < n; i++)
        if (v[i].node == x.node && v[i].index == x.index)
            return i;
    return -1;
}

/* The step's status. A cancelled step may not have ended yet: waiters get its error first. */
static leat_status ended(leat_partial *p)
{
    leat_event_wait(&p->over, 0);
    pthread_mutex_lock(&p->lock);
    leat_status s = leat_status_copy(p->status);
    pthread_mutex_unlock(&p->lock);
    return s;
}

static leat_status take(leat_partial *p, const leat_fetch *f)
{
    int i = find(p->fetches, p->n_fetches, f->x);
    pthread_mutex_lock(&p->lock);
    bool again = p->taken[i];
    p->taken[i] = true;
    pthread_mutex_unlock(&p->lock);
    LEAT_REQUIRE(!again, INVALID_ARGUMENT, "The tensor %s:%d has already been fetched.",
                 f->x.node->name, f->x.index);
    leat_tensor *t = leat_late_fetch(p->late, i);
    if (!t) {
        LEAT_TRY(ended(p));
        return leat_error(INTERNAL, "The step ended without %s:%d", f->x.node->name, f->x.index);
    }
    if (f->value)
        *f->value = t;
    else
        leat_tensor_unref(t);
    return NULL;
}

/* ---- What can be had from what was fed ---- */

static void visit(const leat_node *n, bool *seen, const leat_node **stack, int *depth)
{
    if (seen[n->id])
        return;
    seen[n->id] = true;
    stack[(*depth)++] = n;
}

static leat_status walk(leat_partial *p, leat_feeds feeds, bool *seen, const leat_node **stack,
                        int depth)
{
    while (depth) {
        const leat_node *n = stack[--depth];
        for (int i = 0; i < n->n_in; i++) {
            int at = find(p->feeds, p->n_feeds, n->in[i]);
            bool now = false;
            for (int k = 0; k < feeds.n; k++)
                now |= feeds.v[k].x.node == n->in[i].node && feeds.v[k].x.index == n->in[i].index;
            LEAT_REQUIRE(at < 0 || now || leat_late_was_fed(p->late, at), INVALID_ARGUMENT,
                         "Fetch %s:%d can't be computed from the feeds that have been fed so far.",
                         n->in[i].node->name, n->in[i].index);
            if (at < 0)
                visit(n->in[i].node, seen, stack, &depth);
        }
        for (int i = 0; i < n->n_controls; i++)
            visit(n->controls[i], seen, stack, &depth);
    }
    return NULL;
}

/* A fetch that needs a feed which has not come would be waited for in vain. */
static leat_status check_fetches(leat_partial *p, leat_feeds feeds, leat_fetches fetches)
{
    if (!fetches.n)
        return NULL;
    leat_graph *g = p->fetches[0].node->graph;
    pthread_mutex_lock(&g->lock);
    bool *seen = leat_new_array(bool, g->n_nodes + 1);
    const leat_node **stack = leat_new_array(const leat_node *, g->n_nodes + 1);
    int depth = 0;
    for (int i = 0; i < fetches.n; i++)
        if (fetches.v[i].x.node && fetches.v[i].x.node->graph == g)
            visit(fetches.v[i].x.node, seen, stack, &depth);
    leat_status s = walk(p, feeds, seen, stack, depth);
    pthread_mutex_unlock(&g->lock);
    free(seen);
    free(stack);
    return s;
}

/* Whether x is one of the n outputs that were named when the run began; `what`: "feed", "fetch". */
static leat_status check_named(const char *what, const leat_out *named, int n, leat_out x)
{
    LEAT_REQUIRE(find(named, n, x) >= 0, INVALID_ARGUMENT,
                 "The %s %s:%d was not specified in partial_run_setup.", what,
                 x.node ? x.node->name : "(none)", x.index);
    return NULL;
}

static leat_status partial_run(leat_partial *p, leat_feeds feeds, leat_fetches fetches)
{
    for (int i = 0; i < feeds.n; i++)
        LEAT_TRY(check_named("feed", p->feeds, p->n_feeds, feeds.v[i].x));
    for (int i = 0; i < fetches.n; i++)
        LEAT_TRY(check_named("fetch", p->fetches, p->n_fetches, fetches.v[i].x));
    LEAT_TRY(check_fetches(p, feeds, fetches));
    for (int i = 0; i < feeds.n; i++) {
        const int at = find(p->feeds, p->n_feeds, feeds.v[i].x);
        LEAT_TRY(leat_feed_check(feeds.v[i].x, feeds.v[i].value));
        leat_status s = leat_late_feed(p->late, at, (leat_tensor *)feeds.v[i].value);
        if (s)
            return leat_status_prefix(s, "The feed %s:%d ", feeds.v[i].x.node->name,
                                      feeds.v[i].x.index);
    }
    for (int i = 0; i < fetches.n; i++)
        LEAT_TRY(take(p, &fetches.v[i]));
    return NULL;
}

leat_status leat_partial_run(leat_partial *p, leat_feeds feeds, leat_fetches fetches)
{
    LEAT_CHECK(PARTIAL, p);
    leat_session *s = p->session;
    leat_status status =
        s->ops ? s->ops->partial_run(p, feeds, fetches) : partial_run(p, feeds, fetches);
    return leat_status_where(status, s->graph);
}

void leat_partial_end(leat_partial *p, leat_status why)
{
    leat_step_fail(p->step, why);
}

void leat_partial_free(leat_partial *p)
{
    if (!p)
        return;
    if (!LEAT_USABLE(PARTIAL, p))
        return;
    if (p->session->ops) {
        p->session->ops->partial_free(p);
        return;
    }
    leat_step_fail(p->step, leat_error(CANCELLED, "The partial run was given up"));
    leat_event_wait(&p->over, 0); /* soon: all waits of the step were cancelled */
    leat_session_unguard(p->session, NULL, &p->guard);
    leat_step_free(p->step);
    leat_session_end(p->session);
    leat_late_free(p->late);
    leat_status_free(p->status);
    pthread_mutex_destroy(&p->lock);
    free(p->feeds);
    free(p->fetches);
    free(p->taken);
    leat_object_free(&p->object);
}
