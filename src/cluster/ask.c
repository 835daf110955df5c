/* ask.c -- see ask.h. */
#include "cluster/ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/log.h"

typedef struct leat_round {
    atomic_int left;
    leat_event done;
} leat_round;

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void answered(void *arg, leat_status s, const leat_incoming *in)
{
    leat_question *q = arg;
    q->status = s;
    q->middle_ns += (wall_ns() - q->middle_ns) / 2;
    if (!s) {
        leat_cursor c = leat_cursor_of(in);
        q->size = in->size;
        q->reply = leat_xmalloc(in->size + 1);
        q->status = leat_cursor_copy(&c, q->reply, in->size);
    }
    leat_round *round = q->round;
    atomic_store(&q->answered, true);
    if (atomic_fetch_sub(&round->left, 1) == 1)
        leat_event_set(&round->done);
}

static void say_who(const leat_question *q, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        if (!atomic_load(&q[i].answered))
            LEAT_LOG(WARNING, "%s still waiting for response from worker: %s at %s", what,
                     q[i].peer->name, q[i].peer->address);
}

leat_status leat_ask_all(leat_question *q, int n, const char *method, const char *what,
                         int64_t deadline_ns, bool wait_ready)
{
    leat_round round;
    if (!n)
        return NULL;
    atomic_init(&round.left, n);
    leat_event_init(&round.done);
    for (int i = 0; i < n; i++) {
        q[i].round = &round;
        q[i].middle_ns = wall_ns();
        leat_call_options o = {.deadline_ns = deadline_ns, .wait_ready = wait_ready};
        leat_peer_call(q[i].peer, method, &q[i].request, &o, answered, &q[i], NULL);
    }
    while (!leat_event_wait(&round.done, leat_now_ns() + INT64_C(10000000000)))
        say_who(q, n, what);
    for (int i = 0; i < n; i++)
        if (q[i].status)
            return leat_status_copy(q[i].status);
    return NULL;
}

static void told(void *arg, leat_status s, const leat_incoming *in)
{
    leat_status_free(s);
}

void leat_tell(leat_peer *p, const char *method, leat_outgoing *request)
{
    enum { SECONDS = 30 };
    leat_call_options o = {.deadline_ns = leat_now_ns() + INT64_C(1000000000) * SECONDS};
    leat_peer_call(p, method, request, &o, told, NULL, NULL);
}
