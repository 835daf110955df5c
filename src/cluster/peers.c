/* peers.c -- see peers.h. */
#include "cluster/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/cluster_spec.h"
#include "cluster/messages/methods.h"
#include "core/alloc.h"
#include "core/log.h"
#include "core/map.h"
#include "core/threadpool.h"
#include "proto/wire.h"

struct leat_peers {
    leat_cluster *cluster;
    const leat_security *security;
    leat_task *tasks;
    int n_tasks;
    leat_peer *v;
    int n;
    leat_map by_name;
    char task[128];               /* "" until leat_peers_set_task. */
    uint64_t incarnation;         /* Of this process's server. */
    atomic_bool stopping;         /* This process's server is about to end. */
    Leat__ClusterDef *as_message; /* The cluster. */
    leat_offers offers;           /* Of this process. */
    uint32_t transports;          /* The mask of leat_peers_use_transports. */
};

/* Returns the peer that was added for that address, or NULL. Tasks with port 0 (any free port)
 * never share a server, so an address with port 0 has no peer yet. */
static leat_peer *at_address(leat_peers *p, const char *address)
{
    const char *port = strrchr(address, ':');
    for (int i = 0; i < p->n && !(port && strcmp(port, ":0") == 0); i++)
        if (strcmp(p->v[i].address, address) == 0)
            return &p->v[i];
    return NULL;
}

static leat_status add(leat_peers *p, const char *job, int index, const leat_security *security)
{
    const char *address = leat_cluster_address(p->cluster, job, index);
    if (!address)
        return NULL;
    leat_task *t = &p->tasks[p->n_tasks++];
    *t = (leat_task){.job = job, .index = index};
    snprintf(t->name, sizeof(t->name), "/job:%s/replica:0/task:%d", job, index);
    leat_peer *x = at_address(p, address);
    if (!x) {
        x = &p->v[p->n++];
        x->all = p;
        x->name = t->name;
        x->address = address;
        LEAT_TRY(leat_channel_open(address, x->name, security, &x->channel));
    }
    x->tasks = leat_xrealloc(x->tasks, sizeof(*x->tasks) * (size_t)(x->n_tasks + 1));
    x->tasks[x->n_tasks++] = t;
    leat_map_put(&p->by_name, t->name, x);
    return NULL;
}

leat_status leat_peers_new(const leat_cluster *c, const leat_security *security, leat_peers **out)
{
    leat_peers *p = leat_new(leat_peers);
    p->security = security;
    p->cluster = leat_cluster_copy(c);
    p->as_message = leat_cluster_to_def(c);
    p->transports = UINT32_MAX;
    int n = 0;
    for (int j = 0; j < leat_cluster_jobs(c); j++)
        n += leat_cluster_tasks(c, leat_cluster_job(c, j));
    p->v = leat_new_array(leat_peer, n + 1);
    p->tasks = leat_new_array(leat_task, n + 1);
    for (int j = 0; j < leat_cluster_jobs(c); j++) {
        const char *job = leat_cluster_job(p->cluster, j);
        for (int t = 0; t < leat_cluster_tasks(c, job); t++) {
            leat_status s = add(p, job, t, security);
            if (s) {
                leat_peers_free(p);
                return s;
            }
        }
    }
    *out = p;
    return NULL;
}

void leat_peers_free(leat_peers *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n; i++) {
        leat_channel_free(p->v[i].channel);
        free(p->v[i].tasks);
    }
    leat_offers_release(&p->offers);
    leat_map_release(&p->by_name);
    leat__cluster_def__free_unpacked(p->as_message, NULL);
    leat_cluster_free(p->cluster);
    free(p->v);
    free(p->tasks);
    free(p);
}

int leat_peers_count(const leat_peers *p)
{
    return p->n;
}

leat_peer *leat_peers_at(leat_peers *p, int i)
{
    return &p->v[i];
}

leat_peer *leat_peers_find(leat_peers *p, const char *device)
{
    const char *end = strstr(device, "/device:");
    return leat_map_get_n(&p->by_name, device, end ? (size_t)(end - device) : strlen(device));
}

void leat_peers_self(leat_peers *p, leat_self *self)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    Leat__LeatPeer *m = &self->message;
    leat__leat_peer__init(m);
    m->version = 1;
    m->release = (char *)leat_version();
    m->clock_micros = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    m->task = p->task;
    m->incarnation = p->incarnation;
    m->stopping = atomic_load(&p->stopping);
    m->cluster = p->as_message;
    m->offer = self->offer_list;
    int n = __atomic_load_n(&p->offers.n, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++) {
        leat_offer *o = &p->offers.v[i];
        leat__leat_offer__init(&self->offers[i]);
        self->offers[i].transport = o->transport;
        self->offers[i].data = (ProtobufCBinaryData){o->data.n, (uint8_t *)o->data.s};
        self->offer_list[m->n_offer++] = &self->offers[i];
    }
}

