/* block.c -- see block.h. A free block's first word links it to the next of its list; in a
 * shared list the first block's second word links batch to batch. */
#include "core/block.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/buffer.h"

enum {
    FINE = 16,             /* classes of 64, 128, ... 1024 bytes */
    CLASSES = FINE + 5 * 4 /* then four to a doubling, up to 32 KB */
};

typedef struct block {
    struct block *next;  /* in its list or batch */
    struct block *batch; /* of a batch's first block: the next batch */
} block;

typedef struct thread_cache {
    block *list[CLASSES];
    int n[CLASSES];
} thread_cache;

static struct shared_list {
    pthread_mutex_t lock; /* guards both; a leaf */
    block *batches;
    int n; /* batches */
} shared[CLASSES] = {[0 ... CLASSES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
/* NULL: none yet. &gone: this thread is ending, and uses malloc alone. */
static __thread thread_cache *cache __attribute__((tls_model("initial-exec")));
static thread_cache gone;

static int class_of(size_t size)
{
    if (size <= 1024)
        return (int)((size - 1) / 64);
    int power = 63 - __builtin_clzl(size - 1); /* 2^power < size <= 2^(power+1); 10..14 */
    return FINE + (power - 10) * 4 + (int)(((size - 1) >> (power - 2)) & 3);
}

static size_t class_size(int c)
{
    if (c < FINE)
        return (size_t)(c + 1) * 64;
    int power = 10 + (c - FINE) / 4, quarter = (c - FINE) % 4 + 1;
    return ((size_t)1 << power) + ((size_t)quarter << (power - 2));
}

/* Blocks that move between a thread's list and the shared one at a time; a thread keeps at most
 * two batches of a class: 64 KB, and never fewer than 4 blocks nor more than 256. */
static int batch_size(int c)
{
    size_t n = 32 * 1024 / class_size(c);
    return n < 2 ? 2 : n > 128 ? 128 : (int)n;
}

static void *block_new(size_t size)
{
    void *p = NULL;
    return posix_memalign(&p, LEAT_ALIGN, size) == 0 ? p : NULL;
}

static void list_free(block *b)
{
    for (block *next; b; b = next) {
        next = b->next;
        free(b);
    }
}

/* The thread ends: its blocks go. */
static void thread_end(void *arg)
{
    thread_cache *c = arg;
    cache = &gone;
    for (int i = 0; i < CLASSES; i++)
        list_free(c->list[i]);
    free(c);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_end);
}

static thread_cache *cache_new(void)
{
    pthread_once(&once, make_key);
    thread_cache *c = calloc(1, sizeof(*c));
    if (!c || pthread_setspecific(key, c) != 0) {
        free(c);
        c = &gone;
    }
    return cache = c;
}

/* Takes a batch from the shared list, or else one new block. */
static void *refill(thread_cache *t, int c)
{
    struct shared_list *s = &shared[c];
    pthread_mutex_lock(&s->lock);
    block *b = s->batches;
    if (b) {
        s->batches = b->batch;
        s->n--;
    }
    pthread_mutex_unlock(&s->lock);
    if (!b)
        return block_new(class_size(c));
    t->list[c] = b->next;
    t->n[c] = batch_size(c) - 1;
    return b;
}

/* Moves one batch of a full list away. */
static void spill(thread_cache *t, int c)
{
    int n = batch_size(c);
    block *first = t->list[c], *last = first;
    for (int i = 1; i < n; i++)
        last = last->next;
    t->list[c] = last->next;
    t->n[c] -= n;
    last->next = NULL;
    struct shared_list *s = &shared[c];
    pthread_mutex_lock(&s->lock);
    if (s->n < 64) {
        first->batch = s->batches;
        s->batches = first;
        s->n++;
        first = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    list_free(first);
}

void *leat_block_alloc(size_t size)
{
    if (LEAT_ASAN)
        return block_new(size);
    int c = class_of(size);
    thread_cache *t = cache ? cache : cache_new();
    if (t == &gone)
        return block_new(class_size(c));
    block *b = t->list[c];
    if (!b)
        return refill(t, c);
    t->list[c] = b->next;
    t->n[c]--;
    return b;
}

void leat_block_free(void *p, size_t size)
{
    thread_cache *t = LEAT_ASAN ? &gone : cache ? cache : cache_new();
    if (t == &gone) {
        free(p);
        return;
    }
    int c = class_of(size);
    block *b = p;
    b->next = t->list[c];
    t->list[c] = b;
    if (++t->n[c] >= 2 * batch_size(c))
        spill(t, c);
}
