/* channel.c -- calls to one address over gRPC. A call is one batch of operations, and so one event:
 * its request is on the way, and its reply and status are here. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#include "cluster/grpc/channel_int.h"
#include "cluster/grpc/security.h"
#include "core/alloc.h"
#include "core/threadpool.h"

/* What gRPC gives or fills in, and so must be new for a second try. */
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

static void free_call(leat_rpc *c)
{
    bool heard = c->reply;
    release_inner(c);
    leat_rpc_channel *ch = c->channel;
    pthread_mutex_lock(&ch->lock);
    if (heard)
        ch->heard_ns = leat_now_ns();
    grpc_call_unref(c->inner);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (!ch->calls)
        pthread_cond_signal(&ch->no_calls);
    pthread_mutex_unlock(&ch->lock);
    free(c);
}

/* The channel's lock is held: ping.c changes inner. */
static void init_inner(leat_rpc *c, const char *method, int64_t deadline_ns)
{
    grpc_metadata_array_init(&c->initial);
    grpc_metadata_array_init(&c->trailing);
    c->details = grpc_empty_slice();
    c->inner = grpc_channel_create_call(c->channel->inner, NULL, GRPC_PROPAGATE_DEFAULTS,
                                        c->channel->queue, grpc_slice_from_static_string(method),
                                        NULL, leat_pump_time(deadline_ns), NULL);
}

static void start(leat_rpc *c)
{
    grpc_metadata token = {.key = grpc_slice_from_static_string(LEAT_TOKEN_KEY),
                           .value = c->channel->bearer};
    size_t tokens = GRPC_SLICE_LENGTH(token.value) > 0;
    grpc_op ops[6] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .data.send_initial_metadata = {.count = tokens, .metadata = &token},
         .flags = c->wait_ready ? GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                                      GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET
                                : 0},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = c->request},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &c->initial},
        {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->reply},
        {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
         .data.recv_status_on_client = {.trailing_metadata = &c->trailing,
                                        .status = &c->code,
                                        .status_details = &c->details,
                                        .error_string = &c->error}},
    };
    grpc_call *inner = c->inner; /* c may be freed as soon as the tag is handed over */
    if (grpc_call_start_batch(inner, ops, 6, leat_tag_hand(&c->tag), NULL) != GRPC_CALL_OK)
        abort(); /* a mistake of this file: gRPC refuses nothing else */
}

bool leat_rpc_connected(leat_rpc_channel *c)
{
    pthread_mutex_lock(&c->lock);
    bool is = grpc_channel_check_connectivity_state(c->inner, 0) == GRPC_CHANNEL_READY;
    pthread_mutex_unlock(&c->lock);
    return is;
}

/* A call that waited for a connection in vain knows only that its time is up. One that does not
 * wait fails with the reason of the last attempt. */
static bool ask_why(leat_rpc *c)
{
    enum { PATIENCE_NS = 100000000 };
    leat_rpc_channel *ch = c->channel;
    if (c->code != GRPC_STATUS_DEADLINE_EXCEEDED || !c->wait_ready || c->asks_why ||
        leat_rpc_connected(ch))
        return false;
    release_inner(c);
    c->asks_why = true;
    c->wait_ready = false;
    c->request = leat_bytes_to_send(&(leat_outgoing){0});
    pthread_mutex_lock(&ch->lock);
    grpc_call_unref(c->inner);
    init_inner(c, LEAT_PING, leat_now_ns() + PATIENCE_NS);
    pthread_mutex_unlock(&ch->lock);
    start(c);
    return true;
}

static void on_done(leat_tag *tag, bool ok)
{
    leat_rpc *c = (leat_rpc *)((char *)tag - offsetof(leat_rpc, tag));
    if (ask_why(c))
        return;
    leat_status s = leat_rpc_status(c);
    leat_pump_let_go();
    if (s) {
        c->fn(c->arg, s, NULL);
    } else {
        leat_incoming in = leat_bytes_received(c->reply);
        c->fn(c->arg, NULL, &in);
        free((void *)in.slices);
    }
    free_call(c);
}

static void cancel(leat_call *base)
{
    leat_rpc *c = (leat_rpc *)base;
    pthread_mutex_lock(&c->channel->lock);
    grpc_call_cancel(c->inner, NULL);
    pthread_mutex_unlock(&c->channel->lock);
}

