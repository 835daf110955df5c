/* tensor.c -- tensor headers: a view (dtype, shape, place) of a counted buffer. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/block.h"
#include "core/buffer.h"
#include "core/checked.h"
#include "core/element.h"
#include "core/object.h"

/* The data of tensors without elements points here, so that it is never NULL. */
static _Alignas(LEAT_ALIGN) char nothing[LEAT_ALIGN];

/* An error if there can be no tensor of this dtype and shape. */
static leat_status refuse(leat_dtype t, const leat_shape *shape)
{
    LEAT_REQUIRE(leat_element_size(t) > 0, INVALID_ARGUMENT, "a tensor cannot be of type %s",
                 leat_dtype_name(t));
    LEAT_REQUIRE(shape->rank <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "Too many dimensions: %d; a tensor has at most %d", shape->rank, LEAT_MAX_RANK);
    for (int i = 0; i < shape->rank; i++)
        LEAT_REQUIRE(shape->dim[i] >= -1, INVALID_ARGUMENT, "Dimension %" PRId64 " must be >= 0",
                     shape->dim[i]);
    LEAT_REQUIRE(leat_shape_known(shape), INVALID_ARGUMENT, "Shape %s is not fully defined",
                 leat_shape_show(shape).s);
    return leat_error(INVALID_ARGUMENT, "Shape %s is too large (more than 2**63 - 1 %s)",
                      leat_shape_show(shape).s, leat_shape_count(shape) < 0 ? "entries" : "bytes");
}

/* The number of elements of a tensor of this dtype and shape; -1 if there can be no such tensor. */
static int64_t measure(leat_dtype t, const leat_shape *shape)
{
    int64_t size = (int64_t)leat_element_size(t), bytes;
    if (size == 0 || shape->rank > LEAT_MAX_RANK)
        return -1;
    int64_t count = leat_shape_count(shape);
    return count >= 0 && leat_mul_ok(count, size, &bytes) ? count : -1;
}

/* In builds that check handles, headers that were released are kept for a while (core/object.h),
 * and all functions of the API see whether a tensor is one of them; in others only whether it is
 * NULL. */
#ifdef LEAT_CHECK_HANDLES
#define USABLE(t) LEAT_USABLE(TENSOR, t)

static leat_tensor *header_alloc(void)
{
    return leat_new_object(leat_tensor, TENSOR);
}

static void header_free(leat_tensor *t)
{
    leat_object_free(&t->object);
}

leat_status leat_tensor_check(const leat_tensor *t, const char *function)
{
    return leat_object_check(t, LEAT_OBJECT_TENSOR, function);
}
#else
#define USABLE(t) ((t) || LEAT_USABLE(TENSOR, t))

static leat_tensor *header_alloc(void)
{
    return leat_block_xalloc(sizeof(leat_tensor));
}

static void header_free(leat_tensor *t)
{
    leat_block_free(t, sizeof(*t));
}

leat_status leat_tensor_check(const leat_tensor *t, const char *function)
{
    return t ? NULL : leat_object_check(t, LEAT_OBJECT_TENSOR, function);
}
#endif

bool leat_tensor_usable(const leat_tensor *t, const char *function)
{
    leat_status s = leat_tensor_check(t, function);
    leat_status_free(s);
    return !s || leat_object_report(t, LEAT_OBJECT_TENSOR, function);
}

static leat_tensor *header_new(leat_buffer *b, void *data, leat_dtype t, int64_t count,
                               const leat_shape *shape)
{
    leat_tensor *x = header_alloc();
    atomic_init(&x->refs, 1);
    x->dtype = t;
    x->count = count;
    x->data = data ? data : nothing;
    x->buffer = b;
    x->shape.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++)
        x->shape.dim[i] = shape->dim[i];
    return x;
}

leat_tensor *leat_tensor_over(leat_buffer *b, void *data, leat_dtype t, const leat_shape *shape)
{
    return header_new(b, data, t, leat_shape_count(shape), shape);
}

