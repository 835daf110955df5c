/* block.h -- blocks of up to 32 KB for tensor headers and small buffers: a few ns each.
 *
 * Each thread keeps short lists of free blocks by size class; full lists move in batches to
 * shared ones, where a thread that only allocates finds what another only frees. Both are
 * bounded. Under AddressSanitizer every block comes from malloc, so that it sees misuse. */
#ifndef LEAT_CORE_BLOCK_H
#define LEAT_CORE_BLOCK_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define LEAT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAT_ASAN 1
#endif
#endif
#ifndef LEAT_ASAN
#define LEAT_ASAN 0
#endif

enum {
    LEAT_BLOCK_MAX = 32 * 1024,
    LEAT_BLOCK_FINE = 16,                     /* classes of 64, 128, ... 1024 bytes */
    LEAT_BLOCK_CLASSES = LEAT_BLOCK_FINE + 20 /* then four classes for each power of two */
};

/* A free block's first word links it to the next of its list. */
typedef struct leat_block_cache {
    void *list[LEAT_BLOCK_CLASSES];
    int room[LEAT_BLOCK_CLASSES]; /* blocks that the list may still take */
} leat_block_cache;

/* Never NULL: a thread without lists has an empty cache that takes no blocks. */
extern __thread leat_block_cache *leat_block_mine __attribute__((tls_model("initial-exec")));
void *leat_block_alloc_slow(size_t size);
void *leat_block_xalloc_slow(size_t size);
void leat_block_free_slow(void *p, size_t size);

static inline int leat_block_class(size_t size)
{
    if (size <= 1024)
        return (int)((size - 1) / 64);
    int power = 63 - __builtin_clzl(size - 1); /* 2^power < size <= 2^(power+1); 10..14 */
    return LEAT_BLOCK_FINE + (power - 10) * 4 + (int)(((size - 1) >> (power - 2)) & 3);
}

/* The first block of the thread's list for this size, or NULL. */
static inline void *leat_block_take(size_t size)
{
    int c = leat_block_class(size);
    leat_block_cache *mine = leat_block_mine;
    void *p = mine->list[c];
    if (__builtin_expect(!p, 0))
        return NULL;
    mine->list[c] = *(void **)p;
    mine->room[c]++;
    return p;
}

/* LEAT_ALIGN-aligned, not zeroed, NULL if memory is exhausted. 1 <= size <= LEAT_BLOCK_MAX. */
static inline void *leat_block_alloc(size_t size)
{
    void *p = leat_block_take(size);
    return __builtin_expect(p != NULL, 1) ? p : leat_block_alloc_slow(size);
}

/* The same for what has a small and fixed size, such as a tensor's header: ends the process if
 * memory is exhausted. */
static inline void *leat_block_xalloc(size_t size)
{
    void *p = leat_block_take(size);
    return __builtin_expect(p != NULL, 1) ? p : leat_block_xalloc_slow(size);
}

/* size is the one that was given to leat_block_alloc or leat_block_xalloc. */
static inline void leat_block_free(void *p, size_t size)
{
    int c = leat_block_class(size);
    leat_block_cache *mine = leat_block_mine;
    if (__builtin_expect(mine->room[c] == 0, 0)) {
        leat_block_free_slow(p, size);
        return;
    }
    mine->room[c]--;
    *(void **)p = mine->list[c];
    mine->list[c] = p;
}

#endif
