/* listener.c -- binds, takes calls over gRPC, and stops. */
#include <limits.h>
#include <stdlib.h>

#include <grpc/grpc_security.h>

#include "cluster/grpc/address.h"
#include "cluster/grpc/listener_int.h"
#include "cluster/grpc/local.h"
#include "cluster/grpc/security.h"
#include "core/alloc.h"
#include "core/threadpool.h"

enum { WAITING = 16 /* calls that gRPC may hand over at once */ };

static void on_stopped(leat_tag *tag, bool ok)
{
    leat_listener *l = (leat_listener *)((char *)tag - offsetof(leat_listener, stopped_tag));
    pthread_mutex_lock(&l->lock);
    l->stopped = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static grpc_server *make_server(const leat_listener *l)
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
        /* Callers that vanish without a word are noticed after 20 s at most. */
        {GRPC_ARG_KEEPALIVE_TIME_MS, (int)(leat_ping_after_ns / 1000000)},
        {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, (int)(leat_ping_after_ns / 1000000)},
        {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
        {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0}, /* clients may do the same */
    };
    enum { N = sizeof options / sizeof *options };
    grpc_arg args[N + 1];
    for (int i = 0; i < N; i++)
        args[i] =
            (grpc_arg){GRPC_ARG_INTEGER, (char *)options[i].key, .value.integer = options[i].value};
    size_t n = leat_local_arg(&args[N]) ? N + 1 : N;
    grpc_server *s = grpc_server_create(&(grpc_channel_args){n, args}, NULL);
    grpc_server_register_completion_queue(s, l->queue, NULL);
    return s;
}

static leat_status bind_all(leat_listener *l, const char *address, const leat_bind *b)
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

/* Nothing waits, nothing is under way. */
static void free_listener(leat_listener *l)
{
    grpc_server_destroy(l->server);
    leat_pump_listener(-1);
    leat_pump_leave();
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l);
}

leat_status leat_listen(const char *address, const leat_listen_options *options,
                        leat_handler_fn handler, void *arg, leat_listener **out)
{
    static const leat_listen_options none;
    leat_bind b;
    LEAT_TRY(leat_bind_find(address, &b));
    options = options ? options : &none;
    leat_listener *l = leat_new(leat_listener);
    l->handler = handler;
    l->security = options->security;
    l->arg = arg;
    l->max_calls = options->max_calls ? options->max_calls : 10000;
    l->max_message = options->max_message ? options->max_message : LEAT_MESSAGE_MAX;
    l->takes_parts = leat_parts_known;
    l->stopped_tag.fn = on_stopped;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, &attr);
    pthread_condattr_destroy(&attr);
    l->queue = leat_pump_join();
    leat_pump_listener(1);
    l->server = make_server(l);
    leat_status s = bind_all(l, address, &b);
    if (s) {
        leat_listener_stop(l, 0);
        return s;
    }
    grpc_server_start(l->server);
    for (int i = 0; i < WAITING; i++)
        leat_asked_request(l);
    *out = l;
    return NULL;
}

int leat_listener_port(const leat_listener *l)
{
    return l->port;
}

/* Until *n is 0, or the deadline. The lock is held. */
static bool wait_for_none(leat_listener *l, const int *n, int64_t deadline_ns)
{
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    while (*n && pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0)
        ;
    return !*n;
}

void leat_listener_stop(leat_listener *l, int64_t deadline_ns)
{
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_mutex_unlock(&l->lock);
    grpc_server_shutdown_and_notify(l->server, l->queue, leat_tag_hand(&l->stopped_tag));
    pthread_mutex_lock(&l->lock);
    wait_for_none(l, &l->calls, deadline_ns);
    pthread_mutex_unlock(&l->lock);
    grpc_server_cancel_all_calls(l->server); /* and closes connections */
    pthread_mutex_lock(&l->lock);
    while (!l->stopped || l->waiting || l->calls)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    free_listener(l);
}
