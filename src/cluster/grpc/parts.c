/* parts.c -- see parts.h. */
#include "cluster/grpc/parts.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/grpc/bytes.h"
#include "cluster/tensor_wire.h"
#include "core/alloc.h"
#include "core/buffer.h"

enum { SEGMENTS_MAX = 1 << 20 };
size_t leat_parts_from = 1 << 20, leat_parts_bytes = 1 << 19;
int64_t leat_whole_max = INT64_C(2147483647);
bool leat_parts_known = true;

static bool has_key(const grpc_metadata *m, const char *key)
{
    return grpc_slice_str_cmp(m->key, key) == 0;
}

bool leat_parts_in(const grpc_metadata_array *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (has_key(&m->metadata[i], LEAT_PARTS))
            return true;
    return false;
}

bool leat_parts_taken(const grpc_metadata_array *m)
{
    size_t n = strlen(LEAT_PARTS_AGENT);
    for (size_t i = 0; i < m->count; i++) {
        const grpc_slice *v = &m->metadata[i].value;
        if (has_key(&m->metadata[i], "user-agent"))
            return GRPC_SLICE_LENGTH(*v) > n &&
                   memcmp(GRPC_SLICE_START_PTR(*v), LEAT_PARTS_AGENT " ", n + 1) == 0;
    }
    return false;
}

grpc_metadata leat_parts_mark(void)
{
    return (grpc_metadata){.key = grpc_slice_from_static_string(LEAT_PARTS),
                           .value = grpc_slice_from_static_string("1")};
}

/* ---- Sending ---- */

/* A piece of a message: text, or a tensor's bytes. */
typedef struct segment {
    leat_tensor *tensor; /* a reference; NULL: text */
    const uint8_t *data;
    size_t n;
} segment;

struct leat_parts {
    grpc_slice text; /* All text of the message; gRPC counts its references. */
    segment *v;
    int n, at;
    size_t done; /* Bytes of segment `at` that were sent. */
};

static void add_text(leat_parts *p, size_t from, size_t to)
{
    if (to > from)
        p->v[p->n++] = (segment){NULL, GRPC_SLICE_START_PTR(p->text) + from, to - from};
}

leat_parts *leat_parts_new(leat_outgoing *o)
{
    leat_parts *p = leat_new(leat_parts);
    p->text = o->text.s ? grpc_slice_new_with_user_data(o->text.s, o->text.n, free, o->text.s)
                        : grpc_empty_slice();
    p->v = leat_new_array(segment, 2 * o->n_pieces + 1);
    size_t at = 0;
    for (int i = 0; i < o->n_pieces; i++) {
        leat_tensor *t = o->pieces[i].tensor;
        add_text(p, at, o->pieces[i].end);
        at = o->pieces[i].end;
        if (leat_tensor_bytes(t))
            p->v[p->n++] = (segment){t, leat_tensor_data(t), leat_tensor_bytes(t)};
        else
            leat_tensor_unref(t);
    }
    add_text(p, at, o->text.n);
    free(o->pieces);
    *o = (leat_outgoing){0};
    return p;
}

void leat_parts_free(leat_parts *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n; i++)
        leat_tensor_unref(p->v[i].tensor);
    grpc_slice_unref(p->text);
    free(p->v);
    free(p);
}

grpc_byte_buffer *leat_parts_head(const leat_parts *p)
{
    leat_outgoing o = {0};
    leat_put_varint(&o.text, (uint64_t)p->n);
    for (int i = 0; i < p->n; i++)
        leat_put_varint(&o.text, p->v[i].n);
    return leat_bytes_to_send(&o);
}

bool leat_parts_left(const leat_parts *p)
{
    return p->at < p->n;
}

grpc_byte_buffer *leat_parts_next(leat_parts *p)
{
    grpc_slice *v = NULL;
    int n = 0, cap = 0;
    for (size_t room = leat_parts_bytes; room && p->at < p->n;) {
        const segment *s = &p->v[p->at];
        size_t here = s->n - p->done < room ? s->n - p->done : room;
        const uint8_t *data = s->data + p->done;
        leat_grow(v, n, cap);
        if (s->tensor) {
            v[n++] = leat_bytes_of_tensor(leat_tensor_ref(s->tensor), data, here);
        } else {
            size_t at = (size_t)(data - GRPC_SLICE_START_PTR(p->text));
            v[n++] = grpc_slice_sub(p->text, at, at + here);
        }
        room -= here;
        p->done += here;
        if (p->done == s->n) {
            p->at++;
            p->done = 0;
        }
    }
    grpc_byte_buffer *b = grpc_raw_byte_buffer_create(v, (size_t)n);
    for (int i = 0; i < n; i++)
        grpc_slice_unref(v[i]);
    free(v);
    return b;
}

