/* string_edit.c -- ops that make a string from a string: StringLower, StringUpper, StringStrip,
 * Substr, EncodeBase64, DecodeBase64. Upper and lower case are those of ASCII; with the encoding
 * utf-8 also those of Latin, Greek and Cyrillic letters. */
#include <ctype.h>
#include <stdio.h>

#include "core/strbuf.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/utf8.h"

typedef leat_status (*edit_fn)(const leat_node *n, const leat_string *s, leat_strbuf *out);

/* Makes an output of the input's shape by calling fn for each string. */
static leat_status each(leat_kernel *k, edit_fn fn)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    leat_strbuf b = {.checked = true};
    leat_status s = NULL;
    for (int64_t i = 0; i < x->count && !s; i++) {
        leat_strbuf_clear(&b);
        s = fn(leat_kernel_node(k), AT(leat_string, x) + i, &b);
        if (!s)
            s = leat_strbuf_check(&b);
        if (!s && !leat_string_set(AT(leat_string, y) + i, b.s, b.n))
            s = leat_error(RESOURCE_EXHAUSTED, "no memory for a string of %zu bytes", b.n);
    }
    leat_strbuf_release(&b);
    return s;
}

/* ---- Case ---- */

static leat_status encoding_init(const leat_node *n, void *state)
{
    (void)state;
    const char *e = leat_node_string(n, "encoding");
    LEAT_REQUIRE(!*e || strcmp(e, "utf-8") == 0, INVALID_ARGUMENT,
                 "only utf-8 or '' (no encoding) is supported, received %s", e);
    return NULL;
}

static void change_case(const leat_node *n, const leat_string *s, bool upper, leat_strbuf *out)
{
    bool utf8 = *leat_node_string(n, "encoding") != 0;
    for (size_t i = 0; i < s->size;) {
        unsigned char c = (unsigned char)s->data[i];
        if (!utf8 || c < 0x80) {
            bool other = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
            leat_strbuf_putc(out, (char)(other ? c ^ 0x20 : c));
            i++;
        } else {
            uint32_t code;
            i += leat_utf8_get(s->data + i, s->size - i, &code);
            leat_utf8_put(out, leat_utf8_case(code, upper));
        }
    }
}

static leat_status to_lower(const leat_node *n, const leat_string *s, leat_strbuf *out)
{
    change_case(n, s, false, out);
    return NULL;
}

static leat_status to_upper(const leat_node *n, const leat_string *s, leat_strbuf *out)
{
    change_case(n, s, true, out);
    return NULL;
}

static leat_status lower_run(leat_kernel *k)
{
    return each(k, to_lower);
}

static leat_status upper_run(leat_kernel *k)
{
    return each(k, to_upper);
}

static leat_status strip(const leat_node *n, const leat_string *s, leat_strbuf *out)
{
    (void)n;
    size_t from = 0, to = s->size;
    while (from < to && isspace((unsigned char)s->data[from]))
        from++;
    while (to > from && isspace((unsigned char)s->data[to - 1]))
        to--;
    leat_strbuf_add(out, s->data ? s->data + from : "", to - from);
    return NULL;
}

static leat_status strip_run(leat_kernel *k)
{
    return each(k, strip);
}

/* ---- Base64, with '-' and '_', padded or not ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static leat_status encode(const leat_node *n, const leat_string *s, leat_strbuf *out)
{
    bool pad = leat_node_bool(n, "pad");
    for (size_t i = 0; i < s->size; i += 3) {
        size_t left = s->size - i < 3 ? s->size - i : 3;
        uint32_t v = 0;
        for (size_t j = 0; j < 3; j++)
            v = v << 8 | (j < left ? (unsigned char)s->data[i + j] : 0);
        for (size_t j = 0; j < 4; j++) {
            if (j <= left)
                leat_strbuf_putc(out, digits[v >> (18 - 6 * j) & 63]);
            else if (pad)
                leat_strbuf_putc(out, '=');
        }
    }
    return NULL;
}

static leat_status decode(const leat_node *n, const leat_string *s, leat_strbuf *out)
{
    (void)n;
    size_t size = s->size;
    if (size % 4 == 0 && size > 0 && s->data[size - 1] == '=')
        size -= s->data[size - 2] == '=' ? 2 : 1;
    LEAT_REQUIRE(size % 4 != 1, INVALID_ARGUMENT, "Base64 string length cannot be 1 modulo 4.");
    uint32_t v = 0;
    int bits = 0;
    for (size_t i = 0; i < size; i++) {
        const char *at = s->data[i] ? strchr(digits, s->data[i]) : NULL;
        LEAT_REQUIRE(at, INVALID_ARGUMENT, "Invalid character found in base64.");
        v = v << 6 | (uint32_t)(at - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            leat_strbuf_putc(out, (char)(v >> bits & 0xff));
        }
    }
    return NULL;
}

static leat_status encode_run(leat_kernel *k)
{
    return each(k, encode);
}

static leat_status decode_run(leat_kernel *k)
{
    return each(k, decode);
}

/* ---- Substr ---- */

