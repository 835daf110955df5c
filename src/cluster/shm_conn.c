/* shm_conn.c -- a connection's life, and the thread that reads it. */
#define _GNU_SOURCE
#include "cluster/shm_conn.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster/shm_send.h"
#include "core/alloc.h"
#include "core/bind.h"
#include "core/buffer.h"
#include "core/later.h"
#include "core/spin.h"
#include "core/threadpool.h"

enum {
    METHOD_MAX = 256,
    SEGMENTS_MAX = 1 << 20,
    STRIDE = 256 << 10, /* the writer is told of what was read at least so often */
    SMALL = 4096,       /* messages up to here are copied to the stack */
    SPARES = 2,
    SPARE_SECONDS = 5,
};

/* ---- The seat ---- */
static uint64_t seat_of(uint64_t number, leat_seat state)
{
    return number * LEAT_SEAT_STATES + state;
}

static bool move_seat(leat_conn *c, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(&c->seat, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* True if it was in this state and is the caller's now. */
static bool take_seat(leat_conn *c, leat_seat state, uint64_t *number_out)
{
    uint64_t seat = __atomic_load_n(&c->seat, __ATOMIC_SEQ_CST);
    *number_out = seat / LEAT_SEAT_STATES + 1;
    return seat % LEAT_SEAT_STATES == state &&
           move_seat(c, seat, seat_of(*number_out, LEAT_SEAT_READS));
}

/* ---- Threads and references ---- */
bool leat_conn_thread(leat_conn *c, void *(*fn)(void *conn))
{
    pthread_t t;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    leat_unbind();
    pthread_mutex_lock(&c->refs_lock);
    bool ok = pthread_create(&t, &attr, fn, c) == 0;
    c->threads += ok;
    c->refs += ok;
    pthread_mutex_unlock(&c->refs_lock);
    pthread_attr_destroy(&attr);
    return ok;
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

void leat_conn_unref(leat_conn *c)
{
    pthread_mutex_lock(&c->refs_lock);
    int left = --c->refs;
    pthread_mutex_unlock(&c->refs_lock);
    if (left)
        return;
    leat_conn_drop_unsent(c);
    leat_rings_release(&c->rings);
    close(c->socket);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->refs_lock);
    pthread_mutex_destroy(&c->send_lock);
    pthread_cond_destroy(&c->no_threads);
    pthread_cond_destroy(&c->summon);
    pthread_cond_destroy(&c->more);
    c->ops->released(c);
}

/* ---- Reading ---- */
static void look_up(leat_conn *c)
{
    __atomic_store_n(&c->alarm, 0, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&c->chores, 0, __ATOMIC_SEQ_CST))
        c->ops->chores(c);
}

/* False if the connection has ended. What the other one sent before he went is read, still. */
static bool read_bytes(leat_conn *c, void *to, uint64_t n)
{
    leat_ring *r = &c->rings.in;
    for (uint64_t told = r->at; n;) {
        int64_t ready = leat_ring_ready(r);
        uint32_t end = __atomic_load_n(&c->end, __ATOMIC_SEQ_CST);
        if (ready < 0)
            leat_conn_finish(c, LEAT_CONN_GARBAGE);
        if (ready < 0 || end > LEAT_CONN_CLOSED || (end && !ready))
            return false;
        if (!ready) {
            leat_ring_tell_read(r);
            leat_later_now();
            leat_ring_await_bytes(r, &c->alarm);
            if (__atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST))
                look_up(c);
            continue;
        }
        uint64_t here = n < STRIDE ? n : STRIDE;
        here = here < (uint64_t)ready ? here : (uint64_t)ready;
        if (to) {
            leat_ring_get(r, to, here);
            to = (char *)to + here;
        } else {
            r->at += here;
        }
        n -= here;
        if (r->at - told >= STRIDE) {
            leat_ring_tell_read(r);
            told = r->at;
        }
    }
    return true;
}

/* A frame that was read. */
typedef struct letter {
    leat_frame frame;
    char method[METHOD_MAX + 1];
    uint64_t few_lengths[8], *lengths;
    leat_slice few_slices[8], *slices;
    leat_buffer *buffer; /* of large ones */
    leat_incoming in;
    bool too_large; /* its bytes were passed over */
    _Alignas(64) uint8_t small[SMALL];
} letter;

static void release(letter *l)
{
    leat_buffer_unref(l->buffer);
    if (l->lengths != l->few_lengths)
        free(l->lengths);
    if (l->slices != l->few_slices)
        free(l->slices);
}

/* The bytes, each segment at a place of its own that suits a tensor. */
static bool read_segments(leat_conn *c, letter *l)
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
    l->too_large = f->size > (uint64_t)c->max_message;
    if (!l->too_large && place > SMALL)
        l->too_large = !(l->buffer = leat_buffer_try(NULL, LEAT_UINT8, place));
    if (l->too_large)
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

