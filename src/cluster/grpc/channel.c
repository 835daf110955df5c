/* channel.c -- calls to one address over gRPC. A call has two events: one when its request is sent
 * and the first message of its reply has come, one when the call has ended. Messages in parts
 * (parts.h) have more. Events come one after the other (rule 1 of poller.h), so that what they
 * change in a call needs no lock. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/grpc/channel_int.h"
#include "cluster/grpc/security.h"
#include "core/alloc.h"
#include "core/bind.h"
#include "core/threadpool.h"

/* Frees what gRPC filled in, so that the call can be made again. */
static void release_inner(leat_rpc *c)
{
    grpc_byte_buffer_destroy(c->request);
    grpc_byte_buffer_destroy(c->reply);
    grpc_metadata_array_destroy(&c->initial);
    grpc_metadata_array_destroy(&c->trailing);
    grpc_slice_unref(c->details);
    gpr_free((void *)c->error);
    c->request = c->reply = NULL;
    c->error = NULL;
}

static void heard(leat_rpc_channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    ch->alive_ns = leat_now_ns();
    pthread_mutex_unlock(&ch->lock);
}

static void free_call(leat_rpc *c)
{
    bool replied = c->reply;
    release_inner(c);
    leat_outgoing_release(&c->kept);
    leat_parts_free(c->parts);
    leat_gather_free(c->gather);
    leat_status_free(c->broken);
    leat_rpc_channel *ch = c->channel;
    pthread_mutex_lock(&ch->lock);
    if (replied)
        ch->alive_ns = leat_now_ns();
    grpc_call_unref(c->inner);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (!ch->calls)
        pthread_cond_signal(&ch->no_calls);
    pthread_mutex_unlock(&ch->lock);
    free(c);
}

/* The channel's lock is held, because ping.c replaces the channel's inner. */
static void init_inner(leat_rpc *c, const char *method, int64_t deadline_ns)
{
    grpc_metadata_array_init(&c->initial);
    grpc_metadata_array_init(&c->trailing);
    c->details = grpc_empty_slice();
    c->inner = grpc_channel_create_call(c->channel->inner, NULL, GRPC_PROPAGATE_DEFAULTS,
                                        c->channel->queue, grpc_slice_from_static_string(method),
                                        NULL, leat_grpc_time(deadline_ns), NULL);
    if (c->cancelled)
        grpc_call_cancel(c->inner, NULL);
}

static void start_batch(grpc_call *inner, const grpc_op *ops, size_t n, leat_tag *tag)
{
    leat_unbind(); /* gRPC may start a thread. */
    if (grpc_call_start_batch(inner, ops, n, leat_tag_pointer(tag), NULL) != GRPC_CALL_OK)
        abort(); /* gRPC refuses batches only if this file has made a mistake. */
}

/* Sending, and receiving the first message, is one batch; a request in parts has its own. */
static void start(leat_rpc *c)
{
    grpc_metadata marks[2];
    size_t n_marks = 0;
    if (GRPC_SLICE_LENGTH(c->channel->bearer))
        marks[n_marks++] = (grpc_metadata){.key = grpc_slice_from_static_string(LEAT_TOKEN_KEY),
                                           .value = c->channel->bearer};
    if (c->parts) {
        marks[n_marks++] = leat_parts_mark();
        c->request = leat_parts_head(c->parts);
    }
    grpc_op ops[5] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .data.send_initial_metadata = {.count = n_marks, .metadata = marks},
         .flags = c->wait_ready ? GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                                      GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET
                                : 0},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = c->request},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &c->initial},
        {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->reply},
    };
    grpc_op end = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                   .data.recv_status_on_client = {.trailing_metadata = &c->trailing,
                                                  .status = &c->code,
                                                  .status_details = &c->details,
                                                  .error_string = &c->error}};
    c->pending = c->parts ? 3 : 2;
    if (c->parts) {
        start_batch(c->inner, ops, 2, &c->sent);
        start_batch(c->inner, ops + 3, 2, &c->came);
    } else {
        start_batch(c->inner, ops, 5, &c->came);
    }
    start_batch(c->inner, &end, 1, &c->ended); /* From here on c may be freed by its last event. */
}

bool leat_rpc_connected(leat_rpc_channel *c)
{
    pthread_mutex_lock(&c->lock);
    bool is = grpc_channel_check_connectivity_state(c->inner, 0) == GRPC_CHANNEL_READY;
    pthread_mutex_unlock(&c->lock);
    return is;
}

/* Makes the next gRPC call for c, after a ping that probed the peer. */
static void start_again(leat_rpc *c, const char *method, int64_t deadline_ns)
{
    leat_rpc_channel *ch = c->channel;
    release_inner(c);
    pthread_mutex_lock(&ch->lock);
    grpc_call_unref(c->inner);
    init_inner(c, method, deadline_ns);
    pthread_mutex_unlock(&ch->lock);
}

