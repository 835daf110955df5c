/* server_call.c -- a call that came over gRPC, from its arrival to the end of its reply.
 *
 * 1. The event of the tag "closed" says that a call is over: the reply was sent, its caller went
 *    away, or the listener cancelled it. gRPC's object of the call (grpc_call) is given back when
 *    this has come, the handler has returned and no reply is being sent. A later reply is dropped.
 * 2. A server_call is freed when its grpc_call was given back and its handler has replied.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/gone.h"
#include "cluster/grpc/guard.h"
#include "cluster/grpc/listener_int.h"
#include "cluster/grpc/security.h"
#include "core/alloc.h"
#include "core/bind.h"
#include "core/threadpool.h"

enum { MESSAGE_MAX = 3072 };
static const int64_t RECEIVING_NS = INT64_C(1000000000);

typedef struct server_call {
    leat_server_call base;
    leat_tag arrived, came, closed, sent;
    leat_gone gone;
    uint64_t connection;         /* Of leat_guard_call_begins. */
    bool accepted;               /* The call's message is received. */
    bool whole;                  /* The message has come as a whole. */
    leat_receiving receiving;    /* In the listener's list until then. */
    leat_rpc_listener *listener; /* Valid while call is not NULL. */
    grpc_call_details details;
    grpc_metadata_array metadata;
    grpc_byte_buffer *request, *reply;
    leat_gather *gather; /* A request that comes in parts. */
    leat_status broken;  /* The error in a request in parts. */
    leat_parts *parts;   /* A reply that is sent in parts. */
    bool takes_parts;    /* The caller takes replies in parts. */
    int cancelled;
    char *peer;           /* The caller's address, once leat_server_call_peer was called. */
    pthread_mutex_t lock; /* Guards peer and what follows; taken before the listener's. */
    grpc_call *call;
    bool handling, replying, watched, replied;
} server_call;

#define SERVER_CALL(tag, member) ((server_call *)((char *)(tag)-offsetof(server_call, member)))

static void count(leat_rpc_listener *l, int *n, int by)
{
    pthread_mutex_lock(&l->lock);
    *n += by;
    if (!*n)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void free_call(server_call *a)
{
    grpc_byte_buffer_destroy(a->request);
    grpc_byte_buffer_destroy(a->reply);
    leat_gather_free(a->gather);
    leat_parts_free(a->parts);
    leat_gone_release(&a->gone);
    pthread_mutex_destroy(&a->lock);
    gpr_free(a->peer);
    free(a);
}

/* ---- Calls whose message has not come as a whole ---- */
/* Appends to the listener's list. The listener's lock is held. */
static void append(server_call *a)
{
    leat_rpc_listener *l = a->listener;
    leat_receiving *r = &a->receiving;
    *r = (leat_receiving){NULL, l->receiving_end, leat_now_ns()};
    *l->receiving_end = r;
    l->receiving_end = &r->next;
}

/* The listener's lock is held. */
static void take_out(server_call *a)
{
    leat_rpc_listener *l = a->listener;
    leat_receiving *r = &a->receiving;
    if (!r->link)
        return;
    *r->link = r->next;
    if (r->next)
        r->next->link = r->link;
    else
        l->receiving_end = r->link;
    r->link = NULL;
}

/* A part of the message came. */
static void receives(server_call *a)
{
    pthread_mutex_lock(&a->listener->lock);
    take_out(a);
    append(a);
    pthread_mutex_unlock(&a->listener->lock);
}

/* No more of the message is waited for. */
static void received(server_call *a)
{
    pthread_mutex_lock(&a->listener->lock);
    take_out(a);
    pthread_mutex_unlock(&a->listener->lock);
}

/* There is no room for another call: cancels the call that has brought nothing for the longest
 * time, if that is more than a second, so that calls without a message do not keep others out.
 * True: there is room. The listener's lock is held. */
static bool make_room(leat_rpc_listener *l)
{
    if (!l->receiving || leat_now_ns() < l->receiving->since_ns + RECEIVING_NS)
        return false;
    server_call *oldest = SERVER_CALL(l->receiving, receiving);
    take_out(oldest);
    /* A call of the list has a grpc_call: settle takes it out first. */
    grpc_call_cancel_with_status(oldest->call, GRPC_STATUS_RESOURCE_EXHAUSTED,
                                 "The message did not come while other calls waited", NULL);
    return true;
}

/* Frees by rules 1 and 2. The lock is held, and released here. */
static void settle(server_call *a)
{
    leat_rpc_listener *l = NULL;
    if (a->call && !a->watched && !a->handling && !a->replying) {
        received(a);
        leat_guard_call_ends(a->connection, a->accepted && !a->whole);
        grpc_metadata_array_destroy(&a->metadata);
        grpc_call_details_destroy(&a->details);
        grpc_call_unref(a->call);
        a->call = NULL;
        l = a->listener;
    }
    bool over = !a->call && a->replied;
    pthread_mutex_unlock(&a->lock);
    if (over)
        free_call(a);
    if (l)
        count(l, &l->calls, -1);
}

static void on_closed(leat_tag *tag, bool ok)
{
    server_call *a = SERVER_CALL(tag, closed);
    if (a->cancelled)
        leat_gone_fire(&a->gone, leat_poller_release);
    pthread_mutex_lock(&a->lock);
    a->watched = false;
    settle(a);
}

static void start(server_call *a, const grpc_op *ops, size_t n, leat_tag *tag)
{
    grpc_call *call = a->call; /* The batch's event may free a before this function returns. */
    leat_unbind();             /* gRPC may start a thread. */
    if (grpc_call_start_batch(call, ops, n, leat_tag_pointer(tag), NULL) != GRPC_CALL_OK)
        abort(); /* gRPC refuses batches only if this file has made a mistake. */
}

static void on_sent(leat_tag *tag, bool ok)
{
    server_call *a = SERVER_CALL(tag, sent);
    if (ok && a->parts && leat_parts_left(a->parts)) {
        grpc_byte_buffer_destroy(a->reply);
        a->reply = leat_parts_next(a->parts);
        grpc_op ops[2] = {
            {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = a->reply},
            {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
             .data.send_status_from_server.status = GRPC_STATUS_OK},
        };
        start(a, ops, leat_parts_left(a->parts) ? 1 : 2, &a->sent);
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->replying = false;
    settle(a);
}

static void send_head(server_call *a)
{
    grpc_metadata mark = leat_parts_mark();
    a->reply = leat_parts_head(a->parts);
    grpc_op ops[2] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .data.send_initial_metadata = {.count = 1, .metadata = &mark}},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = a->reply},
    };
    start(a, ops, 2, &a->sent);
}

