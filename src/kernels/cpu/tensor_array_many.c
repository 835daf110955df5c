/* tensor_array_many.c -- TensorArrayGatherV3, ScatterV3, ConcatV3, SplitV3: many items of an array
 * at once. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/tensor_array.h"
#include "kernels/cpu/tensor_list.h"

/* ---- Gather and Concat ---- */

static void drop(leat_tensor **v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        leat_tensor_unref(v[i]);
    free(v);
}

/* n items, at `indices` or the first n; freed with drop. */
static leat_status read_many(leat_kernel *k, leat_tensor_array *a, const int32_t *indices,
                             int64_t n, leat_tensor ***out)
{
    leat_tensor **v;
    LEAT_TRY(leat_try_array(n, &v));
    leat_status s = NULL;
    pthread_mutex_lock(&a->lock);
    for (int64_t i = 0; i < n && !s; i++)
        s = leat_tensor_array_read(k, a, indices ? indices[i] : i, &v[i]);
    pthread_mutex_unlock(&a->lock);
    if (s) {
        drop(v, n);
        return s;
    }
    *out = v;
    return NULL;
}

/* Copies the items one after another. */
static leat_status join(leat_kernel *k, leat_tensor **v, int64_t n, leat_tensor *y)
{
    size_t size = leat_element_size(y->dtype);
    char *at = y->data;
    for (int64_t i = 0; i < n; i++) {
        LEAT_TRY(leat_move_flat(k, y->dtype, at, v[i]->data, v[i]->count));
        at += (size_t)v[i]->count * size;
    }
    return NULL;
}

/* (n, ...s...) */
static leat_status stacked(int64_t n, const leat_shape *s, leat_shape *out)
{
    LEAT_REQUIRE(s->rank < LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "Cannot stack tensors of rank %d: a tensor has at most %d dimensions", s->rank,
                 LEAT_MAX_RANK);
    *out = (leat_shape){.rank = s->rank + 1, .dim = {n}};
    memcpy(out->dim + 1, s->dim, sizeof(*s->dim) * (size_t)s->rank);
    return NULL;
}

static leat_status gather_items(leat_kernel *k, leat_tensor **v, int64_t n, const leat_shape *want)
{
    const leat_shape *first = &v[0]->shape;
    LEAT_REQUIRE(leat_shape_compatible(want, first), INVALID_ARGUMENT,
                 "TensorArray was passed element_shape %s which does not match the Tensor at index "
                 "0: %s",
                 leat_shape_show(want).s, leat_shape_show(first).s);
    for (int64_t i = 1; i < n; i++)
        LEAT_REQUIRE(leat_shape_equal(first, &v[i]->shape), INVALID_ARGUMENT,
                     "TensorArray has inconsistent shapes.  Index 0 has shape: %s but index %lld "
                     "has shape: %s",
                     leat_shape_show(first).s, (long long)i, leat_shape_show(&v[i]->shape).s);
    leat_shape shape;
    leat_tensor *y;
    LEAT_TRY(stacked(n, first, &shape));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    return join(k, v, n, y);
}

static leat_status gather(leat_kernel *k)
{
    leat_shape want = leat_node_shape(leat_kernel_node(k), "element_shape"), shape;
    const leat_tensor *indices = leat_kernel_in(k, 1);
    leat_tensor_array *a = NULL;
    leat_tensor **v, *y;
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_TRY(leat_tensor_array_dtype(a, leat_kernel_out_dtype(k, 0), false));
    pthread_mutex_lock(&a->lock);
    leat_status fits = leat_list_merge(&a->element, &want);
    pthread_mutex_unlock(&a->lock);
    LEAT_TRY(fits);
    LEAT_REQUIRE(indices->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected indices to be a vector, but received shape: %s",
                 leat_shape_show(&indices->shape).s);
    if (indices->count == 0) {
        LEAT_REQUIRE(leat_shape_known(&want), UNIMPLEMENTED,
                     "TensorArray has size zero, but element shape %s is not fully defined. "
                     "Currently only static shapes are supported when packing zero-size "
                     "TensorArrays.",
                     leat_shape_show(&want).s);
        LEAT_TRY(stacked(0, &want, &shape));
        return leat_kernel_out(k, 0, &shape, &y);
    }
    LEAT_TRY(read_many(k, a, AT(int32_t, indices), indices->count, &v));
    leat_status s = gather_items(k, v, indices->count, &want);
    drop(v, indices->count);
    return s;
}

