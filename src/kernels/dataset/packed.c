/* packed.c -- see packed.h. A block is a header, then for each tensor an entry, its dimensions, for
 * strings their sizes, and the bytes, at a multiple of 8. Each string has its NUL.
 *
 * A batch of strings that are not short is not a copy: its strings are in the blocks, which belong
 * to its buffer. When it is freed, in any thread, the blocks go to a list with a lock, from which
 * the pull that makes blocks takes all of them at once. */
#include "kernels/dataset/packed.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"

enum {
    MOST_BYTES = 16 * 1024,       /* of a block: copying more costs more than it saves */
    MOST_SPARE = 2 * 1024 * 1024, /* in spare blocks */
    /* Strings in a batch, on average: shorter ones are copied. */
    LONG_STRING = 256,
};

struct leat_packed {
    size_t room; /* bytes after this struct */
    int n;
    int references;           /* tensors of which the block has no copy */
    struct leat_packed *next; /* of a spare block */
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
        const size_t size = AT(leat_string, t)[i].size + 1;
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

/* ---- Spare blocks ---- */

/* Blocks of batches that were freed. */
typedef struct leat_returns {
    atomic_int refs;
    pthread_mutex_t lock; /* guards the following fields */
    leat_packed *first;
    size_t bytes;
} returns;

static returns *returns_new(void)
{
    returns *r = leat_new(returns);
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

static void free_blocks(leat_packed *first)
{
    for (leat_packed *next; first; first = next) {
        next = first->next;
        free(first);
    }
}

static void returns_unref(returns *r)
{
    if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    free_blocks(r->first);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Adds the blocks to those that were returned, or frees them if these are many. */
static void give_back(returns *r, leat_packed *const *v, int64_t n)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i]->next = i + 1 < n ? v[i + 1] : NULL;
        bytes += v[i]->room;
    }
    leat_packed *surplus = v[0];
    pthread_mutex_lock(&r->lock);
    if (bytes <= MOST_SPARE && r->bytes <= MOST_SPARE - bytes) {
        v[n - 1]->next = r->first;
        r->first = v[0];
        r->bytes += bytes;
        surplus = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    free_blocks(surplus);
}

/* The thread that had the block may run on another processor. */
static void fetch_to_write(leat_packed *p)
{
    enum { LINES = 16 };
    for (int i = 0; p && i < LINES; i++)
        __builtin_prefetch((char *)p + 64 * i, 1);
}

static leat_packed *take_spare(leat_spares *s)
{
    if (!s->first && s->returns) {
        pthread_mutex_lock(&s->returns->lock);
        s->first = s->returns->first;
        s->bytes = s->returns->bytes;
        s->returns->first = NULL;
        s->returns->bytes = 0;
        pthread_mutex_unlock(&s->returns->lock);
    }
    leat_packed *p = s->first;
    if (p) {
        s->first = p->next;
        s->bytes -= p->room;
        fetch_to_write(s->first);
    }
    return p;
}

void leat_spares_release(leat_spares *s)
{
    free_blocks(s->first);
    returns_unref(s->returns);
    *s = (leat_spares){0};
}

/* A block of at least n bytes for `tensors` tensors. NULL if memory is exhausted. */
static leat_packed *block(size_t n, int tensors, leat_spares *spares)
{
    leat_packed *p = take_spare(spares);
    if (!p || p->room < n || p->room - n > n / 8) {
        free(p);
        p = malloc(sizeof(*p) + n);
        if (!p)
            return NULL;
        p->room = n;
    }
    p->n = tensors;
    p->references = 0;
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
        *at++ = '\0';
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
    p->n = p->references = e->n;
    char *to = contents(p);
    for (int i = 0; i < e->n; i++)
        to = put_shared(to, e->v[i]);
    return p;
}

leat_packed *leat_element_pack(leat_element *e, leat_spares *spares)
{
    enum { FEW = 8 };
    size_t bytes[FEW], room = 0;
    for (int i = 0; i < e->n && i < FEW; i++) {
        bytes[i] = payload(e->v[i]);
        room += bytes[i] > MOST_BYTES ? sizeof(entry) : room_for(e->v[i], bytes[i]);
    }
    leat_packed *p = e->n <= FEW && room <= MOST_BYTES ? block(room, e->n, spares) : NULL;
    if (p) {
        char *to = contents(p);
        for (int i = 0; i < e->n; i++)
            if (bytes[i] > MOST_BYTES) {
                to = put_shared(to, e->v[i]);
                p->references++;
            } else {
                to = put_copy(to, e->v[i], bytes[i]);
                leat_tensor_unref(e->v[i]);
            }
    } else {
        p = pack_references(e);
    }
    free(e->v);
    *e = (leat_element){0};
    return p;
}

leat_packed *leat_string_pack(const void *bytes, size_t n, leat_spares *spares)
{
    const size_t room = sizeof(entry) + 8 + aligned(n + 1);
    leat_packed *p = n < MOST_BYTES && room <= MOST_BYTES ? block(room, 1, spares) : NULL;
    if (!p)
        return NULL;
    char *to = contents(p);
    *(entry *)to = (entry){NULL, LEAT_STRING, 0, n + 1};
    *(size_t *)(to += sizeof(entry)) = n;
    memcpy(to += 8, bytes, n);
    to[n] = '\0';
    return p;
}

/* ---- Unpacking ---- */

static leat_status get_strings(const char *from, size_t bytes, const leat_shape *s,
                               leat_tensor **out)
{
    const size_t *sizes = (const size_t *)from;
    const int64_t n = leat_shape_count(s);
    char *at = NULL;
    LEAT_TRY(leat_strings_new(s, bytes, out, &at));
    from += 8 * (size_t)n;
    for (int64_t i = 0; i < n; i++) {
        at = leat_strings_put(AT(leat_string, *out) + i, at, from, sizes[i]);
        from += sizes[i] + 1;
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
        uint64_t count = x->dtype == LEAT_STRING; /* wraps only where a dimension is 0 */
        for (int i = 0; i < x->rank; i++)
            count *= (uint64_t)dims[i];
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

bool leat_packed_plain(const leat_packed *p)
{
    return p->references == 0;
}

static void drop_references(leat_packed *p)
{
    const entry *x = (const entry *)contents(p);
    for (int i = 0; p->references && i < p->n; i++) {
        const entry *next = after(x);
        leat_tensor_unref(x->shared);
        x = next;
    }
    p->references = 0;
}

void leat_packed_free(leat_packed *p)
{
    if (!p)
        return;
    drop_references(p);
    free(p);
}

void leat_packed_spare(leat_packed *p, leat_spares *spares)
{
    drop_references(p);
    if (p->room > MOST_SPARE - spares->bytes) {
        free(p);
        return;
    }
    p->next = spares->first;
    spares->first = p;
    spares->bytes += p->room;
}

void leat_packed_fetch(const leat_packed *p, bool all)
{
    const int lines = all ? 16 : 2; /* of the cache; the processor foresees the rest */
    for (int i = 0; p && i < lines; i++)
        __builtin_prefetch((const char *)p + 64 * i);
}

/* ---- Batches ---- */

/* Whether two tensors have the same type and shape, and both blocks have their bytes. */
static bool same(const entry *x, const entry *y)
{
    return !x->shared && !y->shared && x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x + 1, y + 1, 8 * (size_t)x->rank) == 0;
}

static bool alike(leat_packed *const *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const entry *x = (const entry *)contents(v[0]), *y = (const entry *)contents(v[i]);
        if (v[i]->n != v[0]->n || !leat_packed_plain(v[i]))
            return false;
        for (int c = 0; c < v[0]->n; c++, x = after(x), y = after(y))
            if (!same(x, y) || x->rank == LEAT_MAX_RANK)
                return false;
    }
    return true;
}

static leat_shape shape_of(const entry *x, int64_t n)
{
    leat_shape s = {.rank = x->rank + 1};
    s.dim[0] = n;
    memcpy(s.dim + 1, x + 1, 8 * (size_t)x->rank);
    return s;
}

static leat_status copy_strings(const entry *const *x, int64_t n, size_t bytes, leat_tensor **out)
{
    const leat_shape s = shape_of(x[0], n);
    const int64_t each = leat_shape_count(&s) / n;
    char *at = NULL;
    LEAT_TRY(leat_strings_new(&s, bytes, out, &at));
    leat_string *to = (*out)->data;
    for (int64_t i = 0; i < n; i++) {
        const size_t *sizes = (const size_t *)(x[i] + 1) + x[i]->rank;
        const char *from = (const char *)(sizes + each);
        for (int64_t j = 0; j < each; from += sizes[j++] + 1)
            at = leat_strings_put(to++, at, from, sizes[j]);
    }
    return NULL;
}

static size_t bytes_of(const entry *const *x, int64_t n)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += x[i]->bytes;
    return bytes;
}