static bool read_letter(leat_conn *c, letter *l)
{
    l->buffer = NULL;
    l->lengths = l->few_lengths;
    l->slices = l->few_slices;
    l->too_large = false;
    const leat_frame *f = &l->frame;
    if (!read_bytes(c, &l->frame, sizeof l->frame))
        return false;
    if (f->kind == LEAT_FRAME_SKIP && f->size < LEAT_RING_BYTES &&
        !(read_bytes(c, NULL, f->size) && read_bytes(c, &l->frame, sizeof l->frame)))
        return false;
    if (f->kind < LEAT_FRAME_REQUEST || f->kind > LEAT_FRAME_PONG || f->method > METHOD_MAX ||
        f->segments > SEGMENTS_MAX) {
        leat_conn_finish(c, LEAT_CONN_GARBAGE);
        return false;
    }
    l->method[f->method] = 0;
    if (f->segments > 8) {
        l->lengths = leat_new_array(uint64_t, f->segments);
        l->slices = leat_new_array(leat_slice, f->segments);
    }
    bool ok = read_bytes(c, l->method, f->method) &&
              read_bytes(c, l->lengths, f->segments * sizeof(uint64_t)) && read_segments(c, l);
    if (ok)
        leat_ring_tell_read(&c->rings.in);
    else
        release(l);
    return ok;
}

/* False if another thread reads now. */
static bool work(leat_conn *c, letter *l, uint64_t number)
{
    __atomic_fetch_add(&c->frames, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&c->heard_ns, leat_now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&c->pinged_ns, 0, __ATOMIC_RELAXED);
    if (l->frame.kind >= LEAT_FRAME_PING) {
        if (l->frame.kind == LEAT_FRAME_PING)
            leat_conn_send(c, &(leat_frame){.kind = LEAT_FRAME_PONG}, "", NULL);
        release(l);
        return true;
    }
    uint64_t works = seat_of(number, LEAT_SEAT_WORKS);
    __atomic_store_n(&c->seat, works, __ATOMIC_SEQ_CST);
    leat_watch_busy();
    c->ops->frame(c, &l->frame, l->method, l->too_large ? NULL : &l->in);
    release(l);
    return move_seat(c, works, seat_of(number, LEAT_SEAT_READS));
}

void leat_conn_free_seat(leat_conn *c, uint64_t number)
{
    move_seat(c, seat_of(number, LEAT_SEAT_READS), seat_of(number, LEAT_SEAT_FREE));
    leat_watch_busy(); /* from now on nobody else would see what comes */
}

/* On a crowded machine a connection's own thread stays on the CPU of the one it reads from. Where
 * the kernel would put it, it waits behind the work of somebody else, while that CPU has nothing to
 * do but wait for it. */
static void await_bytes(leat_conn *c)
{
    leat_ring *r = &c->rings.in;
    leat_later_now();
    if (leat_ring_crowded(r))
        leat_bind(leat_ring_cpu(r));
    else
        leat_unbind();
    leat_ring_await_bytes(r, &c->alarm);
}

/* Waits until a frame begins, or the connection ends. False if the seat was left to a stand-in. */
static bool await_frame(leat_conn *c, uint64_t number)
{
    leat_ring *r = &c->rings.in;
    while (!leat_ring_ready(r) && !__atomic_load_n(&c->end, __ATOMIC_SEQ_CST)) {
        if (__atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST)) {
            look_up(c);
        } else if (leat_standin_wants()) {
            leat_conn_free_seat(c, number);
            return false;
        } else {
            await_bytes(c);
        }
    }
    return true;
}

/* A thread that came back from a long work waits for a while: the next one may be long, too. True
 * if it is to read. */
static bool stand_by(leat_conn *c)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += SPARE_SECONDS;
    pthread_mutex_lock(&c->refs_lock);
    bool stays = c->spares < SPARES && !__atomic_load_n(&c->end, __ATOMIC_SEQ_CST);
    if (!stays) {
        pthread_mutex_unlock(&c->refs_lock);
        return false;
    }
    c->spares++;
    while (!c->summons && stays)
        stays = !__atomic_load_n(&c->end, __ATOMIC_SEQ_CST) &&
                pthread_cond_timedwait(&c->summon, &c->refs_lock, &until) == 0;
    bool summoned = c->summons > 0;
    c->summons -= summoned;
    c->spares--;
    pthread_mutex_unlock(&c->refs_lock);
    return summoned;
}

static void *read_on(void *arg)
{
    leat_conn *c = arg;
    letter l;
    pthread_setname_np(pthread_self(), "leat-shm-read");
    leat_later_begin(); /* until there is nothing to be read */
    bool mine;
    do {
        uint64_t number = __atomic_load_n(&c->seat, __ATOMIC_SEQ_CST) / LEAT_SEAT_STATES;
        do
            mine = await_frame(c, number);
        while (mine && read_letter(c, &l) && (mine = work(c, &l, number)));
        leat_later_now();
    } while (!mine && stand_by(c));
    leat_later_end();
    if (mine) {
        leat_conn_finish(c, LEAT_CONN_CLOSED);
        c->ops->ended(c);
        pthread_mutex_lock(&c->refs_lock);
        c->over = true;
        pthread_mutex_unlock(&c->refs_lock);
        for (look_up(c); !__atomic_load_n(&c->closing, __ATOMIC_SEQ_CST); look_up(c))
            leat_futex_wait(&c->alarm, 0, 0);
    }
    leat_conn_thread_ends(c);
    return NULL;
}

