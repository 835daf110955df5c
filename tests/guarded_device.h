/* guarded_device.h -- a kind of devices for tests, "GUARDED": only the work in its two queues can
 * read and write its memory. While none runs, its pages are protected, so that a kernel of another
 * device, or any other code, that reads or writes there ends with SIGSEGV.
 *
 * Most of its kernels are the CPU's, which the thread of the compute queue runs with the pages
 * unprotected. A few (Neg, Square and AddN of floats) work as those of a GPU do: the kernel returns
 * at once, and its output is there when the queue has run its work. Freed memory is allocated again
 * at once, while work on it may still be in the queue.
 */
#ifndef LEAT_TESTS_GUARDED_DEVICE_H
#define LEAT_TESTS_GUARDED_DEVICE_H

#include "guarded_kernels.h"

static leat_status guarded_probe(int *most_out)
{
    *most_out = GUARDED_MOST;
    return NULL;
}

static void guarded_describe(int id, leat_device_info *out)
{
    *out = (leat_device_info){.description = "protected pages", .memory = GUARDED_ARENA};
}

static leat_status guarded_open(leat_device *d)
{
    guarded *g = leat_new(guarded);
    g->arena =
        mmap(NULL, GUARDED_ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->arena == MAP_FAILED) {
        free(g);
        return leat_error(RESOURCE_EXHAUSTED, "no address space for %d bytes", GUARDED_ARENA);
    }
    g->memory = (leat_allocator){.name = d->name,
                                 .alloc = guarded_alloc,
                                 .free = guarded_free,
                                 .limit = GUARDED_ARENA,
                                 .device = d,
                                 .copy = guarded_copy_within};
    g->device = d;
    pthread_mutex_init(&g->lock, NULL);
    for (int i = 0; i < 2; i++) {
        guarded_queue *q = &g->queues[i];
        q->of = g;
        q->last = &q->first;
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->more, NULL);
        pthread_create(&q->thread, NULL, guarded_thread, q);
    }
    d->state = g;
    d->allocator = &g->memory;
    return NULL;
}

static void guarded_close(leat_device *d)
{
    guarded *g = d->state;
    for (int i = 0; i < 2; i++) {
        guarded_queue *q = &g->queues[i];
        pthread_mutex_lock(&q->lock);
        q->stop = true;
        pthread_cond_signal(&q->more);
        pthread_mutex_unlock(&q->lock);
        pthread_join(q->thread, NULL);
        pthread_mutex_destroy(&q->lock);
        pthread_cond_destroy(&q->more);
    }
    for (int i = 0; i < GUARDED_CLASSES; i++)
        free(g->idle[i].v);
    munmap(g->arena, GUARDED_ARENA);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static const leat_device_kind guarded_kind = {
    .type = "GUARDED",
    .priority = 210, /* above the CPU's: nodes without a device go to this kind */
    .is_gpu = true,
    .by_default = 0,
    .probe = guarded_probe,
    .describe = guarded_describe,
    .open = guarded_open,
    .close = guarded_close,
    .kernels = guarded_kernel_lists,
    .copy = guarded_copy,
    .copy_peer = guarded_copy_peer,
    .mark = guarded_mark,
    .wait = guarded_wait,
    .on_event = guarded_on_event,
    .event_free = guarded_event_free,
};

#endif
