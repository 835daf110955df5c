/* buffer.c -- reference-counted memory. A small buffer of CPU memory is one block: header, then
 * data. */
#include "core/buffer.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/block.h"
#include "core/checked.h"
#include "core/element.h"

enum {
    HEADER = LEAT_ALIGN, /* bytes before the data of a small buffer */
    /* Smaller buffers are not counted in in_use: two atomic additions to a shared cache line would
     * cost more than the rest of the allocation. */
    COUNTED_FROM = 1024,
};
static_assert(sizeof(leat_buffer) <= HEADER, "a buffer's header fits before its data");

__thread const char *leat_buffer_for;

static bool charge(leat_allocator *a, size_t size)
{
    if (size < COUNTED_FROM)
        return true;
    size_t now = atomic_fetch_add_explicit(&a->in_use, size, memory_order_relaxed) + size;
    if (a->limit && now > a->limit) {
        atomic_fetch_sub_explicit(&a->in_use, size, memory_order_relaxed);
        return false;
    }
    size_t peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(
                             &a->peak, &peak, now, memory_order_relaxed, memory_order_relaxed))
        ;
    return true;
}

static void discharge(leat_allocator *a, size_t size)
{
    if (size >= COUNTED_FROM)
        atomic_fetch_sub_explicit(&a->in_use, size, memory_order_relaxed);
}

/* A header with one owner; allocator and free_fn are not set yet. */
static void start(leat_buffer *b, void *data, size_t size)
{
    atomic_init(&b->refs, 1);
    b->cached = false;
    b->fixed = false;
    b->managed = LEAT_INVALID;
    b->size = size;
    b->data = data;
    b->allocator = NULL;
    b->free_fn = NULL;
    b->free_arg = NULL;
}

static leat_buffer *try_once(leat_allocator *a, leat_dtype t, size_t size)
{
    if (!charge(a, size))
        return NULL;
    bool one = size <= LEAT_BLOCK_MAX - HEADER && a == leat_cpu_allocator();
    leat_buffer *b = leat_block_alloc(one ? HEADER + size : sizeof(*b));
    void *data = !b ? NULL : one ? (char *)b + HEADER : a->alloc(a, size);
    if (!data) {
        if (b)
            leat_block_free(b, sizeof(*b));
        discharge(a, size);
        return NULL;
    }
    start(b, data, size);
    b->allocator = a;
    if (leat_dtype_managed(t)) {
        b->managed = t;
        memset(data, 0, size);
    }
    return b;
}

leat_buffer *leat_buffer_try(leat_allocator *a, leat_dtype t, size_t size)
{
    if (!a)
        a = leat_cpu_allocator();
    leat_buffer *b = try_once(a, t, size);
    if (!b && a->reclaim && a->reclaim(a))
        b = try_once(a, t, size);
    return b;
}

leat_status leat_buffer_new(leat_allocator *a, leat_dtype t, int64_t count, leat_buffer **out)
{
    int64_t size;
    LEAT_REQUIRE(leat_element_size(t) > 0, INVALID_ARGUMENT,
                 "a buffer cannot hold elements of type %s", leat_dtype_name(t));
    LEAT_REQUIRE(count >= 0 && leat_mul_ok(count, (int64_t)leat_element_size(t), &size),
                 INVALID_ARGUMENT, "%lld elements of type %s would need more than 2**63 - 1 bytes",
                 (long long)count, leat_dtype_name(t));
    leat_buffer *b = leat_buffer_try(a, t, (size_t)size);
    if (!b && a && a->exhausted)
        return a->exhausted(a, (size_t)size);
    LEAT_REQUIRE(b, RESOURCE_EXHAUSTED, "OOM when allocating %lld bytes on %s", (long long)size,
                 a ? a->name : "CPU");
    *out = b;
    return NULL;
}

leat_buffer *leat_buffer_wrap(void *data, size_t size, void (*free_fn)(void *data, void *arg),
                              void *arg)
{
    leat_buffer *b = leat_block_alloc(sizeof(*b));
    if (!b)
        return NULL;
    start(b, data, size);
    b->free_fn = free_fn;
    b->free_arg = arg;
    return b;
}

void leat_buffer_ref(leat_buffer *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

static void buffer_free(leat_buffer *b)
{
    leat_allocator *a = b->allocator;
    if (b->managed)
        leat_elements_release(b->managed, b->data,
                              (int64_t)(b->size / leat_dtype_size(b->managed)));
    if (!a) {
        if (b->free_fn)
            b->free_fn(b->data, b->free_arg);
        leat_block_free(b, sizeof(*b));
        return;
    }
    size_t size = b->size;
    bool one = b->data == (char *)b + HEADER;
    if (!one)
        a->free(a, b->data, size);
    discharge(a, size);
    leat_block_free(b, one ? HEADER + size : sizeof(*b));
}

void leat_buffer_unref(leat_buffer *b)
{
    /* The last owner needs no atomic read-modify-write: no other thread can have a reference. */
    if (b && (atomic_load_explicit(&b->refs, memory_order_acquire) == 1 ||
              atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1))
        buffer_free(b);
}
