/* worker_idle.c -- sessions that their masters left behind. A master that was restarted closes
 * those of its former incarnation by its next CreateWorkerSession. All other masters are asked here
 * whether they are still there, and Leat's whether they still have the session: the call by which
 * they close one may be lost. */
#include <stdlib.h>
#include <string.h>

#include "cluster/call_many.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/worker_int.h"
#include "core/alloc.h"
#include "core/log.h"
#include "proto/wire.h"

/* The sessions to look at, and the masters that are asked. */
typedef struct idle_sessions {
    leat_worker_session **v; /* References. */
    int n, cap;
    leat_pending_call *calls; /* One for each different master. */
    int n_calls;
    Leat__GetStatusResponse **replies; /* Of the calls; NULL: there is none. */
    leat_map closed; /* From the handle of a session to the reply that says that it is closed. */
} idle_sessions;

/* The process of a session's master; NULL if it is not known. */
static leat_peer *master_of(const leat_worker *w, const leat_worker_session *s)
{
    return s->master_incarnation ? leat_peers_find(w->peers, s->master_task) : NULL;
}

/* Finds the sessions without a connection that had no call for half of idle_ns, so that a master is
 * asked several times before its sessions are closed, and those whose master was not asked for as
 * long. */
static void find_idle(leat_worker *w, const leat_connections *open, int64_t idle_ns,
                      idle_sessions *out)
{
    size_t i = 0;
    const char *key;
    void *v;
    pthread_mutex_lock(&w->lock);
    int64_t now = leat_now_ns();
    while (leat_map_next(&w->sessions, &i, &key, &v)) {
        leat_worker_session *s = v;
        if (s->own)
            continue;
        if (leat_usage_connected(&s->usage, open))
            leat_usage_seen(&s->usage);
        if (leat_usage_idle_ns(&s->usage, now) > idle_ns / 2 ||
            (master_of(w, s) && now - s->asked_ns > idle_ns / 2)) {
            leat_grow(out->v, out->n, out->cap);
            atomic_fetch_add(&s->refs, 1);
            out->v[out->n++] = s;
            s->asked_ns = now;
        }
    }
    pthread_mutex_unlock(&w->lock);
}

/* The index of the call to the master of a session; -1 if the master is not known. */
static int call_of(const leat_worker *w, const idle_sessions *idle, const leat_worker_session *s)
{
    const leat_peer *p = master_of(w, s);
    for (int i = 0; i < idle->n_calls && p; i++)
        if (idle->calls[i].peer == p)
            return i;
    return -1;
}

/* The request to a master names the sessions that it is asked for. */
static leat_status make_request(const leat_worker *w, const idle_sessions *idle,
                                leat_pending_call *q)
{
    Leat__GetStatusRequest m = LEAT__GET_STATUS_REQUEST__INIT;
    m.leat_session = leat_new_array(char *, idle->n);
    for (int i = 0; i < idle->n; i++)
        if (master_of(w, idle->v[i]) == q->peer)
            m.leat_session[m.n_leat_session++] = idle->v[i]->handle;
    leat_status s = leat_put_fields(&q->request.text, LEAT_METHOD_GET_STATUS, &m);
    free(m.leat_session);
    return s;
}

static void read_replies(idle_sessions *idle)
{
    idle->replies = leat_new_array(Leat__GetStatusResponse *, idle->n_calls + 1);
    for (int i = 0; i < idle->n_calls; i++) {
        const leat_pending_call *q = &idle->calls[i];
        if (!q->status)
            leat_status_free(
                LEAT_UNPACK(get_status_response, q->reply, q->size, &idle->replies[i]));
        Leat__GetStatusResponse *r = idle->replies[i];
        for (size_t k = 0; r && k < r->n_leat_closed; k++)
            leat_map_put(&idle->closed, r->leat_closed[k], r);
    }
}

static void ask_masters(leat_worker *w, idle_sessions *idle, leat_cancellation *cancellation)
{
    enum { ANSWER_SECONDS = 5 };
    leat_status s = NULL;
    idle->calls = leat_new_array(leat_pending_call, idle->n + 1);
    for (int i = 0; i < idle->n && !s; i++) {
        leat_peer *p = master_of(w, idle->v[i]);
        if (p && call_of(w, idle, idle->v[i]) < 0) {
            idle->calls[idle->n_calls].peer = p;
            s = make_request(w, idle, &idle->calls[idle->n_calls++]);
        }
    }
    leat_status_free(s); /* A request that is too large is sent without sessions. */
    s = leat_call_many(idle->calls, idle->n_calls, LEAT_METHOD_GET_STATUS, "GetStatus",
                       leat_now_ns() + INT64_C(1000000000) * ANSWER_SECONDS, false, cancellation);
    leat_status_free(s); /* Each call has its own. */
    read_replies(idle);
}

static void idle_release(idle_sessions *idle)
{
    for (int i = 0; i < idle->n; i++)
        leat_worker_session_unref(idle->v[i]);
    for (int i = 0; i < idle->n_calls; i++)
        leat_proto_free(idle->replies[i]);
    leat_pending_calls_free(idle->calls, idle->n_calls);
    leat_map_release(&idle->closed);
    free(idle->replies);
    free(idle->v);
}

/* Whether the master that has replied has the incarnation that opened the session. */
static bool is_same(const Leat__GetStatusResponse *r, const leat_worker_session *s)
{
    for (size_t i = 0; i < r->n_device_attributes; i++)
        if (r->device_attributes[i]->incarnation == s->master_incarnation)
            return true;
    return false;
}

void leat_worker_expire(leat_worker *w, const leat_connections *open, int64_t idle_ns,
                        leat_cancellation *cancellation)
{
    idle_sessions idle = {0};
    find_idle(w, open, idle_ns, &idle);
    if (!idle.n)
        return;
    ask_masters(w, &idle, cancellation);
    for (int i = 0; i < idle.n && !leat_is_cancelled(cancellation); i++) {
        leat_worker_session *s = idle.v[i];
        int call = call_of(w, &idle, s);
        const Leat__GetStatusResponse *r = call >= 0 ? idle.replies[call] : NULL;
        bool same = r && is_same(r, s);
        if (same && leat_map_get(&idle.closed, s->handle) != r)
            leat_usage_seen(&s->usage);
        else if (leat_worker_session_end(w, s, same ? 1 : r ? idle_ns / 2 + 1 : idle_ns))
            LEAT_LOG(INFO, "Session %s is closed: its master%s%s %s", s->handle,
                     s->master_task[0] ? ", " : "", s->master_task,
                     same ? "does not have it any more" : "has gone, or was restarted");
    }
    idle_release(&idle);
}
