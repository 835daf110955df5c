/* peers.c -- see peers.h. */
#include "cluster/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/map.h"
#include "core/threadpool.h"
#include "proto/wire.h"

struct leat_peers {
    leat_cluster *cluster;
    leat_peer *v;
    int n;
    leat_map by_name;
    leat_shm_name door; /* this task's own; host "": none */
};

static leat_status add(leat_peers *p, const char *job, int task, const leat_security *security)
{
    leat_peer *x = &p->v[p->n];
    x->all = p;
    x->job = job;
    x->task = task;
    x->address = leat_cluster_address(p->cluster, job, task);
    if (!x->address)
        return NULL;
    snprintf(x->name, sizeof(x->name), "/job:%s/replica:0/task:%d", job, task);
    LEAT_TRY(leat_channel_open(x->address, x->name, security, &x->channel));
    leat_map_put(&p->by_name, x->name, x);
    p->n++;
    return NULL;
}

leat_status leat_peers_new(const leat_cluster *c, const leat_security *security, leat_peers **out)
{
    leat_peers *p = leat_new(leat_peers);
    p->cluster = leat_cluster_copy(c);
    int n = 0;
    for (int j = 0; j < leat_cluster_jobs(c); j++)
        n += leat_cluster_tasks(c, leat_cluster_job(c, j));
    p->v = leat_new_array(leat_peer, n + 1);
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
    for (int i = 0; i < p->n; i++)
        leat_channel_free(p->v[i].channel);
    leat_map_release(&p->by_name);
    leat_cluster_free(p->cluster);
    free(p->v);
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

void leat_peers_self(leat_peers *p, Leat__LeatPeer *self)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    leat__leat_peer__init(self);
    self->version = 1;
    self->release = (char *)leat_version();
    self->host = p->door.host;
    self->socket = p->door.socket;
    self->secret = p->door.secret;
    self->clock_micros = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

leat_shm_name *leat_peers_door(leat_peers *p)
{
    return &p->door;
}

void leat_peer_introduce(leat_peer *p, const Leat__LeatPeer *said, int64_t wall_ns)
{
    leat_shm_name door = {.secret = said ? said->secret : 0};
    atomic_store(&p->is_leat, said != NULL);
    if (wall_ns)
        atomic_store(&p->clock_ahead_ns, said ? wall_ns - said->clock_micros * 1000 : 0);
    if (!said || !said->socket[0] || strcmp(said->host, leat_shm_host()) != 0)
        return;
    snprintf(door.host, sizeof(door.host), "%s", said->host);
    snprintf(door.socket, sizeof(door.socket), "%s", said->socket);
    leat_status s = leat_channel_use_shm(p->channel, &door, p->address, p->name);
    if (s)
        LEAT_LOG(INFO, "No shared memory with %s: %s", p->name, leat_status_message(s));
    leat_status_free(s);
}

static void introduced(void *arg, leat_status s, const leat_incoming *in)
{
    leat_peer *p = arg;
    void *copy = NULL;
    Leat__GetStatusResponse *r = NULL;
    if (!s)
        s = LEAT_UNPACK(get_status_response, leat_incoming_flat(in, &copy), in->size, &r);
    free(copy);
    if (!s)
        leat_peer_introduce(p, r->leat, 0);
    else
        atomic_store(&p->asked, false); /* another call asks again */
    leat_status_free(s);
    leat_proto_free(r);
}

/* Once, beside the first call. */
static void ask_who(leat_peer *p)
{
    leat_outgoing o = {0};
    leat_call_options options = {.deadline_ns = leat_now_ns() + INT64_C(5000000000)};
    leat_channel_call(p->channel, "/tensorflow.WorkerService/GetStatus", &o, &options, introduced,
                      p, NULL);
}

void leat_peer_call(leat_peer *p, const char *method, leat_outgoing *request,
                    const leat_call_options *options, leat_reply_fn fn, void *arg,
                    leat_call **call_out)
{
    if (!atomic_load_explicit(&p->asked, memory_order_relaxed) && !atomic_exchange(&p->asked, true))
        ask_who(p);
    leat_channel_call(p->channel, method, request, options, fn, arg, call_out);
}
