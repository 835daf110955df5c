/* transport.h -- calls between tasks. A request is a method's name and bytes; the reply is bytes or
 * an error.
 *
 * 1. Only leat_listener_stop, leat_channel_free, leat_channel_use_offers and the functions named
 *    _wait block; leat_server_call_reply waits while a function of leat_server_call_on_cancel runs.
 *    Replies and requests arrive on the transport's own threads. A handler may run for long, or
 *    block, on the thread that called it: other threads take the next calls.
 * 2. A reply function never runs inside leat_channel_call or leat_call_cancel, so a caller of these
 *    two may hold a lock that the reply function takes. *call_out is set before the reply function
 *    can run.
 * 3. Every call ends: its reply function runs exactly once, with a reply or with an error that
 *    names the peer, its address, the method and the time since the call began. A call without a
 *    deadline waits for as long as the connection lives.
 * 4. A message that is sent consists of pieces of memory in order; its tensors are sent by
 *    reference, and the transport drops the references once their bytes are sent. A message that
 *    was received consists of slices, which live until the function that they are given to returns.
 * 5. A message larger than LEAT_MESSAGE_MAX, or than 2 GB where the peer is not a Leat task, is
 *    refused by the task that would send or receive it: the call ends with RESOURCE_EXHAUSTED, and
 *    the error names the method.
 */
#ifndef LEAT_CLUSTER_TRANSPORT_H
#define LEAT_CLUSTER_TRANSPORT_H

#include <leat/cluster.h>
#include <leat/tensor.h>

#include "core/strbuf.h"
#include "core/threadpool.h"

#define LEAT_MESSAGE_MAX (INT64_C(1) << 40) /* Bytes. */

/* ---- Messages to be sent ---- */
/* Some bytes of leat_outgoing.text, and the elements of a tensor, which follow these bytes. */
typedef struct leat_piece {
    size_t end;          /* The offset in text at which the piece's bytes of text end. */
    leat_tensor *tensor; /* A reference. */
} leat_piece;
/* A message that is all zero is empty. Its owner appends bytes to text; leat_outgoing_tensor
 * inserts a tensor after the bytes that text has then. */
typedef struct leat_outgoing {
    leat_strbuf text;
    leat_piece *pieces;
    int n_pieces;
} leat_outgoing;
void leat_outgoing_tensor(leat_outgoing *o, leat_tensor *t); /* Shares t. */
size_t leat_outgoing_size(const leat_outgoing *o);
void leat_outgoing_release(leat_outgoing *o);

/* ---- Messages that were received ---- */
typedef struct leat_slice {
    const uint8_t *data;
    size_t n;
    struct leat_buffer *owner; /* The buffer that holds data; NULL: see leat_incoming.owner. */
} leat_slice;
typedef struct leat_incoming {
    const leat_slice *slices;
    int n;
    size_t size; /* The sum of all slices' bytes. */
    /* The buffer that holds the slices without an owner of their own, or NULL. A function that
     * takes a reference to the buffer (leat_buffer_ref) may use these slices after it returns, so a
     * tensor need not be copied. If owner is not NULL, slices that were sent as tensors are aligned
     * for tensors. */
    struct leat_buffer *owner;
} leat_incoming;
/* A position in a received message, for decoders that are written by hand. */
typedef struct leat_cursor {
    const leat_incoming *in;
    int slice;
    size_t at;   /* The offset in that slice. */
    size_t left; /* Bytes from the position to the end of what is being decoded. */
} leat_cursor;
leat_cursor leat_cursor_of(const leat_incoming *in);
/* These three functions advance the cursor. DATA_LOSS: the message ends too early. */
leat_status leat_cursor_copy(leat_cursor *c, void *to, size_t n) LEAT_MUST_CHECK;
leat_status leat_cursor_skip(leat_cursor *c, size_t n) LEAT_MUST_CHECK;
leat_status leat_cursor_varint(leat_cursor *c, uint64_t *out) LEAT_MUST_CHECK;
/* Gives a copy of the n bytes that follow, with a NUL after them, which the caller frees with
 * free(). Advances the cursor. RESOURCE_EXHAUSTED, with the size, if there is no memory: a peer
 * decides how large its messages are. */
leat_status leat_cursor_take(leat_cursor *c, size_t n, void **out) LEAT_MUST_CHECK;
/* *out: the whole message in contiguous memory: the slice itself if there is only one, else a copy.
 * *copy_out is that copy, which the caller frees with free(), or NULL. Errors are those of
 * leat_cursor_take. */
leat_status leat_incoming_flat(const leat_incoming *in, const void **out,
                               void **copy_out) LEAT_MUST_CHECK;

/* ---- Which transports a task listens on ---- */
enum { LEAT_TRANSPORTS_MAX = 8 };
/* What a peer needs to open a link to this task by one transport. It must be kept secret: every
 * process that has the offer may connect. */
typedef struct leat_offer {
    char transport[16];
    leat_strbuf data;
} leat_offer;
typedef struct leat_offers {
    leat_offer v[LEAT_TRANSPORTS_MAX];
    int n;
} leat_offers;
void leat_offers_release(leat_offers *o);
/* names is a list such as "grpc,shm"; NULL means all transports. Bit i of *mask_out stands for
 * transport i of leat_transports. gRPC is used whether or not its bit is set. INVALID_ARGUMENT: a
 * name is not that of a transport; the message lists the names that are. */
leat_status leat_transports_parse(const char *names, uint32_t *mask_out) LEAT_MUST_CHECK;

/* ---- Making calls ---- */
/* Makes calls to one address. Connects with the first call, and again when the connection broke. */
typedef struct leat_channel leat_channel;
/* A call that was made. Lives until its reply function returns. */
typedef struct leat_call leat_call;