static leat_shape without_first(const leat_shape *s)
{
    leat_shape r = {.rank = s->rank - 1};
    memcpy(r.dim, s->dim + 1, sizeof(*r.dim) * (size_t)r.rank);
    return r;
}

static leat_status concat_items(leat_kernel *k, leat_tensor **v, int64_t n, const leat_shape *want)
{
    leat_shape shape = {0}, row = {0};
    leat_tensor *y, *lengths;
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {n}}, &lengths));
    for (int64_t i = 0; i < n; i++) {
        const leat_shape *s = &v[i]->shape;
        LEAT_REQUIRE(s->rank > 0, INVALID_ARGUMENT,
                     "Concat saw a scalar shape at index %lld but requires at least vectors.  Did "
                     "you mean to call pack?",
                     (long long)i);
        AT(int64_t, lengths)[i] = s->dim[0];
        leat_shape rest = without_first(s);
        if (i == 0) {
            shape = *s;
            row = rest;
            LEAT_REQUIRE(leat_shape_compatible(want, &rest), INVALID_ARGUMENT,
                         "TensorArray was passed element_shape_except0 %s but index 0 has "
                         "(excepting dimension 0) shape: %s which does not match.",
                         leat_shape_show(want).s, leat_shape_show(&rest).s);
            continue;
        }
        LEAT_REQUIRE(leat_shape_equal(&row, &rest), INVALID_ARGUMENT,
                     "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) "
                     "shape: %s but index %lld has (excepting dimension 0) shape: %s",
                     leat_shape_show(&row).s, (long long)i, leat_shape_show(&rest).s);
        LEAT_REQUIRE(leat_add_ok(shape.dim[0], s->dim[0], &shape.dim[0]), INVALID_ARGUMENT,
                     "Too many elements in a TensorArray to concatenate them");
    }
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    return join(k, v, n, y);
}

static leat_status concat(leat_kernel *k)
{
    leat_shape want = leat_node_shape(leat_kernel_node(k), "element_shape_except0"), shape;
    leat_tensor_array *a = NULL;
    leat_tensor **v, *y;
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_TRY(leat_tensor_array_dtype(a, leat_kernel_out_dtype(k, 0), false));
    pthread_mutex_lock(&a->lock);
    leat_status s = leat_tensor_array_open(a);
    int64_t n = a->is_grad && a->marked >= 0 ? a->marked : a->n;
    pthread_mutex_unlock(&a->lock);
    LEAT_TRY(s);
    if (n == 0) {
        LEAT_REQUIRE(leat_shape_known(&want), UNIMPLEMENTED,
                     "TensorArray has size zero, but element_shape_except0 %s is not fully "
                     "defined. Currently only static shapes are supported when concatenating "
                     "zero-size TensorArrays.",
                     leat_shape_show(&want).s);
        LEAT_TRY(stacked(0, &want, &shape));
        LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
        return leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {0}}, &y);
    }
    LEAT_TRY(read_many(k, a, NULL, n, &v));
    s = concat_items(k, v, n, &want);
    drop(v, n);
    return s;
}

/* ---- Scatter and Split ---- */

/* Rows [from, to) of x as an item. An item of a Scatter is one row without its first dimension. */
static leat_status part_of(leat_kernel *k, const leat_tensor *x, int64_t from, int64_t to, bool row,
                           leat_tensor **out)
{
    leat_shape s = x->shape;
    s.dim[0] = to - from;
    if (row)
        s = without_first(&x->shape);
    leat_tensor *y;
    LEAT_TRY(
        leat_tensor_alloc(leat_move_is_far(k) ? k->device->allocator : NULL, x->dtype, &s, &y));
    size_t each = x->shape.dim[0] ? (size_t)(x->count / x->shape.dim[0]) : 0;
    size_t size = leat_element_size(x->dtype);
    leat_status bad = leat_move_flat(k, x->dtype, y->data,
                                     (const char *)x->data + (size_t)from * each * size, y->count);
    if (bad) {
        leat_tensor_unref(y);
        return bad;
    }
    *out = y;
    return NULL;
}

static leat_status write_part(leat_kernel *k, leat_tensor_array *a, int64_t i, const leat_tensor *x,
                              int64_t from, int64_t to, bool row)
{
    leat_tensor *part;
    LEAT_TRY(part_of(k, x, from, to, row, &part));
    leat_status s = leat_tensor_array_write(k, a, i, part);
    leat_tensor_unref(part);
    return s;
}

