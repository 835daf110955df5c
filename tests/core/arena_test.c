/* arena_test.c -- alignment, zeroes, large pieces; and alloc.h's helpers. */
#include "core/arena.h"

#include <stdint.h>

#include "core/alloc.h"
#include "test.h"

static void pieces(void)
{
    leat_arena a;
    leat_arena_init(&a);
    char *last[300];
    for (int i = 0; i < 300; i++) {
        size_t size = (size_t)(i * i) % 9000 + 1;
        char *p = leat_arena_alloc(&a, size);
        CHECK_INT((uintptr_t)p % 16, 0);
        size_t set = 0;
        for (size_t k = 0; k < size; k++)
            set += p[k] != 0;
        CHECK_INT(set, 0);
        memset(p, i, size);
        last[i] = p;
    }
    for (int i = 0; i < 300; i++)
        CHECK_INT((unsigned char)last[i][0], i % 256);
    leat_arena_release(&a);
    leat_arena_release(&a); /* is empty, and may be used again */
    CHECK(leat_arena_alloc(&a, 0) != NULL);
    leat_arena_release(&a);
}

static void strings(void)
{
    leat_arena a;
    leat_arena_init(&a);
    CHECK_STR(leat_arena_strdup(&a, "abc"), "abc");
    CHECK_STR(leat_arena_strdup(&a, ""), "");
    CHECK_STR(leat_arena_strndup(&a, "abcdef", 2), "ab");
    CHECK_STR(leat_arena_strndup(&a, "ab", 9), "ab");
    CHECK_STR(leat_arena_printf(&a, "%s/%d", "x", 7), "x/7");
    CHECK_INT(strlen(leat_arena_printf(&a, "%10000d", 7)), 10000);
    CHECK(memcmp(leat_arena_memdup(&a, "a\0b", 3), "a\0b", 3) == 0);
    CHECK(leat_arena_memdup(&a, NULL, 0) != NULL);
    int *v = leat_arena_array(&a, int, 10);
    CHECK_INT(v[9], 0);
    leat_arena_release(&a);
}

static void alloc(void)
{
    char *s = leat_xstrndup("abcdef", 3);
    CHECK_STR(s, "abc");
    free(s);
    int *v = NULL, n = 0, cap = 0;
    for (; n < 1000; n++) {
        leat_grow(v, n, cap);
        v[n] = n;
    }
    CHECK_INT(v[999], 999);
    free(v);
    char *p = leat_xaligned(64, 100);
    CHECK_INT((uintptr_t)p % 64, 0);
    CHECK_INT(p[99], 0);
    free(p);
    free(leat_xcalloc(0, 0));
    free(leat_xmalloc(0));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"pieces", pieces}, {"strings", strings}, {"alloc", alloc});
}
