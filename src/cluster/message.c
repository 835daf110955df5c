/* message.c -- messages: leat_outgoing, which is sent in pieces, and leat_incoming, which came in
 * slices. */
#include <stdlib.h>
#include <string.h>

#include "cluster/transport.h"
#include "core/alloc.h"
#include "core/buffer.h"

void leat_outgoing_tensor(leat_outgoing *o, leat_tensor *t)
{
    o->pieces = leat_xrealloc(o->pieces, sizeof(*o->pieces) * (size_t)(o->n_pieces + 1));
    o->pieces[o->n_pieces++] = (leat_piece){o->text.n, leat_tensor_ref(t)};
}

size_t leat_outgoing_size(const leat_outgoing *o)
{
    size_t n = o->text.n;
    for (int i = 0; i < o->n_pieces; i++)
        n += leat_tensor_bytes(o->pieces[i].tensor);
    return n;
}

void leat_outgoing_release(leat_outgoing *o)
{
    for (int i = 0; i < o->n_pieces; i++)
        leat_tensor_unref(o->pieces[i].tensor);
    free(o->pieces);
    leat_strbuf_release(&o->text);
    *o = (leat_outgoing){0};
}

leat_cursor leat_cursor_of(const leat_incoming *in)
{
    return (leat_cursor){.in = in, .left = in->size};
}

static leat_status short_by(const leat_cursor *c, size_t n)
{
    return leat_error(DATA_LOSS, "A message is cut off: %zu bytes are left where %zu are due",
                      c->left, n);
}

leat_status leat_cursor_copy(leat_cursor *c, void *to, size_t n)
{
    if (n > c->left)
        return short_by(c, n);
    c->left -= n;
    while (n) {
        const leat_slice *s = &c->in->slices[c->slice];
        size_t here = s->n - c->at < n ? s->n - c->at : n;
        if (to) {
            memcpy(to, s->data + c->at, here);
            to = (char *)to + here;
        }
        c->at += here;
        n -= here;
        if (c->at == s->n) {
            c->slice++;
            c->at = 0;
        }
    }
    return NULL;
}

leat_status leat_cursor_skip(leat_cursor *c, size_t n)
{
    return leat_cursor_copy(c, NULL, n);
}

leat_status leat_cursor_varint(leat_cursor *c, uint64_t *out)
{
    uint64_t v = 0;
    const leat_slice *s = &c->in->slices[c->slice];
    /* Nearly all varints have one byte, and do not end their slice. */
    uint8_t first = c->left && c->at + 1 < s->n ? s->data[c->at] : 128;
    if (first < 128) {
        c->at++;
        c->left--;
        *out = first;
        return NULL;
    }
    for (int shift = 0; shift < 70; shift += 7) {
        uint8_t b;
        LEAT_TRY(leat_cursor_copy(c, &b, 1));
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128) {
            *out = v;
            return NULL;
        }
    }
    return leat_error(DATA_LOSS, "A message has a number of more than ten bytes");
}

leat_status leat_cursor_take(leat_cursor *c, size_t n, void **out)
{
    if (n > c->left)
        return short_by(c, n);
    char *bytes = n < SIZE_MAX ? malloc(n + 1) : NULL;
    LEAT_REQUIRE(bytes, RESOURCE_EXHAUSTED, "There is no memory for a message of %zu bytes", n);
    leat_status s = leat_cursor_copy(c, bytes, n);
    if (s) {
        free(bytes);
        return s;
    }
    bytes[n] = 0;
    *out = bytes;
    return NULL;
}

leat_status leat_incoming_flat(const leat_incoming *in, const void **out, void **copy_out)
{
    *copy_out = NULL;
    *out = in->n ? (const void *)in->slices[0].data : "";
    if (in->n <= 1)
        return NULL;
    leat_cursor c = leat_cursor_of(in);
    LEAT_TRY(leat_cursor_take(&c, in->size, copy_out));
    *out = *copy_out;
    return NULL;
}
