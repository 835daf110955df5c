/* snappy.c -- a stream is the decoded size, then elements: literals, and copies of bytes that were
 * decoded before. The low two bits of an element's tag give its kind. No element may read or write
 * out of bounds. (The format: google/snappy, format_description.txt.) */
#include "io/snappy.h"

#include "io/coding.h"

typedef struct stream {
    const unsigned char *p, *end;
    unsigned char *out;
    size_t done, size;
} stream;

bool leat_snappy_size(const void *bytes, size_t n, size_t *out)
{
    const unsigned char *p = bytes;
    uint32_t size;
    if (!leat_get_varint32(&p, p + n, &size))
        return false;
    *out = size;
    return true;
}

/* A number of n bytes, 1 to 4. */
static bool number(stream *s, int n, uint32_t *out)
{
    if (s->end - s->p < n)
        return false;
    *out = 0;
    for (int i = 0; i < n; i++)
        *out |= (uint32_t)*s->p++ << 8 * i;
    return true;
}

static bool literal(stream *s, unsigned tag)
{
    uint32_t n = tag >> 2;
    if (n >= 60 && !number(s, (int)n - 59, &n))
        return false;
    uint64_t length = (uint64_t)n + 1;
    if (length > (uint64_t)(s->end - s->p) || length > s->size - s->done)
        return false;
    memcpy(s->out + s->done, s->p, length);
    s->p += length;
    s->done += length;
    return true;
}

static bool copy(stream *s, unsigned tag)
{
    uint32_t offset, length;
    if ((tag & 3) == 1) {
        if (!number(s, 1, &offset))
            return false;
        offset |= (tag >> 5) << 8;
        length = (tag >> 2 & 7) + 4;
    } else {
        if (!number(s, (tag & 3) == 2 ? 2 : 4, &offset))
            return false;
        length = (tag >> 2) + 1;
    }
    if (offset == 0 || offset > s->done || length > s->size - s->done)
        return false;
    /* Byte by byte: source and destination may overlap, which repeats a pattern. */
    for (; length; length--, s->done++)
        s->out[s->done] = s->out[s->done - offset];
    return true;
}

bool leat_snappy_decode(const void *bytes, size_t n, void *out, size_t size)
{
    stream s = {bytes, (const unsigned char *)bytes + n, out, 0, size};
    uint32_t said;
    if (!leat_get_varint32(&s.p, s.end, &said) || said != size)
        return false;
    while (s.p < s.end) {
        unsigned tag = *s.p++;
        if (!((tag & 3) == 0 ? literal(&s, tag) : copy(&s, tag)))
            return false;
    }
    return s.done == size;
}