/* The start of character or byte `pos`, -1 if there is none; pos below 0 counts from the end. */
static int64_t place_of(const leat_string *s, int64_t pos, bool utf8)
{
    int64_t size = (int64_t)s->size;
    if (!utf8) {
        int64_t at = pos < 0 ? size + pos : pos;
        return pos >= -size && at <= size ? at : -1;
    }
    int64_t at = pos < 0 ? size : 0;
    for (; pos < 0; pos++) {
        if (at == 0)
            return -1;
        at = (int64_t)leat_utf8_before(s->data, (size_t)at);
    }
    for (; pos > 0; pos--) {
        if (at >= size)
            return -1;
        at = (int64_t)leat_utf8_after(s->data, s->size, (size_t)at);
    }
    return at;
}

static leat_status substr(const leat_string *s, int64_t pos, int64_t len, bool utf8,
                          const char *where, leat_string *out)
{
    int64_t at = place_of(s, pos, utf8), end;
    if (utf8)
        LEAT_REQUIRE(at >= 0, INVALID_ARGUMENT, "pos %lld out of range for string at index %s",
                     (long long)pos, where);
    LEAT_REQUIRE(at >= 0, INVALID_ARGUMENT, "pos %lld out of range for string b'%.*s' at index %s",
                 (long long)pos, s->size > 1000 ? 1000 : (int)s->size, s->data ? s->data : "",
                 where);
    if (utf8) {
        end = at;
        for (; len > 0 && end < (int64_t)s->size; len--)
            end = (int64_t)leat_utf8_after(s->data, s->size, (size_t)end);
    } else {
        int64_t left = (int64_t)s->size - at;
        /* a negative length means the rest, as if it were unsigned. */
        end = len < 0 || len > left ? (int64_t)s->size : at + len;
    }
    LEAT_REQUIRE(leat_string_set(out, s->data ? s->data + at : "", (size_t)(end - at)),
                 RESOURCE_EXHAUSTED, "no memory for a string of %lld bytes", (long long)(end - at));
    return NULL;
}

static leat_status substr_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *pos = leat_kernel_in(k, 1),
                      *len = leat_kernel_in(k, 2);
    bool utf8 = strcmp(leat_node_string(leat_kernel_node(k), "unit"), "UTF8_CHAR") == 0;
    LEAT_REQUIRE(leat_shape_equal(&pos->shape, &len->shape), INVALID_ARGUMENT,
                 "pos and len should have the same shape, got: %s vs. %s",
                 leat_shape_show(&pos->shape).s, leat_shape_show(&len->shape).s);
    leat_shape shape;
    leat_status bad = leat_shape_broadcast(&x->shape, &pos->shape, &shape);
    leat_status_free(bad);
    LEAT_REQUIRE(!bad, INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&pos->shape).s);
    bool same = pos->shape.rank == 0 || leat_shape_equal(&x->shape, &pos->shape);
    LEAT_REQUIRE(same || shape.rank <= 2, UNIMPLEMENTED,
                 "Substr broadcast not implemented for %d dimensions", shape.rank);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    for (int64_t i = 0; i < y->count; i++) {
        char where[64];
        if (same || shape.rank < 2)
            snprintf(where, sizeof(where), "%lld", (long long)i);
        else
            snprintf(where, sizeof(where), "(%lld, %lld)", (long long)(i / shape.dim[1]),
                     (long long)(i % shape.dim[1]));
        int64_t p = leat_broadcast_at(&shape, &pos->shape, i);
        LEAT_TRY(substr(AT(leat_string, x) + leat_broadcast_at(&shape, &x->shape, i),
                        leat_index_at(pos, p), leat_index_at(len, p), utf8, where,
                        AT(leat_string, y) + i));
    }
    return NULL;
}

const leat_kernel_def leat_cpu_string_edit[] = {
    {.op = "StringLower", .run = lower_run, .init = encoding_init},
    {.op = "StringUpper", .run = upper_run, .init = encoding_init},
    {.op = "StringStrip", .run = strip_run},
    {.op = "EncodeBase64", .run = encode_run},
    {.op = "DecodeBase64", .run = decode_run},
    {.op = "Substr", .run = substr_run},
    {0},
};
