/* guarded_queue.h -- the queues, the memory and the events of guarded_device.h. */
#ifndef LEAT_TESTS_GUARDED_QUEUE_H
#define LEAT_TESTS_GUARDED_QUEUE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "runtime/device.h"

enum { GUARDED_ARENA = 1 << 28, GUARDED_CLASSES = 32, GUARDED_MOST = 4 };

/* ---- Queues ---- */

typedef struct guarded_job {
    void (*fn)(void *arg);
    void *arg;
    struct guarded_job *next;
} guarded_job;

typedef struct guarded_queue {
    struct guarded *of;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t more;
    guarded_job *first, **last;
    uint64_t enqueued, done; /* number of jobs */
    bool stop;
} guarded_queue;

typedef struct guarded_block {
    void *p;
    uint64_t freed_at; /* queue.enqueued when it was freed: these jobs may still use it */
} guarded_block;

typedef struct guarded {
    leat_allocator memory; /* first */
    leat_device *device;
    char *arena;
    size_t top; /* bytes of the arena that were ever allocated */
    struct {
        guarded_block *v;
        int n, cap;
    } idle[GUARDED_CLASSES];
    pthread_mutex_t lock; /* guards top, idle and open */
    int open;             /* number of jobs that run now, for which the pages are unprotected */
    guarded_queue queues[2];
} guarded;

/* How long the queues wait before each job. A test sets it before it opens a session, so that much
 * is enqueued behind a job that has not begun. */
static int guarded_pause_us;

static atomic_int guarded_copying; /* the number of copies between memories that run now */

/* The number of copies and marks after which all devices of the kind are lost, as if somebody had
 * pulled them out: these calls fail from then on, and so do events that have not come; copies that
 * have not begun do nothing. Below 0: never. */
static atomic_int guarded_until_lost = -1;

static leat_status guarded_check(void)
{
    int left = atomic_load(&guarded_until_lost);
    if (left > 0)
        atomic_fetch_sub(&guarded_until_lost, 1);
    return left ? NULL : leat_error(UNAVAILABLE, "the device does not reply");
}

static __thread guarded *guarded_at_work; /* whose compute queue this thread is, at work */

static void guarded_enter(guarded *g)
{
    pthread_mutex_lock(&g->lock);
    if (g->open++ == 0)
        mprotect(g->arena, GUARDED_ARENA, PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&g->lock);
}

static void guarded_leave(guarded *g)
{
    pthread_mutex_lock(&g->lock);
    if (--g->open == 0)
        mprotect(g->arena, GUARDED_ARENA, PROT_NONE);
    pthread_mutex_unlock(&g->lock);
}

static void *guarded_thread(void *arg)
{
    guarded_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->stop)
            pthread_cond_wait(&q->more, &q->lock);
        guarded_job *j = q->first;
        if (!j)
            break;
        q->first = j->next;
        if (!q->first)
            q->last = &q->first;
        pthread_mutex_unlock(&q->lock);
        if (guarded_pause_us)
            usleep((useconds_t)guarded_pause_us);
        j->fn(j->arg);
        free(j);
        pthread_mutex_lock(&q->lock);
        q->done++;
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void guarded_enqueue(guarded *g, int queue, void (*fn)(void *arg), void *arg)
{
    guarded_queue *q = &g->queues[queue];
    guarded_job *j = leat_new(guarded_job);
    *j = (guarded_job){fn, arg, NULL};
    pthread_mutex_lock(&q->lock);
    *q->last = j;
    q->last = &j->next;
    q->enqueued++;
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->lock);
}

/* ---- Memory ---- */

static int guarded_class(size_t size)
{
    int c = 6;
    while (((size_t)1 << c) < size)
        c++;
    return c;
}

static void *guarded_alloc(leat_allocator *a, size_t size)
{
    guarded *g = (guarded *)a;
    guarded_queue *q = &g->queues[LEAT_QUEUE_COMPUTE];
    int c = guarded_class(size);
    void *p = NULL;
    if (c >= GUARDED_CLASSES)
        return NULL;
    pthread_mutex_lock(&q->lock);
    uint64_t done = q->done;
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_lock(&g->lock);
    for (int i = g->idle[c].n - 1; i >= 0 && !p; i--)
        /* A kernel that allocates while it runs writes before the jobs behind it have run. */
        if (guarded_at_work != g || g->idle[c].v[i].freed_at <= done) {
            p = g->idle[c].v[i].p;
            g->idle[c].v[i] = g->idle[c].v[--g->idle[c].n];
        }
    if (!p && g->top + ((size_t)1 << c) <= GUARDED_ARENA) {
        p = g->arena + g->top;
        g->top += (size_t)1 << c;
    }
    pthread_mutex_unlock(&g->lock);
    return p;
}

