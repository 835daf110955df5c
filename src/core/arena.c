/* arena.c -- blocks that double in size; the newest one has free space. An allocation that is too
 * large to share a block gets a block of its own, placed behind the newest in the list, so that the
 * newest one's free space is still used. */
#include "core/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 256 * 1024, ALIGN = 16 };

struct leat_arena_block {
    struct leat_arena_block *next;
    size_t size; /* size of bytes[] */
    _Alignas(ALIGN) char bytes[];
};

void leat_arena_init(leat_arena *a)
{
    *a = (leat_arena){0};
}

void leat_arena_release(leat_arena *a)
{
    for (struct leat_arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (leat_arena){0};
}

/* NULL if there is no memory. */
static struct leat_arena_block *block_new(size_t size)
{
    struct leat_arena_block *b = calloc(1, sizeof(*b) + size);
    if (b)
        b->size = size;
    return b;
}

void *leat_arena_try(leat_arena *a, size_t size)
{
    if (size > SIZE_MAX / 2) /* the product of a count and a size has overflowed */
        return NULL;
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (size == 0)
        size = ALIGN;
    if (size > a->size - a->used) {
        if (a->blocks && size > FIRST_BLOCK) {
            struct leat_arena_block *own = block_new(size);
            if (!own)
                return NULL;
            own->next = a->blocks->next;
            a->blocks->next = own;
            return own->bytes;
        }
        size_t next = a->size ? a->size * 2 : FIRST_BLOCK;
        if (next > LARGEST_BLOCK)
            next = LARGEST_BLOCK;
        struct leat_arena_block *b = block_new(size > next ? size : next);
        if (!b)
            return NULL;
        b->next = a->blocks;
        a->blocks = b;
        a->used = 0;
        a->size = b->size;
    }
    void *p = a->blocks->bytes + a->used;
    a->used += size;
    return p;
}

void *leat_arena_alloc(leat_arena *a, size_t size)
{
    void *p = leat_arena_try(a, size);
    return p ? p : leat_out_of_memory(size);
}

void *leat_arena_memdup(leat_arena *a, const void *p, size_t n)
{
    void *copy = leat_arena_alloc(a, n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *leat_arena_strndup(leat_arena *a, const char *s, size_t n)
{
    n = n ? strnlen(s, n) : 0; /* empty byte fields of protobuf messages are NULL */
    char *copy = leat_arena_alloc(a, n + 1);
    if (n)
        memcpy(copy, s, n);
    return copy;
}

char *leat_arena_strdup(leat_arena *a, const char *s)
{
    return leat_arena_memdup(a, s, strlen(s) + 1);
}

char *leat_arena_printf(leat_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = leat_arena_alloc(a, n > 0 ? (size_t)n + 1 : 1);
    if (n > 0)
        vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}
