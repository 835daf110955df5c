/* shm_conn.h -- one connection through shared memory: frames there and back.
 *
 * 1. A frame is a header, a method's name, the lengths of its segments, and their bytes. Text and
 *    tensors are segments of their own, so that a tensor's bytes are aligned where they arrive.
 * 2. One thread at a time has the seat: it reads, and works on what it read in place. When it
 *    leaves (or does not come back for some milliseconds, which shm_watch.c sees) another one goes
 *    on reading. A thread that waits for a step takes the seats while it waits (shm_standin.c):
 *    then nobody needs to be woken to tell it. Between its waits the seats are free, and the
 *    watch looks.
 * 3. Nobody waits to send: what does not fit is left to the connection's writing thread.
 * 4. What fails, is cancelled or is late is put on the list of chores and done by the reading
 *    thread, never by whoever found it out.
 */
#ifndef LEAT_CLUSTER_SHM_CONN_H
#define LEAT_CLUSTER_SHM_CONN_H

#include <pthread.h>

#include "cluster/shm_ring.h"
#include "cluster/transport_int.h"

typedef enum leat_frame_kind {
    LEAT_FRAME_REQUEST = 1,
    LEAT_FRAME_REPLY,
    LEAT_FRAME_ERROR, /* its bytes are the message */
    LEAT_FRAME_CANCEL,
    LEAT_FRAME_PING,
    LEAT_FRAME_PONG,
    LEAT_FRAME_SKIP, /* so many bytes, to the ring's end: an empty ring begins anew */
} leat_frame_kind;

/* As it stands in the ring. */
typedef struct leat_frame {
    uint32_t kind, code;       /* code: of an error */
    uint64_t id;               /* of the call */
    uint64_t size;             /* of all segments */
    uint32_t segments, method; /* how many; bytes of the name */
} leat_frame;

typedef enum leat_conn_end {
    LEAT_CONN_LIVES,
    LEAT_CONN_CLOSED,  /* the other one is gone */
    LEAT_CONN_SILENT,  /* does not even answer a ping */
    LEAT_CONN_GARBAGE, /* sent nonsense */
    LEAT_CONN_LEFT,    /* by ourselves */
} leat_conn_end;

/* What a connection's seat is, besides a number times 4 that grows whenever it is taken. */
typedef enum leat_seat {
    LEAT_SEAT_READS, /* who has it waits for bytes, or reads */
    LEAT_SEAT_WORKS, /* on a frame */
    LEAT_SEAT_FREE,
    LEAT_SEAT_STATES = 4,
} leat_seat;

typedef struct leat_conn leat_conn;
typedef struct leat_conn_ops {
    /* In the thread that reads. method is "" but for requests. */
    void (*frame)(leat_conn *c, const leat_frame *f, const char *method, const leat_incoming *in);
    void (*chores)(leat_conn *c);   /* after leat_conn_call_reader */
    void (*ended)(leat_conn *c);    /* once; nothing comes any more */
    void (*released)(leat_conn *c); /* the last reference is gone: frees what holds c */
    /* By the watch, now and then, and at the times that leat_watch_at was told of: quick. */
    void (*tick)(leat_conn *c, int64_t now_ns);
} leat_conn_ops;

struct leat_conn {
    const leat_conn_ops *ops;
    int socket;
    leat_ring_pair rings;
    int64_t max_message;
    leat_conn *next, **link;     /* among the watched: shm_watch.c */
    uint32_t alarm;              /* the reader is to look up from the ring: chores, or the end */
    uint32_t end;                /* leat_conn_end; atomic */
    uint32_t chores, closing;    /* atomic */
    int64_t heard_ns, pinged_ns; /* atomic; 0: no ping is under way */
    uint64_t seat;               /* atomic: see leat_seat */
    uint64_t frames;             /* atomic: that were read */
    uint64_t seen;               /* frames when the watch last looked; the watch's own, as is: */
    bool had_news;               /* then, while nobody had the seat */
    pthread_mutex_t lock;        /* for what holds c; before those that follow */
    pthread_mutex_t refs_lock;   /* refs to summons; taken last */
    pthread_cond_t no_threads;
    int refs, threads;
    bool over; /* ended was called */
    pthread_cond_t summon;
    int spares, summons;       /* threads that could read but must not; how many of them are to */
    pthread_mutex_t send_lock; /* rings.out and what follows */
    struct leat_unsent *unsent, *unsent_last;
    pthread_cond_t more; /* is unsent */
    bool writer;         /* there is a writing thread */
    bool garbled;        /* atomic: the reader tells nonsense */
};

/* Takes socket and rings; starts to read. refs is 1. */
void leat_conn_start(leat_conn *c, const leat_conn_ops *ops, int socket, leat_ring_pair rings,
                     int64_t max_message);
void leat_conn_ref(leat_conn *c);
void leat_conn_unref(leat_conn *c);
/* Takes what is in o; o may be NULL. Lost if the connection has ended. */
void leat_conn_send(leat_conn *c, const leat_frame *f, const char *method, leat_outgoing *o);
void leat_conn_call_reader(leat_conn *c);
void leat_conn_finish(leat_conn *c, leat_conn_end why); /* the first reason counts */
/* Ends it and waits until its threads are gone. Not from one of them. */
void leat_conn_close(leat_conn *c);
/* Another thread is to read while the one that reads works on its frame. */
void leat_conn_leave(leat_conn *c);

/* For a thread that stands in. Who holds a connection keeps leat_conn_close waiting. */
void leat_conn_hold(leat_conn *c);
void leat_conn_let_go(leat_conn *c);
bool leat_conn_take_seat(leat_conn *c, uint64_t *number_out); /* if it is free */
void leat_conn_free_seat(leat_conn *c, uint64_t number);
void leat_conn_seat_reader(leat_conn *c);  /* a thread of its own, if the seat is free */
bool leat_conn_has_news(leat_conn *c);     /* bytes, chores or the end: for who has the seat */
bool leat_conn_wants_reader(leat_conn *c); /* the same for others */
/* Reads one frame and works on it. False if the seat is somebody else's from now on. */
bool leat_conn_read_one(leat_conn *c, uint64_t number);

/* ---- The watch: one thread of the process, for all connections (shm_watch.c) ---- */
void leat_watch_add(leat_conn *c); /* sees the end of its socket, calls tick */
void leat_watch_remove(leat_conn *c);
void leat_watch_busy(void); /* a thread begins to work on a frame: see 2 */
void leat_watch_each(void (*fn)(leat_conn *c, void *arg), void *arg); /* for all; quick */
void leat_watch_at(int64_t at_ns);                                    /* tick then, at the latest */
/* on_caller(arg) runs whenever somebody is at the door. */
typedef struct leat_door {
    int socket;
    void (*on_caller)(void *arg);
    void *arg;
    struct leat_door *next;
} leat_door;
void leat_watch_door(leat_door *d);
void leat_watch_no_door(leat_door *d); /* on_caller is not running any more */

/* ---- Standing in (shm_standin.c) ---- */
bool leat_standin_wants(void); /* seats are to be left free when there is nothing to be read */
void leat_standin_tick(void);  /* by the watch */

#endif
