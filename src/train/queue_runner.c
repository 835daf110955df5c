/* queue_runner.c -- threads that run enqueue ops until the input ends. */
#include <leat/coordinator.h>
#include <leat/queue.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "core/threadpool.h"
#include "train/input_state.h"
#include "train/train_int.h"

enum {
    LOOK_MS = 20,  /* between two looks at whether threads should stop */
    END_MS = 5000, /* for ops to end before a queue is closed */
    HOLD_SECS = 60 /* for ops to end when queue runners are held */
};

/* A queue runner that was started in a session. */
typedef struct work {
    const leat_runner *r;
    leat_session *s;
    leat_coordinator *c;
    struct runners *all;
    /* Guarded by all->lock: */
    int enqueuing, threads; /* threads that enqueue, and all threads */
    bool held;              /* no thread begins an op */
    int resting;            /* threads that wait because the runner is held */
    struct work *next;
} work;

/* The queue runners of a graph. */
typedef struct runners {
    pthread_mutex_t lock;   /* guards works; first and last change only while the graph is built */
    pthread_cond_t changed; /* a thread has ended or rests, or a runner is released */
    bool ready;
    leat_runner *first, *last;
    work *works;
    bool holding; /* between leat_runners_hold and leat_runners_release; guarded by lock */
} runners;

static runners *runners_of(leat_graph *g)
{
    runners *all = leat_graph_extra(g, "queue_runners", sizeof(runners));
    if (!all->ready) {
        pthread_mutex_init(&all->lock, NULL);
        leat_cond_init(&all->changed);
        all->ready = true;
    }
    return all;
}

void leat_queue_runner_at(leat_loc at, leat_out queue, const leat_out *ops, int n,
                          const leat_queue_runner_options *o)
{
    if (!leat_out_ok(queue))
        return;
    leat_graph *g = queue.node->graph;
    leat_queue_close_options normal = {0}, cancel = {.cancel_pending_enqueues = true};
    if (n < 1) {
        leat_graph_fail(g, at, leat_error(INVALID_ARGUMENT, "Must provide queue and enqueue_ops."));
        return;
    }
    for (int i = 0; i < n; i++)
        if (!leat_out_ok(ops[i]))
            return;
    leat_runner_add(
        g,
        &(leat_runner){
            .queue = queue,
            .close_op = o->close_op.node ? o->close_op : leat_queue_close_at(at, queue, &normal),
            .cancel_op = o->cancel_op.node ? o->cancel_op : leat_queue_close_at(at, queue, &cancel),
            .enqueue_ops = (leat_out *)ops,
            .n = n,
            .closed_codes = LEAT_RUNNER_CLOSED});
}

const leat_runner *leat_runners(const leat_graph *g)
{
    /* Making the list on first use does not change the graph. */
    return runners_of((leat_graph *)g)->first;
}

void leat_runner_add(leat_graph *g, const leat_runner *from)
{
    leat_runner *r = leat_arena_new(&g->arena, leat_runner);
    *r = *from;
    r->next = NULL;
    r->enqueue_ops = leat_arena_array(&g->arena, leat_out, r->n);
    for (int i = 0; i < r->n; i++)
        r->enqueue_ops[i] = leat_done(from->enqueue_ops[i]);
    runners *all = runners_of(g);
    if (all->last)
        all->last->next = r;
    else
        all->first = r;
    all->last = r;
}

/* ---- Running ---- */

typedef struct thread_args {
    work *w;
    int op; /* index into enqueue_ops; -1: the thread that closes the queue when all stop */
} thread_args;

static leat_status run(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(target)));
}

/* Drops a reference: a thread's, or that of a runner that is held. The last one frees w. */
static void thread_ends(work *w)
{
    runners *all = w->all;
    pthread_mutex_lock(&all->lock);
    bool last = --w->threads == 0;
    pthread_cond_broadcast(&all->changed);
    for (work **p = &all->works; last && *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            break;
        }
    pthread_mutex_unlock(&all->lock);
    if (last)
        free(w);
}

static void close_quietly(leat_session *s, leat_out op)
{
    leat_status bad = run(s, op);
    if (bad)
        LEAT_LOG(INFO, "A queue runner ignores: %s", leat_status_message(bad));
    leat_status_free(bad);
}

/* With the lock held: waits until something has changed, or for a while. */
static void wait_a_while(runners *all)
{
    leat_cond_wait_until(&all->changed, &all->lock, leat_now_ns() + LOOK_MS * INT64_C(1000000));
}

