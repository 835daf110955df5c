/* usage.c -- see usage.h. */
#include "cluster/usage.h"

#include <stdio.h>
#include <string.h>

void leat_usage_init(leat_usage *u)
{
    atomic_init(&u->calls, 0);
    atomic_init(&u->last_ns, leat_now_ns());
    pthread_mutex_init(&u->lock, NULL);
}

void leat_usage_release(leat_usage *u)
{
    pthread_mutex_destroy(&u->lock);
}

void leat_usage_begin(leat_usage *u, const char *peer)
{
    atomic_fetch_add(&u->calls, 1);
    if (!peer)
        return;
    pthread_mutex_lock(&u->lock);
    if (strcmp(u->peer, peer) != 0)
        snprintf(u->peer, sizeof(u->peer), "%s", peer);
    pthread_mutex_unlock(&u->lock);
}

void leat_usage_end(leat_usage *u)
{
    leat_usage_seen(u);
    atomic_fetch_sub(&u->calls, 1);
}

void leat_usage_seen(leat_usage *u)
{
    atomic_store_explicit(&u->last_ns, leat_now_ns(), memory_order_relaxed);
}

bool leat_usage_connected(leat_usage *u, const leat_connections *open)
{
    pthread_mutex_lock(&u->lock);
    bool connected = leat_connections_has(open, u->peer);
    pthread_mutex_unlock(&u->lock);
    return connected;
}

int64_t leat_usage_idle_ns(const leat_usage *u, int64_t now_ns)
{
    if (atomic_load(&u->calls))
        return 0;
    int64_t idle = now_ns - atomic_load_explicit(&u->last_ns, memory_order_relaxed);
    return idle > 0 ? idle : 0;
}