void leat_peers_set_task(leat_peers *p, const char *task, uint64_t incarnation)
{
    p->incarnation = incarnation;
    snprintf(p->task, sizeof(p->task), "%s", task);
}

leat_peer *leat_peers_own(leat_peers *p)
{
    return leat_peers_find(p, p->task);
}

uint64_t leat_peers_incarnation(const leat_peers *p)
{
    return p->incarnation;
}

const leat_cluster *leat_peers_cluster(const leat_peers *p)
{
    return p->cluster;
}

Leat__ClusterDef *leat_peers_message(const leat_peers *p)
{
    return p->as_message;
}

void leat_peers_set_stopping(leat_peers *p)
{
    atomic_store(&p->stopping, true);
}

leat_offers *leat_peers_offers(leat_peers *p)
{
    return &p->offers;
}

void leat_peers_use_transports(leat_peers *p, uint32_t mask)
{
    p->transports = mask;
}

void leat_peer_use_status(leat_peer *p, const Leat__LeatPeer *said, int64_t wall_ns)
{
    leat_offers offers = {0};
    atomic_store(&p->is_leat, said != NULL);
    atomic_store(&p->incarnation, said ? said->incarnation : 0);
    if (wall_ns)
        atomic_store(&p->clock_ahead_ns, said ? wall_ns - said->clock_micros * 1000 : 0);
    for (size_t i = 0; said && i < said->n_offer && offers.n < LEAT_TRANSPORTS_MAX; i++) {
        leat_offer *o = &offers.v[offers.n++];
        snprintf(o->transport, sizeof o->transport, "%s", said->offer[i]->transport);
        leat_strbuf_add(&o->data, said->offer[i]->data.data, said->offer[i]->data.len);
    }
    leat_channel_use_offers(p->channel, &offers, p->all->transports);
    leat_offers_release(&offers);
}

leat_status leat_peer_connect(const leat_peer *p, leat_channel **out)
{
    return leat_channel_open(p->address, p->name, p->all->security, out);
}

leat_status leat_peer_ask(leat_peer *p, int64_t deadline_ns, uint64_t *incarnation_out,
                          bool *stopping_out)
{
    void *reply = NULL;
    size_t n = 0;
    leat_channel *c;
    Leat__GetStatusResponse *r = NULL;
    leat_call_options o = {.deadline_ns = deadline_ns};
    LEAT_TRY(leat_peer_connect(p, &c));
    leat_status s =
        leat_channel_call_wait(c, LEAT_METHOD_GET_STATUS, &(leat_outgoing){0}, &o, &reply, &n);
    leat_channel_free(c);
    if (!s)
        s = LEAT_UNPACK(get_status_response, reply, n, &r);
    free(reply);
    if (s)
        return s;
    *incarnation_out = r->leat ? r->leat->incarnation : 0;
    *stopping_out = r->leat && r->leat->stopping;
    atomic_store(&p->incarnation, *incarnation_out);
    leat_proto_free(r);
    return NULL;
}

static void got_status(void *arg, leat_status s, const leat_incoming *in)
{
    leat_peer *p = arg;
    void *copy = NULL;
    const void *bytes;
    Leat__GetStatusResponse *r = NULL;
    if (!s)
        s = leat_incoming_flat(in, &bytes, &copy);
    if (!s)
        s = LEAT_UNPACK(get_status_response, bytes, in->size, &r);
    free(copy);
    if (!s)
        leat_peer_use_status(p, r->leat, 0);
    else
        atomic_store(&p->status_requested, false); /* The next call requests the status again. */
    leat_status_free(s);
    leat_proto_free(r);
}

/* Requests the status with the first call; later, while the best link is broken, at most every
 * REQUEST_AGAIN_NS. */
static void request_status(leat_peer *p)
{
    static const int64_t REQUEST_AGAIN_NS = INT64_C(5000000000);
    int64_t now = leat_now_ns(), last = atomic_load(&p->status_ns);
    if ((last && now < last + REQUEST_AGAIN_NS && atomic_load(&p->status_requested)) ||
        !atomic_compare_exchange_strong(&p->status_ns, &last, now))
        return;
    atomic_store(&p->status_requested, true);
    leat_outgoing o = {0};
    leat_call_options options = {.deadline_ns = now + INT64_C(5000000000)};
    leat_channel_call(p->channel, LEAT_METHOD_GET_STATUS, &o, &options, got_status, p, NULL);
}

void leat_peer_call(leat_peer *p, const char *method, leat_outgoing *request,
                    const leat_call_options *options, leat_reply_fn fn, void *arg,
                    leat_call **call_out)
{
    if (!atomic_load_explicit(&p->status_requested, memory_order_relaxed) ||
        leat_channel_degraded(p->channel))
        request_status(p);
    leat_channel_call(p->channel, method, request, options, fn, arg, call_out);
}
