/* conn.h -- one connection between two tasks: frames there and back, over any stream of bytes.
 *
 * 1. A frame is a header, a method's name, the lengths of its segments, and their bytes. Text and
 *    tensors are segments of their own, so that a tensor's bytes are aligned where they arrive.
 * 2. One thread at a time has the reader role: it reads a frame, and works on it. When it says that
 *    it is going to block, or works for some milliseconds, which watch.c sees, another thread takes
 *    the role over.
 * 3. Nobody waits for long to send: what does not fit is left to the connection's writing thread.
 * 4. Reply functions of calls that fail, are cancelled or are late are put on the list of chores,
 *    which a thread of the connection does, never the thread that found it out.
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
    LEAT_FRAME_ERROR, /* its bytes are the message */
    LEAT_FRAME_CANCEL,
    LEAT_FRAME_PING,
    LEAT_FRAME_PONG,
    LEAT_FRAME_SKIP, /* nothing: so many bytes are to be passed over */
} leat_frame_kind;

/* The header, as it stands in the stream: both ends have the same byte order, or the handshake
 * fails. */
typedef struct leat_frame {
    uint32_t kind, code;       /* code: of an error */
    uint64_t id;               /* of the call */
    uint64_t size;             /* of all segments */
    uint32_t segments, method; /* how many segments; bytes of the method's name */
} leat_frame;

/* A frame on its way out: parts of memory in order, the header with method and lengths first. */
typedef struct leat_unsent {
    struct leat_unsent *next;
    leat_outgoing message; /* what parts point into */
    int part, parts;       /* part: the first that was not written as a whole; */
    size_t at;             /* bytes of it that were written */
    leat_slice *part_list;
    _Alignas(8) char head[]; /* memory of the first part, and of the list */
} leat_unsent;

/* ---- What carries them ---- */
typedef enum leat_conn_end {
    LEAT_CONN_LIVES,
    LEAT_CONN_CLOSED,  /* the other one is gone */
    LEAT_CONN_SILENT,  /* does not even answer a ping */
    LEAT_CONN_GARBAGE, /* sent what is no frame */
    LEAT_CONN_LEFT,    /* by ourselves */
} leat_conn_end;
typedef struct leat_conn leat_conn;
typedef struct leat_stream leat_stream;
typedef struct leat_stream_ops {
    /* Reads n bytes, to NULL: passes over them; waits for them. Only the thread that has the reader
     * role calls it. False if the connection has ended: what came before its end is read, still. */
    bool (*read)(leat_conn *c, void *to, uint64_t n);
    /* Optional: waits until a frame begins, or the connection ends. False if the thread has given
     * the reader role up (leat_conn_free_reader). */
    bool (*await)(leat_conn *c, uint64_t number);
    void (*frame_read)(leat_conn *c); /* optional: all bytes of a frame were read */
    /* Of streams with await: something is to be read, for a thread that has not the reader role. */
    bool (*unread)(leat_conn *c);
    /* Writes as much of the frames in c->unsent as fits now, without waiting for long, and moves
     * their part and at. send_lock is held. Gives why the connection has to be finished, or LIVES.
     */
    leat_conn_end (*push)(leat_conn *c);
    void (*pushed)(leat_conn *c);     /* optional: after push wrote all; send_lock is not held */
    void (*await_room)(leat_conn *c); /* until some more fits, or the connection ends */
    /* c->end or c->alarm is set: whoever waits in read, await or await_room is to see it. */
    void (*wake)(leat_conn *c);
    void (*free)(leat_stream *s);
    /* Frames are gathered while a thread holds back (core/later.h), and written at once. */
    bool gathers;
    /* wake cannot reach a thread that waits in read, but for the end: chores get a thread. */
    bool read_blocks;
} leat_stream_ops;
struct leat_stream {
    const leat_stream_ops *ops;
    int end_fd; /* a socket on which nothing comes, but whose end is the connection's; -1: none */
};

/* ---- Connections ---- */
/* The state of a connection's reader role; beside it stands a number, times 4, which grows whenever
 * a thread takes the role. */
typedef enum leat_reader {
    LEAT_READER_READS, /* a thread has the role, and waits for bytes or reads */
    LEAT_READER_WORKS, /* a thread has the role, and works on a frame */
    LEAT_READER_NONE,
    LEAT_READER_STATES = 4,
} leat_reader;

typedef struct leat_conn_ops {
    /* In the thread that reads. method is "" but for requests; in is NULL if the frame was too
     * large, and passed over. */
    void (*frame)(leat_conn *c, const leat_frame *f, const char *method, const leat_incoming *in);
    void (*chores)(leat_conn *c);   /* after leat_conn_call_reader */
    void (*ended)(leat_conn *c);    /* once; nothing comes any more */
    void (*released)(leat_conn *c); /* the last reference is gone: frees what holds c */
    /* By the watch, now and then, and at the times that leat_watch_at was told of: quick. */
    void (*tick)(leat_conn *c, int64_t now_ns);
} leat_conn_ops;

