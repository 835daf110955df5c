/* service_idle.c -- sessions that their clients left behind: a client that was killed, or whose
 * machine is gone, closes nothing. A session is closed some time after its last call if its
 * client's connection is closed, too; within that time a client that connects again finds its
 * session. */
#include <stdlib.h>

#include "cluster/service_int.h"
#include "core/alloc.h"
#include "core/log.h"

enum { DEFAULT_MAX = 1000 };

static int limit(const leat_service *s)
{
    return s->max_sessions ? s->max_sessions : DEFAULT_MAX;
}

void leat_service_expire(leat_service *s, const leat_connections *open, int64_t idle_ns)
{
    size_t i = 0;
    const char *key;
    void *v;
    int n = 0, cap = 0;
    leat_client **idle = NULL;
    pthread_mutex_lock(&s->lock);
    int64_t now = leat_now_ns();
    while (leat_map_next(&s->clients, &i, &key, &v)) {
        leat_client *c = v;
        if (leat_usage_connected(&c->usage, open)) {
            leat_usage_seen(&c->usage);
        } else if (leat_usage_idle_ns(&c->usage, now) > idle_ns) {
            leat_grow(idle, n, cap);
            idle[n++] = c;
        }
    }
    for (int k = 0; k < n; k++)
        leat_map_remove(&s->clients, idle[k]->handle);
    pthread_mutex_unlock(&s->lock);
    for (int k = 0; k < n; k++) {
        LEAT_LOG(INFO, "Session %s is closed: its client has gone, and it was not used for %.0f s",
                 idle[k]->handle, (double)idle_ns / 1e9);
        leat_client_close(idle[k]);
    }
    free(idle);
}

/* Takes out of the table the session that was used longest ago among those whose clients'
 * connections are closed; NULL if there is none. Called with the lock held. */
static leat_client *take_oldest(leat_service *s, const leat_connections *open)
{
    size_t i = 0;
    const char *key;
    void *v;
    leat_client *oldest = NULL;
    int64_t now = leat_now_ns(), longest = 0;
    while (leat_map_next(&s->clients, &i, &key, &v)) {
        leat_client *c = v;
        int64_t idle = leat_usage_idle_ns(&c->usage, now);
        if (idle > longest && !leat_usage_connected(&c->usage, open)) {
            longest = idle;
            oldest = c;
        }
    }
    if (oldest)
        leat_map_remove(&s->clients, oldest->handle);
    return oldest;
}

leat_status leat_service_admit(leat_service *s)
{
    leat_client *left = NULL;
    pthread_mutex_lock(&s->lock);
    bool full = (int)s->clients.n + s->opening >= limit(s);
    s->opening += !full;
    pthread_mutex_unlock(&s->lock);
    if (!full)
        return NULL;
    leat_connections *open = leat_connections_read(atomic_load(&s->port));
    pthread_mutex_lock(&s->lock);
    full = (int)s->clients.n + s->opening >= limit(s);
    if (full)
        left = take_oldest(s, open);
    if (left)
        full = false;
    s->opening += !full;
    pthread_mutex_unlock(&s->lock);
    leat_connections_free(open);
    if (left) {
        LEAT_LOG(WARNING,
                 "Session %s, whose client has gone, is closed, since the limit of %d sessions "
                 "(--max_sessions) is reached",
                 left->handle, limit(s));
        leat_client_close(left);
    }
    LEAT_REQUIRE(!full, RESOURCE_EXHAUSTED,
                 "%s has %d sessions of clients that are connected, which is its limit: close "
                 "some, or start it with a higher limit (leat server --max_sessions, max_sessions "
                 "of leat_server_options)",
                 leat_worker_task(s->worker), limit(s));
    return NULL;
}
