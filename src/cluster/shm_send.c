/* shm_send.c -- frames into the ring, by whoever sends if they fit, else by the writing thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/shm_send.h"
#include "core/alloc.h"
#include "core/later.h"

/* Large messages are told in pieces, so that the reader copies while the rest is written. Others
 * are told once: a reader that is woken on the writer's CPU would only keep it from going on. */
enum { STRIDE = 256 << 10, LARGE = 1 << 20, REWIND_AT = 256 << 10 };

struct leat_unsent {
    struct leat_unsent *next;
    leat_outgoing message; /* what parts point into */
    int part, parts;
    size_t at;               /* in that part */
    leat_slice *part_list;   /* header with method and lengths first; then one a segment */
    _Alignas(8) char head[]; /* memory of the first part, and of the list */
};

static leat_unsent *make(const leat_frame *f, const char *method, leat_outgoing *o)
{
    size_t most = o ? 2 * (size_t)o->n_pieces + 1 : 0, n_method = strlen(method);
    size_t head = sizeof *f + n_method + most * sizeof(uint64_t);
    size_t list = (head + 7) & ~(size_t)7;
    leat_unsent *u = leat_xmalloc(sizeof *u + list + (most + 1) * sizeof(leat_slice));
    *u = (leat_unsent){.part_list = (leat_slice *)(u->head + list), .parts = 1};
    leat_frame *to = (leat_frame *)u->head;
    *to = *f;
    to->method = (uint32_t)n_method;
    memcpy(to + 1, method, n_method);
    if (o) {
        u->message = *o;
        *o = (leat_outgoing){0};
    }
    const leat_outgoing *m = &u->message;
    size_t text = 0;
    for (int i = 0; i <= m->n_pieces; i++) {
        size_t end = i < m->n_pieces ? m->pieces[i].end : m->text.n;
        if (end > text)
            u->part_list[u->parts++] = (leat_slice){(const uint8_t *)m->text.s + text, end - text};
        text = end;
        if (i < m->n_pieces && leat_tensor_bytes(m->pieces[i].tensor))
            u->part_list[u->parts++] = (leat_slice){leat_tensor_data(m->pieces[i].tensor),
                                                    leat_tensor_bytes(m->pieces[i].tensor)};
    }
    to->segments = (uint32_t)u->parts - 1;
    to->size = 0;
    char *lengths = (char *)(to + 1) + n_method;
    for (int i = 1; i < u->parts; i++) {
        uint64_t n = u->part_list[i].n;
        memcpy(lengths + (i - 1) * sizeof n, &n, sizeof n);
        to->size += n;
    }
    u->part_list[0] =
        (leat_slice){(uint8_t *)u->head, sizeof *f + n_method + to->segments * sizeof(uint64_t)};
    return u;
}

static void drop(leat_unsent *u)
{
    leat_outgoing_release(&u->message);
    free(u);
}

/* Before a message: an empty ring begins anew if the message fits into what is free then. */
static void rewind_ring(leat_ring *r, const leat_unsent *u)
{
    uint64_t skip = leat_ring_to_end(r);
    uint64_t free_then = LEAT_RING_BYTES - skip;
    uint64_t size = u->part_list[0].n + ((const leat_frame *)u->head)->size;
    leat_frame f = {.kind = LEAT_FRAME_SKIP, .size = skip - sizeof f};
    if (skip < sizeof f || free_then < REWIND_AT || free_then < size)
        return;
    leat_ring_put(r, &f, sizeof f);
    r->at += f.size;
}

/* As much as fits now: true if that was all; then the reader is still to be woken. send_lock is
 * held. */
static bool push(leat_conn *c, leat_unsent *u)
{
    leat_ring *r = &c->rings.out;
    if (u->part == 0 && u->at == 0)
        rewind_ring(r, u);
    uint64_t told = r->at;
    uint64_t stride = ((const leat_frame *)u->head)->size > LARGE ? STRIDE : LEAT_RING_BYTES;
    while (u->part < u->parts) {
        const leat_slice *p = &u->part_list[u->part];
        int64_t room = leat_ring_room(r);
        if (room < 0)
            __atomic_store_n(&c->garbled, true, __ATOMIC_RELAXED);
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
            leat_ring_tell_written(r);
            told = r->at;
        }
    }
    bool all = u->part == u->parts;
    if (all)
        leat_ring_show_written(r);
    else if (r->at != told)
        leat_ring_tell_written(r);
    return all;
}

static bool lives(const leat_conn *c)
{
    return __atomic_load_n(&c->end, __ATOMIC_SEQ_CST) == LEAT_CONN_LIVES;
}

/* send_lock is not held. */
static void finish_garbled(leat_conn *c)
{
    if (__atomic_load_n(&c->garbled, __ATOMIC_RELAXED))
        leat_conn_finish(c, LEAT_CONN_GARBAGE);
}

static void *write_on(void *arg)
{
    leat_conn *c = arg;
    pthread_setname_np(pthread_self(), "leat-shm-write");
    pthread_mutex_lock(&c->send_lock);
    while (lives(c)) {
        leat_unsent *u = c->unsent;
        if (!u) {
            pthread_cond_wait(&c->more, &c->send_lock);
        } else if (push(c, u)) {
            leat_ring_wake_reader(&c->rings.out);
            c->unsent = u->next;
            drop(u);
        } else {
            pthread_mutex_unlock(&c->send_lock);
            finish_garbled(c);
            leat_ring_await_room(&c->rings.out, &c->end);
            pthread_mutex_lock(&c->send_lock);
        }
    }
    pthread_mutex_unlock(&c->send_lock);
    leat_conn_thread_ends(c);
    return NULL;
}

static void wake_now(void *conn)
{
    leat_conn *c = conn;
    leat_ring_wake_reader(&c->rings.out);
    leat_conn_unref(c);
}

static void wake_reader(leat_conn *c)
{
    bool again;
    if (!leat_later_put(wake_now, c, &again))
        leat_ring_wake_reader(&c->rings.out);
    else if (!again)
        leat_conn_ref(c);
}

void leat_conn_send(leat_conn *c, const leat_frame *f, const char *method, leat_outgoing *o)
{
    leat_unsent *u = make(f, method, o);
    pthread_mutex_lock(&c->send_lock);
    if (!lives(c) || (!c->unsent && push(c, u))) {
        pthread_mutex_unlock(&c->send_lock);
        wake_reader(c);
        drop(u);
        return;
    }
    u->next = NULL;
    if (c->unsent)
        c->unsent_last->next = u;
    else
        c->unsent = u;
    c->unsent_last = u;
    if (c->writer)
        pthread_cond_signal(&c->more);
    else
        c->writer = leat_conn_thread(c, write_on);
    pthread_mutex_unlock(&c->send_lock);
    finish_garbled(c);
}

void leat_conn_drop_unsent(leat_conn *c)
{
    while (c->unsent) {
        leat_unsent *u = c->unsent;
        c->unsent = u->next;
        drop(u);
    }
}