static leat_status scatter_items(leat_kernel *k, leat_tensor_array *a, const leat_tensor *indices,
                                 const leat_tensor *x)
{
    LEAT_TRY(leat_tensor_array_open(a));
    int64_t most = -1, size = a->n;
    for (int64_t i = 0; i < indices->count; i++)
        most = AT(int32_t, indices)[i] > most ? AT(int32_t, indices)[i] : most;
    if (a->dynamic && size < most + 1)
        size = most + 1;
    LEAT_REQUIRE(most < size, INVALID_ARGUMENT,
                 "Max scatter index must be < array size (%lld vs. %lld)", (long long)most,
                 (long long)size);
    if (!a->is_grad)
        a->marked = size;
    for (int64_t i = 0; i < indices->count; i++)
        LEAT_TRY(write_part(k, a, AT(int32_t, indices)[i], x, i, i + 1, true));
    return NULL;
}

static leat_status scatter(leat_kernel *k)
{
    const leat_tensor *indices = leat_kernel_in(k, 1), *x = leat_kernel_in(k, 2);
    leat_tensor_array *a = NULL;
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_TRY(leat_tensor_array_dtype(a, x->dtype, true));
    LEAT_REQUIRE(x->shape.rank > 0, INVALID_ARGUMENT,
                 "Input value for unpack must be at least a vector but received shape: %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(indices->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected indices to be a vector, but received shape: %s",
                 leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(indices->count == x->shape.dim[0], INVALID_ARGUMENT,
                 "Expected len(indices) == values.shape[0], but saw: %lld vs. %lld",
                 (long long)indices->count, (long long)x->shape.dim[0]);
    pthread_mutex_lock(&a->lock);
    leat_status s = scatter_items(k, a, indices, x);
    pthread_mutex_unlock(&a->lock);
    LEAT_TRY(s);
    leat_kernel_forward(k, 0, 3);
    return NULL;
}

static leat_status split_items(leat_kernel *k, leat_tensor_array *a, const leat_tensor *x,
                               const leat_tensor *lengths)
{
    LEAT_TRY(leat_tensor_array_open(a));
    int64_t size = a->n, n = lengths->count, from = 0;
    if (a->dynamic && size < n)
        size = n;
    LEAT_REQUIRE(size == n, INVALID_ARGUMENT,
                 "TensorArray's size is not equal to the size of lengths (%lld vs. %lld), and the "
                 "TensorArray is not marked as dynamically resizeable",
                 (long long)size, (long long)n);
    LEAT_TRY(leat_tensor_array_dtype(a, x->dtype, true));
    if (!a->is_grad)
        a->marked = size;
    for (int64_t i = 0; i < n; i++) {
        int64_t to = from + AT(int64_t, lengths)[i];
        LEAT_TRY(write_part(k, a, i, x, from, to, false));
        from = to;
    }
    return NULL;
}

static leat_status split(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 1), *lengths = leat_kernel_in(k, 2);
    leat_tensor_array *a = NULL;
    int64_t total = 0;
    LEAT_TRY(leat_tensor_array_of(k, &a));
    LEAT_REQUIRE(lengths->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected lengths to be a vector, received shape: %s",
                 leat_shape_show(&lengths->shape).s);
    bool fits = true;
    for (int64_t i = 0; i < lengths->count; i++)
        fits = fits && AT(int64_t, lengths)[i] >= 0 &&
               leat_add_ok(total, AT(int64_t, lengths)[i], &total);
    LEAT_REQUIRE(x->shape.rank > 0, INVALID_ARGUMENT,
                 "Expected value to be at least a vector, but received shape: %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(fits && total == x->shape.dim[0], INVALID_ARGUMENT,
                 "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                 "%lld and value's shape is: %s",
                 (long long)total, leat_shape_show(&x->shape).s);
    pthread_mutex_lock(&a->lock);
    leat_status s = split_items(k, a, x, lengths);
    pthread_mutex_unlock(&a->lock);
    LEAT_TRY(s);
    leat_kernel_forward(k, 0, 3);
    return NULL;
}

const leat_kernel_def leat_cpu_tensor_array_many[] = {
    {.op = "TensorArrayGatherV3", .run = gather},
    {.op = "TensorArrayScatterV3", .run = scatter},
    {.op = "TensorArrayConcatV3", .run = concat},
    {.op = "TensorArraySplitV3", .run = split},
    {0},
};