static void send(server_call *a, leat_status s)
{
    const char *message = leat_status_message(s);
    size_t n = strlen(message);
    if (n > MESSAGE_MAX) /* Clients refuse a reply with headers beyond 8 KB. */
        for (n = MESSAGE_MAX; n && (message[n] & 0xc0) == 0x80;)
            n--;
    grpc_slice details = grpc_slice_from_copied_buffer(message, n);
    grpc_metadata mark = {.key = grpc_slice_from_static_string(LEAT_STATUS_MARK),
                          .value = grpc_slice_from_static_string("1")};
    grpc_op ops[3] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
         .data.send_status_from_server = {.status = (grpc_status_code)leat_status_code(s),
                                          .status_details = s ? &details : NULL,
                                          .trailing_metadata_count = s ? 1 : 0,
                                          .trailing_metadata = &mark}},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = a->reply},
    };
    start(a, ops, a->reply ? 3 : 2, &a->sent);
    grpc_slice_unref(details);
}

static int64_t max_reply(const leat_server_call *base)
{
    return ((const server_call *)base)->takes_parts ? LEAT_MESSAGE_MAX : leat_whole_max;
}

static void reply(leat_server_call *base, leat_status s, leat_outgoing *reply)
{
    server_call *a = (server_call *)base;
    leat_gone_reply(&a->gone);
    size_t size = reply && !s ? leat_outgoing_size(reply) : 0;
    if ((int64_t)size > max_reply(base))
        s = leat_error(RESOURCE_EXHAUSTED,
                       "A reply of %zu bytes is larger than the %lld that one message of gRPC "
                       "holds. Fetch less at a time, or slices of it",
                       size, (long long)max_reply(base));
    pthread_mutex_lock(&a->lock);
    a->replied = true;
    if (a->watched) {
        a->replying = true;
        pthread_mutex_unlock(&a->lock);
        static leat_outgoing nothing;
        if (!s && a->takes_parts && size > leat_parts_from) {
            a->parts = leat_parts_new(reply);
            send_head(a);
        } else {
            if (!s)
                a->reply = leat_bytes_to_send(reply ? reply : &nothing);
            send(a, s);
        }
    } else {
        settle(a);
    }
    if (reply)
        leat_outgoing_release(reply);
    leat_status_free(s);
}

static bool on_cancel(leat_server_call *base, void (*fn)(void *arg), void *arg)
{
    return leat_gone_watch(&((server_call *)base)->gone, fn, arg);
}

static const char *peer(const leat_server_call *base)
{
    server_call *a = (server_call *)base;
    pthread_mutex_lock(&a->lock);
    if (!a->peer && a->call)
        a->peer = grpc_call_get_peer(a->call);
    const char *p = a->peer ? a->peer : "a caller that has gone";
    pthread_mutex_unlock(&a->lock);
    return p;
}

static void handled(server_call *a)
{
    pthread_mutex_lock(&a->lock);
    a->handling = false;
    settle(a);
}

/* Replies with an error, without a handler. */
static void refuse(server_call *a, leat_status s)
{
    reply(&a->base, s, NULL);
    handled(a);
}

/* The message has come as a whole. */
static void came_whole(server_call *a)
{
    a->whole = true;
    received(a);
    leat_guard_call_came(a->connection);
}

static void reply_to_ping(server_call *a)
{
    came_whole(a);
    leat_outgoing o = {0};
    if (a->listener->takes_parts)
        leat_strbuf_puts(&o.text, LEAT_PARTS_AGENT);
    reply(&a->base, NULL, &o);
    handled(a);
}

