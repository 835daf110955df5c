/* alloc.h -- allocations. leat_x... are for small ones, of which a program has few or whose size no
 * user, file or peer decides: they end the process when memory is exhausted. The others are made
 * by leat_try_...; tensor buffers have an allocator of their own (buffer.h). Both of these give
 * RESOURCE_EXHAUSTED. */
#ifndef LEAT_CORE_ALLOC_H
#define LEAT_CORE_ALLOC_H

#include <leat/status.h>

#include <stddef.h>

void *leat_xmalloc(size_t n);
void *leat_xcalloc(size_t n, size_t size);
void *leat_xrealloc(void *p, size_t n);
void *leat_xaligned(size_t align, size_t n);                  /* zeroed; free with free() */
void *leat_out_of_memory(size_t n) __attribute__((noreturn)); /* ends the process with a message */
char *leat_xstrdup(const char *s);
char *leat_xstrndup(const char *s, size_t n);

/* n elements of this size, zeroed, never NULL; free with free(). An error says how many bytes there
 * was no memory for; *out is NULL then. */
leat_status leat_try_calloc(int64_t n, size_t size, void **out) LEAT_MUST_CHECK;
/* int64_t *v; LEAT_TRY(leat_try_array(n, &v)); */
#define leat_try_array(n, v) leat_try_calloc((n), sizeof(**(v)), (void **)(v))

#define leat_new(type) ((type *)leat_xcalloc(1, sizeof(type)))
#define leat_new_array(type, n) ((type *)leat_xcalloc((size_t)(n), sizeof(type)))

/* Makes room for one more element in an array that grows by doubling: leat_grow(&v, n, &cap). */
#define leat_grow(v, n, cap)                                                                       \
    do {                                                                                           \
        if ((n) >= (cap)) {                                                                        \
            (cap) = (cap) ? (cap)*2 : 8;                                                           \
            (v) = leat_xrealloc((v), sizeof(*(v)) * (size_t)(cap));                                \
        }                                                                                          \
    } while (0)

#endif
