/* send.c -- writes frames to the stream. The thread that sends a frame writes as much as fits; the
 * connection's writing thread writes the rest. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stream/conn.h"
#include "core/alloc.h"
#include "core/later.h"

static leat_unsent *new_unsent(const leat_frame *f, const char *method, leat_outgoing *o)
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

/* Writes as much of the unsent frames as fits, and frees the frames that were written as a whole.
 * True if none is left. send_lock is held. */
static bool push(leat_conn *c, leat_conn_end *why_out)
{
    *why_out = c->stream->ops->push(c);
    while (c->unsent && c->unsent->part == c->unsent->parts) {
        leat_unsent *u = c->unsent;
        c->unsent = u->next;
        drop(u);
    }
    return !c->unsent;
}

static void pushed(leat_conn *c, leat_conn_end why)
{
    if (why)
        leat_conn_finish(c, why);
    if (c->stream->ops->pushed)
        c->stream->ops->pushed(c);
}

static void *write_on(void *arg)
{
    leat_conn *c = arg;
    leat_conn_end why;
    pthread_setname_np(pthread_self(), "leat-write");
    pthread_mutex_lock(&c->send_lock);
    while (!leat_conn_ended(c)) {
        if (!c->writing) {
            pthread_cond_wait(&c->more, &c->send_lock);
            continue;
        }
        bool all = push(c, &why);
        c->writing = !all;
        pthread_mutex_unlock(&c->send_lock);
        pushed(c, why);
        if (!all)
            c->stream->ops->await_room(c);
        pthread_mutex_lock(&c->send_lock);
    }
    pthread_mutex_unlock(&c->send_lock);
    leat_conn_thread_ends(c);
    return NULL;
}

/* Writes as much of the unsent frames as fits, and leaves the rest to the writing thread. send_lock
 * is held, and released here. */
static void flush(leat_conn *c)
{
    leat_conn_end why = LEAT_CONN_LIVES;
    if (c->unsent && !c->writing && !leat_conn_ended(c) && !push(c, &why) && !why) {
        if (!c->writer)
            c->writer = leat_conn_thread(c, write_on);
        c->writing = c->writer;
        __atomic_store_n(&c->stuck, !c->writer, __ATOMIC_SEQ_CST);
        if (!c->writer)
            leat_watch_busy(); /* The watch writes the rest. */
        pthread_cond_signal(&c->more);
    }
    pthread_mutex_unlock(&c->send_lock);
    pushed(c, why);
}

bool leat_conn_push_again(leat_conn *c)
{
    if (!__atomic_load_n(&c->stuck, __ATOMIC_SEQ_CST))
        return false;
    pthread_mutex_lock(&c->send_lock);
    __atomic_store_n(&c->stuck, false, __ATOMIC_SEQ_CST);
    flush(c);
    return __atomic_load_n(&c->stuck, __ATOMIC_SEQ_CST);
}

static void flush_gathered(void *conn)
{
    leat_conn *c = conn;
    pthread_mutex_lock(&c->send_lock);
    flush(c);
    leat_conn_unref(c);
}

void leat_conn_send(leat_conn *c, const leat_frame *f, const char *method, leat_outgoing *o)
{
    leat_unsent *u = new_unsent(f, method, o);
    pthread_mutex_lock(&c->send_lock);
    if (leat_conn_ended(c)) {
        pthread_mutex_unlock(&c->send_lock);
        drop(u);
        return;
    }
    u->next = NULL;
    if (c->unsent)
        c->unsent_last->next = u;
    else
        c->unsent = u;
    c->unsent_last = u;
    bool again;
    if (!c->writing && c->stream->ops->gathers && leat_later_put(flush_gathered, c, &again)) {
        pthread_mutex_unlock(&c->send_lock);
        if (!again)
            leat_conn_ref(c);
    } else {
        flush(c);
    }
}

void leat_conn_drop_unsent(leat_conn *c)
{
    while (c->unsent) {
        leat_unsent *u = c->unsent;
        c->unsent = u->next;
        drop(u);
    }
}