leat_status leat_tensor_alloc(leat_allocator *a, leat_dtype t, const leat_shape *shape,
                              leat_tensor **out)
{
    int64_t count = measure(t, shape);
    if (count < 0)
        return refuse(t, shape);
    leat_buffer *b = NULL;
    if (count > 0) {
        b = leat_buffer_try(a, t, (size_t)count * leat_element_size(t));
        if (!b && a && a->exhausted)
            return leat_status_prefix(a->exhausted(a, (size_t)count * leat_element_size(t)),
                                      "OOM when allocating tensor with shape%s and type %s: ",
                                      leat_shape_show(shape).s, leat_dtype_name(t));
        LEAT_REQUIRE(b, RESOURCE_EXHAUSTED,
                     "OOM when allocating tensor with shape%s and type %s on %s",
                     leat_shape_show(shape).s, leat_dtype_name(t), a ? a->name : "CPU");
    }
    *out = header_new(b, b ? b->data : NULL, t, count, shape);
    return NULL;
}

leat_status leat_strings_new(const leat_shape *shape, size_t bytes, leat_tensor **out,
                             char **bytes_out)
{
    const int64_t count = measure(LEAT_STRING, shape);
    if (count < 0)
        return refuse(LEAT_STRING, shape);
    leat_buffer *b = NULL;
    if (count > 0) {
        const size_t elements = (size_t)count * sizeof(leat_string);
        if (bytes <= SIZE_MAX - elements)
            b = leat_buffer_try(NULL, LEAT_UINT8, elements + bytes);
        LEAT_REQUIRE(b, RESOURCE_EXHAUSTED,
                     "OOM when allocating tensor with shape%s and type string, of %zu bytes",
                     leat_shape_show(shape).s, bytes);
        b->fixed = true;
        memset(b->data, 0, elements);
        *bytes_out = (char *)b->data + elements;
    }
    *out = header_new(b, b ? b->data : NULL, LEAT_STRING, count, shape);
    return NULL;
}

leat_status leat_tensor_new(leat_dtype t, leat_shape shape, leat_tensor **tensor_out)
{
    leat_tensor *x;
    LEAT_TRY(leat_tensor_alloc(NULL, t, &shape, &x));
    if (!leat_dtype_managed(t))
        memset(x->data, 0, leat_tensor_bytes(x));
    *tensor_out = x;
    return NULL;
}

leat_status leat_tensor_copy_of(leat_dtype t, leat_shape shape, const void *data,
                                leat_tensor **tensor_out)
{
    leat_tensor *x;
    LEAT_REQUIRE(!leat_dtype_managed(t), INVALID_ARGUMENT,
                 "a tensor of type %s cannot be made from bytes", leat_dtype_name(t));
    LEAT_TRY(leat_tensor_alloc(NULL, t, &shape, &x));
    if (x->count && !data) {
        leat_tensor_unref(x);
        return leat_error(INVALID_ARGUMENT, "%s: data is NULL", __func__);
    }
    if (x->count)
        memcpy(x->data, data, leat_tensor_bytes(x));
    *tensor_out = x;
    return NULL;
}

/* Complex elements are aligned like their parts, all others to their size. */
static size_t alignment(leat_dtype t)
{
    size_t size = leat_element_size(t);
    return t == LEAT_COMPLEX64 ? 4 : size > 8 ? 8 : size;
}

leat_status leat_tensor_wrap(leat_dtype t, leat_shape shape, void *data,
                             void (*free_fn)(void *data, void *arg), void *arg,
                             leat_tensor **tensor_out)
{
    int64_t count = measure(t, &shape);
    if (count < 0)
        return refuse(t, &shape);
    LEAT_REQUIRE(count == 0 || (data && (uintptr_t)data % alignment(t) == 0), INVALID_ARGUMENT,
                 "the memory at %p is not aligned to elements of type %s", data,
                 leat_dtype_name(t));
    leat_buffer *b = leat_buffer_wrap(data, (size_t)count * leat_element_size(t), free_fn, arg);
    LEAT_REQUIRE(b, RESOURCE_EXHAUSTED, "OOM when allocating a buffer's header");
    *tensor_out = header_new(b, data, t, count, &shape);
    return NULL;
}

static leat_tensor *view(const leat_tensor *t, void *data, int64_t count, const leat_shape *shape)
{
    if (t->buffer)
        leat_buffer_ref(t->buffer);
    return header_new(t->buffer, data, t->dtype, count, shape);
}

