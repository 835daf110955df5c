/* remote_hold.c -- see remote_hold.h. */
#include "cluster/remote_hold.h"

#include <stdio.h>

#include "cluster/messages/messages.h"
#include "cluster/messages/methods.h"
#include "cluster/tensor_wire.h"
#include "core/threadpool.h"
#include "proto/wire.h"

static leat_status read_reply(leat_remote_hold *h, const leat_incoming *in)
{
    Leat__HoldResponse *r = NULL;
    leat_cursor all = leat_cursor_of(in);
    LEAT_TRY(LEAT_GET(hold_response, &all, &r));
    snprintf(h->task, sizeof(h->task), "%s", r->task);
    leat_proto_free(r);
    atomic_store_explicit(&h->ending, true, memory_order_release);
    return NULL;
}

/* An error is no news: TensorFlow's servers have no such method, and if the server is lost, the
 * session's steps say so. */
static void replied(void *arg, leat_status s, const leat_incoming *in)
{
    leat_remote_hold *h = arg;
    if (!s)
        s = read_reply(h, in);
    leat_status_free(s);
}

static void let_go(void *arg, leat_status s, const leat_incoming *in)
{
    leat_status_free(s);
}

static void send(leat_channel *c, char *handle, bool release, int64_t deadline_ns, leat_reply_fn fn,
                 void *arg)
{
    Leat__HoldRequest q = LEAT__HOLD_REQUEST__INIT;
    leat_outgoing o = {0};
    q.session_handle = handle;
    q.release = release;
    leat_status s = leat_put_fields(&o.text, LEAT_METHOD_HOLD, &q);
    if (!s)
        leat_channel_call(c, LEAT_METHOD_HOLD, &o, &(leat_call_options){.deadline_ns = deadline_ns},
                          fn, arg, NULL);
    leat_status_free(s);
}

void leat_remote_hold_set(leat_remote_hold *h, leat_channel *c, char *handle, bool on)
{
    enum { RELEASE_SECONDS = 10 };
    if (atomic_exchange(&h->on, on) == on)
        return;
    if (on) {
        send(c, handle, false, 0, replied, h);
        return;
    }
    atomic_store(&h->ending, false);
    send(c, handle, true, leat_now_ns() + INT64_C(1000000000) * RELEASE_SECONDS, let_go, NULL);
}

const char *leat_remote_hold_ending(const leat_remote_hold *h)
{
    return atomic_load_explicit(&h->ending, memory_order_acquire) ? h->task : NULL;
}
