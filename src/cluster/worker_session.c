/* worker_session.c -- the sessions that masters opened on this worker. A session has its own view
 * of the worker's devices, and knows the other tasks of the session. */
#include <stdlib.h>
#include <string.h>

#include "cluster/master.h"
#include "cluster/worker_int.h"
#include "core/alloc.h"
#include "core/log.h"

/* A session that o's task opened when it had another incarnation; NULL if there is none. Called
 * with the worker's lock held. */
static leat_worker_session *find_former(leat_worker *w, const leat_worker_session_options *o)
{
    size_t i = 0;
    const char *key;
    void *v;
    while (leat_map_next(&w->sessions, &i, &key, &v)) {
        leat_worker_session *s = v;
        if (s->master_incarnation && s->master_incarnation != o->master_incarnation &&
            strcmp(s->master_task, o->master_task) == 0)
            return s;
    }
    return NULL;
}

/* Closes the sessions of a master that was restarted since it opened them. */
static void drop_former(leat_worker *w, const leat_worker_session_options *o)
{
    if (!o->master_incarnation || !o->master_task[0])
        return;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        leat_worker_session *s = find_former(w, o);
        if (s)
            atomic_fetch_add(&s->refs, 1);
        pthread_mutex_unlock(&w->lock);
        if (!s)
            return;
        if (leat_worker_session_end(w, s, 0))
            LEAT_LOG(INFO, "Session %s is closed: its master, %s, was restarted", s->handle,
                     s->master_task);
        leat_worker_session_unref(s);
    }
}

leat_status leat_worker_session_open(leat_worker *w, const char *handle,
                                     const leat_worker_session_options *o,
                                     leat_worker_session **out)
{
    static atomic_ullong numbers;
    leat_worker_session *s = leat_new(leat_worker_session);
    atomic_init(&s->refs, 1);
    s->handle = leat_xstrdup(handle);
    s->own = o->own;
    s->master_task = leat_xstrdup(o->master_task ? o->master_task : "");
    s->master_incarnation = o->master_incarnation;
    s->number = atomic_fetch_add(&numbers, 1) + 1;
    leat_usage_init(&s->usage);
    leat_usage_begin(&s->usage, o->peer);
    leat_usage_end(&s->usage);
    s->asked_ns = leat_now_ns();
    s->n_devices = w->devices.n;
    s->devices = leat_new_array(leat_device *, s->n_devices);
    for (int i = 0; i < s->n_devices; i++)
        s->devices[i] = leat_device_for_session(w->devices.v[i], o->isolate);
    s->known = leat_new_array(char *, o->n_cluster + 1);
    for (size_t i = 0; i < o->n_cluster; i++)
        s->known[s->n_known++] = leat_xstrdup(o->cluster[i]->name);
    pthread_mutex_init(&s->far_lock, NULL);
    drop_former(w, o);
    pthread_mutex_lock(&w->lock);
    leat_status status = NULL;
    if (w->stopping)
        status = leat_error(UNAVAILABLE, "%s is stopping", w->task);
    else if (leat_map_get(&w->sessions, handle))
        status = leat_error(ALREADY_EXISTS, "%s has a session %s already", w->task, handle);
    else if (!s->own && w->n_far >= w->max_sessions)
        status = leat_error(RESOURCE_EXHAUSTED,
                            "%s has %d sessions of masters, which is its limit: close some, or "
                            "start it with a higher limit (leat server --max_worker_sessions, "
                            "max_worker_sessions of leat_server_options)",
                            w->task, w->max_sessions);
    else {
        leat_map_put(&w->sessions, handle, s);
        w->n_far += !s->own;
    }
    pthread_mutex_unlock(&w->lock);
    if (status)
        leat_worker_session_unref(s);
    else if (out)
        *out = s;
    return status;
}