leat_status leat_tensor_reshape(const leat_tensor *t, leat_shape shape, leat_tensor **tensor_out)
{
    LEAT_TRY(leat_tensor_check(t, __func__));
    int64_t count = measure(t->dtype, &shape);
    if (count < 0)
        return refuse(t->dtype, &shape);
    LEAT_REQUIRE(count == t->count, INVALID_ARGUMENT,
                 "Input to reshape is a tensor with %" PRId64
                 " values, but the requested shape has %" PRId64,
                 t->count, count);
    *tensor_out = view(t, t->data, count, &shape);
    return NULL;
}

leat_status leat_tensor_rows(const leat_tensor *t, int64_t begin, int64_t end,
                             leat_tensor **tensor_out)
{
    LEAT_TRY(leat_tensor_check(t, __func__));
    LEAT_REQUIRE(t->shape.rank >= 1, INVALID_ARGUMENT, "a scalar has no rows");
    LEAT_REQUIRE(0 <= begin && begin <= end && end <= t->shape.dim[0], INVALID_ARGUMENT,
                 "rows [%" PRId64 ", %" PRId64 ") are not within shape %s", begin, end,
                 leat_shape_show(&t->shape).s);
    leat_shape shape = leat_tensor_shape(t);
    int64_t row = t->shape.dim[0] ? t->count / t->shape.dim[0] : 0; /* elements */
    shape.dim[0] = end - begin;
    char *data = (char *)t->data + (size_t)(begin * row) * leat_element_size(t->dtype);
    *tensor_out = view(t, data, row * (end - begin), &shape);
    return NULL;
}

leat_status leat_tensor_clone(leat_allocator *a, const leat_tensor *t, leat_tensor **out)
{
    leat_tensor *x;
    leat_allocator *from = leat_tensor_memory(t);
    if (!a) /* wherever it is */
        a = from;
    LEAT_REQUIRE(!t->count || from == (a && a->device ? a : NULL), INTERNAL,
                 "A tensor in the memory of %s cannot be cloned in that of %s",
                 from ? from->name : "the host", a ? a->name : "the host");
    LEAT_TRY(leat_tensor_alloc(a, t->dtype, &t->shape, &x));
    leat_status s = from ? from->copy(from, x->data, t->data, leat_tensor_bytes(t))
                         : leat_elements_copy(t->dtype, x->data, t->data, t->count);
    if (s) {
        leat_tensor_unref(x);
        return s;
    }
    *out = x;
    return NULL;
}

leat_tensor *leat_tensor_ref(const leat_tensor *t)
{
    leat_tensor *shared = (leat_tensor *)t;
    if (shared && USABLE(t))
        atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void leat_tensor_unref(leat_tensor *t)
{
    if (!t || !USABLE(t) ||
        (atomic_load_explicit(&t->refs, memory_order_acquire) != 1 &&
         atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1))
        return;
    leat_buffer_unref(t->buffer);
    header_free(t);
}

leat_dtype leat_tensor_dtype(const leat_tensor *t)
{
    return USABLE(t) ? t->dtype : LEAT_INVALID;
}

leat_shape leat_tensor_shape(const leat_tensor *t)
{
    if (!USABLE(t))
        return leat_shape_unknown();
    leat_shape s = {.rank = t->shape.rank};
    memcpy(s.dim, t->shape.dim, (size_t)s.rank * sizeof(s.dim[0]));
    return s;
}

int leat_tensor_rank(const leat_tensor *t)
{
    return USABLE(t) ? t->shape.rank : -1;
}

int64_t leat_tensor_dim(const leat_tensor *t, int i)
{
    return USABLE(t) && i >= 0 && i < t->shape.rank ? t->shape.dim[i] : -1;
}

int64_t leat_tensor_count(const leat_tensor *t)
{
    return USABLE(t) ? t->count : 0;
}

size_t leat_tensor_bytes(const leat_tensor *t)
{
    return USABLE(t) ? (size_t)t->count * leat_element_size(t->dtype) : 0;
}

const void *leat_tensor_data(const leat_tensor *t)
{
    return USABLE(t) ? t->data : NULL;
}

void *leat_tensor_mutable(leat_tensor *t)
{
    return USABLE(t) && leat_tensor_sole(t) ? t->data : NULL;
}
