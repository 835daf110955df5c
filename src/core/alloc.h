/* alloc.h -- small allocations. They end the process when memory is exhausted; tensor buffers have
 * an allocator of their own (buffer.h), which returns RESOURCE_EXHAUSTED. */
#ifndef LEAT_CORE_ALLOC_H
#define LEAT_CORE_ALLOC_H

#include <stddef.h>

void *leat_xmalloc(size_t n);
void *leat_xcalloc(size_t n, size_t size);
void *leat_xrealloc(void *p, size_t n);
void *leat_xaligned(size_t align, size_t n); /* zeroed; free with free() */
char *leat_xstrdup(const char *s);
char *leat_xstrndup(const char *s, size_t n);

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
