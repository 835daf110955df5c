/* worker_session.c -- the sessions that masters opened on this worker. A session has its own view
 * of the worker's devices, and knows the other tasks of the session. */
#include <stdlib.h>

#include "cluster/master.h"
#include "cluster/worker_int.h"
#include "core/alloc.h"

leat_status leat_worker_session_open(leat_worker *w, const char *handle,
                                     const leat_worker_session_options *o,
                                     leat_worker_session **out)
{
    leat_worker_session *s = leat_new(leat_worker_session);
    atomic_init(&s->refs, 1);
    s->handle = leat_xstrdup(handle);
    s->n_devices = w->devices.n;
    s->devices = leat_new_array(leat_device *, s->n_devices);
    for (int i = 0; i < s->n_devices; i++)
        s->devices[i] = leat_device_for_session(w->devices.v[i], o->isolate);
    s->known = leat_new_array(char *, o->n_cluster + 1);
    for (size_t i = 0; i < o->n_cluster; i++)
        s->known[s->n_known++] = leat_xstrdup(o->cluster[i]->name);
    pthread_mutex_init(&s->far_lock, NULL);
    pthread_mutex_lock(&w->lock);
    leat_status status = NULL;
    if (w->stopping)
        status = leat_error(UNAVAILABLE, "%s is stopping", w->task);
    else if (leat_map_get(&w->sessions, handle))
        status = leat_error(ALREADY_EXISTS, "%s has a session %s already", w->task, handle);
    else
        leat_map_put(&w->sessions, handle, s);
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

void leat_worker_session_close(leat_worker *w, const char *handle)
{
    pthread_mutex_lock(&w->lock);
    leat_worker_session *s = leat_map_remove(&w->sessions, handle);
    leat_registered *graphs = s ? s->graphs : NULL;
    for (leat_registered *r = graphs; r; r = r->next)
        leat_map_remove(&w->graphs, r->handle);
    if (s)
        s->graphs = NULL;
    pthread_mutex_unlock(&w->lock);
    while (graphs) {
        leat_registered *r = graphs;
        graphs = r->next;
        leat_registered_unref(r);
    }
    if (!s)
        return;
    pthread_mutex_lock(&s->far_lock);
    leat_far *far = s->joined ? s->far : NULL;
    pthread_mutex_unlock(&s->far_lock);
    if (far)
        leat_far_close(far);
    leat_worker_session_unref(s);
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
    if (!s->far) {
        status = leat_master_join(&m, w, w->peers, &s->far);
        s->joined = !status;
    }
    if (!status)
        *out = s->far;
    pthread_mutex_unlock(&s->far_lock);
    return status;
}
