/* slice_text.c -- slices as text ("10 4 0,5:-"), as messages, and in keys of checkpoints. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/slice.h"
#include "proto/field.h"

/* Parses a number that is all of the text, like TensorFlow's safe_strto64: surrounding blanks are
 * ignored. */
static bool number(const char *text, size_t n, int64_t *out)
{
    while (n && strchr(" \t\n\v\f\r", *text))
        text++, n--;
    while (n && strchr(" \t\n\v\f\r", text[n - 1]))
        n--;
    bool minus = n && *text == '-';
    if (minus)
        text++, n--;
    uint64_t v = 0;
    if (n == 0)
        return false;
    for (; n; text++, n--) {
        if (*text < '0' || *text > '9' || v > ((uint64_t)INT64_MAX - (uint64_t)(*text - '0')) / 10)
            return false;
        v = v * 10 + (uint64_t)(*text - '0');
    }
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

/* Length of the piece before the next separator. */
static size_t piece(const char *p, const char *end, char separator)
{
    const char *q = p < end ? memchr(p, separator, (size_t)(end - p)) : NULL;
    return (size_t)((q ? q : end) - p);
}

static leat_status parse_extent(const char *p, size_t n, const char *all, int n_all, leat_slice *s)
{
    LEAT_REQUIRE(s->rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions in slice: %.*s",
                 n_all, all);
    int64_t start = 0, length = -1;
    if (n != 1 || *p != '-') {
        const char *end = p + n;
        while (p < end && *p == ',') /* like TensorFlow, ignores empty pieces */
            p++;
        size_t a = piece(p, end, ',');
        const char *q = p + a;
        while (q < end && *q == ',')
            q++;
        size_t b = piece(q, end, ',');
        const char *rest = q + b;
        while (rest < end && *rest == ',')
            rest++;
        LEAT_REQUIRE(rest == end && number(p, a, &start) && number(q, b, &length), INVALID_ARGUMENT,
                     "Expected a pair of numbers or '-' but got '%.*s': string = %.*s", (int)n,
                     end - n, n_all, all);
        LEAT_REQUIRE(start >= 0 && length > 0, INVALID_ARGUMENT,
                     "Expected non-negative start and positive length but got start = %lld, length "
                     "= %lld: string = %.*s",
                     (long long)start, (long long)length, n_all, all);
    }
    s->start[s->rank] = start;
    s->length[s->rank++] = length;
    return NULL;
}

leat_status leat_slice_parse(const char *text, size_t n, leat_shape *whole, leat_slice *slice,
                             leat_shape *part)
{
    const char *end = text + n, *spec = end;
    int show = n < 1000 ? (int)n : 1000;
    while (spec > text && spec[-1] != ' ')
        spec--;
    LEAT_REQUIRE(spec > text, INVALID_ARGUMENT,
                 "Need least two elements in shape_and_slice specification: %.*s", show, text);
    *slice = (leat_slice){0};
    for (const char *p = spec; p < end; p++) {
        size_t m = piece(p, end, ':');
        if (m)
            LEAT_TRY(parse_extent(p, m, spec, show, slice));
        p += m;
    }
    *whole = (leat_shape){0};
    for (const char *p = text; p < spec; p++) {
        size_t m = piece(p, spec, ' ');
        int64_t dim;
        LEAT_REQUIRE(number(p, m, &dim) && dim >= 0 && whole->rank < LEAT_MAX_RANK,
                     INVALID_ARGUMENT, "Non numerical dimension in shape_and_slice: %.*s", show,
                     text);
        whole->dim[whole->rank++] = dim;
        p += m;
    }
    LEAT_REQUIRE(leat_shape_count(whole) >= 0, INVALID_ARGUMENT,
                 "Shape in shape_and_slice has too many elements: %.*s", show, text);
    return leat_slice_shape(slice, whole, part);
}

leat_status leat_slice_from_proto(const Leat__TensorSliceProto *p, leat_slice *out)
{
    LEAT_REQUIRE(p->n_extent <= LEAT_MAX_RANK, DATA_LOSS, "Slice has %zu dimensions", p->n_extent);
    leat_slice s = leat_slice_all((int)p->n_extent);
    for (int d = 0; d < s.rank; d++) {
        const Leat__TensorSliceProto__Extent *e = p->extent[d];
        if (e->has_length_case != LEAT__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH ||
            e->length < 0)
            continue;
        LEAT_REQUIRE(e->start >= 0 && e->start <= INT64_MAX - e->length, DATA_LOSS,
                     "Slice has a bad extent");
        s.start[d] = e->start;
        s.length[d] = e->length;
    }
    *out = s;
    return NULL;
}

Leat__TensorSliceProto *leat_slice_to_proto(const leat_slice *s)
{
    Leat__TensorSliceProto *p =
        (Leat__TensorSliceProto *)leat_message_new(&leat__tensor_slice_proto__descriptor);
    p->n_extent = (size_t)s->rank;
    p->extent = s->rank ? leat_new_array(Leat__TensorSliceProto__Extent *, s->rank) : NULL;
    for (int d = 0; d < s->rank; d++) {
        Leat__TensorSliceProto__Extent *e = (Leat__TensorSliceProto__Extent *)leat_message_new(
            &leat__tensor_slice_proto__extent__descriptor);
        if (s->length[d] >= 0) {
            e->start = s->start[d];
            e->length = s->length[d];
            e->has_length_case = LEAT__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
        }
        p->extent[d] = e;
    }
    return p;
}

/* ---- Ordered code: an encoding whose bytes sort like the encoded values ---- */
static void put_string(leat_strbuf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        leat_strbuf_putc(out, s[i]);
        if (s[i] == '\0')
            leat_strbuf_putc(out, '\xff');
        else if (s[i] == '\xff')
            leat_strbuf_putc(out, '\0');
    }
    leat_strbuf_add(out, "\0\1", 2);
}

/* One byte with the number of bytes that follow, then these, highest first. */
static void put_unsigned(leat_strbuf *out, uint64_t v)
{
    char n = 0;
    while (n < 8 && v >> 8 * n)
        n++;
    leat_strbuf_putc(out, n);
    while (n-- > 0)
        leat_strbuf_putc(out, (char)(v >> 8 * n));
}

/* The number of bytes is in the highest bits: as many ones as bytes (zeros for negative numbers),
 * then the number in the remaining bits, with its sign. */
static void put_signed(leat_strbuf *out, int64_t v)
{
    uint64_t magnitude = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    int bits = magnitude ? 64 - __builtin_clzll(magnitude) : 0;
    int n = bits / 7 + 1; /* 7 bits a byte, one of them for the sign */
    unsigned char b[10];
    for (int i = 0; i < n; i++) {
        int byte = n - 1 - i;
        b[i] = byte < 8 ? (unsigned char)((uint64_t)v >> 8 * byte) : (v < 0 ? 255 : 0);
    }
    for (int i = 0; i < n; i++)
        b[i / 8] ^= (unsigned char)(0x80 >> i % 8);
    leat_strbuf_add(out, b, (size_t)n);
}

void leat_slice_key(const char *name, size_t n, const leat_slice *s, leat_strbuf *out)
{
    put_unsigned(out, 0);
    put_string(out, name, n);
    put_unsigned(out, (uint64_t)s->rank);
    for (int d = 0; d < s->rank; d++) {
        put_signed(out, s->start[d]);
        put_signed(out, s->length[d]);
    }
}
