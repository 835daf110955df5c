/* conn.h -- a connection between two tasks, which sends and receives frames (the glossary's wire
 * frames) over a stream of bytes.
 *
 * 1. A frame is a header, a method's name, the lengths of its segments, and the segments' bytes.
 *    Each tensor is a segment of its own, so that its bytes are aligned where they arrive.
 * 2. One thread at a time has a connection's reader role: it reads a frame and then works on the
 *    frame. Another thread takes the role over when the first one is going to block and calls
 *    leat_conn_hand_over, or has worked on one frame for some milliseconds, which watch.c notices.
 * 3. leat_conn_send does not wait for long: what does not fit into the stream at once is written by
 *    the connection's writing thread.
 *    Where no thread can be started for a role, the watch does what is needed to go on: it writes
 *    what fits, calls the reply functions of calls that failed, tries again to start a reader, and
 *    ends the connection if it could not for leat_conn_starved_ns. A warning in the log says so.
 * 4. The reply function of a call that fails, is cancelled or misses its deadline is a chore: a
 *    thread of the connection calls it (leat_conn_ops.chores), never the thread that cancelled the
 *    call or noticed the failure.
 *
 * A stream (leat_stream) carries the bytes: rings in shared memory (cluster/shm/), or a socket
 * (cluster/socket/).
 */
#ifndef LEAT_CLUSTER_STREAM_CONN_H
#define LEAT_CLUSTER_STREAM_CONN_H

#include <pthread.h>

#include "cluster/transport_int.h"

/* ---- Frames ---- */
typedef enum leat_frame_kind {
    LEAT_FRAME_REQUEST = 1,
    LEAT_FRAME_REPLY,
    LEAT_FRAME_ERROR, /* A reply that is an error: the frame's bytes are the error's message. */
    LEAT_FRAME_CANCEL,
    LEAT_FRAME_PING,
    LEAT_FRAME_PONG,
    LEAT_FRAME_SKIP, /* Padding: the reader drops the size bytes that follow the header. */
} leat_frame_kind;

/* A frame's header, as it stands in the stream. Both ends have the same byte order, or the
 * handshake fails. */
typedef struct leat_frame {
    uint32_t kind, code;       /* A leat_frame_kind; the leat_code of an ERROR, else 0. */
    uint64_t id;               /* The number of the call on this connection, from 1; else 0. */
    uint64_t size;             /* The bytes of all segments. */
    uint32_t segments, method; /* The number of segments; the bytes of the method's name. */
} leat_frame;

/* A frame that was not written as a whole. Its bytes are those of part_list[0 .. parts-1] in order;
 * part_list[0] has the header, the method's name and the segments' lengths. */
typedef struct leat_unsent {
    struct leat_unsent *next;
    leat_outgoing message; /* Owns the memory of all parts but the first. */
    int part, parts;       /* part: the index of the first part that was not written as a whole. */
    size_t at;             /* Bytes of that part that were written. */
    leat_slice *part_list;
    _Alignas(8) char head[]; /* Memory of the first part, and behind it of part_list. */
} leat_unsent;