static void guarded_free(leat_allocator *a, void *p, size_t size)
{
    guarded *g = (guarded *)a;
    guarded_queue *q = &g->queues[LEAT_QUEUE_COMPUTE];
    int c = guarded_class(size);
    pthread_mutex_lock(&q->lock);
    uint64_t now = q->enqueued;
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_lock(&g->lock);
    leat_grow(g->idle[c].v, g->idle[c].n, g->idle[c].cap);
    g->idle[c].v[g->idle[c].n++] = (guarded_block){p, now};
    pthread_mutex_unlock(&g->lock);
}

typedef struct guarded_bytes {
    guarded *g, *peer; /* peer: the device of `from` if it is another one; else NULL */
    void *to;
    const void *from;
    size_t n;
} guarded_bytes;

static void guarded_copy_run(void *arg)
{
    guarded_bytes *b = arg;
    atomic_fetch_add(&guarded_copying, 1);
    if (atomic_load(&guarded_until_lost)) {
        guarded_enter(b->g);
        if (b->peer)
            guarded_enter(b->peer);
        memcpy(b->to, b->from, b->n);
        if (b->peer)
            guarded_leave(b->peer);
        guarded_leave(b->g);
    }
    atomic_fetch_sub(&guarded_copying, 1);
    free(b);
}

static void guarded_copy_later(guarded *g, int queue, void *to, guarded *peer, const void *from,
                               size_t n)
{
    guarded_bytes *b = leat_new(guarded_bytes);
    *b = (guarded_bytes){g, peer, to, from, n};
    guarded_enqueue(g, queue, guarded_copy_run, b);
}

static leat_status guarded_copy_within(leat_allocator *a, void *to, const void *from, size_t n)
{
    if (guarded_at_work == (guarded *)a)
        memcpy(to, from, n);
    else
        guarded_copy_later((guarded *)a, LEAT_QUEUE_COMPUTE, to, NULL, from, n);
    return NULL;
}

static leat_status guarded_copy(leat_device *d, int queue, leat_copy_way way, void *to,
                                const void *from, size_t n)
{
    LEAT_TRY(guarded_check());
    guarded_copy_later(d->state, queue, to, NULL, from, n);
    return NULL;
}

static leat_status guarded_copy_peer(leat_device *d, int queue, void *to, leat_device *from_device,
                                     const void *from, size_t n)
{
    guarded_copy_later(d->state, queue, to, from_device->state, from, n);
    return NULL;
}

/* ---- Events ---- */

typedef struct guarded_event {
    int refs;
    bool came;
    leat_event_fn fn;
    void *arg;
    pthread_mutex_t lock; /* guards all above */
    pthread_cond_t changed;
} guarded_event;

static void guarded_event_unref(guarded_event *e)
{
    pthread_mutex_lock(&e->lock);
    bool last = --e->refs == 0;
    pthread_mutex_unlock(&e->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
    free(e);
}

static void guarded_event_comes(void *arg)
{
    guarded_event *e = arg;
    pthread_mutex_lock(&e->lock);
    e->came = true;
    leat_event_fn fn = e->fn;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (fn)
        fn(e->arg, atomic_load(&guarded_until_lost) ? NULL : guarded_check());
    guarded_event_unref(e);
}

static leat_status guarded_mark(leat_device *d, int queue, leat_device_event *out)
{
    leat_status s = guarded_check();
    while (s && atomic_load(&guarded_copying))
        sched_yield();
    LEAT_TRY(s);
    guarded_event *e = leat_new(guarded_event);
    e->refs = 2;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    guarded_enqueue(d->state, queue, guarded_event_comes, e);
    *out = e;
    return NULL;
}

static void guarded_await(void *arg)
{
    guarded_event *e = arg;
    pthread_mutex_lock(&e->lock);
    while (!e->came)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
    guarded_event_unref(e);
}

static leat_status guarded_wait(leat_device *d, int queue, leat_device_event event)
{
    guarded_event *e = event;
    pthread_mutex_lock(&e->lock);
    e->refs++;
    pthread_mutex_unlock(&e->lock);
    guarded_enqueue(d->state, queue, guarded_await, e);
    return NULL;
}

static void guarded_on_event(leat_device *d, leat_device_event event, leat_event_fn fn, void *arg)
{
    guarded_event *e = event;
    pthread_mutex_lock(&e->lock);
    bool came = e->came;
    if (!came) {
        e->fn = fn;
        e->arg = arg;
    }
    pthread_mutex_unlock(&e->lock);
    if (came)
        fn(arg, NULL);
    guarded_event_unref(e);
}

static void guarded_event_free(leat_device *d, leat_device_event e)
{
    guarded_event_unref(e);
}

#endif