/* gRPC gives no reason for a call that waited for a connection until its deadline. A ping that does
 * not wait fails with the reason of the last attempt to connect. */
static bool probe_reason(leat_rpc *c)
{
    enum { PATIENCE_NS = 300000000 };
    if (c->code != GRPC_STATUS_DEADLINE_EXCEEDED || !c->wait_ready || c->probes_reason ||
        leat_rpc_connected(c->channel))
        return false;
    c->probes_reason = true;
    c->wait_ready = false;
    start_again(c, LEAT_PING, leat_now_ns() + PATIENCE_NS);
    leat_parts_free(c->parts);
    c->parts = NULL;
    c->request = leat_bytes_to_send(&(leat_outgoing){0});
    start(c);
    return true;
}

/* Sends the request that was kept, in parts or as one message. */
static void start_kept(leat_rpc *c, bool parts)
{
    size_t size = leat_outgoing_size(&c->kept);
    if (!parts && (int64_t)size > leat_whole_max) {
        leat_strbuf b = {0};
        leat_strbuf_printf(&b,
                           "a request of %zu bytes is larger than the limit of %lld of one message "
                           "of gRPC, and the peer is no task of Leat's, which would take it in "
                           "parts. Split the tensor in it",
                           size, (long long)leat_whole_max);
        grpc_call_cancel_with_status(c->inner, GRPC_STATUS_RESOURCE_EXHAUSTED, b.s, NULL);
        leat_strbuf_release(&b);
        leat_outgoing_release(&c->kept);
    }
    if (parts)
        c->parts = leat_parts_new(&c->kept);
    else
        c->request = leat_bytes_to_send(&c->kept);
    start(c);
}

/* The ping that finds out whether the peer takes parts has ended. False: nothing was found out. */
static bool take_parts_probe(leat_rpc *c)
{
    leat_rpc_channel *ch = c->channel;
    if (c->code == GRPC_STATUS_UNAVAILABLE || c->code == GRPC_STATUS_DEADLINE_EXCEEDED ||
        c->code == GRPC_STATUS_CANCELLED || c->code == GRPC_STATUS_UNAUTHENTICATED)
        return false;
    leat_incoming in = leat_bytes_received(c->reply);
    char agent[] = LEAT_PARTS_AGENT;
    size_t n = strlen(LEAT_PARTS_AGENT);
    leat_cursor from = leat_cursor_of(&in);
    leat_status s = in.size == n ? leat_cursor_copy(&from, agent, n) : NULL;
    bool yes = in.size == n && !s && memcmp(agent, LEAT_PARTS_AGENT, n) == 0;
    leat_status_free(s);
    free((void *)in.slices);
    c->probes_parts = false;
    pthread_mutex_lock(&ch->lock);
    ch->parts = yes ? LEAT_PARTS_YES : LEAT_PARTS_NO;
    pthread_mutex_unlock(&ch->lock);
    start_again(c, c->method, c->deadline_ns);
    start_kept(c, yes);
    return true;
}

/* One of the call's events has come. With the last one the call is over. */
static void finish(leat_rpc *c)
{
    if (--c->pending)
        return;
    if (probe_reason(c) || (c->probes_parts && !c->probes_reason && take_parts_probe(c)))
        return;
    leat_status s = leat_rpc_status(c);
    leat_poller_release();
    pthread_mutex_lock(&c->channel->lock);
    c->over = true;
    if (s && c->parts) /* Another program may listen at the address now. */
        c->channel->parts = LEAT_PARTS_UNKNOWN;
    pthread_mutex_unlock(&c->channel->lock);
    if (s) {
        c->fn(c->arg, s, NULL);
    } else if (c->gather) {
        leat_incoming in = leat_gather_incoming(c->gather);
        c->fn(c->arg, NULL, &in);
    } else {
        leat_incoming in = leat_bytes_received(c->reply);
        c->fn(c->arg, NULL, &in);
        free((void *)in.slices);
    }
    free_call(c);
}

#define RPC(tag, member) ((leat_rpc *)((char *)(tag)-offsetof(leat_rpc, member)))

static void on_ended(leat_tag *tag, bool ok)
{
    finish(RPC(tag, ended));
}

static void on_sent(leat_tag *tag, bool ok)
{
    leat_rpc *c = RPC(tag, sent);
    grpc_byte_buffer_destroy(c->request);
    c->request = NULL;
    if (!ok || !leat_parts_left(c->parts)) {
        finish(c);
        return;
    }
    c->request = leat_parts_next(c->parts);
    grpc_op ops[2] = {
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = c->request},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
    };
    start_batch(c->inner, ops, leat_parts_left(c->parts) ? 1 : 2, &c->sent);
}

static void receive(leat_rpc *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->reply};
    start_batch(c->inner, &op, 1, &c->came);
}