/* ---- Streams ---- */
/* Whether a connection lives, or why it ended. */
typedef enum leat_conn_end {
    LEAT_CONN_LIVES,
    LEAT_CONN_CLOSED,  /* The peer closed the connection, or its process ended. */
    LEAT_CONN_SILENT,  /* The peer did not reply to a ping. */
    LEAT_CONN_GARBAGE, /* The peer sent bytes that are not a frame. */
    LEAT_CONN_LEFT,    /* This process closed the connection. */
    LEAT_CONN_STARVED, /* This process could not start a thread to read. */
} leat_conn_end;
typedef struct leat_conn leat_conn;
typedef struct leat_stream leat_stream;
typedef struct leat_stream_ops {
    /* Waits for n bytes and reads them to `to`, or drops them if `to` is NULL. Only the thread that
     * has the reader role calls read. False if the connection ended before the n bytes came; bytes
     * that the peer sent before it closed the connection are still read. */
    bool (*read)(leat_conn *c, void *to, uint64_t n);
    /* Optional. Waits until a frame begins, or the connection ends. number is that of the caller's
     * reader role. False if await has given the role up (leat_conn_free_reader). */
    bool (*await)(leat_conn *c, uint64_t number);
    void (*frame_read)(leat_conn *c); /* Optional; called when a whole frame was read. */
    /* Mandatory if await is set: whether there are bytes to be read. Any thread may call it. */
    bool (*unread)(leat_conn *c);
    /* Writes as much of the frames in c->unsent as fits, without waiting for long, and advances
     * their part and at. Gives LIVES, or the reason why the connection has to end. send_lock is
     * held. */
    leat_conn_end (*push)(leat_conn *c);
    /* Optional; called after push, even if push left something unsent. send_lock is not held. */
    void (*pushed)(leat_conn *c);
    /* Waits until more can be written, or the connection ends; may return early. */
    void (*await_room)(leat_conn *c);
    /* Called when c->end or c->alarm was set: makes threads that wait in read, await or await_room
     * look at them. */
    void (*wake)(leat_conn *c);
    void (*free)(leat_stream *s);
    /* A thread that puts wake-ups off (core/later.h) also puts off writing its frames, so that one
     * write has several of them. */
    bool gathers;
    /* A thread that waits in read notices the end of the connection, but not c->alarm: a thread is
     * started for chores. */
    bool read_blocks;
} leat_stream_ops;
struct leat_stream {
    const leat_stream_ops *ops;
    /* A socket that carries no bytes; when the peer closes it, the connection has ended. -1: the
     * stream has none, and read notices the end. */
    int end_fd;
};

/* ---- Connections ---- */
/* The state of a connection's reader role. leat_conn.role is number * LEAT_READER_STATES + state;
 * the number is incremented whenever a thread takes the role, so that a thread can tell whether
 * another one has taken it since. */
typedef enum leat_reader {
    LEAT_READER_READS, /* A thread has the role, and reads or waits for bytes. */
    LEAT_READER_WORKS, /* A thread has the role, and works on a frame. */
    LEAT_READER_NONE,  /* No thread has the role. */
    LEAT_READER_STATES = 4,
} leat_reader;

typedef struct leat_conn_ops {
    /* A frame of kind REQUEST, REPLY, ERROR or CANCEL was read; runs in the thread that has the
     * reader role. method is "" unless the frame is a request. in is NULL if the frame was too
     * large, or there was no memory for it, and its bytes were dropped. */
    void (*frame)(leat_conn *c, const leat_frame *f, const char *method, const leat_incoming *in);
    void (*chores)(leat_conn *c);   /* Called in a thread of c after leat_conn_call_reader. */
    void (*ended)(leat_conn *c);    /* Called once, when no more frames will be read. */
    void (*released)(leat_conn *c); /* The last reference was dropped: frees the object around c. */
    /* Called by the watch's thread, with the watch's lock held, every leat_ping_after_ns / 2 and
     * at the times given to leat_watch_at. Must not block. */
    void (*tick)(leat_conn *c, int64_t now_ns);
} leat_conn_ops;

struct leat_conn {
    const leat_conn_ops *ops;
    leat_stream *stream;
    int64_t max_message; /* Bytes; a larger frame is dropped when it is received. */
    /* Atomic: a futex; 1: the thread that has the reader role has to look at chores and end. */
    uint32_t alarm;
    uint32_t end; /* Atomic: a leat_conn_end. */
    /* Atomic. chores: 1 if ops->chores has to be called. closing: 1 if the reader thread need not
     * wait for more chores after the connection's end. */
    uint32_t chores, closing;
    /* Atomic. heard_ns: when the peer last sent or accepted bytes. pinged_ns: when a ping was sent
     * that has no reply yet; 0: there is none. */
    int64_t heard_ns, pinged_ns;
    /* Atomic. unattended: 1 once a thread for chores could not be started, or the connection ended
     * without a thread: the watch does chores. starved_ns: since when no reader could be started.
     */
    uint32_t unattended;
    int64_t starved_ns;
    uint64_t role;   /* Atomic: see leat_reader. */
    uint64_t frames; /* Atomic: the number of frames that were read. */
    /* Guarded by the watch's lock: */
    leat_conn *next, **link; /* In the list of watched connections. */
    uint64_t seen;           /* The value of frames when the watch last looked. */
    bool had_news; /* When the watch last looked, bytes were unread, but no thread had the role. */