/* The blocks that a batch's strings are in. */
typedef struct held {
    returns *returns; /* a reference */
    int64_t n;
    leat_packed *v[];
} held;

static void free_held(void *strings, void *arg)
{
    held *h = arg;
    give_back(h->returns, h->v, h->n);
    returns_unref(h->returns);
    free(strings);
}

/* The batch of n blocks that have one string each. False if there is no memory. */
static bool hold_strings(leat_packed *const *v, int64_t n, leat_spares *spares, leat_tensor **out)
{
    const size_t strings = (sizeof(leat_string) * (size_t)n + LEAT_ALIGN - 1) & -(size_t)LEAT_ALIGN;
    const size_t more = sizeof(held) + sizeof(*v) * (size_t)n;
    leat_string *to =
        aligned_alloc(LEAT_ALIGN, strings + ((more + LEAT_ALIGN - 1) & -(size_t)LEAT_ALIGN));
    if (!to)
        return false;
    held *h = (held *)((char *)to + strings);
    leat_buffer *b = leat_buffer_wrap(to, sizeof(*to) * (size_t)n, free_held, h);
    if (!b) {
        free(to);
        return false;
    }
    if (!spares->returns)
        spares->returns = returns_new();
    atomic_fetch_add(&spares->returns->refs, 1);
    h->returns = spares->returns;
    h->n = n;
    b->fixed = true;
    for (int64_t i = 0; i < n; i++) {
        size_t *size = (size_t *)(contents(v[i]) + sizeof(entry));
        h->v[i] = v[i];
        to[i] = *size ? (leat_string){(char *)(size + 1), *size} : (leat_string){0};
    }
    const leat_shape shape = leat_shape(n);
    *out = leat_tensor_over(b, to, LEAT_STRING, &shape);
    return true;
}

