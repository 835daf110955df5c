/* worker_idle.c -- sessions that their masters left behind. A master that was restarted closes
 * those of its former incarnation by its next CreateWorkerSession; for all others, whether the
 * master is still there is looked up here. */
#include <stdlib.h>
#include <string.h>

#include "cluster/call_many.h"
#include "cluster/messages/methods.h"
#include "cluster/worker_int.h"
#include "core/alloc.h"
#include "core/log.h"
#include "proto/wire.h"

/* The sessions to look at, and the masters that are asked whether they are still there. */
typedef struct idle_sessions {
    leat_worker_session **v; /* References. */
    int n, cap;
    leat_pending_call *calls; /* One for each different master. */
    int n_calls;
} idle_sessions;

/* Finds the sessions without a connection that had no call for half of idle_ns: so a master is
 * asked several times before its sessions are closed. */
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
        if (leat_usage_connected(&s->usage, open)) {
            leat_usage_seen(&s->usage);
        } else if (leat_usage_idle_ns(&s->usage, now) > idle_ns / 2) {
            leat_grow(out->v, out->n, out->cap);
            atomic_fetch_add(&s->refs, 1);
            out->v[out->n++] = s;
        }
    }
    pthread_mutex_unlock(&w->lock);
}

/* The call to the master of a session; NULL if the master is not known. */
static leat_pending_call *call_of(const leat_worker *w, idle_sessions *idle,
                                  const leat_worker_session *s)
{
    leat_peer *p = s->master_incarnation ? leat_peers_find(w->peers, s->master_task) : NULL;
    for (int i = 0; i < idle->n_calls && p; i++)
        if (idle->calls[i].peer == p)
            return &idle->calls[i];
    return NULL;
}

static void ask_masters(leat_worker *w, idle_sessions *idle, leat_cancellation *cancellation)
{
    enum { ANSWER_SECONDS = 5 };
    idle->calls = leat_new_array(leat_pending_call, idle->n + 1);
    for (int i = 0; i < idle->n; i++) {
        const leat_worker_session *s = idle->v[i];
        leat_peer *p = s->master_incarnation ? leat_peers_find(w->peers, s->master_task) : NULL;
        if (p && !call_of(w, idle, s))
            idle->calls[idle->n_calls++].peer = p;
    }
    leat_status s =
        leat_call_many(idle->calls, idle->n_calls, LEAT_METHOD_GET_STATUS, "GetStatus",
                       leat_now_ns() + INT64_C(1000000000) * ANSWER_SECONDS, false, cancellation);
    leat_status_free(s); /* Each call has its own. */
}

/* Whether the master has replied, and whether it has the incarnation that opened the session. */
static void read_answer(const leat_pending_call *q, const leat_worker_session *s, bool *replied,
                        bool *same)
{
    Leat__GetStatusResponse *r = NULL;
    *replied = *same = false;
    leat_status bad = q->status ? leat_status_copy(q->status)
                                : LEAT_UNPACK(get_status_response, q->reply, q->size, &r);
    if (!bad) {
        *replied = true;
        for (size_t i = 0; i < r->n_device_attributes; i++)
            *same |= r->device_attributes[i]->incarnation == s->master_incarnation;
    }
    leat_status_free(bad);
    leat_proto_free(r);
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
        const leat_pending_call *q = call_of(w, &idle, s);
        bool replied = false, same = false;
        if (q)
            read_answer(q, s, &replied, &same);
        if (same)
            leat_usage_seen(&s->usage);
        else if (leat_worker_session_end(w, s, replied ? 1 : idle_ns))
            LEAT_LOG(INFO, "Session %s is closed: its master%s%s has gone, or was restarted",
                     s->handle, s->master_task[0] ? ", " : "", s->master_task);
    }
    for (int i = 0; i < idle.n; i++)
        leat_worker_session_unref(idle.v[i]);
    leat_pending_calls_free(idle.calls, idle.n_calls);
    free(idle.v);
}
