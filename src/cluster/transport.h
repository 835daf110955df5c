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

/* ---- Calling ---- */
typedef struct leat_channel leat_channel; /* to one address; connects when first used, and again */
typedef struct leat_call leat_call;       /* one that was made, until its reply function returns */

/* address: "host:port". Borrows security, which must outlive it; NULL: none. peer: what messages
 * call it, "/job:ps/task:0". */
leat_status leat_channel_open(const char *address, const char *peer, const leat_security *security,
                              leat_channel **out) LEAT_MUST_CHECK;
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
    bool waits;                             /* leat_channel_wait comes next, in this thread */
    struct leat_cancellation *cancellation; /* of leat_channel_ask: ends the wait */
} leat_call_options;
void leat_channel_call(leat_channel *c, const char *method, leat_outgoing *request,
                       const leat_call_options *options, leat_reply_fn fn, void *arg,
                       leat_call **call_out);
void leat_call_cancel(leat_call *call);
/* Waits until fn has set done; works on what comes, meanwhile, where that saves a change of
 * threads.
 */
void leat_channel_wait(leat_channel *c, leat_event *done);
/* The same, waiting in this thread: gives the reply in one piece of memory, free with free(). */
leat_status leat_channel_ask(leat_channel *c, const char *method, leat_outgoing *request,
                             const leat_call_options *options, void **reply_out,
                             size_t *size_out) LEAT_MUST_CHECK;

/* ---- Answering ---- */
typedef struct leat_listener leat_listener;
typedef struct leat_asked leat_asked; /* a call that came; ends with leat_asked_reply */

/* method and in are borrowed until the handler returns. Replies now or later, from any thread. */
typedef void (*leat_handler_fn)(void *arg, leat_asked *a, const char *method,
                                const leat_incoming *in);
typedef struct leat_listen_options {
    const leat_security *security; /* NULL: none */
    int64_t max_message;           /* 0: the most that there is, rule 5 */
    int max_calls;                 /* at once; 0: 10,000. More get RESOURCE_EXHAUSTED */
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
void leat_asked_reply(leat_asked *a, leat_status s, leat_outgoing *reply);
/* fn(arg) runs once, from any thread, if the caller goes away or its deadline passes before the
 * reply; false if that has happened already. After leat_asked_reply it does not run any more, and
 * is not running. */
bool leat_asked_on_gone(leat_asked *a, void (*fn)(void *arg), void *arg);
int64_t leat_asked_most(const leat_asked *a); /* bytes that the caller takes in an answer */
/* A handler that is going to block, or to work for milliseconds, says so first, from its thread:
 * another one takes the next call at once instead of a moment later. */
void leat_asked_leave(leat_asked *a);
const char *leat_asked_peer(const leat_asked *a); /* "ipv4:127.0.0.1:40312"; until the reply */

#endif
