/* master.c -- opening a session over several tasks: who is there, which devices they have, a
 * session on each. */
#include "cluster/master.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/ask.h"
#include "cluster/master_int.h"
#include "cluster/tensor_wire.h"
#include "core/alloc.h"
#include "core/map.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

#define WORKER "/tensorflow.WorkerService/"

static void tasks_free(leat_far *f)
{
    leat_tasks *t = (leat_tasks *)f;
    for (int i = 0; i < t->n_peers && t->open; i++) {
        leat_outgoing o = {0};
        leat_put_text(&o.text, 1, t->handle);
        leat_tell(t->peers[i], WORKER "DeleteWorkerSession", &o);
    }
    if (t->session)
        leat_worker_session_close(t->worker, t->handle);
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
    .part_start = leat_tasks_part_start,
    .step_begin = leat_tasks_step_begin,
    .step_end = leat_tasks_step_end,
    .step_waits = leat_tasks_step_waits,
    .step_await = leat_tasks_step_await,
    .free = tasks_free,
};

/* A filter names devices of the tasks that may be used. */
static leat_status passes_filters(const leat_master_options *m, const leat_peer *p, bool *out)
{
    leat_device_name task, filter;
    *out = m->n_filters == 0;
    LEAT_TRY(leat_device_name_parse(p->name, &task));
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
    t->peers = leat_new_array(leat_peer *, leat_peers_count(peers) + 1);
    for (int i = 0; i < leat_peers_count(peers); i++) {
        leat_peer *p = leat_peers_at(peers, i);
        bool pass;
        if (strcmp(p->name, leat_worker_task(t->worker)) == 0)
            continue;
        LEAT_TRY(passes_filters(m, p, &pass));
        if (pass)
            t->peers[t->n_peers++] = p;
    }
    return NULL;
}

static void add_device(leat_tasks *t, Leat__DeviceAttributes *d, bool is_leat)
{
    leat_target x = {.name = d->name, .incarnation = d->incarnation, .together = is_leat};
    leat_status s = leat_device_name_parse(d->name, &x.parsed);
    if (s || strcmp(d->device_type, "XLA_CPU") == 0) { /* of no use to us */
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

static leat_status take_devices(leat_tasks *t, leat_question *q)
{
    Leat__GetStatusResponse *r;
    leat_status s = LEAT_UNPACK(get_status_response, q->reply, q->size, &r);
    if (s)
        return leat_status_prefix(s, "%s at %s answers GetStatus with no such message: ",
                                  q->peer->name, q->peer->address);
    size_t n = strlen(q->peer->name);
    for (size_t i = 0; i < r->n_device_attributes && !s; i++) {
        Leat__DeviceAttributes *d = r->device_attributes[i];
        if (strncmp(d->name, q->peer->name, n) != 0 || d->name[n] != '/')
            s = leat_error(FAILED_PRECONDITION,
                           "The task at %s, which this cluster calls %s, has a device %s: it was "
                           "started for another cluster, job or index",
                           q->peer->address, q->peer->name, d->name);
    }
    if (!s)
        leat_peer_introduce(q->peer, r->leat, q->middle_ns);
    for (size_t i = 0; i < r->n_device_attributes && !s; i++) {
        add_device(t, r->device_attributes[i], q->peer->is_leat);
        r->device_attributes[i] = NULL;
    }
    if (!s)
        r->n_device_attributes = 0;
    leat_proto_free(r);
    return s;
}

static void questions_free(leat_question *q, int n)
{
    for (int i = 0; i < n; i++) {
        leat_status_free(q[i].status);
        free(q[i].reply);
    }
    free(q);
}

static leat_status greet(leat_tasks *t, const leat_master_options *m, int64_t deadline)
{
    leat_question *q = leat_new_array(leat_question, t->n_peers + 1);
    for (int i = 0; i < t->n_peers; i++) {
        q[i].peer = t->peers[i];
        atomic_store(&q[i].peer->asked, true); /* it is being asked right here */
    }
    leat_status s = leat_ask_all(q, t->n_peers, WORKER "GetStatus", "CreateSession", deadline, true,
                                 m->cancellation);
    for (int i = 0; i < t->n_peers && !s; i++)
        s = take_devices(t, &q[i]);
    questions_free(q, t->n_peers);
    LEAT_TRY(s);
    q = leat_new_array(leat_question, t->n_peers + 1);
    for (int i = 0; i < t->n_peers; i++) {
        q[i].peer = t->peers[i];
        leat_put_text(&q[i].request.text, 1, t->handle);
        leat_put_int(&q[i].request.text, 3, m->isolate);
    }
    t->open = true;
    s = leat_ask_all(q, t->n_peers, WORKER "CreateWorkerSession", "CreateSession", deadline, true,
                     m->cancellation);
    questions_free(q, t->n_peers);
    return s;
}

static leat_status open_tasks(leat_tasks *t, const leat_master_options *m, leat_peers *peers)
{
    enum { DEFAULT_MS = 120000 };
    int64_t ms = m->open_ms ? m->open_ms : DEFAULT_MS;
    int n;
    LEAT_TRY(leat_worker_session_open(t->worker, t->handle, m->isolate, &t->session));
    leat_device *const *own = leat_worker_devices(t->worker, &n);
    for (int i = 0; i < n; i++)
        add_device(t, leat_device_to_proto(own[i]), true);
    t->n_own = n;
    LEAT_TRY(choose_peers(t, m, peers));
    return greet(t, m, leat_now_ns() + ms * 1000000);
}

leat_status leat_master_open(leat_graph *g, const leat_session_options *o,
                             const leat_master_options *m, leat_worker *w, leat_peers *peers,
                             leat_session **out)
{
    leat_tasks *t = leat_new(leat_tasks);
    t->base.ops = &leat_tasks_ops;
    t->worker = w;
    snprintf(t->handle, sizeof(t->handle), "%s", m->handle);
    t->first_id = leat_hash(m->handle, strlen(m->handle), 1);
    leat_status s = open_tasks(t, m, peers);
    if (s) {
        tasks_free(&t->base);
        return s;
    }
    return leat_session_new_on(g, o, leat_worker_session_devices(t->session), t->n_own, &t->base,
                               out);
}

int leat_master_devices(const leat_far *f, const Leat__DeviceAttributes *const **out,
                        int *n_own_out)
{
    const leat_tasks *t = (const leat_tasks *)f;
    *out = (const Leat__DeviceAttributes *const *)t->devices;
    *n_own_out = t->n_own;
    return f->n;
}
