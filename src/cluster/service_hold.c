/* service_hold.c -- Hold: a client that saves checkpoints wants to save before a task of its
 * session ends (leat_session_hold). A Leat client makes one call, to which the reply comes when a
 * task is about to end, and a second call when it has saved. A client that is lost holds nothing.
 *
 * A call that waits for its reply is client->hold. Who takes it out of there, with the client's
 * lock held, replies to it and frees it. */
#include <stdio.h>
#include <stdlib.h>

#include "cluster/service_int.h"
#include "core/alloc.h"
#include "proto/wire.h"
#include "runtime/session_int.h"

struct leat_client_hold {
    leat_client *client; /* A reference, in use. */
    leat_server_call *call;
    bool gone; /* The caller is lost; guarded by the client's lock. */
};

/* Gives the hold that waits, if it is this one; NULL: any. */
static leat_client_hold *take(leat_client *c, leat_client_hold *which)
{
    pthread_mutex_lock(&c->lock);
    leat_client_hold *h = c->hold;
    if (which && which != h) {
        which->gone = true;
        h = NULL;
    }
    if (h)
        c->hold = NULL;
    pthread_mutex_unlock(&c->lock);
    return h;
}

/* Replies, and frees h, which may be NULL. Takes s. */
static void end(leat_client_hold *h, leat_status s, const char *task)
{
    Leat__HoldResponse r = LEAT__HOLD_RESPONSE__INIT;
    if (!h) {
        leat_status_free(s);
        return;
    }
    r.task = (char *)task;
    leat_reply_message(h->call, s, &r); /* Waits while caller_gone runs. */
    leat_client_done(h->client);
    free(h);
}

static void let_go(leat_client *c)
{
    leat_status closed = leat_client_enter(c);
    if (!closed) {
        leat_session_let_go(c->session);
        leat_client_leave(c);
    }
    leat_status_free(closed);
}

static void caller_gone(void *arg)
{
    leat_client_hold *h = arg;
    leat_client *c = h->client;
    if (!take(c, h))
        return;
    let_go(c);
    end(h, leat_error(CANCELLED, "The client has gone"), "");
}

/* Replies to the hold of a client, if a task of its session is about to end. */
static void tell(leat_client *c)
{
    char task[128] = "";
    leat_status closed = leat_client_enter(c);
    if (!closed) {
        const char *ending = leat_session_ending(c->session);
        if (ending)
            snprintf(task, sizeof(task), "%s", ending);
        leat_client_leave(c);
    }
    leat_status_free(closed);
    if (*task)
        end(take(c, NULL), NULL, task);
}

void leat_service_tell_ending(leat_service *s)
{
    size_t i = 0;
    int n = 0;
    const char *key;
    void *v;
    pthread_mutex_lock(&s->lock);
    leat_client **clients = leat_new_array(leat_client *, s->clients.n + 1);
    while (leat_map_next(&s->clients, &i, &key, &v)) {
        clients[n] = v;
        atomic_fetch_add(&clients[n]->refs, 1);
        leat_usage_begin(&clients[n++]->usage, NULL);
    }
    pthread_mutex_unlock(&s->lock);
    while (n) {
        tell(clients[--n]);
        leat_client_done(clients[n]);
    }
    free(clients);
}

void leat_client_hold_free(leat_client *c)
{
    end(take(c, NULL), leat_error(CANCELLED, "Session has been closed."), "");
}

/* The client has one call of Hold under way at most: an earlier one ends. */
static leat_status hold(leat_client *c, leat_server_call *a)
{
    LEAT_TRY(leat_client_enter(c));
    leat_client_hold *h = leat_new(leat_client_hold);
    *h = (leat_client_hold){.client = c, .call = a};
    atomic_fetch_add(&c->refs, 1);
    leat_usage_begin(&c->usage, NULL);
    leat_session_hold(c->session);
    bool here = leat_server_call_on_cancel(a, caller_gone, h);
    pthread_mutex_lock(&c->lock);
    leat_client_hold *before = NULL;
    here = here && !h->gone;
    if (here) {
        before = c->hold;
        c->hold = h; /* From now on another thread may free h. */
    } else {
        leat_session_let_go(c->session);
    }
    pthread_mutex_unlock(&c->lock);
    leat_client_leave(c);
    end(before, leat_error(ABORTED, "The client has called Hold again"), "");
    if (here)
        tell(c);
    else
        end(h, leat_error(CANCELLED, "The client has gone"), "");
    return NULL;
}

void leat_service_hold(leat_service *s, leat_server_call *a, const leat_incoming *in)
{
    Leat__HoldRequest *q = NULL;
    leat_client *c = NULL;
    bool replied = false;
    leat_status status = LEAT_REQUEST(hold_request, in, &q);
    if (!status)
        status = leat_service_find(s, a, q->session_handle, &c);
    if (!status && q->release) {
        let_go(c);
        end(take(c, NULL), leat_error(CANCELLED, "The client has let go"), "");
    } else if (!status) {
        status = hold(c, a);
        replied = !status;
    }
    if (!replied)
        leat_reply_message(a, status, NULL);
    leat_client_done(c);
    leat_proto_free(q);
}
