/* buffer.h -- the internals of tensors: reference-counted, aligned memory, and the allocators of
 * devices.
 *
 * 1. A buffer's bytes may be written only while it has one owner, not counting a memory plan's
 * reference (see 3). 2. A tensor header never changes while its count is above one. 3. A memory
 * plan keeps a reference of its own to the buffers that it hands out again each step;
 *    such a buffer has cached = true, and that reference does not count as an owner.
 * 4. The bytes of strings are usually blocks of malloc, one for each string. Those of a fixed
 *    buffer are in the buffer itself, behind the elements (leat_strings_new).
 */
#ifndef LEAT_CORE_BUFFER_H
#define LEAT_CORE_BUFFER_H

#include <leat/tensor.h>
#include <stdatomic.h>
#include <string.h>
#include "core/object.h"

enum { LEAT_ALIGN = 64 }; /* bytes: a cache line, and the widest vector */

/* Where buffers come from. alloc gives NULL when memory is exhausted. */
typedef struct leat_allocator {
    const char *name;
    void *(*alloc)(struct leat_allocator *a, size_t size); /* LEAT_ALIGN-aligned, not zeroed */
    void (*free)(struct leat_allocator *a, void *p, size_t size);
    atomic_size_t in_use, peak; /* bytes in buffers of 1 KB and more, kept by leat_buffer_new */
    size_t limit;               /* 0: none. Beyond it alloc gives NULL */
    /* Whose memory it is. NULL: the host's. Addresses in another memory are compared and added to
     * as those of the host are, but nobody except the device reads or writes there. Memory that is
     * freed while the device has work to do on it may be given out again for later work alone. */
    struct leat_device *device;
    /* Copies bytes within a memory that is not the host's, in the order of the device's work. */
    leat_status (*copy)(struct leat_allocator *a, void *to, const void *from, size_t bytes);
    /* Frees memory that is kept for later, after alloc gave NULL or the limit was reached; false if
     * there is none. NULL: nobody keeps any. */
    bool (*reclaim)(struct leat_allocator *a);
    /* Words the error after alloc gave NULL for this size; NULL: leat_buffer_new does. */
    leat_status (*exhausted)(struct leat_allocator *a, size_t size);
} leat_allocator;

/* What the calling thread allocates memory for now, such as a node's name, for allocators whose
 * errors say who holds the memory; or NULL. Whoever sets it sets it back before the text goes. */
extern __thread const char *leat_buffer_for;

extern leat_allocator leat_cpu_memory; /* the process's main memory; large buffers use huge pages */
static inline leat_allocator *leat_cpu_allocator(void)
{
    return &leat_cpu_memory;
}

typedef struct leat_buffer {
    atomic_int refs;
    bool cached; /* one of refs is a memory plan's: see rule 3 */
    bool fixed;  /* never written to again, even by a sole owner: see rule 4 */
    /* STRING, RESOURCE or VARIANT if elements must be released with the buffer; else 0. */
    leat_dtype managed;
    size_t size; /* usable bytes at data */
    void *data;
    leat_allocator *allocator;              /* set for memory of an allocator */
    void (*free_fn)(void *data, void *arg); /* for wrapped memory: frees it; may be NULL */
    void *free_arg;
} leat_buffer;

/* Managed elements are zeroed; other bytes are not. NULL allocator: the CPU's.
 * RESOURCE_EXHAUSTED names the size. */
leat_status leat_buffer_new(leat_allocator *a, leat_dtype t, int64_t count,
                            leat_buffer **out) LEAT_MUST_CHECK;
/* The same for a size in bytes and a dtype that tensors can have; NULL if memory is exhausted. */
leat_buffer *leat_buffer_try(leat_allocator *a, leat_dtype t, size_t size);
/* A buffer over the caller's memory; NULL if there is no memory for its header. free_fn may be
 * NULL. */
leat_buffer *leat_buffer_wrap(void *data, size_t size, void (*free_fn)(void *data, void *arg),
                              void *arg);
void leat_buffer_ref(leat_buffer *b);
void leat_buffer_unref(leat_buffer *b); /* of NULL does nothing */
/* True if there is one owner. */
static inline bool leat_buffer_unshared(const leat_buffer *b)
{
    return atomic_load_explicit(&b->refs, memory_order_acquire) == 1 + b->cached;
}
/* True if the one owner may write to it. */
static inline bool leat_buffer_sole(const leat_buffer *b)
{
    return leat_buffer_unshared(b) && !b->fixed;
}

