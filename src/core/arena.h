/* arena.h -- memory that is freed all at once. Not thread-safe: the lock of the arena's owner
 * guards it. */
#ifndef LEAT_CORE_ARENA_H
#define LEAT_CORE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct leat_arena {
    struct leat_arena_block *blocks; /* newest first */
    size_t used, size;               /* of the newest block */
} leat_arena;

void leat_arena_init(leat_arena *a);
void leat_arena_release(leat_arena *a);
/* Small allocations: 16-byte aligned, zeroed, never NULL (the process ends when memory is
 * exhausted). */
void *leat_arena_alloc(leat_arena *a, size_t size);
/* The same for sizes that a user, file or peer decides: NULL if there is no memory. */
void *leat_arena_try(leat_arena *a, size_t size);
char *leat_arena_strdup(leat_arena *a, const char *s);
char *leat_arena_strndup(leat_arena *a, const char *s, size_t n);
void *leat_arena_memdup(leat_arena *a, const void *p, size_t n);
char *leat_arena_printf(leat_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define leat_arena_new(a, type) ((type *)leat_arena_alloc((a), sizeof(type)))
#define leat_arena_array(a, type, n) ((type *)leat_arena_alloc((a), sizeof(type) * (size_t)(n)))

#endif