void leat_worker_session_unref(leat_worker_session *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    for (int i = 0; i < s->n_devices; i++)
        leat_device_close(s->devices[i]);
    for (int i = 0; i < s->n_known; i++)
        free(s->known[i]);
    leat_far_unref(s->far);
    pthread_mutex_destroy(&s->far_lock);
    leat_usage_release(&s->usage);
    free(s->master_task);
    free(s->known);
    free(s->devices);
    free(s->handle);
    free(s);
}

leat_device *const *leat_worker_session_devices(const leat_worker_session *s)
{
    return s->devices;
}

leat_status leat_worker_find_session(leat_worker *w, const char *handle, leat_worker_session **out)
{
    pthread_mutex_lock(&w->lock);
    leat_worker_session *s = leat_map_get(&w->sessions, handle);
    if (s)
        atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&w->lock);
    LEAT_REQUIRE(s, ABORTED,
                 "Session handle is not found: %s. Possibly this worker (\"%s\") just restarted.",
                 handle, w->task);
    *out = s;
    return NULL;
}

/* Takes s, which is not closed, out of the worker's table, and its graphs out of theirs. Gives the
 * graphs, and the table's reference to s. Called with the worker's lock held. */
static leat_registered *take_out(leat_worker *w, leat_worker_session *s)
{
    leat_registered *graphs = s->graphs;
    leat_map_remove(&w->sessions, s->handle);
    w->n_far -= !s->own;
    for (leat_registered *r = graphs; r; r = r->next)
        leat_map_remove(&w->graphs, r->handle);
    s->graphs = NULL;
    s->closed = true;
    return graphs;
}

/* Frees what take_out has given. */
static void close_taken(leat_worker *w, leat_worker_session *s, leat_registered *graphs)
{
    while (graphs) {
        leat_registered *r = graphs;
        graphs = r->next;
        leat_registered_unref(r);
    }
    leat_status why = leat_error(ABORTED, "Session %s was closed", s->handle);
    leat_exchange_drop_session(w->exchanges, s->number, why);
    leat_status_free(why);
    pthread_mutex_lock(&s->far_lock);
    s->far_closed = true;
    leat_far *far = s->joined ? s->far : NULL;
    pthread_mutex_unlock(&s->far_lock);
    if (far)
        leat_far_close(far);
    leat_worker_session_unref(s);
}

void leat_worker_session_close(leat_worker *w, const char *handle)
{
    pthread_mutex_lock(&w->lock);
    leat_worker_session *s = leat_map_get(&w->sessions, handle);
    leat_registered *graphs = s ? take_out(w, s) : NULL;
    pthread_mutex_unlock(&w->lock);
    if (s)
        close_taken(w, s, graphs);
}

bool leat_worker_session_end(leat_worker *w, leat_worker_session *s, int64_t idle_ns)
{
    leat_registered *graphs = NULL;
    pthread_mutex_lock(&w->lock);
    bool end = !s->closed && (!idle_ns || leat_usage_idle_ns(&s->usage, leat_now_ns()) > idle_ns);
    if (end)
        graphs = take_out(w, s);
    pthread_mutex_unlock(&w->lock);
    if (end)
        close_taken(w, s, graphs);
    return end;
}

/* ---- The other tasks of a session ---- */

void leat_worker_session_use_far(leat_worker_session *s, leat_far *far)
{
    pthread_mutex_lock(&s->far_lock);
    s->far = leat_far_ref(far);
    pthread_mutex_unlock(&s->far_lock);
}

leat_status leat_worker_session_far(leat_worker *w, leat_worker_session *s, leat_far **out)
{
    leat_master_options m = {
        .handle = s->handle, .known = (const char *const *)s->known, .n_known = s->n_known};
    leat_status status = NULL;
    pthread_mutex_lock(&s->far_lock);
    if (s->far_closed)
        status = leat_error(ABORTED, "The session was closed while a graph was registered");
    else if (!s->far) {
        status = leat_master_join(&m, w, w->peers, &s->far);
        s->joined = !status;
    }
    if (!status)
        *out = s->far;
    pthread_mutex_unlock(&s->far_lock);
    return status;
}