static void handle(server_call *a)
{
    came_whole(a);
    leat_poller_release();
    char *method = grpc_slice_to_c_string(a->details.method);
    leat_incoming in =
        a->gather ? leat_gather_incoming(a->gather) : leat_bytes_received(a->request);
    a->listener->handler(a->listener->arg, &a->base, method, &in);
    if (!a->gather)
        free((void *)in.slices);
    gpr_free(method);
    /* The request is freed now: the reply may take long. */
    grpc_byte_buffer_destroy(a->request);
    a->request = NULL;
    leat_gather_free(a->gather);
    a->gather = NULL;
    handled(a);
}

static void receive(server_call *a)
{
    grpc_op take = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &a->request};
    start(a, &take, 1, &a->came);
}

/* A part of a request, or the head before the parts. The next part is received while this one is
 * copied to its place. */
static void take_part(server_call *a)
{
    grpc_byte_buffer *b = a->request;
    leat_gather *g = a->gather;
    a->request = NULL;
    receives(a);
    if (!g) {
        leat_status s = leat_gather_new(b, a->listener->max_message, &a->gather);
        grpc_byte_buffer_destroy(b);
        if (s)
            refuse(a, s);
        else
            receive(a);
        return;
    }
    bool more = leat_gather_missing(g) > grpc_byte_buffer_length(b);
    if (more)
        receive(a);
    leat_status s = leat_gather_add(g, b);
    grpc_byte_buffer_destroy(b);
    if (more)
        a->broken = s; /* Sent as the reply when the receive under way has ended. */
    else if (s)
        refuse(a, s);
    else
        handle(a);
}

static void on_came(leat_tag *tag, bool ok)
{
    server_call *a = SERVER_CALL(tag, came);
    leat_status broken = a->broken;
    a->broken = NULL;
    if (!broken && (!ok || !a->request))
        broken = leat_error(INVALID_ARGUMENT, "The call has no message, or not all of it");
    if (broken)
        refuse(a, broken);
    else if (a->gather || leat_parts_in(&a->metadata))
        take_part(a);
    else if (grpc_slice_str_cmp(a->details.method, LEAT_PING) == 0)
        reply_to_ping(a);
    else
        handle(a);
}

/* Gives the reason if the call is not to be accepted. */
static leat_status accept(server_call *a, bool room)
{
    leat_rpc_listener *l = a->listener;
    char *from = grpc_call_get_peer(a->call);
    int calls;
    a->connection = leat_guard_call_begins(from, &calls);
    gpr_free(from);
    LEAT_REQUIRE(leat_security_allows(l->security, &a->metadata), UNAUTHENTICATED,
                 "The call carries no token, or a wrong one");
    LEAT_REQUIRE(calls <= l->max_calls_one, RESOURCE_EXHAUSTED,
                 "The connection has %d calls under way, which is its limit: half of the %d that "
                 "the task accepts in all",
                 l->max_calls_one, l->max_calls);
    LEAT_REQUIRE(room, RESOURCE_EXHAUSTED,
                 "The task has %d calls under way, which is its limit (--max_calls)", l->max_calls);
    a->accepted = true;
    leat_guard_call_receives(a->connection);
    pthread_mutex_lock(&l->lock);
    append(a);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void on_arrived(leat_tag *tag, bool ok)
{
    server_call *a = SERVER_CALL(tag, arrived);
    leat_rpc_listener *l = a->listener;
    pthread_mutex_lock(&l->lock);
    bool again = !l->stopping, room = l->calls < l->max_calls || (ok && make_room(l));
    l->calls += ok;
    pthread_mutex_unlock(&l->lock);
    if (again)
        leat_server_call_await(l);
    if (ok) {
        a->watched = a->handling = true;
        a->takes_parts = leat_parts_taken(&a->metadata);
        grpc_op watch = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                         .data.recv_close_on_server.cancelled = &a->cancelled};
        start(a, &watch, 1, &a->closed);
        leat_status s = accept(a, room);
        if (s)
            refuse(a, s);
        else
            receive(a);
    } else {
        grpc_metadata_array_destroy(&a->metadata);
        grpc_call_details_destroy(&a->details);
        free_call(a);
    }
    count(l, &l->waiting, -1);
}

void leat_server_call_await(leat_rpc_listener *l)
{
    static const leat_server_call_ops ops = {
        .reply = reply, .on_cancel = on_cancel, .peer = peer, .max_reply = max_reply};
    server_call *a = leat_new(server_call);
    a->base.ops = &ops;
    a->listener = l;
    a->arrived.fn = on_arrived;
    a->came.fn = on_came;
    a->closed.fn = on_closed;
    a->sent.fn = on_sent;
    leat_gone_init(&a->gone);
    pthread_mutex_init(&a->lock, NULL);
    grpc_call_details_init(&a->details);
    grpc_metadata_array_init(&a->metadata);
    count(l, &l->waiting, 1);
    if (grpc_server_request_call(l->server, &a->call, &a->details, &a->metadata, l->queue, l->queue,
                                 leat_tag_pointer(&a->arrived)) != GRPC_CALL_OK)
        abort(); /* gRPC refuses it only if this file has made a mistake. */
}