/* Rests while the runner is held. False: the thread should stop. */
static bool may_go_on(work *w)
{
    runners *all = w->all;
    pthread_mutex_lock(&all->lock);
    if (w->held) {
        w->resting++;
        pthread_cond_broadcast(&all->changed);
        while (w->held && !leat_coordinator_should_stop(w->c))
            wait_a_while(all);
        w->resting--;
    }
    pthread_mutex_unlock(&all->lock);
    return !leat_coordinator_should_stop(w->c);
}

static leat_status enqueue_until_closed(void *arg)
{
    thread_args a = *(thread_args *)arg;
    work *w = a.w;
    free(arg);
    leat_status s = NULL;
    while (!s && may_go_on(w))
        s = run(w->s, w->r->enqueue_ops[a.op]);
    pthread_mutex_lock(&w->all->lock);
    bool last = --w->enqueuing == 0;
    pthread_cond_broadcast(&w->all->changed);
    pthread_mutex_unlock(&w->all->lock);
    if (s && w->r->closed_codes >> leat_status_code(s) & 1) {
        if (last)
            close_quietly(w->s, w->r->close_op);
        leat_status_free(s);
        s = NULL;
    }
    thread_ends(w);
    return s;
}

/* Lets the enqueues under way end, so that no element is lost when the queue is closed: it may
 * become part of a last checkpoint. */
static void let_end(work *w)
{
    runners *all = w->all;
    const int64_t deadline = leat_now_ns() + END_MS * INT64_C(1000000);
    close_quietly(w->s, w->r->lift_op);
    pthread_mutex_lock(&all->lock);
    while (w->enqueuing && leat_now_ns() < deadline)
        wait_a_while(all);
    pthread_mutex_unlock(&all->lock);
}

static leat_status close_on_stop(void *arg)
{
    work *w = ((thread_args *)arg)->w;
    free(arg);
    leat_coordinator_wait_for_stop(w->c, -1);
    if (w->r->lift_op.node)
        let_end(w);
    close_quietly(w->s, w->r->cancel_op);
    thread_ends(w);
    return NULL;
}

static leat_status start_thread(work *w, int op)
{
    thread_args *a = leat_new(thread_args);
    *a = (thread_args){w, op};
    leat_strbuf name = {0};
    leat_strbuf_printf(&name, "QueueRunnerThread-%s-%s", leat_node_name(w->r->queue.node),
                       op < 0 ? "close_on_stop" : leat_node_name(w->r->enqueue_ops[op].node));
    leat_status s = leat_coordinator_start(w->c, leat_strbuf_text(&name),
                                           op < 0 ? close_on_stop : enqueue_until_closed, a);
    leat_strbuf_release(&name);
    if (s) {
        free(a);
        pthread_mutex_lock(&w->all->lock);
        w->enqueuing -= op >= 0;
        pthread_mutex_unlock(&w->all->lock);
        thread_ends(w);
    }
    return s;
}

static bool at_work(const runners *all, const leat_runner *r, const leat_session *s)
{
    for (const work *w = all->works; w; w = w->next)
        if (w->r == r && w->s == s && w->enqueuing)
            return true;
    return false;
}

static leat_status start(runners *all, const leat_runner *r, leat_session *s, leat_coordinator *c)
{
    if (r->limit_op
            .node) /* a program that was killed while it saved has left the queue unlimited */
        LEAT_TRY(run(s, r->limit_op));
    pthread_mutex_lock(&all->lock);
    if (at_work(all, r, s)) {
        pthread_mutex_unlock(&all->lock);
        return NULL;
    }
    work *w = leat_new(work);
    int n = r->n + 1;
    *w = (work){
        .r = r, .s = s, .c = c, .all = all, .enqueuing = r->n, .threads = n, .next = all->works};
    all->works = w;
    pthread_mutex_unlock(&all->lock);
    leat_status bad = NULL;
    for (int i = -1; i < r->n; i++) /* each counts as a thread, even if it fails to start */
        bad = leat_status_first(bad, start_thread(w, i));
    return bad;
}

leat_status leat_start_queue_runners(leat_graph *g, leat_session *s, leat_coordinator *c)
{
    LEAT_CHECK(GRAPH, g);
    LEAT_CHECK(SESSION, s);
    LEAT_CHECK(COORDINATOR, c);
    runners *all = runners_of(g);
    for (const leat_runner *r = all->first; r; r = r->next)
        LEAT_TRY(start(all, r, s, c));
    return NULL;
}

/* ---- Holding ---- */