static void start_reader(leat_conn *c)
{
    pthread_mutex_lock(&c->refs_lock);
    bool spare = c->spares > c->summons;
    c->summons += spare;
    if (spare)
        pthread_cond_signal(&c->summon);
    pthread_mutex_unlock(&c->refs_lock);
    while (!spare && !leat_conn_thread(c, read_on))
        usleep(10000); /* no thread is to be had: without one nothing would ever be read */
}

void leat_conn_leave(leat_conn *c)
{
    uint64_t number;
    if (take_seat(c, LEAT_SEAT_WORKS, &number))
        start_reader(c);
}

void leat_conn_seat_reader(leat_conn *c)
{
    uint64_t number;
    if (take_seat(c, LEAT_SEAT_FREE, &number))
        start_reader(c);
}

/* ---- For stand-ins ---- */
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

bool leat_conn_take_seat(leat_conn *c, uint64_t *number_out)
{
    return take_seat(c, LEAT_SEAT_FREE, number_out);
}

static bool is_called(leat_conn *c)
{
    return __atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&c->end, __ATOMIC_SEQ_CST);
}

bool leat_conn_has_news(leat_conn *c)
{
    return leat_ring_ready(&c->rings.in) || is_called(c);
}

bool leat_conn_wants_reader(leat_conn *c)
{
    return leat_ring_unread(&c->rings.in) || is_called(c);
}

bool leat_conn_read_one(leat_conn *c, uint64_t number)
{
    letter l;
    if (__atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST))
        look_up(c);
    if (!leat_ring_ready(&c->rings.in) && !__atomic_load_n(&c->end, __ATOMIC_SEQ_CST))
        return true;
    if (read_letter(c, &l))
        return work(c, &l, number);
    leat_conn_free_seat(c, number);
    leat_conn_seat_reader(c); /* who brings it to its end */
    return false;
}

/* ---- Beginning and end ---- */
void leat_conn_start(leat_conn *c, const leat_conn_ops *ops, int socket, leat_ring_pair rings,
                     int64_t max_message)
{
    c->ops = ops;
    c->socket = socket;
    c->rings = rings;
    c->max_message = max_message;
    c->refs = 1;
    c->heard_ns = leat_now_ns();
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->refs_lock, NULL);
    pthread_mutex_init(&c->send_lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->summon, &attr);
    pthread_condattr_destroy(&attr);
    pthread_cond_init(&c->no_threads, NULL);
    pthread_cond_init(&c->more, NULL);
    leat_watch_add(c);
    start_reader(c);
}

void leat_conn_call_reader(leat_conn *c)
{
    __atomic_store_n(&c->chores, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&c->alarm, 1, __ATOMIC_SEQ_CST);
    leat_ring_wake_reader(&c->rings.in);
    if (__atomic_load_n(&c->end, __ATOMIC_SEQ_CST))
        leat_futex_wake(&c->alarm, 1);
}

void leat_conn_finish(leat_conn *c, leat_conn_end why)
{
    uint32_t lives = LEAT_CONN_LIVES;
    if (!__atomic_compare_exchange_n(&c->end, &lives, why, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return;
    shutdown(c->socket, SHUT_RDWR);
    __atomic_store_n(&c->alarm, 1, __ATOMIC_SEQ_CST);
    leat_ring_wake_reader(&c->rings.in);
    leat_ring_wake_writer(&c->rings.out);
    pthread_mutex_lock(&c->refs_lock);
    pthread_cond_broadcast(&c->summon);
    pthread_mutex_unlock(&c->refs_lock);
    pthread_mutex_lock(&c->send_lock);
    pthread_cond_broadcast(&c->more);
    pthread_mutex_unlock(&c->send_lock);
}

void leat_conn_close(leat_conn *c)
{
    leat_watch_remove(c);
    leat_conn_finish(c, LEAT_CONN_LEFT);
    __atomic_store_n(&c->closing, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&c->alarm, 1, __ATOMIC_SEQ_CST);
    leat_ring_wake_reader(&c->rings.in);
    leat_futex_wake(&c->alarm, 1);
    for (bool over = false; !over;) {
        leat_conn_seat_reader(c); /* who brings it to its end, if there is nobody */
        pthread_mutex_lock(&c->refs_lock);
        while (c->threads)
            pthread_cond_wait(&c->no_threads, &c->refs_lock);
        over = c->over;
        pthread_mutex_unlock(&c->refs_lock);
    }
}