struct leat_tensor {
#ifdef LEAT_CHECK_HANDLES
    leat_object object;
#endif
    atomic_int refs;
    leat_dtype dtype;
    int64_t count;       /* elements */
    void *data;          /* never NULL, even without elements */
    leat_buffer *buffer; /* NULL for most tensors without elements */
    leat_shape shape;    /* fully known */
};

/* An error that names the function of the API if t is NULL or, in builds that check handles, no
 * tensor any more. */
leat_status leat_tensor_check(const leat_tensor *t, const char *function) LEAT_MUST_CHECK;
/* The same for functions that return no status: writes the error to standard error. */
bool leat_tensor_usable(const leat_tensor *t, const char *function);
/* A tensor header over a part of a buffer; takes the caller's reference to b. */
leat_tensor *leat_tensor_over(leat_buffer *b, void *data, leat_dtype t, const leat_shape *shape);
/* An uninitialised tensor from a device's memory (NULL: the CPU's). The size is checked. */
leat_status leat_tensor_alloc(leat_allocator *a, leat_dtype t, const leat_shape *shape,
                              leat_tensor **out) LEAT_MUST_CHECK;
/* A string scalar; the error says how many bytes there was no memory for. */
leat_status leat_tensor_of_string(const char *data, size_t size, leat_tensor **out) LEAT_MUST_CHECK;
/* The same, in a fixed buffer if the string is short: copying it costs less than malloc. */
leat_status leat_tensor_of_bytes(const void *data, size_t size, leat_tensor **out) LEAT_MUST_CHECK;
enum { LEAT_SHORT_STRING = 16 * 1024 };
/* A tensor of empty strings in one fixed buffer, with room for `bytes` bytes of strings, each with
 * its NUL, which the caller writes by leat_strings_put before anybody else sees the tensor. */
leat_status leat_strings_new(const leat_shape *shape, size_t bytes, leat_tensor **out,
                             char **bytes_out) LEAT_MUST_CHECK;
/* Makes s the string of these bytes, which are copied to `at`. Gives where the next one goes. */
static inline char *leat_strings_put(leat_string *s, char *at, const void *data, size_t size)
{
    if (!size)
        return at;
    memcpy(at, data, size);
    at[size] = '\0';
    *s = (leat_string){at, size};
    return at + size + 1;
}
/* Bytes that leat_strings_put needs for a string. */
static inline size_t leat_strings_room(size_t size)
{
    return size ? size + 1 : 0;
}
/* True if there are no references to the elements but the caller's n. */
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
/* True if the holder of this one reference is the only one, whether it may write or not. */
static inline bool leat_tensor_unshared(const leat_tensor *t)
{
    return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
           (!t->buffer || leat_buffer_unshared(t->buffer));
}
/* The memory that the elements are in; NULL: the host's, or there are none. */
static inline leat_allocator *leat_tensor_memory(const leat_tensor *t)
{
    leat_allocator *a = t->buffer ? t->buffer->allocator : NULL;
    return a && a->device ? a : NULL;
}
/* Copies n elements; references of managed elements are counted. dst elements must be zeroed or
 * valid. */
leat_status leat_elements_copy(leat_dtype t, void *dst, const void *src, int64_t n) LEAT_MUST_CHECK;
/* A deep copy in memory of its own; from one memory into the same one. */
leat_status leat_tensor_clone(leat_allocator *a, const leat_tensor *t,
                              leat_tensor **out) LEAT_MUST_CHECK;

/* The contents of an element of a resource tensor. Owns its strings. */
struct leat_handle {
    atomic_int refs;
    char *device, *container, *name, *type_name;
    uint64_t hash_code;
    int n_dtypes; /* dtypes and shapes of the resource, where known */
    leat_dtype *dtypes;
    leat_shape *shapes;
    /* The resource, if it is in this process and lives as long as the handle; or NULL. */
    void *object;
    void (*object_unref)(void *object);
};
leat_handle *leat_handle_new(const char *device, const char *container, const char *name,
                             const char *type_name, uint64_t hash_code);
void leat_handle_ref(leat_handle *h);
void leat_handle_unref(leat_handle *h); /* of NULL does nothing */

#endif
