/* utf8.h -- characters in UTF-8, for string kernels. */
#ifndef LEAT_CPU_UTF8_H
#define LEAT_CPU_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/strbuf.h"

static inline int leat_utf8_continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The position after the character at `at`, and the start of the one before `at`. */
static inline size_t leat_utf8_after(const char *s, size_t size, size_t at)
{
    do
        at++;
    while (at < size && leat_utf8_continues(s[at]));
    return at;
}
static inline size_t leat_utf8_before(const char *s, size_t at)
{
    do
        at--;
    while (at > 0 && leat_utf8_continues(s[at]));
    return at;
}

/* The first character of s, which has at least one byte; U+FFFD if it is not valid. Gives its
 * number of bytes. */
static inline size_t leat_utf8_get(const char *s, size_t size, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)s[0];
    size_t n = c < 0x80 ? 1 : c >= 0xf0 && c < 0xf8 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
    uint32_t v = n == 1 ? c : c & (0x7fu >> (n ? n : 1));
    size_t i = 1;
    for (; i < n && i < size && leat_utf8_continues(s[i]); i++)
        v = v << 6 | ((unsigned char)s[i] & 0x3f);
    bool bad =
        n == 0 || c >= 0xf8 || i < n || v < least[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000);
    *code = bad ? 0xfffd : v;
    return bad ? (i < n ? i : n ? n : 1) : n;
}

static inline void leat_utf8_put(leat_strbuf *b, uint32_t c)
{
    if (c < 0x80) {
        leat_strbuf_putc(b, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    leat_strbuf_putc(b, (char)((0xff00u >> (more + 1) & 0xff) | c >> (6 * more)));
    while (more-- > 0)
        leat_strbuf_putc(b, (char)(0x80 | (c >> (6 * more) & 0x3f)));
}

/* The letter in the other case, of Latin-1, Latin Extended-A, Greek and Cyrillic. */
static inline uint32_t leat_utf8_case(uint32_t c, bool upper)
{
    bool small = (c >= 0xe0 && c <= 0xfe && c != 0xf7) ||
                 (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2) || (c >= 0x430 && c <= 0x44f);
    bool large = (c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3a9) ||
                 (c >= 0x410 && c <= 0x42f);
    if (upper && small)
        return c - 0x20;
    if (!upper && large)
        return c + 0x20;
    if (c >= 0x450 && c <= 0x45f)
        return upper ? c - 0x50 : c;
    if (c >= 0x400 && c <= 0x40f)
        return upper ? c : c + 0x50;
    bool even = (c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177);
    bool odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
    if (even && c != 0x130 && c != 0x131)
        return upper ? c & ~1u : c | 1;
    if (odd)
        return upper ? ((c - 1) | 1) : ((c + 1) & ~1u);
    return c;
}

#endif
