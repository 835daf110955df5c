/* buffer.h -- the inside of tensors: counted, aligned memory, and the allocators of devices.
 *
 * 1. A buffer's bytes may be written only while it has one owner that counts (see 3).
 * 2. A tensor header never changes while its count is above one.
 * 3. A memory plan keeps a reference of its own to the buffers that it hands out again each step;
 *    such a buffer has cached = true, and that reference does not count as an owner.
 */
#ifndef LEAT_CORE_BUFFER_H
#define LEAT_CORE_BUFFER_H

#include <leat/tensor.h>
#include <stdatomic.h>

enum { LEAT_ALIGN = 64 }; /* bytes: a cache line, and the widest vector */

/* Where buffers come from. alloc gives NULL when there is none left. */
typedef struct leat_allocator {
    const char *name;
    void *(*alloc)(struct leat_allocator *a, size_t size); /* LEAT_ALIGN-aligned, not zeroed */
    void (*free)(struct leat_allocator *a, void *p, size_t size);
    atomic_size_t in_use, peak; /* bytes in buffers of 1 KB and more, kept by leat_buffer_new */
    size_t limit;               /* 0: none. Beyond it alloc gives NULL */
} leat_allocator;

extern leat_allocator leat_cpu_memory; /* the process's; huge pages for large buffers */
static inline leat_allocator *leat_cpu_allocator(void)
{
    return &leat_cpu_memory;
}

typedef struct leat_buffer {
    atomic_int refs;
    bool cached;        /* one of refs is a memory plan's: see 3 */
    leat_dtype managed; /* STRING, RESOURCE or VARIANT: elements to be released with it; else 0 */
    size_t size;        /* usable bytes at data */
    void *data;
    leat_allocator *allocator;              /* or */
    void (*free_fn)(void *data, void *arg); /* the owner's, for wrapped memory */
    void *free_arg;
} leat_buffer;

/* Managed elements are zeroed; other bytes are not. NULL allocator: the CPU's.
 * RESOURCE_EXHAUSTED names the size. */
leat_status leat_buffer_new(leat_allocator *a, leat_dtype t, int64_t count,
                            leat_buffer **out) LEAT_MUST_CHECK;
/* The same for a size in bytes of a dtype that tensors can have; NULL without memory. */
leat_buffer *leat_buffer_try(leat_allocator *a, leat_dtype t, size_t size);
/* A buffer of the caller's memory, NULL without memory for its header; free_fn may be NULL. */
leat_buffer *leat_buffer_wrap(void *data, size_t size, void (*free_fn)(void *data, void *arg),
                              void *arg);
void leat_buffer_ref(leat_buffer *b);
void leat_buffer_unref(leat_buffer *b); /* of NULL does nothing */
static inline bool leat_buffer_sole(const leat_buffer *b)
{
    return atomic_load_explicit(&b->refs, memory_order_acquire) == 1 + b->cached;
}

struct leat_tensor {
    atomic_int refs;
    leat_dtype dtype;
    int64_t count;       /* elements */
    void *data;          /* never NULL, even without elements */
    leat_buffer *buffer; /* NULL for most tensors of no elements */
    leat_shape shape;    /* fully known */
};

/* A tensor header over a part of a buffer; takes the caller's reference to b. */
leat_tensor *leat_tensor_over(leat_buffer *b, void *data, leat_dtype t, const leat_shape *shape);
/* An uninitialised tensor from a device's memory (NULL: the CPU's). The size is checked. */
leat_status leat_tensor_alloc(leat_allocator *a, leat_dtype t, const leat_shape *shape,
                              leat_tensor **out) LEAT_MUST_CHECK;
/* True if there are no more than the caller's n references to the elements. */
static inline bool leat_tensor_held_by(const leat_tensor *t, int n)
{
    return atomic_load_explicit(&t->refs, memory_order_acquire) == n &&
           (!t->buffer || leat_buffer_sole(t->buffer));
}
/* True if the holder of this one reference may write to the elements. */
static inline bool leat_tensor_sole(const leat_tensor *t)
{
    return leat_tensor_held_by(t, 1);
}
/* Copies n elements, counting managed ones. dst elements must be zeroed or valid. */
leat_status leat_elements_copy(leat_dtype t, void *dst, const void *src, int64_t n) LEAT_MUST_CHECK;
/* A deep copy in memory of its own. */
leat_status leat_tensor_clone(leat_allocator *a, const leat_tensor *t,
                              leat_tensor **out) LEAT_MUST_CHECK;

/* The inside of resource tensors' elements. Strings are owned. */
struct leat_handle {
    atomic_int refs;
    char *device, *container, *name, *type_name;
    uint64_t hash_code;
    int n_dtypes; /* dtypes and shapes of what is behind it, where known */
    leat_dtype *dtypes;
    leat_shape *shapes;
    void *object; /* what it stands for, if that is in this process and lives as long; or NULL */
    void (*object_unref)(void *object);
};
leat_handle *leat_handle_new(const char *device, const char *container, const char *name,
                             const char *type_name, uint64_t hash_code);
void leat_handle_ref(leat_handle *h);
void leat_handle_unref(leat_handle *h); /* of NULL does nothing */

#endif