/* address is "host:port". peer is the task's name in error messages, such as "/job:ps/task:0".
 * Borrows security for as long as the channel lives; NULL: no TLS and no token. */
leat_status leat_channel_open(const char *address, const char *peer, const leat_security *security,
                              leat_channel **out) LEAT_MUST_CHECK;
/* Opens a link by the most preferred transport that has an offer and a bit in mask. Calls go by
 * that link for as long as it lives, and by gRPC before, afterwards, and if no link can be opened.
 * May block for some seconds if a peer on this machine hangs. May be called with every status of
 * the peer: nothing is done unless the offer changed (the peer was restarted) or the link died. */
void leat_channel_use_offers(leat_channel *c, const leat_offers *offers, uint32_t mask);
/* True if a link that was opened from an offer is dead. The owner of the channel then requests the
 * peer's status, which has the peer's present offers. */
bool leat_channel_degraded(leat_channel *c);
/* Calls under way end with CANCELLED before leat_channel_free returns. Must not be called from a
 * reply function. */
void leat_channel_free(leat_channel *c);

/* Takes s. in is NULL if s is an error. */
typedef void (*leat_reply_fn)(void *arg, leat_status s, const leat_incoming *in);
typedef struct leat_call_options {
    int64_t deadline_ns; /* In CLOCK_MONOTONIC; 0: none. */
    /* While nothing listens at the address: true to try to connect until deadline_ns, which must be
     * set; false to fail at once with UNAVAILABLE. */
    bool wait_ready;
    /* Cancels a call of leat_channel_call_wait. leat_channel_call does not use it. */
    struct leat_cancellation *cancellation;
} leat_call_options;
/* method is a string literal such as "/tensorflow.WorkerService/RunGraph". Takes the content of
 * request. options may be NULL. call_out may be NULL; *call_out may be given to leat_call_cancel
 * until fn begins to run. */
void leat_channel_call(leat_channel *c, const char *method, leat_outgoing *request,
                       const leat_call_options *options, leat_reply_fn fn, void *arg,
                       leat_call **call_out);
void leat_call_cancel(leat_call *call);
/* As leat_pool_wait, for a thread that waits for an event which a message of a peer will set. While
 * the thread waits, the transports may run handlers and reply functions in it, so that no other
 * thread has to be woken. If p is NULL, the thread runs no jobs of a pool. */
int leat_transports_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
/* As leat_channel_call, but waits for the reply, and gives it in contiguous memory, which the
 * caller frees with free(). */
leat_status leat_channel_call_wait(leat_channel *c, const char *method, leat_outgoing *request,
                                   const leat_call_options *options, void **reply_out,
                                   size_t *size_out) LEAT_MUST_CHECK;

/* ---- Replying to calls ---- */
typedef struct leat_listener leat_listener;
/* A call that a peer made. Lives until leat_server_call_reply. */
typedef struct leat_server_call leat_server_call;

/* Borrows method and in until it returns. The reply may be made later, and by any thread. */
typedef void (*leat_handler_fn)(void *arg, leat_server_call *a, const char *method,
                                const leat_incoming *in);
typedef struct leat_listen_options {
    const leat_security *security; /* NULL: no TLS and no token. */
    int64_t max_message;           /* The limit of a request, in bytes; 0: that of rule 5. */
    int max_calls; /* Calls under way at one time; 0: 10,000. Others get RESOURCE_EXHAUSTED. */
    /* Whether the handler of a method may wait for long: it then never runs in a thread that reads
     * messages while it waits for something else, such as the end of a step. NULL: no method. */
    bool (*may_block)(const char *method);
    int data_port; /* The TCP port of the socket transport; 0: any free port. */
    /* The transports to listen on besides gRPC: a mask of leat_transports_parse. */
    uint32_t transports;
    /* Gets the offers of these transports, each before a call can come by its transport. NULL: the
     * listener listens on gRPC alone. */
    leat_offers *offers;
} leat_listen_options;
/* Binds exactly this address; with port 0 the system chooses the port. The error says whether the
 * address is in use, does not belong to this machine, or does not resolve. */
leat_status leat_listen(const char *address, const leat_listen_options *options,
                        leat_handler_fn handler, void *arg, leat_listener **out) LEAT_MUST_CHECK;
int leat_listener_port(const leat_listener *l);
/* Accepts no more calls, waits until the calls under way were replied to or until deadline_ns, and
 * then closes all connections. Returns when all handlers have returned. Frees l. */
void leat_listener_stop(leat_listener *l, int64_t deadline_ns);
/* Takes s and the content of reply. If s is an error, the call ends with its code and message. */
void leat_server_call_reply(leat_server_call *a, leat_status s, leat_outgoing *reply);
/* fn(arg) runs once, in any thread, if before the reply the caller cancels the call, is lost, or
 * its deadline passes. False if one of these has happened already: fn will not run. Once
 * leat_server_call_reply has returned, fn is not running and will not run. */
bool leat_server_call_on_cancel(leat_server_call *a, void (*fn)(void *arg), void *arg);
/* Gives the largest reply that the caller accepts, in bytes. */
int64_t leat_server_call_max_reply(const leat_server_call *a);
/* A handler calls this, in the thread that it was called in, before it blocks or works for
 * milliseconds: another thread then takes the next call at once. Without it another thread does so
 * some milliseconds later. */
void leat_server_call_will_block(leat_server_call *a);
/* Gives a name such as "ipv4:127.0.0.1:40312", valid until the reply. */
const char *leat_server_call_peer(const leat_server_call *a);

#endif