    /* Guards fields of the object around c. Taken before refs_lock and send_lock. */
    pthread_mutex_t lock;
    pthread_mutex_t refs_lock; /* Guards refs to summons. Taken last. */
    pthread_cond_t no_threads; /* Signalled when threads becomes 0. */
    int refs, threads;         /* leat_conn_close waits until threads is 0. */
    bool over;                 /* True once ops->ended has returned. */
    pthread_cond_t summon;     /* Signalled when summons grows, or the connection ends. */
    /* spares: threads that wait in stand_by to take the reader role over. summons: how many of the
     * spares have to take the role. */
    int spares, summons;
    pthread_mutex_t send_lock; /* Guards unsent to writing, and the writing side of the stream. */
    leat_unsent *unsent, *unsent_last;
    pthread_cond_t more; /* Signalled when writing is set, or the connection ends. */
    bool writer;         /* There is a writing thread. */
    bool stuck;          /* Atomic: there is none, and unsent has frames that did not fit. */
    bool writing;        /* The writing thread writes the frames in unsent; no other thread may. */
};

/* Takes the stream, gives c one reference, and starts to read. The memory at c is zero before.
 * RESOURCE_EXHAUSTED: no thread can be started; c has no reference, and ops are not called. */
leat_status leat_conn_start(leat_conn *c, const leat_conn_ops *ops, leat_stream *stream,
                            int64_t max_message) LEAT_MUST_CHECK;
void leat_conn_ref(leat_conn *c);
void leat_conn_unref(leat_conn *c);
/* Takes the content of o, which may be NULL. Drops the frame if the connection has ended. */
void leat_conn_send(leat_conn *c, const leat_frame *f, const char *method, leat_outgoing *o);
/* Makes a thread of c call ops->chores. */
void leat_conn_call_reader(leat_conn *c);
/* Ends the connection. If it has ended already, the first reason stays. */
void leat_conn_finish(leat_conn *c, leat_conn_end why);
bool leat_conn_ended(const leat_conn *c);
/* Notes that the peer has just sent or accepted bytes. conn.c calls it for every frame that was
 * read; streams call it for parts of a frame, since a large frame may take seconds. */
void leat_conn_heard(leat_conn *c);
/* Ends the connection and waits until its threads have ended. Must not be called by one of them. */
void leat_conn_close(leat_conn *c);
/* If the thread that has the reader role works on a frame, gives the role to another thread. */
void leat_conn_hand_over(leat_conn *c);
/* Clears alarm and does the chores. A stream's read and await call it when alarm is set. */
void leat_conn_look_up(leat_conn *c);

/* ---- For a thread that reads connections while it waits for an event (shm/waiter.c) ---- */
/* Between leat_conn_hold and leat_conn_let_go, leat_conn_close waits, and c is not freed. */
void leat_conn_hold(leat_conn *c);
void leat_conn_let_go(leat_conn *c);
/* Takes the reader role if no thread has it. True if the role was taken. */
bool leat_conn_take_reader(leat_conn *c, uint64_t *number_out);
/* Gives the reader role up, if the role of that number is still the caller's. */
void leat_conn_free_reader(leat_conn *c, uint64_t number);
/* If no thread has the reader role, gives it to a thread of the connection. */
void leat_conn_start_reader(leat_conn *c);
/* Reads one frame, of which bytes have come or whose connection has ended, and works on it. False
 * if the caller does not have the reader role any more. */
bool leat_conn_read_one(leat_conn *c, uint64_t number);
/* Whether the calling thread works on a frame by leat_conn_read_one. It must not block then. */
bool leat_conn_thread_waits(void);

/* ---- Used by conn.c and send.c only ---- */
/* Starts a thread of the connection. fn has to end with leat_conn_thread_ends(conn). False: the
 * system gives no thread. */
bool leat_conn_thread(leat_conn *c, void *(*fn)(void *conn));
void leat_conn_thread_ends(leat_conn *c);
void leat_conn_drop_unsent(leat_conn *c); /* Frees all unsent frames. */

