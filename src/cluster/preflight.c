/* preflight.c -- checks every task of a cluster before a run, and says for each what is wrong: DNS,
 * port, firewall, TLS, token, another program, another task, another list of tasks, clock.
 *
 * A task is checked in the steps that a peer would take: resolve, connect, GetStatus. The first
 * step that fails gives the problem. More calls of GetStatus then measure the round trip; the
 * fastest one also compares the clocks, with an error of at most half the round trip.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster/messages/methods.h"
#include "cluster_spec.h"
#include "core/alloc.h"
#include "core/object.h"
#include "core/thread.h"
#include "graph/device_name.h"
#include "proto/cluster.pb-c.h"
#include "proto/wire.h"
#include "transport.h"

enum { AT_A_TIME = 64, PINGS = 4 };
#define CLOCK_LIMIT 1.0 /* seconds that clocks may differ */

const char *leat_version(void)
{
    return LEAT_VERSION;
}

const char *leat_reach_name(leat_reach r)
{
    static const char *const names[] = {"ok",          "unresolved", "refused", "silent",
                                        "unreachable", "mute",       "wrong"};
    return r >= LEAT_REACH_OK && r <= LEAT_REACH_WRONG ? names[r] : "unknown";
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void __attribute__((format(printf, 3, 4)))
problem(leat_probe *p, leat_reach reach, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p->reach = reach;
    vsnprintf(p->problem, sizeof(p->problem), fmt, ap);
    va_end(ap);
}

/* ---- The port ---- */

/* 0, or an errno; ETIMEDOUT at the deadline. */
static int try_connect(const struct addrinfo *a, int64_t deadline)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int e = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (e == EINPROGRESS) {
        int64_t left = (deadline - clock_ns(CLOCK_MONOTONIC)) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t n = sizeof(e);
        int got = poll(&p, 1, left > 0 ? (int)left : 0);
        if (got <= 0)
            e = got == 0 ? ETIMEDOUT : errno;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) != 0)
            e = errno;
    }
    close(fd);
    return e;
}

static bool port_open(leat_probe *p, int64_t deadline, int64_t timeout_ms)
{
    char host[256], service[16];
    int port, e = 0;
    leat_status s = leat_address_split(p->address, host, &port);
    if (s) {
        problem(p, LEAT_REACH_UNRESOLVED, "%s", leat_status_message(s));
        leat_status_free(s);
        return false;
    }
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int why = getaddrinfo(host, service, &hints, &list);
    if (why) {
        problem(p, LEAT_REACH_UNRESOLVED,
                "%s does not resolve (%s): check the name, DNS, /etc/hosts", host,
                gai_strerror(why));
        return false;
    }
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if ((e = try_connect(a, deadline)) == 0)
            break;
    freeaddrinfo(list);
    if (e == ECONNREFUSED)
        problem(p, LEAT_REACH_REFUSED,
                "nobody listens at port %d of %s: start the task, or check the port", port, host);
    else if (e == ETIMEDOUT)
        problem(p, LEAT_REACH_SILENT,
                "no answer from %s within %.1f s: is the host up, is port %d open in its firewall?",
                host, (double)timeout_ms / 1000, port);
    else if (e)
        problem(p, LEAT_REACH_UNREACHABLE, "cannot connect to %s (%s): check routes and firewalls",
                host, strerror(e));
    return e == 0;
}

/* ---- The task ---- */

typedef struct probing {
    const leat_cluster *cluster;
    const leat_probe_options *options;
    int64_t timeout_ms;
    leat_probe *probes;
    int n;
    atomic_int next;
} probing;

static leat_status get_status(leat_channel *c, int64_t deadline, Leat__GetStatusResponse **out,
                              int64_t *began_out, int64_t *took_out)
{
    leat_outgoing request = {0};
    void *reply = NULL;
    size_t size = 0;
    leat_call_options o = {.deadline_ns = deadline};
    int64_t wall = clock_ns(CLOCK_REALTIME), began = clock_ns(CLOCK_MONOTONIC);
    LEAT_TRY(leat_channel_call_wait(c, LEAT_METHOD_GET_STATUS, &request, &o, &reply, &size));
    *took_out = clock_ns(CLOCK_MONOTONIC) - began;
    *began_out = wall;
    leat_status s = LEAT_UNPACK(get_status_response, reply, size, out);
    free(reply);
    return s;
}

/* The port is open, but GetStatus failed with s. Takes s. */
static void no_reply(leat_probe *p, leat_status s)
{
    leat_code code = leat_status_code(s);
    const char *said = leat_status_message(s);
    if (code == LEAT_UNIMPLEMENTED)
        problem(p, LEAT_REACH_MUTE,
                "speaks gRPC, but is no task of a cluster: another program has "
                "the port");
    else if (code == LEAT_UNAUTHENTICATED || code == LEAT_PERMISSION_DENIED)
        problem(p, LEAT_REACH_MUTE, "refuses us: check the token and the certificates (%.200s)",
                said);
    else if (code == LEAT_DEADLINE_EXCEEDED)
        problem(p, LEAT_REACH_MUTE,
                "the port is open, but nothing answers: the task hangs or is stopped, or another "
                "program has the port");
    else
        problem(p, LEAT_REACH_MUTE,
                "the port is open, but does not speak as a task does: another program, or TLS on "
                "one side alone (%.200s)",
                said);
    leat_status_free(s);
}

/* Compares the job and task in the names of the devices with those of the cluster. A process may
 * serve several tasks. */
