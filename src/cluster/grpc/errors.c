/* errors.c -- the status of a call that failed: names the peer, says why and what to do. An error
 * that the peer's handler replied with is passed on as it is. */
#include <string.h>
#include <strings.h>

#include "cluster/grpc/channel_int.h"
#include "core/threadpool.h"

/* Words in gRPC's details of a failed call, and the message for them. The first row that fits
 * counts. */
static const struct {
    const char *grpc, *what, *advice;
} rows[] = {
    {"Connection refused", "refused the connection: nobody listens there",
     "Is the task started, and is this its address?"},
    {"DNS resolution failed", "has a name that does not resolve",
     "Check the spelling of the host, /etc/hosts and DNS"},
    {"No route to host", "cannot be reached: no route to the host",
     "Check the address and the network between"},
    {"Network is unreachable", "cannot be reached: the network is unreachable",
     "Check the address and the network between"},
    {"http1.x server", "speaks HTTP/1, not gRPC", "Does another service use this port?"},
    {"Failed parsing HTTP/2", "does not speak gRPC, or speaks it over TLS",
     "Does another service use this port? Do both sides use TLS?"},
    {"Received http2 header with status", "answers HTTP/2, but not as a task of a cluster",
     "Does another service use this port?"},
    {"Peer name", "shows a certificate with another name",
     "Its certificate must carry its host's name, or the name that the security options give"},
    {"SSL_ERROR_SSL",
     "and this task cannot agree on TLS: a certificate was rejected, or one side "
     "does not use TLS",
     "Check certificate, key and authority on both sides"},
    {"andshak", "did not complete the TLS handshake",
     "Do both sides use TLS, and was this task's certificate signed by what the peer trusts?"},
    {LEAT_SILENT, "fell silent: not even a ping was answered, though the connection stands",
     "It is stopped or hangs, or the network between is cut"},
    {"recvmsg:Connection timed out", "fell silent: what was sent there was not acknowledged",
     "The network between is cut, or its host is down"},
    {"onnection timed out", "cannot be reached: the connection timed out",
     "Is the host up, and does no firewall drop its packets?"},
    {"Timeout occurred", "cannot be reached: the connection timed out",
     "Is the host up, and does no firewall drop its packets?"},
    {"last error: UNAVAILABLE", "closed the connection before it sent anything",
     "Does another service use this port? Do both sides use TLS?"},
    {"Socket closed", "closed the connection in mid-call",
     "The task ended, or was killed: see what it printed last"},
    {"Connection reset", "closed the connection in mid-call",
     "The task ended, or was killed: see what it printed last"},
    {"Broken pipe", "closed the connection in mid-call",
     "The task ended, or was killed: see what it printed last"},
    {"ndpoint closing", "closed the connection in mid-call",
     "The task ended, or was killed: see what it printed last"},
    {"erver shutdown", "stopped listening in mid-call", "The task is being shut down"},
    {"GOAWAY", "stopped listening in mid-call", "The task is being shut down"},
};

static bool is_marked(const leat_rpc *c)
{
    for (size_t i = 0; i < c->trailing.count; i++)
        if (grpc_slice_str_cmp(c->trailing.metadata[i].key, LEAT_STATUS_MARK) == 0)
            return true;
    return false;
}

static bool was_cancelled(const leat_rpc *c)
{
    pthread_mutex_lock(&c->channel->lock);
    bool cancelled = c->cancelled;
    pthread_mutex_unlock(&c->channel->lock);
    return cancelled;
}

/* Whether the peer's gRPC, not its handler, has ended the call with CANCELLED: it does so with
 * calls that come while its server is shut down. Its words are the name of the code, or there is
 * only a reset of the stream. */
static bool was_ended(const leat_rpc *c, const char *details)
{
    bool worded =
        is_marked(c) || (c->error && strstr(c->error, "Error received from peer") &&
                         !strstr(details, "RST_STREAM") && strcasecmp(details, "cancelled"));
    return c->code == GRPC_STATUS_CANCELLED && !worded && !was_cancelled(c);
}