/* The batch of n tensors that are alike. */
static leat_status batch(const entry *const *x, int64_t n, leat_tensor **out)
{
    if (x[0]->dtype == LEAT_STRING)
        return copy_strings(x, n, bytes_of(x, n), out);
    const leat_shape s = shape_of(x[0], n);
    const size_t bytes = x[0]->bytes;
    LEAT_TRY(leat_tensor_alloc(NULL, (leat_dtype)x[0]->dtype, &s, out));
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)(*out)->data + (size_t)i * bytes,
               (const char *)(x[i] + 1) + 8 * (size_t)x[i]->rank, bytes);
    return NULL;
}

static leat_status copy_all(leat_packed *const *v, const entry **at, int64_t n, leat_element *out)
{
    leat_element e = leat_element_new(v[0]->n);
    leat_status s = NULL;
    for (int c = 0; c < e.n && !s; c++) {
        s = batch(at, n, &e.v[c]);
        for (int64_t i = 0; i < n; i++)
            at[i] = after(at[i]);
    }
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

leat_status leat_packed_batch(leat_packed *const *v, int64_t *n, leat_spares *spares,
                              leat_element *out)
{
    if (!alike(v, *n))
        return NULL;
    const entry **at = leat_new_array(const entry *, *n);
    for (int64_t i = 0; i < *n; i++)
        at[i] = (const entry *)contents(v[i]);
    const bool one = v[0]->n == 1 && at[0]->dtype == LEAT_STRING && at[0]->rank == 0;
    leat_status s = NULL;
    leat_tensor *t;
    if (one && bytes_of(at, *n) / LONG_STRING >= (size_t)*n && hold_strings(v, *n, spares, &t)) {
        *out = leat_element_new(1);
        out->v[0] = t;
    } else {
        s = copy_all(v, at, *n, out);
        for (int64_t i = 0; i < *n && !s; i++)
            leat_packed_spare(v[i], spares);
    }
    if (!s)
        *n = 0;
    free(at);
    return s;
}
