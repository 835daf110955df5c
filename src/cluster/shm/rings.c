/* rings.c -- see rings.h. */
#define _GNU_SOURCE
#include "cluster/shm/rings.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bind.h"
#include "core/later.h"

/* A frame of more than LARGE bytes is published every STRIDE bytes, so that the reader copies while
 * the rest is written. A smaller frame is published once: a reader that is woken on the writer's
 * CPU before the frame is complete would only delay the writer. */
enum { STRIDE = 256 << 10, LARGE = 1 << 20, REWIND_AT = 256 << 10 };

static atomic_int streams; /* The number of ring streams of the process. */

bool leat_rings_any(void)
{
    return atomic_load_explicit(&streams, memory_order_relaxed) > 0;
}

static leat_rings_stream *of(leat_conn *c)
{
    return (leat_rings_stream *)c->stream;
}

/* ---- Reading ---- */
/* On a crowded machine the reader moves to the CPU on which the peer last wrote. On a CPU that the
 * operating system chose, the reader would wait until another thread's work is done, while the
 * peer's CPU is idle because the peer waits for the reader. */
static void await_bytes(leat_conn *c)
{
    leat_ring *r = &of(c)->rings.in;
    leat_later_now();
    if (leat_spin_crowded(&r->spinner))
        leat_bind(leat_ring_cpu(r));
    else
        leat_unbind();
    leat_ring_await(r, true, &c->alarm);
}

static bool read_bytes(leat_conn *c, void *to, uint64_t n)
{
    leat_ring *r = &of(c)->rings.in;
    for (uint64_t told = r->at; n;) {
        int64_t ready = leat_ring_ready(r);
        uint32_t end = __atomic_load_n(&c->end, __ATOMIC_SEQ_CST);
        if (ready < 0)
            leat_conn_finish(c, LEAT_CONN_GARBAGE);
        if (ready < 0 || end > LEAT_CONN_CLOSED || (end && !ready))
            return false;
        if (!ready) {
            leat_ring_tell_read(r);
            await_bytes(c);
            if (__atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST))
                leat_conn_look_up(c);
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

static void frame_read(leat_conn *c)
{
    leat_ring_tell_read(&of(c)->rings.in);
}

/* Waits until a frame begins, or the connection ends. False if the reader role was given up for a
 * thread that reads while it waits for an event (waiter.c). */
static bool await_frame(leat_conn *c, uint64_t number)
{
    leat_ring *r = &of(c)->rings.in;
    while (!leat_ring_ready(r) && !leat_conn_ended(c)) {
        if (__atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST)) {
            leat_conn_look_up(c);
        } else if (leat_waiter_reads()) {
            leat_conn_free_reader(c, number);
            return false;
        } else {
            await_bytes(c);
        }
    }
    return true;
}

static bool unread(leat_conn *c)
{
    return leat_ring_unread(&of(c)->rings.in);
}

bool leat_rings_has_news(leat_conn *c)
{
    return leat_ring_ready(&of(c)->rings.in) || __atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST) ||
           leat_conn_ended(c);
}

/* ---- Writing ---- */
/* Called before a frame is written. If the ring is empty, and the frame fits between the start of
 * the ring's memory and the present position, skips to that start, by a SKIP frame: the first part
 * of the memory is still in the CPU's caches. */
static void rewind_ring(leat_ring *r, const leat_unsent *u)
{
    uint64_t at = r->at % LEAT_RING_BYTES, skip = LEAT_RING_BYTES - at;
    uint64_t size = u->part_list[0].n + ((const leat_frame *)u->head)->size;
    leat_frame f = {.kind = LEAT_FRAME_SKIP, .size = skip - sizeof f};
    if (at < REWIND_AT || at < size || skip < sizeof f || leat_ring_room(r) != LEAT_RING_BYTES)
        return;
    leat_ring_put(r, &f, sizeof f);
    r->at += f.size;
}

/* Writes as much of a frame as fits. True if the frame was written as a whole: it is published, and
 * the caller still has to wake the reader. */
static bool push_frame(leat_ring *r, leat_unsent *u)
{
    if (u->part == 0 && u->at == 0)
        rewind_ring(r, u);
    uint64_t told = r->at;
    uint64_t stride = ((const leat_frame *)u->head)->size > LARGE ? STRIDE : LEAT_RING_BYTES;
    while (u->part < u->parts) {
        const leat_slice *p = &u->part_list[u->part];
        int64_t room = leat_ring_room(r);
        if (room <= 0)
            break;
        uint64_t n = p->n - u->at < STRIDE ? p->n - u->at : STRIDE;
        n = n < (uint64_t)room ? n : (uint64_t)room;
        leat_ring_put(r, p->data + u->at, n);
        u->at += n;
        if (u->at == p->n) {
            u->part++;
            u->at = 0;
        }
        if (r->at - told >= stride) {
            leat_ring_show_written(r);
            leat_ring_wake_reader(r);
            told = r->at;
        }
    }
    bool all = u->part == u->parts;
    leat_ring_show_written(r);
    if (!all && r->at != told)
        leat_ring_wake_reader(r);
    return all;
}

static leat_conn_end push(leat_conn *c)
{
    leat_ring *r = &of(c)->rings.out;
    leat_unsent *u = c->unsent;
    while (u && push_frame(r, u))
        u = u->next;
    return u && leat_ring_room(r) < 0 ? LEAT_CONN_GARBAGE : LEAT_CONN_LIVES;
}

static void wake_now(void *conn)
{
    leat_conn *c = conn;
    leat_ring_wake_reader(&of(c)->rings.out);
    leat_conn_unref(c);
}

static void pushed(leat_conn *c)
{
    bool again;
    if (!leat_later_put(wake_now, c, &again))
        leat_ring_wake_reader(&of(c)->rings.out);
    else if (!again)
        leat_conn_ref(c);
}

static void await_room(leat_conn *c)
{
    leat_ring_await(&of(c)->rings.out, false, &c->end);
}

/* ---- Beginning and end ---- */
static void wake(leat_conn *c)
{
    leat_rings_stream *s = of(c);
    if (leat_conn_ended(c))
        shutdown(s->base.end_fd, SHUT_RDWR);
    leat_ring_wake_reader(&s->rings.in);
    leat_ring_wake_writer(&s->rings.out);
}

static void free_stream(leat_stream *base)
{
    leat_rings_stream *s = (leat_rings_stream *)base;
    atomic_fetch_sub(&streams, 1);
    leat_rings_release(&s->rings);
    close(s->base.end_fd);
    free(s);
}

static const leat_stream_ops ops = {
    .read = read_bytes,
    .await = await_frame,
    .frame_read = frame_read,
    .unread = unread,
    .push = push,
    .pushed = pushed,
    .await_room = await_room,
    .wake = wake,
    .free = free_stream,
};

leat_stream *leat_rings_stream_new(leat_ring_pair rings, int socket)
{
    leat_rings_stream *s = leat_new(leat_rings_stream);
    atomic_fetch_add(&streams, 1);
    *s = (leat_rings_stream){.base = {&ops, socket}, .rings = rings};
    return &s->base;
}

leat_rings_stream *leat_rings_of(leat_conn *c)
{
    return c->stream->ops == &ops ? of(c) : NULL;
}