/* ---- Receiving ---- */

struct leat_gather {
    leat_slice *v; /* Data and owner are NULL until a segment's first byte comes. */
    int n, at;
    size_t done;          /* Bytes of segment `at` that have come. */
    size_t size, missing; /* Bytes of all segments; those that have not come. */
};

void leat_gather_free(leat_gather *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->n; i++)
        leat_buffer_unref(g->v[i].owner);
    free(g->v);
    free(g);
}

static leat_status read_head(leat_gather *g, const leat_incoming *in, int64_t most)
{
    leat_cursor c = leat_cursor_of(in);
    uint64_t n, size;
    LEAT_TRY(leat_cursor_varint(&c, &n));
    LEAT_REQUIRE(n > 0 && n <= SEGMENTS_MAX && n <= c.left, DATA_LOSS,
                 "A message in parts has %llu segments", (unsigned long long)n);
    g->v = leat_new_array(leat_slice, n);
    g->n = (int)n;
    for (uint64_t i = 0; i < n; i++) {
        LEAT_TRY(leat_cursor_varint(&c, &size));
        LEAT_REQUIRE(size, DATA_LOSS, "A message in parts has an empty segment");
        LEAT_REQUIRE(size <= (uint64_t)most && g->size + size <= (uint64_t)most, RESOURCE_EXHAUSTED,
                     "Received message larger than max (%llu vs. %lld)",
                     (unsigned long long)(g->size + size), (long long)most);
        g->v[i].n = (size_t)size;
        g->size += (size_t)size;
        g->missing = g->size;
    }
    return NULL;
}

leat_status leat_gather_new(grpc_byte_buffer *head, int64_t most, leat_gather **out)
{
    leat_gather *g = leat_new(leat_gather);
    leat_incoming in = leat_bytes_received(head);
    leat_status s = read_head(g, &in, most);
    free((void *)in.slices);
    if (s)
        leat_gather_free(g);
    else
        *out = g;
    return s;
}

/* Memory for a segment is allocated when its first bytes come, so that a head alone allocates none.
 */
static leat_status add_bytes(leat_gather *g, const uint8_t *p, size_t n)
{
    while (n) {
        LEAT_REQUIRE(g->at < g->n, DATA_LOSS, "A message in parts is longer than its head says");
        leat_slice *s = &g->v[g->at];
        if (!s->data) {
            s->owner = leat_buffer_try(NULL, LEAT_UINT8, s->n);
            LEAT_REQUIRE(s->owner, RESOURCE_EXHAUSTED,
                         "OOM when allocating %zu bytes for a message in parts", s->n);
            s->data = s->owner->data;
        }
        size_t here = s->n - g->done < n ? s->n - g->done : n;
        memcpy((uint8_t *)s->owner->data + g->done, p, here);
        p += here;
        n -= here;
        g->done += here;
        g->missing -= here;
        if (g->done == s->n) {
            g->at++;
            g->done = 0;
        }
    }
    return NULL;
}

leat_status leat_gather_add(leat_gather *g, grpc_byte_buffer *part)
{
    leat_status s = NULL;
    grpc_byte_buffer_reader r;
    if (!grpc_byte_buffer_reader_init(&r, part))
        return leat_error(DATA_LOSS, "A message's part cannot be read");
    for (grpc_slice *v; !s && grpc_byte_buffer_reader_peek(&r, &v);)
        s = add_bytes(g, GRPC_SLICE_START_PTR(*v), GRPC_SLICE_LENGTH(*v));
    grpc_byte_buffer_reader_destroy(&r);
    return s;
}

size_t leat_gather_missing(const leat_gather *g)
{
    return g->missing;
}

leat_incoming leat_gather_incoming(const leat_gather *g)
{
    return (leat_incoming){g->v, g->n, g->size, NULL};
}