void leat_runners_prepare(leat_graph *g)
{
    for (leat_runner *r = runners_of(g)->first; r; r = r->next) {
        const leat_out queue = {r->queue.node, 0};
        if (!r->lift_op.node)
            leat_with_colocate(g, queue)
            {
                r->lift_op = leat_op(g, "_QueueSetUnlimited", leat_in(queue),
                                     leat_attr_bool("unlimited", true));
                r->limit_op = leat_op(g, "_QueueSetUnlimited", leat_in(queue),
                                      leat_attr_bool("unlimited", false));
            }
    }
}

/* Marks the nodes that runner r's ops need, directly or through others. seen has a place for each
 * node of the graph. */
static void mark_needed(const leat_graph *g, const leat_runner *r, bool *seen)
{
    const leat_node **stack = leat_new_array(const leat_node *, g->n_nodes + 1);
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (!seen[r->enqueue_ops[i].node->id]) {
            seen[r->enqueue_ops[i].node->id] = true;
            stack[n++] = r->enqueue_ops[i].node;
        }
    while (n) {
        const leat_node *x = stack[--n];
        for (int i = 0; i < x->n_in + x->n_controls; i++) {
            const leat_node *y = i < x->n_in ? x->in[i].node : x->controls[i - x->n_in];
            if (!y || seen[y->id])
                continue;
            seen[y->id] = true;
            stack[n++] = y;
        }
    }
    free(stack);
}

/* Whether a runner's ops dequeue from the queue that another runner fills. */
static bool consumes(const leat_graph *g, const leat_runner *r, const leat_runner *of)
{
    bool *seen = leat_new_array(bool, g->n_nodes + 1);
    mark_needed(g, r, seen);
    bool yes = r->queue.node != of->queue.node && seen[of->queue.node->id];
    free(seen);
    return yes;
}

/* With the lock held: a runner in s that is not held, and whose elements no other such runner
 * consumes; if there are only others, one of those. NULL if all are held. */
static work *next_to_hold(const leat_graph *g, const runners *all, const leat_session *s)
{
    work *any = NULL;
    for (work *w = all->works; w; w = w->next) {
        bool consumed = false;
        if (w->s != s || w->held)
            continue;
        for (const work *v = all->works; v && !consumed; v = v->next)
            consumed = v != w && v->s == s && !v->held && consumes(g, v->r, w->r);
        if (!consumed)
            return w;
        any = w;
    }
    return any;
}

/* Holds w, which keeps a reference until it is released. With the lock held, which is released
 * meanwhile. */
static leat_status hold(runners *all, work *w)
{
    const int64_t deadline = leat_now_ns() + HOLD_SECS * INT64_C(1000000000);
    leat_status s = NULL;
    w->held = true;
    w->threads++;
    pthread_mutex_unlock(&all->lock);
    if (w->r->lift_op.node)
        s = run(w->s, w->r->lift_op);
    pthread_mutex_lock(&all->lock);
    while (!s && w->resting < w->enqueuing && leat_now_ns() < deadline)
        wait_a_while(all);
    if (!s && w->resting < w->enqueuing)
        s = leat_error(DEADLINE_EXCEEDED,
                       "The position of the input cannot be saved: an op that fills queue %s has "
                       "not ended for %d s. Does it wait for something that no queue runner gives?",
                       leat_node_name(w->r->queue.node), HOLD_SECS);
    return s;
}

leat_status leat_runners_hold(leat_graph *g, leat_session *s)
{
    runners *all = runners_of(g);
    leat_status bad = NULL;
    pthread_mutex_lock(&all->lock);
    while (all->holding)
        wait_a_while(all);
    all->holding = true;
    for (work *w; !bad && (w = next_to_hold(g, all, s));)
        bad = hold(all, w);
    pthread_mutex_unlock(&all->lock);
    if (bad)
        leat_runners_release(g, s);
    return bad;
}

/* A held runner of the session, or NULL. */
static work *find_held(runners *all, const leat_session *s)
{
    pthread_mutex_lock(&all->lock);
    work *w = all->works;
    while (w && !(w->held && w->s == s))
        w = w->next;
    pthread_mutex_unlock(&all->lock);
    return w;
}

void leat_runners_release(leat_graph *g, leat_session *s)
{
    runners *all = runners_of(g);
    for (work *w; (w = find_held(all, s));) {
        if (w->r->limit_op.node && !leat_coordinator_should_stop(w->c))
            close_quietly(s, w->r->limit_op);
        pthread_mutex_lock(&all->lock);
        w->held = false;
        pthread_cond_broadcast(&all->changed);
        pthread_mutex_unlock(&all->lock);
        thread_ends(w);
    }
    pthread_mutex_lock(&all->lock);
    all->holding = false;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}
