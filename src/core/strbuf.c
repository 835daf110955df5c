/* strbuf.c -- doubles its memory; always has room for the NUL. */
#include "core/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* False if there is no memory for so much more. */
static bool reserve(leat_strbuf *b, size_t more, bool checked)
{
    if (b->lacking)
        return false;
    if (more < b->cap - b->n)
        return true;
    const bool overflows = more >= SIZE_MAX - b->n;
    const size_t least = overflows ? SIZE_MAX : b->n + more + 1;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < least)
        cap = least;
    char *s = overflows ? NULL : checked ? realloc(b->s, cap) : leat_xrealloc(b->s, cap);
    if (!s && !overflows)
        s = realloc(b->s, cap = least);
    if (!s && !checked)
        leat_out_of_memory(least);
    if (!s) {
        b->lacking = least;
        return false;
    }
    b->s = s;
    b->cap = cap;
    return true;
}

void leat_strbuf_release(leat_strbuf *b)
{
    free(b->s);
    *b = (leat_strbuf){.checked = b->checked};
}

void leat_strbuf_clear(leat_strbuf *b)
{
    b->n = b->lacking = 0;
    if (b->s)
        b->s[0] = '\0';
}

leat_status leat_strbuf_reserve(leat_strbuf *b, size_t more)
{
    const bool before = b->lacking != 0;
    leat_status s = reserve(b, more, true) ? NULL : leat_strbuf_check(b);
    if (!before)
        b->lacking = 0; /* Nothing was left out. */
    return s;
}

void leat_strbuf_add(leat_strbuf *b, const void *bytes, size_t n)
{
    if (!reserve(b, n, b->checked))
        return;
    if (n)
        memcpy(b->s + b->n, bytes, n);
    b->n += n;
    b->s[b->n] = '\0';
}

void leat_strbuf_puts(leat_strbuf *b, const char *s)
{
    leat_strbuf_add(b, s, strlen(s));
}

void leat_strbuf_putc(leat_strbuf *b, char c)
{
    leat_strbuf_add(b, &c, 1);
}

void leat_strbuf_vprintf(leat_strbuf *b, const char *fmt, va_list ap)
{
    va_list again;
    if (!reserve(b, 0, b->checked))
        return;
    va_copy(again, ap);
    size_t room = b->cap - b->n;
    int n = vsnprintf(b->s + b->n, room, fmt, ap);
    const bool fits = n < 0 || reserve(b, (size_t)n, b->checked);
    if (fits && n >= 0 && (size_t)n >= room)
        vsnprintf(b->s + b->n, b->cap - b->n, fmt, again);
    if (fits && n > 0)
        b->n += (size_t)n;
    b->s[b->n] = '\0';
    va_end(again);
}

void leat_strbuf_printf(leat_strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    leat_strbuf_vprintf(b, fmt, ap);
    va_end(ap);
}

const char *leat_strbuf_text(const leat_strbuf *b)
{
    return b->s ? b->s : "";
}

leat_status leat_strbuf_check(const leat_strbuf *b)
{
    LEAT_REQUIRE(!b->lacking, RESOURCE_EXHAUSTED, "no memory for a string of %zu bytes",
                 b->lacking);
    return NULL;
}

char *leat_strbuf_take(leat_strbuf *b)
{
    char *s = b->s ? b->s : leat_xstrdup("");
    *b = (leat_strbuf){.checked = b->checked};
    return s;
}

void leat_strbuf_add_shown(leat_strbuf *b, const void *bytes, size_t n)
{
    enum { MOST = 200 };
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n && i < MOST; i++)
        if (p[i] < 32 || p[i] > 126 || p[i] == '\\' || p[i] == '\'' || p[i] == '"')
            leat_strbuf_printf(b, "\\%03o", p[i]);
        else
            leat_strbuf_putc(b, (char)p[i]);
    leat_strbuf_puts(b, n > MOST ? "..." : "");
}
