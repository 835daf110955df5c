/* connect.c -- the grpc_channel of a channel, with its options. */
#include <limits.h>

#include "cluster/grpc/channel_int.h"
#include "cluster/grpc/tuning.h"
#include "core/alloc.h"
#include "core/bind.h"

grpc_channel *leat_rpc_connect(const leat_rpc_channel *ch)
{
    const struct {
        const char *key;
        int value;
    } options[] = {
        {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, INT_MAX},
        {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, INT_MAX},
        {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
        {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
         10000}, /* In fact the time limit of an attempt to connect. */
        {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000},
        /* gRPC never pings itself (ping.c says why). But with keepalive it also sets TCP's time
         * limit for data that is not acknowledged: without it TCP would wait longer and longer
         * behind a cut link, and not continue soon after the link works again. */
        {GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX - 1},
        {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, (int)(2 * leat_ping_after_ns / 1000000)},
        {GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000},
        {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1}, /* No back-off because another channel failed. */
        {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
        {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
        {GRPC_ARG_ENABLE_RETRIES, 0}, /* Retries would keep sent messages in memory. */
        {GRPC_ARG_ENABLE_CHANNELZ, 0},
    };
    enum { N = sizeof options / sizeof *options };
    grpc_arg args[N + 3];
    size_t n = N;
    for (int i = 0; i < N; i++)
        args[i] =
            (grpc_arg){GRPC_ARG_INTEGER, (char *)options[i].key, .value.integer = options[i].value};
    /* With a scheme, because the host's name might be that of a scheme. */
    leat_strbuf target = {0};
    leat_strbuf_puts(&target, "dns:///");
    for (const char *p = ch->address; *p; p++)
        if (*p == '[' || *p == ']')
            leat_strbuf_puts(&target, *p == '[' ? "%5B" : "%5D");
        else
            leat_strbuf_putc(&target, *p);
    if (leat_parts_known)
        args[n++] = (grpc_arg){GRPC_ARG_STRING, GRPC_ARG_PRIMARY_USER_AGENT_STRING,
                               .value.string = LEAT_PARTS_AGENT};
    if (ch->tls_name)
        args[n++] = (grpc_arg){GRPC_ARG_STRING, GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
                               .value.string = ch->tls_name};
    if (leat_tuning_channel(ch->address, &args[n]))
        n++;
    leat_unbind(); /* gRPC starts threads. */
    grpc_channel *c = grpc_channel_create(target.s, ch->credentials, &(grpc_channel_args){n, args});
    leat_strbuf_release(&target);
    return c;
}

/* Whether a call is under way. One that is over may still be in the list while its caller, which
 * has the reply, makes the next one. The channel's lock is held. */
static bool is_used(const leat_rpc_channel *ch)
{
    for (const leat_rpc *c = ch->calls; c; c = c->next)
        if (!c->over)
            return true;
    return false;
}

/* Does nothing while calls are under way: their pings must use the same connection as they do. */
void leat_rpc_renew(leat_link *base)
{
    leat_rpc_channel *ch = (leat_rpc_channel *)base;
    grpc_channel *old = NULL;
    pthread_mutex_lock(&ch->lock);
    if (!is_used(ch)) {
        old = ch->inner;
        ch->inner = leat_rpc_connect(ch);
    }
    pthread_mutex_unlock(&ch->lock);
    if (old)
        grpc_channel_destroy(old);
}