static void describe(const leat_rpc *c, const char *details, leat_strbuf *out)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(details, rows[i].grpc)) {
            leat_strbuf_printf(out, "%s. %s", rows[i].what, rows[i].advice);
            return;
        }
    if (c->code == GRPC_STATUS_DEADLINE_EXCEEDED && leat_rpc_connected(c->channel))
        leat_strbuf_puts(out, "is connected, but did not answer in time. It is busy or stopped, "
                              "or the request takes longer");
    else if (c->code == GRPC_STATUS_DEADLINE_EXCEEDED)
        leat_strbuf_puts(out, "is silent: no connection came about in time. Is the host up, does "
                              "no firewall drop its packets, and is it a task that listens there?");
    else if (was_ended(c, details))
        leat_strbuf_puts(out, "ended the call without a reply. The task is being shut down, or has "
                              "ended: see what it printed last");
    else if (c->code == GRPC_STATUS_CANCELLED)
        leat_strbuf_puts(out, "was not waited for any longer: the call was cancelled");
    else if (c->code == GRPC_STATUS_OK)
        leat_strbuf_puts(out, "replied without a message");
    else
        leat_strbuf_printf(out, "failed: %s", details);
}

/* Whether the peer decided the status, not gRPC: listeners of Leat mark such errors. */
static bool from_peer(const leat_rpc *c, const char *details)
{
    if (is_marked(c))
        return !c->probes_reason;
    return c->error && strstr(c->error, "Error received from peer") && !c->probes_reason &&
           !strstr(details, "Received http2 header") && c->code != GRPC_STATUS_UNAVAILABLE &&
           c->code != GRPC_STATUS_DEADLINE_EXCEEDED &&
           (c->code != GRPC_STATUS_CANCELLED || !(was_ended(c, details) || was_cancelled(c)));
}

/* Whether the peer's listener refused the call: its message, unlike a handler's, does not name the
 * task. */
static bool by_transport(leat_code code, const char *details)
{
    return code == LEAT_UNIMPLEMENTED || code == LEAT_UNAUTHENTICATED ||
           (code == LEAT_RESOURCE_EXHAUSTED &&
            (strstr(details, "Received message larger") || strstr(details, "calls under way")));
}

leat_status leat_rpc_status(const leat_rpc *c)
{
    if (c->broken)
        return leat_status_new(leat_status_code(c->broken), __FILE__, __LINE__,
                               "%s (%s) sent a bad reply: %s [%s]", c->channel->peer,
                               c->channel->address, leat_status_message(c->broken), c->method);
    bool whole = c->reply || (c->gather && !leat_gather_missing(c->gather));
    if (c->code == GRPC_STATUS_OK && whole && !c->probes_reason)
        return NULL;
    bool known = c->code > GRPC_STATUS_OK && c->code <= GRPC_STATUS_UNAUTHENTICATED;
    leat_code code = known ? (leat_code)c->code : c->code ? LEAT_UNKNOWN : LEAT_INTERNAL;
    if (c->probes_reason)
        code = LEAT_DEADLINE_EXCEEDED;
    char *details = grpc_slice_to_c_string(c->details);
    if (was_ended(c, details))
        code = LEAT_UNAVAILABLE;
    leat_status s;
    bool by_peer = from_peer(c, details);
    if (by_peer && !by_transport(code, details)) {
        s = leat_status_new(code, __FILE__, __LINE__, "%s", details);
    } else {
        leat_strbuf b = {0};
        if (by_peer)
            leat_strbuf_printf(&b, "says: %s", details);
        else
            describe(c, details, &b);
        s = leat_status_new(code, __FILE__, __LINE__, "%s (%s) %s [%s, after %.3f s]",
                            c->channel->peer, c->channel->address, leat_strbuf_text(&b), c->method,
                            (double)(leat_now_ns() - c->started_ns) / 1e9);
        leat_strbuf_release(&b);
    }
    gpr_free(details);
    return s;
}
