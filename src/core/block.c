/* block.c -- the slow paths of block.h: a thread's list is empty, or full. */
#include "core/block.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/buffer.h"

enum { SHARED_BATCHES = 64 }; /* batches of a size class that the shared list keeps */

typedef struct block {
    struct block *next;  /* the next block in the list or batch */
    struct block *batch; /* in the first block of a batch: the next batch */
} block;

static struct shared_list {
    pthread_mutex_t lock; /* guards all fields; no other lock is taken under it */
    block *batches;
    int n;
} shared[LEAT_BLOCK_CLASSES] = {
    [0 ... LEAT_BLOCK_CLASSES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static leat_block_cache none; /* the cache of a thread that has allocated nothing yet */
/* The cache of a thread that is ending or cannot have lists: uses malloc only. */
static leat_block_cache gone;
__thread leat_block_cache *leat_block_mine = LEAT_ASAN ? &gone : &none;

static size_t class_size(int c)
{
    if (c < LEAT_BLOCK_FINE)
        return (size_t)(c + 1) * 64;
    int power = 10 + (c - LEAT_BLOCK_FINE) / 4, quarter = (c - LEAT_BLOCK_FINE) % 4 + 1;
    return ((size_t)1 << power) + ((size_t)quarter << (power - 2));
}

/* The number of blocks that move between a thread's list and the shared list at a time. A thread
 * keeps at most two batches of a class: 64 KB, but at least 4 and at most 256 blocks. */
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

static void thread_end(void *arg)
{
    leat_block_cache *c = arg;
    leat_block_mine = &gone;
    for (int i = 0; i < LEAT_BLOCK_CLASSES; i++)
        list_free(c->list[i]);
    free(c);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, thread_end) == 0;
}

static leat_block_cache *cache_new(void)
{
    pthread_once(&once, make_key);
    leat_block_cache *c = has_key ? calloc(1, sizeof(*c)) : NULL;
    if (!c || pthread_setspecific(key, c) != 0) {
        free(c);
        return &gone;
    }
    for (int i = 0; i < LEAT_BLOCK_CLASSES; i++)
        c->room[i] = 2 * batch_size(i);
    return c;
}

/* Takes a batch from the shared list, or else one new block. */
static void *refill(leat_block_cache *mine, int c)
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
    mine->list[c] = b->next;
    mine->room[c] = batch_size(c) + 1;
    return b;
}

/* Moves one batch of a full list to the shared list. */
static void spill(leat_block_cache *mine, int c)
{
    int n = batch_size(c);
    block *first = mine->list[c], *last = first;
    for (int i = 1; i < n; i++)
        last = last->next;
    mine->list[c] = last->next;
    mine->room[c] += n;
    last->next = NULL;
    struct shared_list *s = &shared[c];
    pthread_mutex_lock(&s->lock);
    if (s->n < SHARED_BATCHES) {
        first->batch = s->batches;
        s->batches = first;
        s->n++;
        first = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    list_free(first);
}

void *leat_block_alloc_slow(size_t size)
{
    if (leat_block_mine == &none)
        leat_block_mine = cache_new();
    if (leat_block_mine == &gone)
        return block_new(LEAT_ASAN ? size : class_size(leat_block_class(size)));
    return refill(leat_block_mine, leat_block_class(size));
}

void *leat_block_xalloc_slow(size_t size)
{
    void *p = leat_block_alloc_slow(size);
    return p ? p : leat_out_of_memory(size);
}

void leat_block_free_slow(void *p, size_t size)
{
    if (leat_block_mine == &none)
        leat_block_mine = cache_new();
    if (leat_block_mine == &gone) {
        free(p);
        return;
    }
    int c = leat_block_class(size);
    if (leat_block_mine->room[c] == 0)
        spill(leat_block_mine, c);
    leat_block_free(p, size);
}
