/* ping.c -- finds peers that do not reply any more while calls to them are open: processes that are
 * stopped, or behind a cut link.
 *
 * A ping is a small call. gRPC's own keepalive cannot be used by clients: TensorFlow's servers take
 * HTTP/2 pings on a call that moves no data for an attack, and close the connection after three. To
 * an unknown method every server replies: listeners of Leat with a message, others with
 * UNIMPLEMENTED. If this process was stopped or got no CPU, it may not have read the reply in time:
 * it pings again before it fails calls.
 */
#include "cluster/grpc/channel_int.h"
#include "core/threadpool.h"

/* Guards what follows; taken before a channel's lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static leat_rpc_channel *all;
static int64_t checked_ns; /* When all channels were checked last. */
static int64_t missed_ns;  /* When a check last came too late, because this process did not run. */

/* Fails the calls that were open when the ping began, and opens a new connection: TCP would take a
 * quarter of an hour to give up the old one behind a cut link. */
static void give_up(leat_rpc_channel *c)
{
    pthread_mutex_lock(&c->lock);
    grpc_channel *old = c->inner;
    for (leat_rpc *r = c->calls; r; r = r->next)
        if (r->started_ns <= c->pinged_ns)
            grpc_call_cancel_with_status(r->inner, GRPC_STATUS_UNAVAILABLE, LEAT_SILENT, NULL);
    c->inner = leat_rpc_connect(c);
    pthread_mutex_unlock(&c->lock);
    grpc_channel_destroy(old);
}

static void note_time(int64_t now) /* The lock is held. */
{
    if (checked_ns && now - checked_ns > leat_ping_after_ns)
        missed_ns = now;
}

/* Whether this process has made all its checks in time since then. */
static bool awake_since(int64_t ns)
{
    pthread_mutex_lock(&lock);
    note_time(leat_now_ns());
    bool awake = missed_ns < ns;
    pthread_mutex_unlock(&lock);
    return awake;
}

static void on_ping(void *arg, leat_status s, const leat_incoming *in)
{
    leat_rpc_channel *c = arg;
    leat_code code = leat_status_code(s);
    leat_status_free(s);
    bool silent =
        code == LEAT_DEADLINE_EXCEEDED && leat_rpc_connected(c) && awake_since(c->pinged_ns);
    if (silent)
        give_up(c);
    pthread_mutex_lock(&c->lock);
    if (silent || (code != LEAT_DEADLINE_EXCEEDED && code != LEAT_UNAVAILABLE))
        c->alive_ns = leat_now_ns();
    c->pinged_ns = 0;
    pthread_mutex_unlock(&c->lock);
}

static void ping_silent(int64_t now) /* The lock is held. */
{
    for (leat_rpc_channel *c = all; c; c = c->next) {
        pthread_mutex_lock(&c->lock);
        bool due = c->calls && !c->pinged_ns && now - c->alive_ns >= leat_ping_after_ns;
        if (due)
            c->pinged_ns = now;
        pthread_mutex_unlock(&c->lock);
        if (due)
            c->base.ops->call(&c->base, LEAT_PING, &(leat_outgoing){0},
                              &(leat_call_options){.deadline_ns = now + leat_ping_after_ns},
                              on_ping, c, NULL);
    }
}

int64_t leat_ping_check(void)
{
    int64_t now = leat_now_ns();
    pthread_mutex_lock(&lock);
    note_time(now);
    if (now >= checked_ns + leat_ping_after_ns / 2) {
        checked_ns = now;
        ping_silent(now);
    }
    int64_t next = checked_ns + leat_ping_after_ns / 2;
    pthread_mutex_unlock(&lock);
    return next;
}

void leat_ping_watch(leat_rpc_channel *c)
{
    pthread_mutex_lock(&lock);
    if (!all)
        checked_ns = leat_now_ns();
    c->next = all;
    c->link = &all;
    if (all)
        all->link = &c->next;
    all = c;
    pthread_mutex_unlock(&lock);
}

void leat_ping_unwatch(leat_rpc_channel *c)
{
    pthread_mutex_lock(&lock);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    pthread_mutex_unlock(&lock);
}