/* ---- Used by the watch, where a connection has not got a thread ---- */
extern int64_t leat_conn_starved_ns; /* See rule 3. Tests shorten it. */
/* Writes what fits of the unsent frames if there is no thread for it. True: some are left. */
bool leat_conn_push_again(leat_conn *c);
/* Whether leat_conn_replace_thread has something to do. */
bool leat_conn_lacks_thread(leat_conn *c, int64_t now_ns);
/* Ends the connection, or calls reply functions, in this thread. */
void leat_conn_replace_thread(leat_conn *c, int64_t now_ns);

/* ---- The watch: one thread of the process, for all connections (watch.c) ---- */
leat_status leat_watch_add(leat_conn *c) LEAT_MUST_CHECK;
void leat_watch_remove(leat_conn *c); /* ops->tick is not running, and is not called any more. */
/* A thread begins to work on a frame, or gives a reader role up: the watch looks at all readers
 * every few milliseconds from now on (rule 2). */
void leat_watch_busy(void);
/* Calls fn for each watched connection, with the watch's lock held. fn must not block. */
void leat_watch_each(void (*fn)(leat_conn *c, void *arg), void *arg);
/* Makes the watch call ops->tick of all connections at at_ns (CLOCK_MONOTONIC) or earlier. */
void leat_watch_at(int64_t at_ns);
/* on_connect(arg) runs in the watch's thread whenever a peer connects to the listening socket. */
typedef struct leat_accept_watch {
    int socket;
    void (*on_connect)(void *arg);
    void *arg;
    struct leat_accept_watch *next;
} leat_accept_watch;
leat_status leat_watch_add_listener(leat_accept_watch *w) LEAT_MUST_CHECK;
/* When it returns, on_connect is not running and is not called any more. */
void leat_watch_remove_listener(leat_accept_watch *w);
/* on: a connection whose reader role no thread has stays so until bytes have been unread for some
 * milliseconds. Not on: the watch gives the role to a thread of the connection at its next look. */
void leat_watch_leave_free(bool on);
/* fn, which may be NULL, is called whenever the watch has looked at its connections: every few
 * milliseconds while frames come. */
void leat_watch_on_tick(void (*fn)(void));

/* ---- Links, for callers (channel.c) ---- */
typedef struct leat_stream_link leat_stream_link;
/* Makes a link in state OPENING. name is the transport's name in error messages, a literal. */
leat_stream_link *leat_stream_link_new(const leat_link_target *to, const char *name);
leat_link *leat_stream_link_base(leat_stream_link *l);
/* Takes the stream. The link's state becomes LIVES; after an error it becomes DEAD. */
leat_status leat_stream_link_start(leat_stream_link *l, leat_stream *stream) LEAT_MUST_CHECK;
/* No stream could be opened: the link's state becomes DEAD. */
void leat_stream_link_fail(leat_stream_link *l);
/* For a link that a thread opens. cancel(arg) runs when the link is replaced or freed, so perhaps
 * twice, and must make that thread stop. before_free(arg) runs after cancel when the link is freed,
 * and must wait for the thread. */
void leat_stream_link_on_free(leat_stream_link *l, void (*cancel)(void *arg),
                              void (*before_free)(void *arg), void *arg);

/* ---- Servers, for listeners (listener.c) ---- */
/* Handles the calls of all connections of an endpoint. Its owner, a transport's listener, makes the
 * handshake with a peer that connects, and then adds the stream to its server. */
typedef struct leat_stream_server leat_stream_server;
/* close(owner) ends the listening: when it returns, no more streams are added. It frees owner. */
leat_stream_server *leat_stream_server_new(const leat_listen_options *o, leat_handler_fn handler,
                                           void *arg, void (*close)(void *owner), void *owner);
leat_endpoint *leat_stream_server_base(leat_stream_server *s);
/* Takes the stream. leat_server_call_peer gives peer, which is copied. accept(arg) tells the peer
 * that it may send; it is not called if the connection cannot be served, for want of a thread: the
 * stream is closed then. */
void leat_stream_server_add(leat_stream_server *s, leat_stream *stream, const char *peer,
                            void (*accept)(void *arg), void *arg);
/* The function stop of a transport: closes the owner, then does as leat_listener_stop, and frees
 * the server. */
void leat_stream_server_stop(leat_endpoint *server, int64_t deadline_ns);

#endif