/* The next part is received while this one is copied to its place. */
static void on_came(leat_tag *tag, bool ok)
{
    leat_rpc *c = RPC(tag, came);
    bool more = false;
    if (c->reply && (c->gather || leat_parts_in(&c->initial)) && !c->broken) {
        grpc_byte_buffer *b = c->reply;
        leat_gather *g = c->gather;
        c->reply = NULL;
        more = !g || leat_gather_missing(g) > grpc_byte_buffer_length(b);
        if (more)
            receive(c);
        c->broken = g ? leat_gather_add(g, b) : leat_gather_new(b, LEAT_MESSAGE_MAX, &c->gather);
        grpc_byte_buffer_destroy(b);
        if (c->broken)
            grpc_call_cancel(c->inner, NULL);
        heard(c->channel);
    }
    if (!more)
        finish(c);
}

static void cancel(leat_call *base)
{
    leat_rpc *c = (leat_rpc *)base;
    pthread_mutex_lock(&c->channel->lock);
    c->cancelled = true;
    grpc_call_cancel(c->inner, NULL);
    pthread_mutex_unlock(&c->channel->lock);
}

static void link_call(leat_link *base, const char *method, leat_outgoing *request,
                      const leat_call_options *options, leat_reply_fn fn, void *arg,
                      leat_call **call_out)
{
    leat_rpc_channel *ch = (leat_rpc_channel *)base;
    leat_rpc *c = leat_new(leat_rpc);
    *c = (leat_rpc){.base = {cancel},
                    .sent = {on_sent},
                    .came = {on_came},
                    .ended = {on_ended},
                    .channel = ch,
                    .method = method,
                    .fn = fn,
                    .arg = arg,
                    .started_ns = leat_now_ns(),
                    .deadline_ns = options->deadline_ns,
                    .wait_ready = options->wait_ready};
    bool large = leat_outgoing_size(request) > leat_parts_from;
    c->kept = *request;
    *request = (leat_outgoing){0};
    pthread_mutex_lock(&ch->lock);
    c->probes_parts = large && ch->parts == LEAT_PARTS_UNKNOWN;
    large = large && ch->parts == LEAT_PARTS_YES;
    init_inner(c, c->probes_parts ? LEAT_PING : method, options->deadline_ns);
    if (!ch->calls)
        ch->alive_ns = c->started_ns;
    c->link = &ch->calls;
    c->next = ch->calls;
    if (c->next)
        c->next->link = &c->next;
    ch->calls = c;
    if (call_out)
        *call_out = &c->base;
    pthread_mutex_unlock(&ch->lock);
    if (c->probes_parts) {
        c->request = leat_bytes_to_send(&(leat_outgoing){0});
        start(c);
    } else {
        start_kept(c, large);
    }
}

static void link_free(leat_link *base)
{
    leat_rpc_channel *ch = (leat_rpc_channel *)base;
    leat_ping_unwatch(ch);
    pthread_mutex_lock(&ch->lock);
    for (leat_rpc *c = ch->calls; c; c = c->next) {
        c->cancelled = true;
        grpc_call_cancel(c->inner, NULL);
    }
    while (ch->calls)
        pthread_cond_wait(&ch->no_calls, &ch->lock);
    pthread_mutex_unlock(&ch->lock);
    grpc_channel_destroy(ch->inner);
    grpc_channel_credentials_release(ch->credentials);
    grpc_slice_unref(ch->bearer);
    leat_poller_close();
    free(ch->tls_name);
    pthread_mutex_destroy(&ch->lock);
    pthread_cond_destroy(&ch->no_calls);
    free(ch->address);
    free(ch->peer);
    free(ch);
}

leat_status leat_rpc_open(const leat_link_target *to, leat_link **out)
{
    static const leat_link_ops ops = {
        .call = link_call, .free = link_free, .renew = leat_rpc_renew};
    const char *address = to->address;
    const leat_security *security = to->security;
    LEAT_REQUIRE(strrchr(address, ':'), INVALID_ARGUMENT,
                 "\"%s\" is no address: it should be host:port", address);
    LEAT_TRY(leat_grpc_load());
    grpc_completion_queue *queue;
    LEAT_TRY(leat_poller_open(&queue));
    grpc_channel_credentials *credentials;
    leat_status s = leat_security_client(security, address, &credentials);
    if (s) {
        leat_poller_close();
        return s;
    }
    leat_rpc_channel *ch = leat_new(leat_rpc_channel);
    ch->base.ops = &ops;
    ch->address = leat_xstrdup(address);
    ch->peer = leat_xstrdup(to->peer);
    ch->credentials = credentials;
    ch->tls_name = security && security->name ? leat_xstrdup(security->name) : NULL;
    ch->bearer = leat_security_bearer(security);
    pthread_mutex_init(&ch->lock, NULL);
    pthread_cond_init(&ch->no_calls, NULL);
    ch->queue = queue;
    ch->inner = leat_rpc_connect(ch);
    leat_ping_watch(ch);
    *out = &ch->base;
    return NULL;
}
