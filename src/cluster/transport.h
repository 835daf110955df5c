/* transport.h -- calls between tasks: a method name, bytes there, bytes or an error back.
 *
 * 1. Nothing here blocks but leat_listener_stop. Replies and requests arrive on the transport's
 *    own threads; a handler may work, and even block, on the thread that called it: others take
 *    its place.
 * 2. A reply function never runs inside leat_channel_call or leat_call_cancel, so both may be used
 *    with a lock held that it takes. *call_out is set before it can run.
 * 3. Every call ends: its reply function runs exactly once, with a reply or with an error that
 *    names peer, address, method and how long it took. A deadline of 0 waits for as long as the
 *    connection lives.
 * 4. What is sent is pieces of memory in order, tensors among them by reference: the transport
 *    lets go of them when they are on their way. What comes is slices that live until the function
 *    that gets them returns.
 * 5. A message beyond LEAT_MESSAGE_MAX, or 2 GB to and from tasks that are not Leat's, is refused
 * by whoever would send or receive it, RESOURCE_EXHAUSTED with the method's name.
 */
#ifndef LEAT_CLUSTER_TRANSPORT_H
#define LEAT_CLUSTER_TRANSPORT_H

#include <leat/cluster.h>
#include <leat/tensor.h>

#include "core/strbuf.h"
#include "core/threadpool.h"

#define LEAT_MESSAGE_MAX (INT64_C(1) << 40)

/* ---- What is sent ---- */
typedef struct leat_piece {
    size_t end;          /* in text: bytes up to here come first, */
    leat_tensor *tensor; /* then the elements of this, by reference */
} leat_piece;
/* All zero is an empty message. Write into text; leat_outgoing_tensor cuts. */
typedef struct leat_outgoing {
    leat_strbuf text;
    leat_piece *pieces;
    int n_pieces;
} leat_outgoing;
void leat_outgoing_tensor(leat_outgoing *o, leat_tensor *t); /* its bytes come next; shares t */
size_t leat_outgoing_size(const leat_outgoing *o);
void leat_outgoing_release(leat_outgoing *o);

/* ---- What came ---- */
typedef struct leat_slice {
    const uint8_t *data;
    size_t n;
    struct leat_buffer *owner; /* NULL: the message's; else that of this slice alone */
} leat_slice;
typedef struct leat_incoming {
    const leat_slice *slices;
    int n;
    size_t size; /* of all */
    /* If not NULL, the slices without an owner of their own lie in it, and who takes a reference
     * (leat_buffer_ref) may use them for longer: a tensor need not be copied out. Then slices that
     * were tensors are aligned. */
    struct leat_buffer *owner;
} leat_incoming;
/* A place in it, for hand codecs. */
typedef struct leat_cursor {
    const leat_incoming *in;
    int slice;
    size_t at;   /* in that slice */
    size_t left; /* bytes to the end of what is read */
} leat_cursor;
leat_cursor leat_cursor_of(const leat_incoming *in);
/* DATA_LOSS where fewer are left. */
leat_status leat_cursor_copy(leat_cursor *c, void *to, size_t n) LEAT_MUST_CHECK;
leat_status leat_cursor_skip(leat_cursor *c, size_t n) LEAT_MUST_CHECK;
leat_status leat_cursor_varint(leat_cursor *c, uint64_t *out) LEAT_MUST_CHECK;
/* All of it in one piece of memory: in place if it is one slice, else a copy in *copy_out, to be
 * freed with free() (NULL if there is none). */
const void *leat_incoming_flat(const leat_incoming *in, void **copy_out);

/* ---- Which transports a task listens on ---- */
enum { LEAT_TRANSPORTS_MAX = 8 };
/* What a peer needs to reach this task by one transport. Secret: who has it may connect. */
typedef struct leat_offer {
    char transport[16];
    leat_strbuf data;
} leat_offer;
typedef struct leat_offers {
    leat_offer v[LEAT_TRANSPORTS_MAX];
    int n;
} leat_offers;
void leat_offers_release(leat_offers *o);
/* names: "grpc,shm", NULL: all of them. Gives a set of bits. INVALID_ARGUMENT names what is no
 * transport, and those that there are. The one that every address speaks is always among them. */
leat_status leat_transports_parse(const char *names, uint32_t *mask_out) LEAT_MUST_CHECK;

/* ---- Calling ---- */
typedef struct leat_channel leat_channel; /* to one address; connects when first used, and again */
typedef struct leat_call leat_call;       /* one that was made, until its reply function returns */

/* address: "host:port". Borrows security, which must outlive it; NULL: none. peer: what messages
 * call it, "/job:ps/task:0". */