static void channel_call(leat_channel *base, const char *method, leat_outgoing *request,
                         const leat_call_options *options, leat_reply_fn fn, void *arg,
                         leat_call **call_out)
{
    leat_rpc_channel *ch = (leat_rpc_channel *)base;
    leat_rpc *c = leat_new(leat_rpc);
    *c = (leat_rpc){.base = {cancel},
                    .tag = {on_done},
                    .channel = ch,
                    .method = method,
                    .fn = fn,
                    .arg = arg,
                    .started_ns = leat_now_ns(),
                    .wait_ready = options->wait_ready};
    size_t size = leat_outgoing_size(request);
    if (size > LEAT_MESSAGE_MAX)
        leat_outgoing_release(request);
    c->request = leat_bytes_to_send(request);
    pthread_mutex_lock(&ch->lock);
    init_inner(c, method, options->deadline_ns);
    if (!ch->calls)
        ch->heard_ns = c->started_ns;
    c->link = &ch->calls;
    c->next = ch->calls;
    if (c->next)
        c->next->link = &c->next;
    ch->calls = c;
    if (call_out)
        *call_out = &c->base;
    pthread_mutex_unlock(&ch->lock);
    if (size > LEAT_MESSAGE_MAX) {
        leat_strbuf b = {0};
        leat_strbuf_printf(&b, "a request of %zu bytes is larger than the limit of %lld", size,
                           (long long)LEAT_MESSAGE_MAX);
        grpc_call_cancel_with_status(c->inner, GRPC_STATUS_RESOURCE_EXHAUSTED, b.s, NULL);
        leat_strbuf_release(&b);
    }
    start(c);
}

static void channel_free(leat_channel *base)
{
    leat_rpc_channel *ch = (leat_rpc_channel *)base;
    leat_ping_unwatch(ch);
    pthread_mutex_lock(&ch->lock);
    for (leat_rpc *c = ch->calls; c; c = c->next)
        grpc_call_cancel(c->inner, NULL);
    while (ch->calls)
        pthread_cond_wait(&ch->no_calls, &ch->lock);
    pthread_mutex_unlock(&ch->lock);
    grpc_channel_destroy(ch->inner);
    grpc_channel_credentials_release(ch->credentials);
    grpc_slice_unref(ch->bearer);
    leat_pump_leave();
    free(ch->tls_name);
    pthread_mutex_destroy(&ch->lock);
    pthread_cond_destroy(&ch->no_calls);
    free(ch->address);
    free(ch->peer);
    free(ch);
}

grpc_channel *leat_rpc_connect(const leat_rpc_channel *ch)
{
    const struct {
        const char *key;
        int value;
    } options[] = {
        {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, INT_MAX},
        {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, INT_MAX},
        {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
        {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10000}, /* really: how long to try to connect */
        {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000},
        /* Never a ping of gRPC's own (ping.c says why), but TCP's deadline for what is not
         * acknowledged, which comes with them: behind a cut link TCP waits for longer and longer,
         * also when the link is healed. */
        {GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX - 1},
        {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, (int)(2 * leat_ping_after_ns / 1000000)},
        {GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000},
        {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1}, /* another channel's failures are not ours */
        {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
        {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
        {GRPC_ARG_ENABLE_RETRIES, 0}, /* would hold on to what was sent */
        {GRPC_ARG_ENABLE_CHANNELZ, 0},
    };
    enum { N = sizeof options / sizeof *options };
    grpc_arg args[N + 1];
    for (int i = 0; i < N; i++)
        args[i] =
            (grpc_arg){GRPC_ARG_INTEGER, (char *)options[i].key, .value.integer = options[i].value};
    /* With its scheme, else a host that is called as one would be taken for it. */
    leat_strbuf target = {0};
    leat_strbuf_puts(&target, "dns:///");
    for (const char *p = ch->address; *p; p++)
        if (*p == '[' || *p == ']')
            leat_strbuf_puts(&target, *p == '[' ? "%5B" : "%5D");
        else
            leat_strbuf_putc(&target, *p);
    args[N] = (grpc_arg){GRPC_ARG_STRING, GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
                         .value.string = ch->tls_name};
    grpc_channel *c = grpc_channel_create(target.s, ch->credentials,
                                          &(grpc_channel_args){ch->tls_name ? N + 1 : N, args});
    leat_strbuf_release(&target);
    return c;
}

leat_status leat_channel_open(const char *address, const char *peer, const leat_security *security,
                              leat_channel **out)
{
    static const leat_channel_ops ops = {channel_call, channel_free};
    LEAT_REQUIRE(strrchr(address, ':'), INVALID_ARGUMENT,
                 "\"%s\" is no address: it should be host:port", address);
    grpc_completion_queue *queue = leat_pump_join();
    grpc_channel_credentials *credentials;
    leat_status s = leat_security_client(security, address, &credentials);
    if (s) {
        leat_pump_leave();
        return s;
    }
    leat_rpc_channel *ch = leat_new(leat_rpc_channel);
    ch->base.ops = &ops;
    ch->address = leat_xstrdup(address);
    ch->peer = leat_xstrdup(peer);
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
