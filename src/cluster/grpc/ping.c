/* ping.c -- peers that fell silent while calls to them are open.
 *
 * gRPC's own keepalive is not used by clients: TensorFlow's servers take pings on an open call that
 * moves no data for an attack, and hang up after three. A call is answered by everybody: by Leat's
 * listeners, and by others with UNIMPLEMENTED, which is as good. A process that was stopped itself,
 * or got no CPU, does not blame its peer for what it missed: it pings again.
 */
#include "cluster/grpc/channel_int.h"
#include "core/threadpool.h"

int64_t leat_ping_after_ns = INT64_C(10000000000);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all; before a channel's */
static leat_rpc_channel *all;
static int64_t ticked_ns; /* when all were looked at last */
static int64_t missed_ns; /* when it was found that this is long ago */

/* Gives up calls that were open when the ping began. The connection is left, too: behind a cut link
 * it would take TCP a quarter of an hour to see that. */
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

static void note_time(int64_t now) /* lock is held */
{
    if (ticked_ns && now - ticked_ns > leat_ping_after_ns)
        missed_ns = now;
}

/* This process has looked at its channels in time ever since. */
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
        c->heard_ns = leat_now_ns();
    c->pinged_ns = 0;
    pthread_mutex_unlock(&c->lock);
}

static void tick(void)
{
    int64_t now = leat_now_ns();
    pthread_mutex_lock(&lock);
    note_time(now);
    ticked_ns = now;
    for (leat_rpc_channel *c = all; c; c = c->next) {
        pthread_mutex_lock(&c->lock);
        bool due = c->calls && !c->pinged_ns && now - c->heard_ns >= leat_ping_after_ns;
        if (due)
            c->pinged_ns = now;
        pthread_mutex_unlock(&c->lock);
        if (due)
            leat_channel_call(&c->base, LEAT_PING, &(leat_outgoing){0},
                              &(leat_call_options){.deadline_ns = now + leat_ping_after_ns},
                              on_ping, c, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void leat_ping_watch(leat_rpc_channel *c)
{
    leat_pump_every(leat_ping_after_ns / 2, tick);
    pthread_mutex_lock(&lock);
    if (!all)
        ticked_ns = leat_now_ns();
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
