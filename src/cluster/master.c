/* master.c -- opens a session over several tasks: gets the devices of all tasks (GetStatus), then
 * opens a session on each (CreateWorkerSession). A task on which another task's master opened the
 * session joins it (leat_master_join), to call functions that have nodes on several tasks. */
#include "cluster/master.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/call_many.h"
#include "cluster/master_int.h"
#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "core/alloc.h"
#include "core/map.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

static void tasks_hold(leat_far *f, bool on)
{
    leat_tasks *t = (leat_tasks *)f;
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < t->n_peers && t->held != on; i++)
        atomic_fetch_add(&t->peers[i]->holds, on ? 1 : -1);
    t->held = on;
    pthread_mutex_unlock(&f->lock);
}

static const char *tasks_ending(leat_far *f)
{
    leat_tasks *t = (leat_tasks *)f;
    const char *name = NULL;
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < t->n_peers && t->held && !name; i++) {
        uint64_t ending = atomic_load(&t->peers[i]->ending);
        if (ending && ending == atomic_load(&t->peers[i]->incarnation))
            name = t->peers[i]->name;
    }
    pthread_mutex_unlock(&f->lock);
    return name;
}

static void tasks_close(leat_far *f)
{
    leat_tasks *t = (leat_tasks *)f;
    tasks_hold(f, false);
    for (int i = 0; i < t->n_peers && t->open; i++) {
        Leat__DeleteWorkerSessionRequest q = LEAT__DELETE_WORKER_SESSION_REQUEST__INIT;
        q.session_handle = t->handle;
        leat_peer_notify(t->peers[i], LEAT_METHOD_DELETE_WORKER_SESSION, &q);
    }
    if (t->session)
        leat_worker_session_close(t->worker, t->handle);
}

static void tasks_free(leat_far *f)
{
    leat_tasks *t = (leat_tasks *)f;
    for (int i = 0; i < t->base.n; i++)
        leat_proto_free(t->devices[i]);
    free(t->devices);
    free(t->targets);
    free(t->peers);
    free(t);
}

const leat_far_ops leat_tasks_ops = {
    .part_new = leat_tasks_part_new,
    .part_free = leat_tasks_part_free,
    .step_new = leat_tasks_step_new,
    .step_start = leat_tasks_step_start,
    .step_await = leat_tasks_step_await,
    .step_waits = leat_tasks_step_waits,
    .step_free = leat_tasks_step_free,
    .hold = tasks_hold,
    .ending = tasks_ending,
    .close = tasks_close,
    .free = tasks_free,
};

/* name: of a device or a task. True if the session has the device, or a device of the task. */
static bool is_known(const leat_master_options *m, const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < m->n_known; i++)
        if (strncmp(m->known[i], name, n) == 0 && (!m->known[i][n] || m->known[i][n] == '/'))
            return true;
    return !m->n_known;
}

/* *out: whether the session may use a task. A device filter selects the tasks of the devices that
 * it names; its device type and index are ignored. name: of the task, or of one of its devices. */
static leat_status passes_filters(const leat_master_options *m, const char *name, bool *out)
{
    leat_device_name task, filter;
    *out = m->n_filters == 0 && is_known(m, name);
    LEAT_TRY(leat_device_name_parse(name, &task));
    for (int i = 0; i < m->n_filters && !*out; i++) {
        LEAT_TRY(leat_device_name_parse(m->filters[i], &filter));
        filter.type[0] = 0;
        filter.id = -1;
        *out = leat_device_name_fits(&task, &filter);
    }
    return NULL;
}

static leat_status choose_peers(leat_tasks *t, const leat_master_options *m, leat_peers *peers)
{
    const leat_peer *self = leat_peers_find(peers, leat_worker_task(t->worker));
    t->peers = leat_new_array(leat_peer *, leat_peers_count(peers) + 1);
    for (int i = 0; i < leat_peers_count(peers); i++) {
        leat_peer *p = leat_peers_at(peers, i);
        bool pass = false;
        for (int k = 0; k < p->n_tasks && !pass && p != self; k++)
            LEAT_TRY(passes_filters(m, p->tasks[k]->name, &pass));
        if (pass)
            t->peers[t->n_peers++] = p;
    }
    return NULL;
}

/* True if the client's limits on the number of devices of a kind allow device d. The first CPU of a
 * task is always allowed, since every task needs one. */
static bool within_counts(const leat_master_options *m, const leat_device_name *d)
{
    for (int i = 0; i < m->n_counts; i++)
        if (m->counts[i].n >= 0 && strcmp(m->counts[i].type, d->type) == 0)
            return d->id < m->counts[i].n ||
                   (d->id == 0 && strcmp(d->type, leat_host_kind()->type) == 0);
    return true;
}

