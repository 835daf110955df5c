/* memory.c -- the memory of a device: chunks of OpenCL's, cut into blocks.
 *
 * 1. The blocks of a chunk cover it without a gap, each linked with its neighbours. Two free blocks
 *    are never neighbours.
 * 2. An allocation takes the smallest free block that is large enough, of those in the first list
 *    that has one, and leaves the rest of the block free.
 * 3. Where no block is large enough, a chunk is added: twice as large as the one before, up to
 *    LARGEST, or as large as the allocation. If there is no memory for that, chunks that are wholly
 *    free are given back, and one of the exact size is tried.
 * 4. What an allocation was for (leat_buffer_for) is kept with the block, so that an error can say
 *    who holds the memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/opencl/opencl.h"

enum { GRAIN = 256, SLOT_BITS = 36, DEVICE_BITS = 46 };
static const size_t SMALLEST = (size_t)16 << 20, LARGEST = (size_t)512 << 20;
static const uint64_t BASE = (uint64_t)1 << 56; /* no address of the host's memory is that high */
_Static_assert((uint64_t)LEAT_CL_CHUNKS << SLOT_BITS == (uint64_t)1 << DEVICE_BITS, "slots");

struct leat_cl_block {
    leat_cl_block *before, *after;  /* neighbours in the chunk */
    leat_cl_block *next, *previous; /* in the list of free blocks */
    int chunk;
    bool used;
    size_t offset, size;
    char owner[48]; /* "" if not known */
};

static atomic_int devices_opened;

static void *address_of(const leat_cl_heap *h, int chunk, size_t offset)
{
    return (void *)(uintptr_t)(BASE + ((uint64_t)h->number << DEVICE_BITS) +
                               ((uint64_t)chunk << SLOT_BITS) + offset);
}

static int chunk_of(const void *address)
{
    return (int)((uintptr_t)address >> SLOT_BITS) & (LEAT_CL_CHUNKS - 1);
}

static size_t offset_of(const void *address)
{
    return (uintptr_t)address & (((uint64_t)1 << SLOT_BITS) - 1);
}

cl_memory leat_cl_where(const leat_opencl *d, const void *address, uint64_t *offset_out)
{
    *offset_out = offset_of(address);
    return d->heap.chunks[chunk_of(address)].memory;
}

/* ---- Free blocks ---- */

static int list_of(size_t size)
{
    return 63 - __builtin_clzl(size);
}

static void spare_add(leat_cl_heap *h, leat_cl_block *b)
{
    leat_cl_block **list = &h->spare[list_of(b->size)];
    b->used = false;
    b->previous = NULL;
    b->next = *list;
    if (*list)
        (*list)->previous = b;
    *list = b;
}

static void spare_remove(leat_cl_heap *h, leat_cl_block *b)
{
    if (b->previous)
        b->previous->next = b->next;
    else
        h->spare[list_of(b->size)] = b->next;
    if (b->next)
        b->next->previous = b->previous;
}

static leat_cl_block *find_spare(leat_cl_heap *h, size_t size)
{
    leat_cl_block *best = NULL;
    for (int i = list_of(size); i < 64 && !best; i++)
        for (leat_cl_block *b = h->spare[i]; b; b = b->next)
            if (b->size >= size && (!best || b->size < best->size))
                best = b;
    return best;
}

static leat_cl_block *block_new(leat_cl_heap *h, int chunk, size_t offset, size_t size)
{
    leat_cl_block *b = leat_new(leat_cl_block);
    b->chunk = chunk;
    b->offset = offset;
    b->size = size;
    h->chunks[chunk].at[offset / GRAIN] = b;
    return b;
}

/* Makes b `size` bytes long; what is left becomes a free block behind it. */
static void cut(leat_cl_heap *h, leat_cl_block *b, size_t size)
{
    if (b->size == size)
        return;
    leat_cl_block *rest = block_new(h, b->chunk, b->offset + size, b->size - size);
    rest->before = b;
    rest->after = b->after;
    if (rest->after)
        rest->after->before = rest;
    b->after = rest;
    b->size = size;
    spare_add(h, rest);
}

/* b, which is in no list, takes in the block behind it, which is not in a list any more either. */
static void join(leat_cl_heap *h, leat_cl_block *b)
{
    leat_cl_block *x = b->after;
    h->chunks[x->chunk].at[x->offset / GRAIN] = NULL;
    b->size += x->size;
    b->after = x->after;
    if (b->after)
        b->after->before = b;
    free(x);
}

