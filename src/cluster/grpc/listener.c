/* listener.c -- listening on gRPC: binds, takes calls, stops; and the leat_transport of this
 * folder. */
#include <limits.h>
#include <stdlib.h>

#include "cluster/address.h"
#include "cluster/grpc/accept.h"
#include "cluster/grpc/guard.h"
#include "cluster/grpc/listener_int.h"
#include "cluster/grpc/tuning.h"
#include "cluster/grpc/security.h"
#include "core/alloc.h"
#include "core/cond.h"
#include "core/threadpool.h"

enum {
    WAITING = 16, /* Calls that gRPC may deliver before an event of them is taken. */
    STREAMS_MORE = 100,
};

static void on_stopped(leat_tag *tag, bool ok)
{
    leat_rpc_listener *l =
        (leat_rpc_listener *)((char *)tag - offsetof(leat_rpc_listener, stopped_tag));
    pthread_mutex_lock(&l->lock);
    l->stopped = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static grpc_server *make_server(const leat_rpc_listener *l)
{
    const struct {
        const char *key;
        int value;
    } options[] = {
        {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
         (int)(l->max_message < leat_whole_max ? l->max_message : leat_whole_max)},
        {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, INT_MAX},
        {GRPC_ARG_ALLOW_REUSEPORT, 0},
        {GRPC_ARG_ENABLE_CHANNELZ, 0},
        /* Callers whose machine was switched off are noticed after 20 s at most. */
        {GRPC_ARG_KEEPALIVE_TIME_MS, (int)(leat_ping_after_ns / 1000000)},
        {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, (int)(leat_ping_after_ns / 1000000)},
        {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
        {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0}, /* Clients may ping as well. */
        /* A little more than what the listener accepts, whose refusal says why. */
        {GRPC_ARG_MAX_CONCURRENT_STREAMS, l->max_calls_one + STREAMS_MORE},
        {GRPC_ARG_MAX_METADATA_SIZE, 16 << 10},
        {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000},
    };
    enum { N = sizeof options / sizeof *options };
    grpc_arg args[N + 1];
    for (int i = 0; i < N; i++)
        args[i] =
            (grpc_arg){GRPC_ARG_INTEGER, (char *)options[i].key, .value.integer = options[i].value};
    size_t n = leat_tuning_server(&args[N]) ? N + 1 : N;
    grpc_server *s = grpc_server_create(&(grpc_channel_args){n, args}, NULL);
    grpc_server_register_completion_queue(s, l->queue, NULL);
    return s;
}

static leat_status bind_all(leat_rpc_listener *l, const char *address, const leat_bind_list *b)
{
    grpc_server_credentials *credentials;
    LEAT_TRY(leat_security_server(l->security, address, b->loopback, &credentials));
    for (int i = 0; i < b->n && (i == 0 || l->port); i++)
        l->port = grpc_server_add_http2_port(l->server, b->text[i], credentials);
    grpc_server_credentials_release(credentials);
    LEAT_REQUIRE(l->port || !l->security || !l->security->certificate, INVALID_ARGUMENT,
                 "Cannot listen on %s: the TLS certificate %s and the key %s do not fit, or are "
                 "damaged",
                 address, l->security->certificate, l->security->key);
    LEAT_REQUIRE(l->port, ALREADY_EXISTS,
                 "Cannot listen on %s: the address was taken by another process just now", address);
    return NULL;
}

/* gRPC has delivered all events of this listener. */
static void free_listener(leat_rpc_listener *l)
{
    grpc_server_destroy(l->server);
    leat_poller_close();
    leat_guard_close();
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l);
}

/* Waits until *n is 0 or the deadline has passed; true: it is 0. The lock is held. */
static bool wait_for_none(leat_rpc_listener *l, const int *n, int64_t deadline_ns)
{
    while (*n && leat_cond_wait_until(&l->changed, &l->lock, deadline_ns))
        ;
    return !*n;
}

static void stop(leat_endpoint *e, int64_t deadline_ns)
{
    leat_rpc_listener *l = (leat_rpc_listener *)e;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_mutex_unlock(&l->lock);
    grpc_server_shutdown_and_notify(l->server, l->queue, leat_tag_pointer(&l->stopped_tag));
    pthread_mutex_lock(&l->lock);
    wait_for_none(l, &l->calls, deadline_ns);
    pthread_mutex_unlock(&l->lock);
    grpc_server_cancel_all_calls(l->server); /* This closes the connections as well. */
    pthread_mutex_lock(&l->lock);
    while (!l->stopped || l->waiting || l->calls)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    free_listener(l);
}

static leat_status start(const char *address, const leat_listen_options *options,
                         leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                         leat_endpoint **out)
{
    leat_bind_list b;
    LEAT_TRY(leat_grpc_load());
    LEAT_TRY(leat_bind_find(address, &b));
    grpc_completion_queue *queue;
    LEAT_TRY(leat_poller_open(&queue));
    leat_guard_open();
    leat_rpc_listener *l = leat_new(leat_rpc_listener);
    l->handler = handler;
    l->security = options->security;
    l->arg = arg;
    l->max_calls = options->max_calls ? options->max_calls : 10000;
    l->max_calls_one = l->max_calls > 1 ? l->max_calls / 2 : 1;
    l->receiving_end = &l->receiving;
    l->max_message = options->max_message ? options->max_message : LEAT_MESSAGE_MAX;
    l->takes_parts = leat_parts_known;
    l->stopped_tag.fn = on_stopped;
    pthread_mutex_init(&l->lock, NULL);
    leat_cond_init(&l->changed);
    l->queue = queue;
    l->server = make_server(l);
    leat_status s = bind_all(l, address, &b);
    if (s) {
        stop(&l->base, 0);
        return s;
    }
    grpc_server_start(l->server);
    leat_accept_started();
    for (int i = 0; i < WAITING; i++)
        leat_server_call_await(l);
    *out = &l->base;
    return NULL;
}

static int port(const leat_endpoint *e)
{
    return ((const leat_rpc_listener *)e)->port;
}

const leat_transport leat_transport_grpc = {
    .name = "grpc",
    .by_address = true,
    .listen = start,
    .stop = stop,
    .open = leat_rpc_open,
    .port = port,
};