/* Takes d. process is 0 for this process, else 1 plus the index of the peer in t->peers. */
static void add_device(leat_tasks *t, const leat_master_options *m, Leat__DeviceAttributes *d,
                       bool is_leat, int process)
{
    leat_target x = {
        .name = d->name, .incarnation = d->incarnation, .together = is_leat, .process = process};
    leat_status s = leat_device_name_parse(d->name, &x.parsed);
    x.priority = leat_device_priority(x.parsed.type);
    /* TensorFlow lists an XLA_CPU device, on which only XLA places nodes. */
    if (s || strcmp(d->device_type, "XLA_CPU") == 0 || !within_counts(m, &x.parsed) ||
        !is_known(m, d->name)) {
        leat_status_free(s);
        leat_proto_free(d);
        return;
    }
    int n = t->base.n++;
    t->devices = leat_xrealloc(t->devices, sizeof(*t->devices) * (size_t)(n + 1));
    t->targets = leat_xrealloc(t->targets, sizeof(*t->targets) * (size_t)(n + 1));
    t->devices[n] = d;
    t->targets[n] = x;
    t->base.targets = t->targets;
}

/* A process has to serve the tasks that the cluster has at its address, and no others. */
static leat_status check_devices(const leat_peer *p, const Leat__GetStatusResponse *r)
{
    for (size_t i = 0; i < r->n_device_attributes; i++)
        LEAT_REQUIRE(leat_peers_find(p->all, r->device_attributes[i]->name) == p,
                     FAILED_PRECONDITION,
                     "The task at %s, which this cluster calls %s, has a device %s: it was "
                     "started for another cluster, job or index",
                     p->address, p->name, r->device_attributes[i]->name);
    for (int k = 0; k < p->n_tasks && p->n_tasks > 1; k++) {
        size_t n = strlen(p->tasks[k]->name), i = 0;
        while (i < r->n_device_attributes &&
               (strncmp(r->device_attributes[i]->name, p->tasks[k]->name, n) != 0 ||
                r->device_attributes[i]->name[n] != '/'))
            i++;
        LEAT_REQUIRE(i < r->n_device_attributes, FAILED_PRECONDITION,
                     "The server at %s has no device of %s, which this cluster has at the same "
                     "address: start a Leat server there with this cluster",
                     p->address, p->tasks[k]->name);
    }
    return NULL;
}

static leat_status take_devices(leat_tasks *t, const leat_master_options *m, leat_pending_call *q,
                                int process)
{
    Leat__GetStatusResponse *r;
    leat_status s = LEAT_UNPACK(get_status_response, q->reply, q->size, &r);
    if (s)
        return leat_status_prefix(s, "%s at %s answers GetStatus with no such message: ",
                                  q->peer->name, q->peer->address);
    s = check_devices(q->peer, r);
    if (!s)
        leat_peer_use_status(q->peer, r->leat, q->middle_ns);
    for (size_t i = 0; i < r->n_device_attributes && !s; i++) {
        Leat__DeviceAttributes *d = r->device_attributes[i];
        bool pass = true; /* choose_peers has checked peers with one task. */
        if (q->peer->n_tasks > 1)
            s = passes_filters(m, d->name, &pass);
        if (!s && pass)
            add_device(t, m, d, q->peer->is_leat, process);
        else
            leat_proto_free(d);
        r->device_attributes[i] = NULL;
    }
    if (!s)
        r->n_device_attributes = 0;
    leat_proto_free(r);
    return s;
}

/* Gets the devices of all peers by GetStatus. If `all` is true, a peer that does not reply by the
 * deadline is an error; otherwise such peers are left out. */
static leat_status find_devices(leat_tasks *t, const leat_master_options *m, int64_t deadline,
                                bool all)
{
    leat_pending_call *q = leat_new_array(leat_pending_call, t->n_peers + 1);
    for (int i = 0; i < t->n_peers; i++) {
        q[i].peer = t->peers[i];
        atomic_store(&q[i].peer->status_requested, true); /* By leat_call_many below. */
    }
    leat_status s = leat_call_many(q, t->n_peers, LEAT_METHOD_GET_STATUS, "CreateSession", deadline,
                                   all, m->cancellation);
    if (!all) {
        leat_status_free(s);
        s = NULL;
    }
    for (int i = 0; i < t->n_peers && !s; i++)
        if (!q[i].status)
            s = take_devices(t, m, &q[i], i + 1);
    leat_pending_calls_free(q, t->n_peers);
    return s;
}

