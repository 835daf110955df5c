/* conn.c -- a connection's life, and the threads that read it. */
#define _GNU_SOURCE
#include "cluster/stream/conn.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/cond.h"
#include "core/later.h"
#include "core/log.h"
#include "core/spin.h"
#include "core/thread.h"
#include "core/threadpool.h"

enum {
    METHOD_MAX = 256, /* Bytes of a method's name. */
    SEGMENTS_MAX = 1 << 20,
    SKIP_MAX = 64 << 20, /* Bytes that a SKIP frame may drop. */
    SMALL = 4096,        /* Messages of up to so many bytes are read to the stack. */
    SPARES = 2,
    SPARE_SECONDS = 5,
};
static const int64_t WARN_NS = INT64_C(10000000000);
int64_t leat_conn_starved_ns = INT64_C(10000000000);

/* ---- The reader role ---- */
static uint64_t role_of(uint64_t number, leat_reader state)
{
    return number * LEAT_READER_STATES + state;
}

static bool move_role(leat_conn *c, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(&c->role, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* Takes the reader role if it is in the given state. True if the role was taken. */
static bool take_role(leat_conn *c, leat_reader state, uint64_t *number_out)
{
    uint64_t role = __atomic_load_n(&c->role, __ATOMIC_SEQ_CST);
    *number_out = role / LEAT_READER_STATES + 1;
    return role % LEAT_READER_STATES == state &&
           move_role(c, role, role_of(*number_out, LEAT_READER_READS));
}

/* ---- Threads and references ---- */
static void warn(int e)
{
    static int64_t next_ns;
    int64_t now = leat_now_ns(), was = __atomic_load_n(&next_ns, __ATOMIC_RELAXED);
    if (now >= was && __atomic_compare_exchange_n(&next_ns, &was, now + WARN_NS, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        LEAT_LOG(WARNING,
                 "No thread can be started for a connection between tasks (%s): its messages wait, "
                 "and after %d s without a thread the connection is closed. %s",
                 strerror(e), (int)(leat_conn_starved_ns / 1000000000), LEAT_NO_THREAD_HINT);
}

bool leat_conn_thread(leat_conn *c, void *(*fn)(void *conn))
{
    pthread_mutex_lock(&c->refs_lock);
    int e = leat_thread_start(NULL, fn, c);
    c->threads += !e;
    c->refs += !e;
    pthread_mutex_unlock(&c->refs_lock);
    if (e)
        warn(e);
    return !e;
}

void leat_conn_thread_ends(leat_conn *c)
{
    pthread_mutex_lock(&c->refs_lock);
    if (--c->threads == 0)
        pthread_cond_broadcast(&c->no_threads);
    pthread_mutex_unlock(&c->refs_lock);
    leat_conn_unref(c);
}

void leat_conn_ref(leat_conn *c)
{
    pthread_mutex_lock(&c->refs_lock);
    c->refs++;
    pthread_mutex_unlock(&c->refs_lock);
}

static void destroy(leat_conn *c)
{
    leat_conn_drop_unsent(c);
    c->stream->ops->free(c->stream);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->refs_lock);
    pthread_mutex_destroy(&c->send_lock);
    pthread_cond_destroy(&c->no_threads);
    pthread_cond_destroy(&c->summon);
    pthread_cond_destroy(&c->more);
}

void leat_conn_unref(leat_conn *c)
{
    pthread_mutex_lock(&c->refs_lock);
    int left = --c->refs;
    pthread_mutex_unlock(&c->refs_lock);
    if (left)
        return;
    destroy(c);
    c->ops->released(c);
}

/* ---- Reading ---- */
bool leat_conn_ended(const leat_conn *c)
{
    return __atomic_load_n(&c->end, __ATOMIC_SEQ_CST) != LEAT_CONN_LIVES;
}

void leat_conn_look_up(leat_conn *c)
{
    __atomic_store_n(&c->alarm, 0, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&c->chores, 0, __ATOMIC_SEQ_CST))
        c->ops->chores(c);
}

static bool read_bytes(leat_conn *c, void *to, uint64_t n)
{
    return !n || c->stream->ops->read(c, to, n);
}

/* A frame that was read, with its bytes. */
typedef struct message {
    leat_frame frame;
    char method[METHOD_MAX + 1];
    uint64_t few_lengths[8], *lengths;
    leat_slice few_slices[8], *slices;
    leat_buffer *buffer; /* Holds the segments of a message larger than SMALL; else NULL. */
    leat_incoming in;
    bool dropped; /* The frame is too large or there is no memory: its bytes were dropped. */
    _Alignas(64) uint8_t small[SMALL];
} message;

static void release(message *l)
{
    leat_buffer_unref(l->buffer);
    if (l->lengths != l->few_lengths)
        free(l->lengths);
    if (l->slices != l->few_slices)
        free(l->slices);
}

/* Reads the segments, each to memory that is aligned for a tensor. False if the connection has
 * ended. */
static bool read_segments(leat_conn *c, message *l)
{
    const leat_frame *f = &l->frame;
    uint64_t sum = 0, place = 0;
    for (uint32_t i = 0; i < f->segments; i++) {
        if (l->lengths[i] > f->size - sum) {
            leat_conn_finish(c, LEAT_CONN_GARBAGE);
            return false;
        }
        sum += l->lengths[i];
        place = ((place + LEAT_ALIGN - 1) & ~(uint64_t)(LEAT_ALIGN - 1)) + l->lengths[i];
    }
    if (sum != f->size) {
        leat_conn_finish(c, LEAT_CONN_GARBAGE);
        return false;
    }
    l->dropped = f->size > (uint64_t)c->max_message;
    if (!l->dropped && place > SMALL)
        l->dropped = !(l->buffer = leat_buffer_try(NULL, LEAT_UINT8, place));
    if (l->dropped)
        return read_bytes(c, NULL, f->size);
    uint8_t *to = l->buffer ? l->buffer->data : l->small;
    place = 0;
    for (uint32_t i = 0; i < f->segments; i++) {
        place = (place + LEAT_ALIGN - 1) & ~(uint64_t)(LEAT_ALIGN - 1);
        if (!read_bytes(c, to + place, l->lengths[i]))
            return false;
        l->slices[i] = (leat_slice){to + place, l->lengths[i]};
        place += l->lengths[i];
    }
    l->in = (leat_incoming){l->slices, (int)f->segments, f->size, l->buffer};
    return true;
}

static bool read_message(leat_conn *c, message *l)
{
    l->buffer = NULL;
    l->lengths = l->few_lengths;
    l->slices = l->few_slices;
    l->dropped = false;
    const leat_frame *f = &l->frame;
    if (!read_bytes(c, &l->frame, sizeof l->frame))
        return false;
    if (f->kind == LEAT_FRAME_SKIP && f->size <= SKIP_MAX &&
        !(read_bytes(c, NULL, f->size) && read_bytes(c, &l->frame, sizeof l->frame)))
        return false;
    if (f->kind < LEAT_FRAME_REQUEST || f->kind > LEAT_FRAME_PONG || f->method > METHOD_MAX ||
        f->segments > SEGMENTS_MAX) {
        leat_conn_finish(c, LEAT_CONN_GARBAGE);
        return false;
    }
    l->method[f->method] = 0;
    const size_t lengths_size = f->segments * sizeof(uint64_t);
    if (f->segments > 8) { /* The peer decides how many. */
        l->lengths = malloc(lengths_size);
        l->slices = calloc(f->segments, sizeof(leat_slice));
        l->dropped = !l->lengths || !l->slices;
    }
    bool ok = read_bytes(c, l->method, f->method);
    if (l->dropped)
        ok = ok && read_bytes(c, NULL, lengths_size) && read_bytes(c, NULL, f->size);
    else
        ok = ok && read_bytes(c, l->lengths, lengths_size) && read_segments(c, l);
    if (!ok)
        release(l);
    else if (c->stream->ops->frame_read)
        c->stream->ops->frame_read(c);
    return ok;
}

void leat_conn_heard(leat_conn *c)
{
    __atomic_store_n(&c->heard_ns, leat_now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&c->pinged_ns, 0, __ATOMIC_RELAXED);
}

/* Works on a frame. False if another thread has taken the reader role meanwhile. */
static bool work(leat_conn *c, message *l, uint64_t number)
{
    __atomic_fetch_add(&c->frames, 1, __ATOMIC_RELAXED);
    leat_conn_heard(c);
    if (l->frame.kind >= LEAT_FRAME_PING) {
        if (l->frame.kind == LEAT_FRAME_PING)
            leat_conn_send(c, &(leat_frame){.kind = LEAT_FRAME_PONG}, "", NULL);
        release(l);
        return true;
    }
    uint64_t works = role_of(number, LEAT_READER_WORKS);
    __atomic_store_n(&c->role, works, __ATOMIC_SEQ_CST);
    leat_watch_busy();
    c->ops->frame(c, &l->frame, l->method, l->dropped ? NULL : &l->in);
    release(l);
    return move_role(c, works, role_of(number, LEAT_READER_READS));
}

void leat_conn_free_reader(leat_conn *c, uint64_t number)
{
    move_role(c, role_of(number, LEAT_READER_READS), role_of(number, LEAT_READER_NONE));
    leat_watch_busy(); /* Only the watch notices bytes of a connection without a reader. */
}

/* Waits for some seconds after another thread has taken the reader role over: if the next frame
 * takes long, too, no new thread has to be started. True if the role was given to this thread. */
static bool stand_by(leat_conn *c)
{
    int64_t until = leat_now_ns() + INT64_C(1000000000) * SPARE_SECONDS;
    pthread_mutex_lock(&c->refs_lock);
    bool stays = c->spares < SPARES && !__atomic_load_n(&c->end, __ATOMIC_SEQ_CST);
    if (!stays) {
        pthread_mutex_unlock(&c->refs_lock);
        return false;
    }
    c->spares++;
    while (!c->summons && stays)
        stays = !__atomic_load_n(&c->end, __ATOMIC_SEQ_CST) &&
                leat_cond_wait_until(&c->summon, &c->refs_lock, until);
    bool summoned = c->summons > 0;
    c->summons -= summoned;
    c->spares--;
    pthread_mutex_unlock(&c->refs_lock);
    return summoned;
}

/* No more frames will be read. unattended: the caller does not wait for chores afterwards. */
static void end(leat_conn *c, bool unattended)
{
    c->ops->ended(c);
    pthread_mutex_lock(&c->refs_lock);
    c->over = true;
    pthread_mutex_unlock(&c->refs_lock);
    if (unattended)
        __atomic_store_n(&c->unattended, 1, __ATOMIC_SEQ_CST);
}

static void *read_on(void *arg)
{
    leat_conn *c = arg;
    message l;
    pthread_setname_np(pthread_self(), "leat-read");
    leat_later_begin(); /* The stream calls leat_later_now when there is nothing to read. */
    bool mine;
    do {
        uint64_t number = __atomic_load_n(&c->role, __ATOMIC_SEQ_CST) / LEAT_READER_STATES;
        do
            mine = !c->stream->ops->await || c->stream->ops->await(c, number);
        while (mine && read_message(c, &l) && (mine = work(c, &l, number)));
        leat_later_now();
    } while (!mine && stand_by(c));
    leat_later_end();
    if (mine) {
        leat_conn_finish(c, LEAT_CONN_CLOSED);
        end(c, false);
        for (leat_conn_look_up(c); !__atomic_load_n(&c->closing, __ATOMIC_SEQ_CST);
             leat_conn_look_up(c))
            leat_futex_wait(&c->alarm, 0, 0);
    }
    leat_conn_thread_ends(c);
    return NULL;
}

/* Starts a thread for the reader role of this number, which the caller has taken. If none can be
 * started, no thread has the role, and the watch tries again. */
static void start_reader(leat_conn *c, uint64_t number)
{
    pthread_mutex_lock(&c->refs_lock);
    bool ok = c->spares > c->summons;
    c->summons += ok;
    if (ok)
        pthread_cond_signal(&c->summon);
    pthread_mutex_unlock(&c->refs_lock);
    if (ok || leat_conn_thread(c, read_on)) {
        __atomic_store_n(&c->starved_ns, 0, __ATOMIC_RELAXED);
        return;
    }
    int64_t fed = 0;
    __atomic_compare_exchange_n(&c->starved_ns, &fed, leat_now_ns(), false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    leat_conn_free_reader(c, number);
}

void leat_conn_hand_over(leat_conn *c)
{
    uint64_t number;
    if (take_role(c, LEAT_READER_WORKS, &number))
        start_reader(c, number);
}

void leat_conn_start_reader(leat_conn *c)
{
    uint64_t number;
    if (take_role(c, LEAT_READER_NONE, &number))
        start_reader(c, number);
}

/* ---- For threads that read while they wait for an event ---- */
void leat_conn_hold(leat_conn *c)
{
    pthread_mutex_lock(&c->refs_lock);
    c->threads++;
    c->refs++;
    pthread_mutex_unlock(&c->refs_lock);
}

void leat_conn_let_go(leat_conn *c)
{
    leat_conn_thread_ends(c);
}

bool leat_conn_take_reader(leat_conn *c, uint64_t *number_out)
{
    bool taken = take_role(c, LEAT_READER_NONE, number_out);
    if (taken && __atomic_load_n(&c->starved_ns, __ATOMIC_RELAXED))
        __atomic_store_n(&c->starved_ns, 0, __ATOMIC_RELAXED);
    return taken;
}

static __thread bool thread_waits;

bool leat_conn_thread_waits(void)
{
    return thread_waits;
}

bool leat_conn_read_one(leat_conn *c, uint64_t number)
{
    message l;
    if (read_message(c, &l)) {
        thread_waits = true;
        bool mine = work(c, &l, number);
        thread_waits = false;
        return mine;
    }
    leat_conn_free_reader(c, number);
    leat_conn_start_reader(c); /* The connection has ended: that thread calls ops->ended. */
    return false;
}

/* ---- Beginning and end ---- */
leat_status leat_conn_start(leat_conn *c, const leat_conn_ops *ops, leat_stream *stream,
                            int64_t max_message)
{
    c->ops = ops;
    c->stream = stream;
    c->max_message = max_message;
    c->refs = 1;
    c->heard_ns = leat_now_ns();
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->refs_lock, NULL);
    pthread_mutex_init(&c->send_lock, NULL);
    leat_cond_init(&c->summon);
    pthread_cond_init(&c->no_threads, NULL);
    pthread_cond_init(&c->more, NULL);
    leat_status s = leat_watch_add(c);
    if (!s && !leat_conn_thread(c, read_on)) { /* The watch sees a role that is taken. */
        leat_watch_remove(c);
        s = leat_error(RESOURCE_EXHAUSTED, "No thread can be started to read a connection. %s",
                       LEAT_NO_THREAD_HINT);
    }
    if (s)
        destroy(c);
    return s;
}

/* The thread that does chores where a thread in read cannot be woken (read_blocks). */
static void *do_chores(void *conn)
{
    leat_conn *c = conn;
    pthread_setname_np(pthread_self(), "leat-chores");
    leat_conn_look_up(c);
    leat_conn_thread_ends(c);
    return NULL;
}

void leat_conn_call_reader(leat_conn *c)
{
    bool first = !__atomic_exchange_n(&c->chores, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&c->alarm, 1, __ATOMIC_SEQ_CST);
    if (leat_conn_ended(c))
        leat_futex_wake(&c->alarm, 1);
    if (!c->stream->ops->read_blocks)
        c->stream->ops->wake(c);
    else if (first && !leat_conn_thread(c, do_chores))
        __atomic_store_n(&c->unattended, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&c->unattended, __ATOMIC_SEQ_CST))
        leat_watch_busy(); /* The watch does the chores. */
}

bool leat_conn_lacks_thread(leat_conn *c, int64_t now)
{
    int64_t starved = __atomic_load_n(&c->starved_ns, __ATOMIC_RELAXED);
    return (starved && (leat_conn_ended(c) || now > starved + leat_conn_starved_ns)) ||
           (__atomic_load_n(&c->chores, __ATOMIC_SEQ_CST) &&
            (starved || __atomic_load_n(&c->unattended, __ATOMIC_SEQ_CST)));
}

void leat_conn_replace_thread(leat_conn *c, int64_t now)
{
    uint64_t number;
    int64_t starved = __atomic_load_n(&c->starved_ns, __ATOMIC_RELAXED);
    if (starved && (leat_conn_ended(c) || now > starved + leat_conn_starved_ns) &&
        take_role(c, LEAT_READER_NONE, &number)) {
        __atomic_store_n(&c->starved_ns, 0, __ATOMIC_RELAXED);
        leat_conn_finish(c, LEAT_CONN_STARVED);
        end(c, true);
    }
    leat_conn_look_up(c);
}

void leat_conn_finish(leat_conn *c, leat_conn_end why)
{
    uint32_t lives = LEAT_CONN_LIVES;
    if (!__atomic_compare_exchange_n(&c->end, &lives, why, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return;
    __atomic_store_n(&c->alarm, 1, __ATOMIC_SEQ_CST);
    c->stream->ops->wake(c);
    pthread_mutex_lock(&c->refs_lock);
    pthread_cond_broadcast(&c->summon);
    pthread_mutex_unlock(&c->refs_lock);
    pthread_mutex_lock(&c->send_lock);
    pthread_cond_broadcast(&c->more);
    pthread_mutex_unlock(&c->send_lock);
}

void leat_conn_close(leat_conn *c)
{
    uint64_t number;
    leat_watch_remove(c);
    leat_conn_finish(c, LEAT_CONN_LEFT);
    __atomic_store_n(&c->closing, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&c->alarm, 1, __ATOMIC_SEQ_CST);
    c->stream->ops->wake(c);
    leat_futex_wake(&c->alarm, 1);
    for (bool over = false; !over;) {
        if (take_role(c, LEAT_READER_NONE, &number)) /* No thread reads. */
            end(c, true);
        pthread_mutex_lock(&c->refs_lock);
        while (c->threads)
            pthread_cond_wait(&c->no_threads, &c->refs_lock);
        over = c->over;
        pthread_mutex_unlock(&c->refs_lock);
    }
    leat_conn_look_up(c); /* Chores that no thread has done. */
}