/* ---- Chunks ---- */

static bool chunk_add(leat_opencl *d, size_t size)
{
    leat_cl_heap *h = &d->heap;
    int slot = 0;
    int32_t error;
    while (slot < LEAT_CL_CHUNKS && h->chunks[slot].memory)
        slot++;
    const size_t most = (size_t)d->listed->most;
    if (slot == LEAT_CL_CHUNKS || size > most || size > (uint64_t)1 << SLOT_BITS ||
        (d->memory.limit && h->reserved + size > d->memory.limit))
        return false;
    leat_cl_block **at = calloc(size / GRAIN, sizeof *at);
    cl_memory m =
        at ? leat_cl.CreateBuffer(d->context, CL_MEM_READ_WRITE, size, NULL, &error) : NULL;
    if (!m || error) {
        free(at);
        return false;
    }
    h->chunks[slot] = (struct leat_cl_chunk){m, size, at};
    h->reserved += size;
    spare_add(h, block_new(h, slot, 0, size));
    return true;
}

static void chunk_remove(leat_cl_heap *h, int slot)
{
    struct leat_cl_chunk *c = &h->chunks[slot];
    leat_cl.ReleaseMemObject(c->memory); /* what is enqueued on it keeps it until it has run */
    h->reserved -= c->size;
    free(c->at);
    *c = (struct leat_cl_chunk){0};
}

/* Gives back all chunks without a used block. */
static void chunks_return(leat_cl_heap *h)
{
    for (int i = 0; i < LEAT_CL_CHUNKS; i++) {
        leat_cl_block *b = h->chunks[i].memory ? h->chunks[i].at[0] : NULL;
        if (!b || b->used || b->after)
            continue;
        spare_remove(h, b);
        free(b);
        chunk_remove(h, i);
    }
}

static bool grow(leat_opencl *d, size_t size)
{
    const size_t most = (size_t)d->listed->most & ~((size_t)GRAIN - 1);
    size_t wanted = d->heap.reserved < SMALLEST ? SMALLEST : d->heap.reserved;
    if (wanted > LARGEST)
        wanted = LARGEST;
    if (wanted > most)
        wanted = most;
    if (wanted > size && chunk_add(d, wanted))
        return true;
    if (chunk_add(d, size))
        return true;
    chunks_return(&d->heap);
    return chunk_add(d, size);
}

/* ---- The allocator ---- */

static void *allocate(leat_allocator *a, size_t bytes)
{
    leat_opencl *d = (leat_opencl *)a;
    leat_cl_heap *h = &d->heap;
    void *p = NULL;
    if (bytes > (uint64_t)1 << SLOT_BITS)
        return NULL;
    const size_t size = bytes ? (bytes + GRAIN - 1) & ~((size_t)GRAIN - 1) : GRAIN;
    pthread_mutex_lock(&h->lock);
    leat_cl_block *b = find_spare(h, size);
    if (!b && grow(d, size))
        b = find_spare(h, size);
    if (b) {
        spare_remove(h, b);
        cut(h, b, size);
        b->used = true;
        snprintf(b->owner, sizeof b->owner, "%s", leat_buffer_for ? leat_buffer_for : "");
        p = address_of(h, b->chunk, b->offset);
    }
    pthread_mutex_unlock(&h->lock);
    return p;
}

static void release(leat_allocator *a, void *p, size_t bytes)
{
    leat_cl_heap *h = &((leat_opencl *)a)->heap;
    pthread_mutex_lock(&h->lock);
    leat_cl_block *b = h->chunks[chunk_of(p)].at[offset_of(p) / GRAIN];
    if (b->after && !b->after->used) {
        spare_remove(h, b->after);
        join(h, b);
    }
    if (b->before && !b->before->used) {
        b = b->before;
        spare_remove(h, b);
        join(h, b);
    }
    spare_add(h, b);
    pthread_mutex_unlock(&h->lock);
}

static leat_status copy_within(leat_allocator *a, void *to, const void *from, size_t bytes)
{
    return leat_cl_copy(((leat_opencl *)a)->device, LEAT_QUEUE_COMPUTE, LEAT_COPY_WITHIN, to, from,
                        bytes);
}