static leat_status open_sessions(leat_tasks *t, const leat_master_options *m, int64_t deadline)
{
    leat_pending_call *q = leat_new_array(leat_pending_call, t->n_peers + 1);
    leat_status s = NULL;
    for (int i = 0; i < t->n_peers && !s; i++) {
        Leat__CreateWorkerSessionRequest request = LEAT__CREATE_WORKER_SESSION_REQUEST__INIT;
        request.session_handle = t->handle;
        request.isolate_session_state = m->isolate;
        request.master_task = (char *)leat_worker_task(t->worker);
        request.master_incarnation = (int64_t)leat_worker_incarnation(t->worker);
        if (t->peers[i]->is_leat) {
            request.cluster_device_attributes = t->devices;
            request.n_cluster_device_attributes = (size_t)t->base.n;
            request.leat_cluster = leat_peers_message(t->peers[i]->all);
        }
        q[i].peer = t->peers[i];
        s = leat_put_fields(&q[i].request.text, LEAT_METHOD_CREATE_WORKER_SESSION, &request);
    }
    t->open = !s;
    if (!s)
        s = leat_call_many(q, t->n_peers, LEAT_METHOD_CREATE_WORKER_SESSION, "CreateSession",
                           deadline, true, m->cancellation);
    leat_pending_calls_free(q, t->n_peers);
    return s;
}

static leat_tasks *tasks_new(leat_worker *w, const leat_master_options *m)
{
    leat_tasks *t = leat_new(leat_tasks);
    leat_far_init(&t->base, &leat_tasks_ops);
    t->worker = w;
    snprintf(t->handle, sizeof(t->handle), "%s", m->handle);
    /* The task's name is part of the hash, because tasks that have joined begin steps, too. */
    const char *task = leat_worker_task(w);
    t->first_id = leat_hash(task, strlen(task), leat_hash(m->handle, strlen(m->handle), 1));
    int n;
    leat_device *const *own = leat_worker_devices(w, &n);
    for (int i = 0; i < n; i++)
        add_device(t, m, leat_device_to_proto(own[i]), true, 0);
    t->n_own = t->base.n;
    return t;
}

static leat_status open_tasks(leat_tasks *t, const leat_master_options *m, leat_peers *peers)
{
    enum { DEFAULT_MS = 120000 };
    int64_t ms = m->open_ms ? m->open_ms : DEFAULT_MS, deadline = leat_now_ns() + ms * 1000000;
    const leat_worker_session_options o = {.isolate = m->isolate, .own = true};
    LEAT_TRY(leat_worker_session_open(t->worker, t->handle, &o, &t->session));
    leat_worker_session_use_far(t->session, &t->base);
    LEAT_TRY(choose_peers(t, m, peers));
    LEAT_TRY(find_devices(t, m, deadline, true));
    return open_sessions(t, m, deadline);
}

/* The devices of all tasks that compute in memory of their own. */
static void log_devices(const leat_tasks *t)
{
    const char **names = leat_new_array(const char *, t->base.n + 1);
    const char **what = leat_new_array(const char *, t->base.n + 1);
    for (int i = 0; i < t->base.n; i++) {
        const Leat__DeviceAttributes *d = t->devices[i];
        const bool host = strcmp(t->targets[i].parsed.type, leat_host_kind()->type) == 0;
        names[i] = d->name;
        what[i] = !host && d->physical_device_desc[0] ? d->physical_device_desc : NULL;
    }
    leat_placements_devices(names, what, t->base.n);
    free(names);
    free(what);
}

leat_status leat_master_open(leat_graph *g, const leat_session_options *o,
                             const leat_master_options *m, leat_worker *w, leat_peers *peers,
                             leat_session **out)
{
    leat_tasks *t = tasks_new(w, m);
    leat_status s = open_tasks(t, m, peers);
    if (s) {
        leat_far_close(&t->base);
        leat_far_unref(&t->base);
        return s;
    }
    if (o->log_device_placement)
        log_devices(t);
    int n;
    leat_worker_devices(w, &n);
    return leat_session_new_on(g, o, leat_worker_session_devices(t->session), n, &t->base, out);
}

leat_status leat_master_join(const leat_master_options *m, leat_worker *w, leat_peers *peers,
                             leat_far **out)
{
    enum { ANSWER_MS = 10000 };
    leat_tasks *t = tasks_new(w, m);
    leat_status s = choose_peers(t, m, peers);
    if (!s)
        s = find_devices(t, m, leat_now_ns() + INT64_C(1000000) * ANSWER_MS, m->n_known > 0);
    if (s)
        leat_far_unref(&t->base);
    else
        *out = &t->base;
    return s;
}

int leat_master_devices(const leat_far *f, const Leat__DeviceAttributes *const **out,
                        int *n_own_out)
{
    const leat_tasks *t = (const leat_tasks *)f;
    *out = (const Leat__DeviceAttributes *const *)t->devices;
    *n_own_out = t->n_own;
    return f->n;
}
