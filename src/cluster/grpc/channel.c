/* channel.c -- calls to one address over gRPC. A call is one batch of operations, and so one event:
 * its request is on the way, and its reply and status are here. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#include "cluster/grpc/bytes.h"
#include "cluster/grpc/pump.h"
#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "core/threadpool.h"

typedef struct call call;
typedef struct channel {
    leat_channel base;
    char *address, *peer;
    grpc_channel *inner;
    grpc_completion_queue *queue;
    pthread_mutex_t lock; /* calls; taken last */
    pthread_cond_t no_calls;
    call *calls; /* under way */
} channel;

struct call {
    leat_call base;
    leat_tag tag;
    call *next, **link; /* among the channel's */
    channel *channel;
    grpc_call *inner;
    const char *method;
    leat_reply_fn fn;
    void *arg;
    int64_t started, deadline; /* CLOCK_MONOTONIC */
    grpc_byte_buffer *request, *reply;
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;
};

static leat_status call_status(const call *c)
{
    if (c->code == GRPC_STATUS_OK && c->reply)
        return NULL;
    int code = c->code > 0 && c->code <= LEAT_UNAUTHENTICATED ? (int)c->code : LEAT_UNKNOWN;
    if (c->code == GRPC_STATUS_OK)
        code = LEAT_INTERNAL;
    char *words = grpc_slice_to_c_string(c->details);
    leat_status s = leat_status_new((leat_code)code, __FILE__, __LINE__, "%s (%s) %s: %s",
                                    c->channel->peer, c->channel->address, c->method, words);
    gpr_free(words);
    return s;
}

static void free_call(call *c)
{
    grpc_byte_buffer_destroy(c->request);
    grpc_byte_buffer_destroy(c->reply);
    grpc_metadata_array_destroy(&c->initial);
    grpc_metadata_array_destroy(&c->trailing);
    grpc_slice_unref(c->details);
    channel *ch = c->channel;
    pthread_mutex_lock(&ch->lock);
    grpc_call_unref(c->inner);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (!ch->calls)
        pthread_cond_signal(&ch->no_calls);
    pthread_mutex_unlock(&ch->lock);
    free(c);
}

static void on_done(leat_tag *tag, bool ok)
{
    call *c = (call *)((char *)tag - offsetof(call, tag));
    leat_status s = call_status(c);
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

static void start(call *c, bool wait_ready)
{
    grpc_op ops[6] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .flags = wait_ready ? GRPC_INITIAL_METADATA_WAIT_FOR_READY |
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
                                        .status_details = &c->details}},
    };
    grpc_call_error e = grpc_call_start_batch(c->inner, ops, 6, &c->tag, NULL);
    if (e != GRPC_CALL_OK)
        abort(); /* a mistake of this file: gRPC refuses nothing else */
}

static void cancel(leat_call *base)
{
    grpc_call_cancel(((call *)base)->inner, NULL);
}

static void channel_call(leat_channel *base, const char *method, leat_outgoing *request,
                         const leat_call_options *options, leat_reply_fn fn, void *arg,
                         leat_call **call_out)
{
    channel *ch = (channel *)base;
    call *c = leat_new(call);
    *c = (call){.base = {cancel},
                .tag = {on_done},
                .channel = ch,
                .method = method,
                .fn = fn,
                .arg = arg,
                .started = leat_now_ns(),
                .deadline = options->deadline_ns,
                .details = grpc_empty_slice()};
    grpc_metadata_array_init(&c->initial);
    grpc_metadata_array_init(&c->trailing);
    size_t size = leat_outgoing_size(request);
    if (size > LEAT_MESSAGE_MAX)
        leat_outgoing_release(request);
    c->request = leat_bytes_to_send(request);
    c->inner = grpc_channel_create_call(ch->inner, NULL, GRPC_PROPAGATE_DEFAULTS, ch->queue,
                                        grpc_slice_from_static_string(method), NULL,
                                        leat_pump_time(options->deadline_ns), NULL);
    if (size > LEAT_MESSAGE_MAX) {
        leat_strbuf b = {0};
        leat_strbuf_printf(&b, "a request of %zu bytes is larger than the limit of %lld", size,
                           (long long)LEAT_MESSAGE_MAX);
        grpc_call_cancel_with_status(c->inner, GRPC_STATUS_RESOURCE_EXHAUSTED, b.s, NULL);
        leat_strbuf_release(&b);
    }
    if (call_out)
        *call_out = &c->base;
    pthread_mutex_lock(&ch->lock);
    c->link = &ch->calls;
    c->next = ch->calls;
    if (c->next)
        c->next->link = &c->next;
    ch->calls = c;
    pthread_mutex_unlock(&ch->lock);
    start(c, options->wait_ready);
}

static void channel_free(leat_channel *base)
{
    channel *ch = (channel *)base;
    pthread_mutex_lock(&ch->lock);
    for (call *c = ch->calls; c; c = c->next)
        grpc_call_cancel(c->inner, NULL);
    while (ch->calls)
        pthread_cond_wait(&ch->no_calls, &ch->lock);
    pthread_mutex_unlock(&ch->lock);
    grpc_channel_destroy(ch->inner);
    leat_pump_leave();
    pthread_mutex_destroy(&ch->lock);
    pthread_cond_destroy(&ch->no_calls);
    free(ch->address);
    free(ch->peer);
    free(ch);
}

static grpc_channel *connect_to(const char *address)
{
    static const struct {
        const char *key;
        int value;
    } options[] = {
        {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, INT_MAX},
        {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, INT_MAX},
        {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
        {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10000}, /* really: how long to try to connect */
        {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000},
        {GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000},
        {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1}, /* another channel's failures are not ours */
        {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
        {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
        {GRPC_ARG_ENABLE_RETRIES, 0}, /* would hold on to what was sent */
        {GRPC_ARG_ENABLE_CHANNELZ, 0},
    };
    enum { N = sizeof options / sizeof *options };
    grpc_arg args[N];
    for (int i = 0; i < N; i++)
        args[i] =
            (grpc_arg){GRPC_ARG_INTEGER, (char *)options[i].key, .value.integer = options[i].value};
    /* With its scheme, else a host that is called as one would be taken for it. */
    leat_strbuf target = {0};
    leat_strbuf_puts(&target, "dns:///");
    for (const char *p = address; *p; p++)
        if (*p == '[' || *p == ']')
            leat_strbuf_puts(&target, *p == '[' ? "%5B" : "%5D");
        else
            leat_strbuf_putc(&target, *p);
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *c = grpc_channel_create(target.s, credentials, &(grpc_channel_args){N, args});
    grpc_channel_credentials_release(credentials);
    leat_strbuf_release(&target);
    return c;
}

leat_status leat_channel_open(const char *address, const char *peer, const leat_security *security,
                              leat_channel **out)
{
    static const leat_channel_ops ops = {channel_call, channel_free};
    LEAT_REQUIRE(strrchr(address, ':'), INVALID_ARGUMENT,
                 "\"%s\" is no address: it should be host:port", address);
    channel *ch = leat_new(channel);
    ch->base.ops = &ops;
    ch->address = leat_xstrdup(address);
    ch->peer = leat_xstrdup(peer);
    pthread_mutex_init(&ch->lock, NULL);
    pthread_cond_init(&ch->no_calls, NULL);
    ch->queue = leat_pump_join();
    ch->inner = connect_to(address);
    *out = &ch->base;
    return NULL;
}
