/* queue_runner.c -- threads that run enqueue ops until the input ends. */
#include <leat/coordinator.h>
#include <leat/queue.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "train/train_int.h"

/* A queue runner that was started in a session. */
typedef struct work {
    const leat_runner *r;
    leat_session *s;
    leat_coordinator *c;
    struct runners *all;
    int enqueuing, threads; /* threads that enqueue, and all threads; guarded by all->lock */
    struct work *next;
} work;

/* The queue runners of a graph. */
typedef struct runners {
    pthread_mutex_t lock; /* guards works; first and last change only while the graph is built */
    bool ready;
    leat_runner *first, *last;
    work *works;
} runners;

static runners *runners_of(leat_graph *g)
{
    runners *all = leat_graph_extra(g, "queue_runners", sizeof(runners));
    if (!all->ready) {
        pthread_mutex_init(&all->lock, NULL);
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

/* Drops a thread's reference; the last one frees w. */
static void thread_ends(work *w)
{
    runners *all = w->all;
    pthread_mutex_lock(&all->lock);
    bool last = --w->threads == 0;
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

static leat_status enqueue_until_closed(void *arg)
{
    thread_args a = *(thread_args *)arg;
    work *w = a.w;
    free(arg);
    leat_status s = NULL;
    while (!s && !leat_coordinator_should_stop(w->c))
        s = run(w->s, w->r->enqueue_ops[a.op]);
    pthread_mutex_lock(&w->all->lock);
    bool last = --w->enqueuing == 0;
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

static leat_status close_on_stop(void *arg)
{
    work *w = ((thread_args *)arg)->w;
    free(arg);
    leat_coordinator_wait_for_stop(w->c, -1);
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