leat_status leat_channel_open(const char *address, const char *peer, const leat_security *security,
                              leat_channel **out) LEAT_MUST_CHECK;
/* Lets the calls go by the most preferred transport of the mask for which there is an offer, for as
 * long as that link lives; before, afterwards, and if there is none, by the one that every address
 * speaks. May wait for some seconds if a peer on this machine hangs. May be called again: nothing
 * is done unless the offers changed, because the peer was started anew, or the link died. */
void leat_channel_use_offers(leat_channel *c, const leat_offers *offers, uint32_t mask);
/* A link that was opened from an offer has died: it is time to ask the peer for its offers. */
bool leat_channel_degraded(leat_channel *c);
/* Calls under way end with CANCELLED before it returns. Not from a reply function. */
void leat_channel_free(leat_channel *c);

/* s is taken; in is NULL with an error. */
typedef void (*leat_reply_fn)(void *arg, leat_status s, const leat_incoming *in);
/* method: "/tensorflow.WorkerService/RunGraph", a literal. Takes what is in request. The call may
 * be used for leat_call_cancel until fn begins to run; NULL if it is not wanted. Fails fast with
 * UNAVAILABLE while nobody listens there, unless wait_ready: then a deadline must be set. */
typedef struct leat_call_options {
    int64_t deadline_ns;                    /* CLOCK_MONOTONIC; 0: none */
    bool wait_ready;                        /* keep trying to connect until the deadline */
    struct leat_cancellation *cancellation; /* of leat_channel_call_wait: ends the wait */
} leat_call_options;
void leat_channel_call(leat_channel *c, const char *method, leat_outgoing *request,
                       const leat_call_options *options, leat_reply_fn fn, void *arg,
                       leat_call **call_out);
void leat_call_cancel(leat_call *call);
/* As leat_pool_wait, for a thread that waits for what peers are going to send: a handler or a reply
 * function may run in it, where that saves a change of threads. p NULL: it does not work. */
int leat_transports_wait(leat_pool *p, leat_event *e, int64_t deadline_ns);
/* The same, waiting in this thread: gives the reply in one piece of memory, free with free(). */
leat_status leat_channel_call_wait(leat_channel *c, const char *method, leat_outgoing *request,
                                   const leat_call_options *options, void **reply_out,
                                   size_t *size_out) LEAT_MUST_CHECK;

/* ---- Answering ---- */
typedef struct leat_listener leat_listener;
typedef struct leat_server_call
    leat_server_call; /* a call that came; ends with leat_server_call_reply */

/* method and in are borrowed until the handler returns. Replies now or later, from any thread. */
typedef void (*leat_handler_fn)(void *arg, leat_server_call *a, const char *method,
                                const leat_incoming *in);
typedef struct leat_listen_options {
    const leat_security *security; /* NULL: none */
    int64_t max_message;           /* 0: the most that there is, rule 5 */
    int max_calls;                 /* at once; 0: 10,000. More get RESOURCE_EXHAUSTED */
    int data_port;                 /* of a transport beside that one, if it has ports; 0: any */
    uint32_t transports;           /* beside the one that every address speaks: a set of bits */
    leat_offers *offers; /* filled in before the first call can come; NULL: no other transports */
} leat_listen_options;
/* Binds exactly this address; port 0 picks one. The address is in use, is not of this machine, does
 * not resolve: the status says which. */
leat_status leat_listen(const char *address, const leat_listen_options *options,
                        leat_handler_fn handler, void *arg, leat_listener **out) LEAT_MUST_CHECK;
int leat_listener_port(const leat_listener *l);
/* No more calls; waits until those under way are answered, or until the deadline, then cuts them
 * off. Handlers have returned when it returns. */
void leat_listener_stop(leat_listener *l, int64_t deadline_ns);
/* Takes s and what is in reply; an error is gRPC's status of the call. */
void leat_server_call_reply(leat_server_call *a, leat_status s, leat_outgoing *reply);
/* fn(arg) runs once, from any thread, if the caller goes away or its deadline passes before the
 * reply; false if that has happened already. After leat_server_call_reply it does not run any more,
 * and is not running. */
bool leat_server_call_on_cancel(leat_server_call *a, void (*fn)(void *arg), void *arg);
int64_t leat_server_call_max_reply(
    const leat_server_call *a); /* bytes that the caller takes in an answer */
/* A handler that is going to block, or to work for milliseconds, says so first, from its thread:
 * another one takes the next call at once instead of a moment later. */
void leat_server_call_will_block(leat_server_call *a);
const char *
leat_server_call_peer(const leat_server_call *a); /* "ipv4:127.0.0.1:40312"; until the reply */

#endif
