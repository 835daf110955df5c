/* packed.c -- see packed.h. A block is a header, then for each tensor an entry, its dimensions, for
 * strings their sizes, and the bytes, at a multiple of 8. */
#include "kernels/dataset/packed.h"

#include <stdlib.h>

#include "core/alloc.h"

enum { MOST_BYTES = 16 * 1024 }; /* of a block: copying more costs more than it saves */

struct leat_packed {
    size_t room; /* bytes after this struct */
    int n;
};

typedef struct entry {
    leat_tensor *shared; /* NULL: shape and bytes follow */
    int32_t dtype, rank;
    size_t bytes; /* after the dimensions and, for strings, their sizes */
} entry;

static size_t aligned(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static char *contents(const leat_packed *p)
{
    return (char *)(p + 1);
}

/* ---- Packing ---- */

/* Bytes of the tensor's elements; more than MOST_BYTES if it is to be shared. */
static size_t payload(const leat_tensor *t)
{
    const size_t many = MOST_BYTES + 1;
    if (t->dtype == LEAT_RESOURCE || t->dtype == LEAT_VARIANT || leat_tensor_memory(t) ||
        !leat_tensor_unshared(t) || leat_tensor_bytes(t) > MOST_BYTES)
        return many;
    if (t->dtype != LEAT_STRING)
        return leat_tensor_bytes(t);
    size_t n = 0;
    for (int64_t i = 0; i < t->count && n < many; i++) {
        const size_t size = AT(leat_string, t)[i].size;
        n = size < many ? n + size : many;
    }
    return n;
}

/* Bytes of the tensor in a block, if it is copied there. */
static size_t room_for(const leat_tensor *t, size_t bytes)
{
    const size_t sizes = t->dtype == LEAT_STRING ? (size_t)t->count : 0;
    return sizeof(entry) + 8 * ((size_t)t->shape.rank + sizes) + aligned(bytes);
}

/* A block of at least n bytes. NULL if memory is exhausted, and then also the spare one is gone. */
static leat_packed *block(size_t n, leat_packed *spare)
{
    if (spare && spare->room >= n && spare->room - n <= n / 8)
        return spare;
    free(spare);
    leat_packed *p = malloc(sizeof(*p) + n);
    if (p)
        p->room = n;
    return p;
}

/* Writes t, whose elements have so many bytes. Returns where the next tensor goes. */
static char *put_copy(char *to, const leat_tensor *t, size_t bytes)
{
    *(entry *)to = (entry){NULL, t->dtype, t->shape.rank, bytes};
    to += sizeof(entry);
    memcpy(to, t->shape.dim, 8 * (size_t)t->shape.rank);
    to += 8 * (size_t)t->shape.rank;
    if (t->dtype != LEAT_STRING) {
        memcpy(to, t->data, bytes);
        return to + aligned(bytes);
    }
    size_t *sizes = (size_t *)to;
    char *at = to += 8 * (size_t)t->count;
    for (int64_t i = 0; i < t->count; i++) {
        const leat_string *x = AT(leat_string, t) + i;
        sizes[i] = x->size;
        if (x->size)
            memcpy(at, x->data, x->size);
        at += x->size;
    }
    return to + aligned(bytes);
}

static char *put_shared(char *to, leat_tensor *t)
{
    *(entry *)to = (entry){.shared = t};
    return to + sizeof(entry);
}

static leat_packed *pack_references(leat_element *e)
{
    leat_packed *p = leat_xmalloc(sizeof(*p) + sizeof(entry) * (size_t)e->n);
    p->room = sizeof(entry) * (size_t)e->n;
    char *to = contents(p);
    for (int i = 0; i < e->n; i++)
        to = put_shared(to, e->v[i]);
    return p;
}

leat_packed *leat_element_pack(leat_element *e, leat_packed *spare)
{
    enum { FEW = 8 };
    size_t bytes[FEW], room = 0;
    for (int i = 0; i < e->n && i < FEW; i++) {
        bytes[i] = payload(e->v[i]);
        room += bytes[i] > MOST_BYTES ? sizeof(entry) : room_for(e->v[i], bytes[i]);
    }
    leat_packed *p = e->n <= FEW && room <= MOST_BYTES ? block(room, spare) : (free(spare), NULL);
    if (p) {
        char *to = contents(p);
        for (int i = 0; i < e->n; i++)
            if (bytes[i] > MOST_BYTES) {
                to = put_shared(to, e->v[i]);
            } else {
                to = put_copy(to, e->v[i], bytes[i]);
                leat_tensor_unref(e->v[i]);
            }
    } else {
        p = pack_references(e);
    }
    p->n = e->n;
    free(e->v);
    *e = (leat_element){0};
    return p;
}

/* ---- Unpacking ---- */

static leat_status get_strings(const char *from, size_t bytes, const leat_shape *s,
                               leat_tensor **out)
{
    const size_t *sizes = (const size_t *)from;
    const int64_t n = leat_shape_count(s);
    char *at = NULL;
    LEAT_TRY(leat_strings_new(s, bytes + (size_t)n, out, &at));
    from += 8 * (size_t)n;
    for (int64_t i = 0; i < n; i++) {
        at = leat_strings_put(AT(leat_string, *out) + i, at, from, sizes[i]);
        from += sizes[i];
    }
    return NULL;
}

static leat_status get_copy(const entry *x, leat_tensor **out)
{
    const char *from = (const char *)(x + 1);
    leat_shape s;
    leat_tensor *t;
    s.rank = x->rank;
    memcpy(s.dim, from, 8 * (size_t)x->rank);
    from += 8 * (size_t)x->rank;
    if (x->dtype == LEAT_STRING)
        return get_strings(from, x->bytes, &s, out);
    LEAT_TRY(leat_tensor_alloc(NULL, (leat_dtype)x->dtype, &s, &t));
    memcpy(t->data, from, x->bytes);
    *out = t;
    return NULL;
}

static const entry *after(const entry *x)
{
    size_t n = sizeof(entry);
    if (!x->shared) {
        const int64_t *dims = (const int64_t *)(x + 1);
        int64_t count = x->dtype == LEAT_STRING ? 1 : 0;
        for (int i = 0; i < x->rank; i++)
            count *= dims[i];
        n += 8 * ((size_t)x->rank + (size_t)count) + aligned(x->bytes);
    }
    return (const entry *)((const char *)x + n);
}

leat_status leat_element_unpack(const leat_packed *p, leat_element *out)
{
    leat_element e = leat_element_new(p->n);
    leat_status s = NULL;
    const entry *x = (const entry *)contents(p);
    for (int i = 0; i < p->n && !s; i++, x = after(x))
        if (x->shared)
            e.v[i] = leat_tensor_ref(x->shared);
        else
            s = get_copy(x, &e.v[i]);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

leat_packed *leat_packed_empty(leat_packed *p)
{
    const entry *x = (const entry *)contents(p);
    for (int i = 0; i < p->n; i++) {
        const entry *next = after(x);
        leat_tensor_unref(x->shared);
        x = next;
    }
    p->n = 0;
    return p;
}

void leat_packed_free(leat_packed *p)
{
    if (p)
        free(leat_packed_empty(p));
}

void leat_packed_fetch(const leat_packed *p)
{
    enum { LINES = 16 }; /* of the cache; the processor foresees the rest */
    for (int i = 0; p && i < LINES; i++)
        __builtin_prefetch((const char *)p + 64 * i);
}
