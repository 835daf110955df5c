/* coding.h -- numbers in files: little-endian and varints. Readers stay within [p, end). */
#ifndef LEAT_IO_CODING_H
#define LEAT_IO_CODING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/strbuf.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files hold little-endian numbers; this machine would have to swap them"
#endif

static inline uint32_t leat_get_fixed32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline uint64_t leat_get_fixed64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static inline void leat_put_fixed32(leat_strbuf *b, uint32_t v)
{
    leat_strbuf_add(b, &v, 4);
}
static inline void leat_put_fixed64(leat_strbuf *b, uint64_t v)
{
    leat_strbuf_add(b, &v, 8);
}

/* Moves *p past the varint; false if there is no valid one of at most 64 bits. */
static inline bool leat_get_varint(const unsigned char **p, const unsigned char *end, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
        unsigned char b = *(*p)++;
        if (shift == 63 && b > 1)
            return false;
        v |= (uint64_t)(b & 127) << shift;
        if (!(b & 128)) {
            *out = v;
            return true;
        }
    }
    return false;
}
/* The same for sizes: below 2^32. */
static inline bool leat_get_varint32(const unsigned char **p, const unsigned char *end,
                                     uint32_t *out)
{
    uint64_t v;
    if (!leat_get_varint(p, end, &v) || v > UINT32_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}
static inline void leat_put_varint(leat_strbuf *b, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        leat_strbuf_putc(b, (char)(v | 128));
    leat_strbuf_putc(b, (char)v);
}

#endif
