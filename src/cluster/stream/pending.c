/* pending.c -- see pending.h. */
#include "cluster/stream/pending.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/threadpool.h"

static const int64_t PATIENCE_NS = INT64_C(3000000000), ACCEPT_PAUSE_NS = INT64_C(100000000),
                     LOG_PAUSE_NS = INT64_C(1000000000);

leat_pending leat_pending_take(leat_pending_table *t, int i)
{
    leat_pending p = t->v[i];
    memmove(&t->v[i], &t->v[i + 1], sizeof(*t->v) * (size_t)(--t->n - i));
    return p;
}

void leat_pending_close(leat_pending_table *t, int i)
{
    leat_pending p = leat_pending_take(t, i);
    if (p.state)
        t->free_state(p.state);
    close(p.socket);
}

void leat_pending_close_all(leat_pending_table *t)
{
    while (t->n)
        leat_pending_close(t, t->n - 1);
}

void leat_pending_add(leat_pending_table *t, int socket, void *state)
{
    if (t->n == LEAT_PENDING_MAX)
        leat_pending_close(t, 0);
    t->v[t->n++] = (leat_pending){socket, leat_now_ns() + PATIENCE_NS, state};
}

bool leat_pending_may_log(leat_pending_table *t)
{
    int64_t now = leat_now_ns();
    bool may = now >= t->log_ns;
    if (may)
        t->log_ns = now + LOG_PAUSE_NS;
    return may;
}

void leat_pending_pause(leat_pending_table *t, int e)
{
    t->accept_ns = leat_now_ns() + ACCEPT_PAUSE_NS;
    if (t->n)
        leat_pending_close(t, 0);
    if (leat_pending_may_log(t))
        LEAT_LOG(WARNING, "No connection by %s can be accepted now: %s. %s", t->what, strerror(e),
                 e == EMFILE || e == ENFILE ? "Too many descriptors are open (ulimit -n)"
                                            : "It is tried again");
}

int64_t leat_pending_expire(leat_pending_table *t)
{
    int64_t now = leat_now_ns();
    while (t->n && t->v[0].deadline_ns <= now)
        leat_pending_close(t, 0);
    if (t->accept_ns <= now)
        t->accept_ns = 0;
    int64_t next = t->n ? t->v[0].deadline_ns : 0;
    return t->accept_ns && (!next || t->accept_ns < next) ? t->accept_ns : next;
}
