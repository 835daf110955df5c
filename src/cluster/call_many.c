/* call_many.c -- see call_many.h. */
#include "cluster/call_many.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/tensor_wire.h"
#include "core/alloc.h"
#include "core/log.h"

typedef struct leat_call_group {
    leat_pending_call *q;
    int n;
    pthread_mutex_t lock; /* guards left and the pending calls */
    int left;
    leat_event done;
} leat_call_group;

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void on_reply(void *arg, leat_status s, const leat_incoming *in)
{
    leat_pending_call *q = arg;
    q->status = s;
    q->middle_ns += (wall_ns() - q->middle_ns) / 2;
    if (!s) {
        leat_cursor c = leat_cursor_of(in);
        q->size = in->size;
        q->status = leat_cursor_take(&c, in->size, &q->reply);
    }
    leat_call_group *group = q->group;
    pthread_mutex_lock(&group->lock);
    q->call = NULL;
    bool last = --group->left == 0;
    pthread_mutex_unlock(&group->lock);
    if (last)
        leat_event_set(&group->done);
}

static void log_waiting(leat_call_group *r, const char *what)
{
    for (int i = 0; i < r->n; i++) {
        pthread_mutex_lock(&r->lock); /* not while a program's log function runs */
        bool waits = r->q[i].call != NULL;
        pthread_mutex_unlock(&r->lock);
        if (waits)
            LEAT_LOG(WARNING, "%s still waiting for response from worker: %s at %s", what,
                     r->q[i].peer->name, r->q[i].peer->address);
    }
}

static void cancel_group(void *arg)
{
    leat_call_group *r = arg;
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < r->n; i++)
        if (r->q[i].call)
            leat_call_cancel(r->q[i].call);
    pthread_mutex_unlock(&r->lock);
}

leat_status leat_call_many(leat_pending_call *q, int n, const char *method, const char *what,
                           int64_t deadline_ns, bool wait_ready, leat_cancellation *cancellation)
{
    leat_call_group group = {.q = q, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER, .left = n};
    leat_cancel_watch watch = {.fn = cancel_group, .arg = &group};
    if (!n)
        return NULL;
    leat_event_init(&group.done);
    pthread_mutex_lock(&group.lock);
    for (int i = 0; i < n; i++) {
        q[i].group = &group;
        q[i].middle_ns = wall_ns();
        leat_call_options o = {.deadline_ns = deadline_ns, .wait_ready = wait_ready};
        leat_peer_call(q[i].peer, method, &q[i].request, &o, on_reply, &q[i], &q[i].call);
    }
    pthread_mutex_unlock(&group.lock);
    leat_cancellation_watch(cancellation, &watch);
    while (!leat_event_wait(&group.done, leat_now_ns() + INT64_C(10000000000)))
        log_waiting(&group, what);
    leat_cancellation_unwatch(cancellation, &watch);
    pthread_mutex_destroy(&group.lock);
    for (int i = 0; i < n; i++)
        if (q[i].status)
            return leat_status_copy(q[i].status);
    return NULL;
}

void leat_pending_calls_free(leat_pending_call *q, int n)
{
    for (int i = 0; i < n; i++) {
        leat_outgoing_release(&q[i].request);
        leat_status_free(q[i].status);
        free(q[i].reply);
    }
    free(q);
}

static void drop_reply(void *arg, leat_status s, const leat_incoming *in)
{
    leat_status_free(s);
}

void leat_peer_notify(leat_peer *p, const char *method, const void *request)
{
    enum { SECONDS = 30 };
    leat_call_options o = {.deadline_ns = leat_now_ns() + INT64_C(1000000000) * SECONDS};
    leat_outgoing q = {0};
    leat_status s = leat_put_fields(&q.text, method, request);
    if (!s) {
        leat_peer_call(p, method, &q, &o, drop_reply, NULL, NULL);
        return;
    }
    LEAT_LOG(WARNING, "%s at %s was not notified: %s", p->name, p->address, leat_status_message(s));
    leat_status_free(s);
}
