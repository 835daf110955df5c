/* queue_batch.c -- checks that tensors fit a queue; divides batches into elements and makes batches
 * of elements. */
#include <stdlib.h>

#include "core/element.h"
#include "kernels/cpu/queue.h"

static leat_status mismatch(int component, const leat_shape *want, const leat_shape *got)
{
    return leat_error(INVALID_ARGUMENT, "Shape mismatch in tuple component %d. Expected %s, got %s",
                      component, leat_shape_show(want).s, leat_shape_show(got).s);
}

leat_status leat_queue_check_one(const leat_queue *q, leat_kernel *k)
{
    for (int i = 0; i < q->n; i++) {
        const leat_shape *s = &leat_kernel_in(k, i + 1)->shape;
        if (q->shapes && !leat_shape_compatible(&q->shapes[i], s))
            return mismatch(i, &q->shapes[i], s);
        LEAT_REQUIRE(q->kind != LEAT_QUEUE_PRIORITY || i > 0 || s->rank == 0, INVALID_ARGUMENT,
                     "Expected the priority element to be a scalar, but received shape: %s",
                     leat_shape_show(s).s);
    }
    return NULL;
}

/* [n] followed by the dims of s; the rank is limited to that of tensors. */
static leat_shape many(int64_t n, const leat_shape *s)
{
    leat_shape r = {.rank = s->rank < LEAT_MAX_RANK ? s->rank + 1 : LEAT_MAX_RANK};
    r.dim[0] = n;
    memcpy(r.dim + 1, s->dim, sizeof(*r.dim) * (size_t)(r.rank - 1));
    return r;
}

leat_status leat_queue_check_many(const leat_queue *q, leat_kernel *k, int64_t *n_out)
{
    const leat_shape *first = &leat_kernel_in(k, 1)->shape;
    int64_t n = first->rank > 0 ? first->dim[0] : -1;
    for (int i = 0; i < q->n; i++) {
        const leat_shape *s = &leat_kernel_in(k, i + 1)->shape;
        if (q->shapes) {
            leat_shape want = many(n, &q->shapes[i]);
            if (n < 0 || !leat_shape_compatible(&want, s))
                return mismatch(i, &want, s);
            continue;
        }
        LEAT_REQUIRE(s->rank > 0, INVALID_ARGUMENT,
                     "Component %d of a batch must have a 0th dimension, but is a scalar", i);
        LEAT_REQUIRE(s->dim[0] == n, INVALID_ARGUMENT,
                     "All input tensors must have the same size in the 0th dimension. Component "
                     "%d has %lld, and should have %lld",
                     i, (long long)s->dim[0], (long long)n);
        LEAT_REQUIRE(q->kind != LEAT_QUEUE_PRIORITY || i > 0 || s->rank == 1, INVALID_ARGUMENT,
                     "Expected the priority element to be a scalar, but received shape: %s",
                     leat_shape_show(&(leat_shape){s->rank - 1, {s->dim[1]}}).s);
    }
    *n_out = n;
    return NULL;
}

/* A copy: a view would keep the whole batch in memory as long as one of its rows is in the
 * queue. */
static leat_status row_of(leat_kernel *k, const leat_tensor *t, int64_t row, leat_tensor **out)
{
    leat_shape s = {.rank = t->shape.rank - 1};
    memcpy(s.dim, t->shape.dim + 1, sizeof(*s.dim) * (size_t)s.rank);
    leat_tensor *y;
    LEAT_TRY(leat_tensor_alloc(leat_kernel_device(k)->allocator, t->dtype, &s, &y));
    const char *from =
        (const char *)t->data + (size_t)(row * y->count) * leat_element_size(t->dtype);
    leat_status bad = leat_elements_copy(t->dtype, y->data, from, y->count);
    if (bad)
        leat_tensor_unref(y);
    else
        *out = y;
    return bad;
}

leat_status leat_queue_slice(const leat_queue *q, leat_kernel *k, int64_t row,
                             leat_tensor **tuple_out)
{
    for (int i = 0; i < q->n; i++) {
        leat_status s = row_of(k, leat_kernel_in(k, i + 1), row, &tuple_out[i]);
        if (!s)
            continue;
        while (i-- > 0)
            leat_tensor_unref(tuple_out[i]);
        return s;
    }
    return NULL;
}

/* ---- Batches ---- */

/* Component c of n elements, where each dim that is not declared is as large as the largest. */
static leat_shape batch_shape(const leat_queue *q, leat_tensor *const *tuples, int64_t n, int c)
{
    leat_shape s = many(n, &q->shapes[c]);
    for (int d = 1; d < s.rank; d++) {
        if (s.dim[d] >= 0)
            continue;
        s.dim[d] = 0;
        for (int64_t e = 0; e < n; e++) {
            int64_t size = tuples[e * q->n + c]->shape.dim[d - 1];
            if (size > s.dim[d])
                s.dim[d] = size;
        }
    }
    return s;
}

/* Copies t to the corner of a larger tensor with the dims `into`. */
static leat_status copy_corner(const leat_tensor *t, const int64_t *into, char *to)
{
    int rank = t->shape.rank;
    size_t size = leat_element_size(t->dtype);
    int64_t run = rank ? t->shape.dim[rank - 1] : 1;
    int64_t at[LEAT_MAX_RANK] = {0};
    for (int64_t done = 0; done < t->count; done += run) {
        int64_t place = 0;
        for (int d = 0; d < rank; d++)
            place = place * into[d] + at[d];
        LEAT_TRY(leat_elements_copy(t->dtype, to + (size_t)place * size,
                                    (const char *)t->data + (size_t)done * size, run));
        for (int d = rank - 2; d >= 0 && ++at[d] == t->shape.dim[d]; d--)
            at[d] = 0;
    }
    return NULL;
}

static leat_status batch_component(const leat_queue *q, leat_kernel *k, leat_tensor *const *tuples,
                                   int64_t n, int c)
{
    leat_shape s = batch_shape(q, tuples, n, c);
    leat_tensor *y;
    LEAT_REQUIRE(q->shapes[c].rank < LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "A batch of elements of shape %s has too many dimensions",
                 leat_shape_show(&q->shapes[c]).s);
    LEAT_TRY(leat_kernel_out(k, c, &s, &y));
    int64_t each = n ? y->count / n : 0;
    size_t bytes = (size_t)each * leat_element_size(y->dtype);
    for (int64_t e = 0; e < n; e++) {
        const leat_tensor *t = tuples[e * q->n + c];
        char *to = (char *)y->data + (size_t)e * bytes;
        if (t->count == each) {
            LEAT_TRY(leat_elements_copy(y->dtype, to, t->data, each));
            continue;
        }
        if (!leat_is_managed(y->dtype))
            memset(to, 0, bytes);
        LEAT_TRY(copy_corner(t, s.dim + 1, to));
    }
    return NULL;
}

leat_status leat_queue_batch(const leat_queue *q, leat_kernel *k, leat_tensor *const *tuples,
                             int64_t n)
{
    for (int c = 0; c < q->n; c++)
        LEAT_TRY(batch_component(q, k, tuples, n, c));
    return NULL;
}