struct leat_conn {
    const leat_conn_ops *ops;
    leat_stream *stream;
    int64_t max_message;
    uint32_t alarm;              /* atomic: the reader is to look at chores and end */
    uint32_t end;                /* atomic: leat_conn_end */
    uint32_t chores, closing;    /* atomic */
    int64_t heard_ns, pinged_ns; /* atomic; 0: no ping is under way */
    uint64_t role;               /* atomic: see leat_reader */
    uint64_t frames;             /* atomic: that were read */
    /* Guarded by the watch's lock: */
    leat_conn *next, **link; /* among the watched */
    uint64_t seen;           /* frames when the watch looked last */
    bool had_news;           /* nobody had the reader role then, and there was something to read */
    pthread_mutex_t lock;    /* for what holds c; taken before those that follow */
    pthread_mutex_t refs_lock; /* guards what follows, up to summons; taken last */
    pthread_cond_t no_threads;
    int refs, threads;
    bool over; /* ended was called */
    pthread_cond_t summon;
    int spares, summons; /* threads that wait to take the role over; how many of them are to */
    pthread_mutex_t send_lock; /* guards what follows, and the stream's way out */
    leat_unsent *unsent, *unsent_last;
    pthread_cond_t more; /* is unsent */
    bool writer;         /* there is a writing thread, */
    bool writing;        /* and it is to write what is unsent */
};

/* Takes the stream; starts to read. refs is 1. */
void leat_conn_start(leat_conn *c, const leat_conn_ops *ops, leat_stream *stream,
                     int64_t max_message);
void leat_conn_ref(leat_conn *c);
void leat_conn_unref(leat_conn *c);
/* Takes what is in o; o may be NULL. Lost if the connection has ended. */
void leat_conn_send(leat_conn *c, const leat_frame *f, const char *method, leat_outgoing *o);
void leat_conn_call_reader(leat_conn *c);               /* a thread of c is to do the chores */
void leat_conn_finish(leat_conn *c, leat_conn_end why); /* the first reason counts */
bool leat_conn_ended(const leat_conn *c);
/* The peer has sent or accepted some bytes. Every frame that was read counts without this; streams
 * call it for a part of a frame that may take seconds. */
void leat_conn_heard(leat_conn *c);
/* Ends it and waits until its threads are gone. Not from one of them. */
void leat_conn_close(leat_conn *c);
/* Another thread is to read while the one that reads works on its frame. */
void leat_conn_hand_over(leat_conn *c);
/* For a stream's read and await, when alarm is set: does the chores. */
void leat_conn_look_up(leat_conn *c);

/* For a thread that reads while it waits for something. Who holds a connection keeps
 * leat_conn_close waiting. */
void leat_conn_hold(leat_conn *c);
void leat_conn_let_go(leat_conn *c);
bool leat_conn_take_reader(leat_conn *c, uint64_t *number_out); /* if nobody has the role */
void leat_conn_free_reader(leat_conn *c, uint64_t number);
void leat_conn_start_reader(leat_conn *c); /* a thread of its own, if nobody has the role */
/* Reads one frame, which must have begun, and works on it. False if another thread reads from now
 * on. */
bool leat_conn_read_one(leat_conn *c, uint64_t number);

/* ---- For conn.c and send.c ---- */
bool leat_conn_thread(leat_conn *c, void *(*fn)(void *conn)); /* which ends with the next one */
void leat_conn_thread_ends(leat_conn *c);
void leat_conn_drop_unsent(leat_conn *c);

/* ---- The watch: one thread of the process, for all connections (watch.c) ---- */
void leat_watch_add(leat_conn *c); /* calls tick */
void leat_watch_remove(leat_conn *c);
void leat_watch_busy(void); /* a thread begins to work on a frame: see 2 */
void leat_watch_each(void (*fn)(leat_conn *c, void *arg), void *arg); /* for all; quick */
void leat_watch_at(int64_t at_ns);                                    /* tick then, at the latest */
/* on_connect(arg) runs whenever somebody connects to the listening socket. */
typedef struct leat_accept_watch {
    int socket;
    void (*on_connect)(void *arg);
    void *arg;
    struct leat_accept_watch *next;
} leat_accept_watch;
void leat_watch_add_listener(leat_accept_watch *w);
void leat_watch_remove_listener(leat_accept_watch *w); /* on_connect is not running any more */
/* While on, connections without a reader are left without one until something has waited there for
 * some milliseconds. fn, which may be NULL, is called every few milliseconds. */
void leat_watch_leave_free(bool on);
void leat_watch_on_tick(void (*fn)(void));

/* ---- Both sides of calls ---- */
/* Calling: channel.c. A link in state OPENING; name is what messages call the transport. */
typedef struct leat_stream_link leat_stream_link;
leat_stream_link *leat_stream_link_new(const leat_link_target *to, const char *name);
leat_link *leat_stream_link_base(leat_stream_link *l);
/* Takes the stream: the link lives from now on. */
void leat_stream_link_start(leat_stream_link *l, leat_stream *stream);
void leat_stream_link_fail(leat_stream_link *l); /* instead: it is dead */
/* For links that take a while to open: cancel(arg) runs when nobody wants the link any more,
 * perhaps more than once, and before_free(arg) when it is freed. */
void leat_stream_link_on_free(leat_stream_link *l, void (*cancel)(void *arg),
                              void (*before_free)(void *arg), void *arg);

/* Serving: listener.c. What a transport's endpoint holds, to which it gives the streams of callers
 * that were let in. */
typedef struct leat_stream_server leat_stream_server;
leat_stream_server *leat_stream_server_new(const leat_listen_options *o, leat_handler_fn handler,
                                           void *arg);
/* Takes the stream; peer is what leat_server_call_peer gives. */
void leat_stream_server_add(leat_stream_server *s, leat_stream *stream, const char *peer);
/* As leat_listener_stop; frees it. No stream may be added from now on. */
void leat_stream_server_stop(leat_stream_server *s, int64_t deadline_ns);

#endif