static void check_identity(leat_probe *p, const Leat__GetStatusResponse *r)
{
    for (size_t i = 0; i < r->n_device_attributes; i++) {
        leat_device_name d;
        leat_status s = leat_device_name_parse(r->device_attributes[i]->name, &d);
        p->devices += !s && strcmp(d.job, p->job) == 0 && (d.task < 0 || d.task == p->task);
        leat_status_free(s);
    }
    if (r->n_device_attributes && !p->devices)
        problem(p, LEAT_REACH_WRONG,
                "the task there is %.100s, not /job:%s/task:%d: its cluster or its flags differ",
                r->device_attributes[0]->name, p->job, p->task);
}

/* A server with another list of tasks refuses the sessions of the cluster's other tasks
 * (admit.h). */
static void check_list(leat_probe *p, const leat_cluster *here, const Leat__GetStatusResponse *r)
{
    leat_cluster *there = NULL;
    leat_cluster_difference d;
    leat_strbuf why = {0}, own = {0}, its = {0};
    if (!r->leat || !r->leat->cluster || p->reach != LEAT_REACH_OK)
        return;
    leat_status s = leat_cluster_from_def(r->leat->cluster, &there);
    if (s) {
        problem(p, LEAT_REACH_WRONG, "sends a cluster that is none: %.300s",
                leat_status_message(s));
        leat_status_free(s);
        return;
    }
    leat_cluster_compare(here, there, p->address, NULL, &d);
    if (leat_cluster_difference_print(&d, &why)) {
        leat_cluster_print(here, &own);
        leat_cluster_print(there, &its);
        problem(p, LEAT_REACH_WRONG,
                "was started with another list of tasks: %s. Its list: \"%s\"; the one that is "
                "checked: \"%s\". Start all tasks with the same lists of hosts",
                leat_strbuf_text(&why), leat_strbuf_text(&its), leat_strbuf_text(&own));
    }
    leat_strbuf_release(&why);
    leat_strbuf_release(&own);
    leat_strbuf_release(&its);
    leat_cluster_free(there);
}

static void note_kind(leat_probe *p, const Leat__GetStatusResponse *r)
{
    snprintf(p->kind, sizeof(p->kind), "%s", r->leat ? "Leat" : "TensorFlow");
    if (r->leat && r->leat->release)
        snprintf(p->version, sizeof(p->version), "%.31s", r->leat->release);
}

static void probe_task(leat_probe *p, const probing *all, int64_t deadline)
{
    char peer[128];
    snprintf(peer, sizeof(peer), "/job:%s/task:%d", p->job, p->task);
    leat_channel *c = NULL;
    leat_status s = leat_channel_open(p->address, peer, &all->options->security, &c);
    p->round_trip = INFINITY;
    for (int i = 0; !s && i < PINGS; i++) {
        Leat__GetStatusResponse *r = NULL;
        int64_t began, took;
        s = get_status(c, deadline, &r, &began, &took);
        if (s)
            break;
        if (i == 0) {
            note_kind(p, r);
            check_identity(p, r);
            check_list(p, all->cluster, r);
        }
        if ((double)took * 1e-9 < p->round_trip) {
            p->round_trip = (double)took * 1e-9;
            if (r->leat && r->leat->clock_micros)
                p->clock_ahead = (double)r->leat->clock_micros * 1e-6 -
                                 ((double)began + (double)took / 2) * 1e-9;
        }
        leat_proto_free(r);
    }
    leat_channel_free(c);
    if (s)
        no_reply(p, s);
    else if (p->reach == LEAT_REACH_OK && fabs(p->clock_ahead) > CLOCK_LIMIT + p->round_trip)
        problem(p, LEAT_REACH_WRONG, "its clock is %.1f s %s ours: run NTP on both hosts",
                fabs(p->clock_ahead), p->clock_ahead > 0 ? "ahead of" : "behind");
}

static void *probe_some(void *arg)
{
    probing *all = arg;
    for (int i; (i = atomic_fetch_add(&all->next, 1)) < all->n;) {
        leat_probe *p = &all->probes[i];
        int64_t deadline = clock_ns(CLOCK_MONOTONIC) + all->timeout_ms * 1000000;
        if (p->reach == LEAT_REACH_OK && port_open(p, deadline, all->timeout_ms))
            probe_task(p, all, deadline);
    }
    return NULL;
}

leat_status leat_cluster_check(const leat_cluster *c, const leat_probe_options *options,
                               leat_probe **probes_out, int *n_out)
{
    LEAT_CHECK(CLUSTER, c);
    static const leat_probe_options none;
    probing all = {.cluster = c, .options = options ? options : &none};
    all.timeout_ms = all.options->timeout_ms > 0 ? all.options->timeout_ms : 5000;
    for (int i = 0; i < c->n; i++)
        all.n += c->jobs[i].n;
    LEAT_REQUIRE(all.n > 0, INVALID_ARGUMENT, "The cluster has no tasks");
    leat_probe *p = all.probes = leat_new_array(leat_probe, all.n);
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->jobs[i].n; k++, p++) {
            snprintf(p->job, sizeof(p->job), "%s", c->jobs[i].name);
            snprintf(p->address, sizeof(p->address), "%s", c->jobs[i].tasks[k].address);
            p->task = c->jobs[i].tasks[k].index;
            p->clock_ahead = NAN;
        }
    pthread_t threads[AT_A_TIME];
    int n_threads = 0;
    while (n_threads < AT_A_TIME && n_threads < all.n - 1 &&
           leat_thread_start(&threads[n_threads], probe_some, &all) == 0)
        n_threads++;
    probe_some(&all);
    while (n_threads)
        pthread_join(threads[--n_threads], NULL);
    *probes_out = all.probes;
    *n_out = all.n;
    return NULL;
}