/* ---- Who holds the memory ---- */

typedef struct holder {
    const char *owner;
    size_t bytes;
} holder;

static int by_owner(const void *a, const void *b)
{
    return strcmp(((const holder *)a)->owner, ((const holder *)b)->owner);
}

static int by_bytes(const void *a, const void *b)
{
    size_t x = ((const holder *)a)->bytes, y = ((const holder *)b)->bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* All used blocks, added up by owner, the largest first. The lock is held. */
static int holders_of(const leat_cl_heap *h, holder **out)
{
    holder *v = NULL;
    int n = 0, cap = 0, kept = 0;
    for (int i = 0; i < LEAT_CL_CHUNKS; i++)
        for (leat_cl_block *b = h->chunks[i].memory ? h->chunks[i].at[0] : NULL; b; b = b->after)
            if (b->used) {
                leat_grow(v, n, cap);
                v[n++] = (holder){b->owner, b->size};
            }
    if (n)
        qsort(v, (size_t)n, sizeof *v, by_owner);
    for (int i = 0; i < n; i++) {
        if (kept && strcmp(v[kept - 1].owner, v[i].owner) == 0)
            v[kept - 1].bytes += v[i].bytes;
        else
            v[kept++] = v[i];
    }
    if (kept)
        qsort(v, (size_t)kept, sizeof *v, by_bytes);
    *out = v;
    return kept;
}

static void put_bytes(leat_strbuf *b, size_t bytes)
{
    if (bytes >= (size_t)10 << 20)
        leat_strbuf_printf(b, "%zu MB", bytes >> 20);
    else if (bytes >= (size_t)10 << 10)
        leat_strbuf_printf(b, "%zu KB", bytes >> 10);
    else
        leat_strbuf_printf(b, "%zu bytes", bytes);
}

static leat_status exhausted(leat_allocator *a, size_t bytes)
{
    enum { SHOWN = 6 };
    leat_opencl *d = (leat_opencl *)a;
    leat_strbuf text = {0};
    holder *v;
    size_t used = 0, rest = 0;
    pthread_mutex_lock(&d->heap.lock);
    int n = holders_of(&d->heap, &v);
    for (int i = 0; i < n; i++)
        used += v[i].bytes;
    put_bytes(&text, used);
    leat_strbuf_puts(&text, " are in use");
    if (a->limit) {
        leat_strbuf_puts(&text, ", and its limit is ");
        put_bytes(&text, a->limit);
    }
    for (int i = 0; i < n; i++) {
        if (i >= SHOWN) {
            rest += v[i].bytes;
            continue;
        }
        leat_strbuf_puts(&text, i ? ", " : ". The largest users: ");
        put_bytes(&text, v[i].bytes);
        leat_strbuf_printf(&text, " %s", v[i].owner[0] ? v[i].owner : "copies and variables");
    }
    if (rest) {
        leat_strbuf_printf(&text, ", and %d others with ", n - SHOWN);
        put_bytes(&text, rest);
    }
    pthread_mutex_unlock(&d->heap.lock);
    free(v);
    leat_status s =
        leat_error(RESOURCE_EXHAUSTED, "OOM when allocating %zu bytes on %s, of which %s", bytes,
                   a->name, leat_strbuf_text(&text));
    leat_strbuf_release(&text);
    return s;
}

leat_status leat_cl_memory_open(leat_opencl *d)
{
    d->heap.number = atomic_fetch_add(&devices_opened, 1) & 511;
    pthread_mutex_init(&d->heap.lock, NULL);
    d->memory = (leat_allocator){.name = d->device->name,
                                 .alloc = allocate,
                                 .free = release,
                                 .limit = (size_t)d->listed->memory,
                                 .device = d->device,
                                 .copy = copy_within,
                                 .exhausted = exhausted};
    return NULL;
}

void leat_cl_memory_close(leat_opencl *d)
{
    for (int i = 0; i < LEAT_CL_CHUNKS; i++) {
        struct leat_cl_chunk *c = &d->heap.chunks[i];
        for (leat_cl_block *b = c->memory ? c->at[0] : NULL, *after; b; b = after) {
            after = b->after;
            free(b);
        }
        if (c->memory)
            chunk_remove(&d->heap, i);
    }
    pthread_mutex_destroy(&d->heap.lock);
}
