/* alloc.c -- malloc and its relatives, which end the process instead of failing. */
#include "core/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *leat_out_of_memory(size_t n)
{
    fprintf(stderr, "leat: no memory for %zu bytes\n", n);
    abort();
}

static void *checked(void *p, size_t n)
{
    return p ? p : leat_out_of_memory(n);
}

void *leat_xmalloc(size_t n)
{
    return checked(malloc(n ? n : 1), n);
}

void *leat_xcalloc(size_t n, size_t size)
{
    return checked(n && size ? calloc(n, size) : calloc(1, 1), n * size);
}

leat_status leat_try_calloc(int64_t n, size_t size, void **out)
{
    *out = n < 0 ? NULL : n && size ? calloc((size_t)n, size) : calloc(1, 1);
    LEAT_REQUIRE(*out, RESOURCE_EXHAUSTED, "no memory for %lld elements of %zu bytes", (long long)n,
                 size);
    return NULL;
}

void *leat_xrealloc(void *p, size_t n)
{
    return checked(realloc(p, n ? n : 1), n);
}

void *leat_xaligned(size_t align, size_t n)
{
    void *p = NULL;
    if (posix_memalign(&p, align, n ? n : 1) != 0)
        p = NULL;
    return memset(checked(p, n), 0, n);
}

char *leat_xstrdup(const char *s)
{
    return leat_xstrndup(s, strlen(s));
}

char *leat_xstrndup(const char *s, size_t n)
{
    n = strnlen(s, n);
    char *copy = leat_xmalloc(n + 1);
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}
