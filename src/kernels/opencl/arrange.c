/* arrange.c -- ops that only move elements of any numbers: Transpose, StridedSlice, Tile, Concat,
 * Pack. */
#include <string.h>

#include "core/element.h"
#include "kernels/cpu/shapes.h"
#include "kernels/opencl/walk.h"
#include "ops/strided_spec.h"

static size_t element_of(const leat_tensor *t)
{
    return leat_element_size(t->dtype);
}

static void *element_at(const leat_tensor *t, int64_t i)
{
    return (char *)t->data + i * (int64_t)element_of(t);
}

static leat_status transpose(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *perm = leat_kernel_in(k, 1);
    const int rank = x->shape.rank;
    bool seen[LEAT_MAX_RANK] = {0};
    int64_t from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    leat_shape shape = {.rank = rank};
    leat_cl_walk w = {0};
    leat_tensor *y;
    LEAT_REQUIRE(perm->shape.rank == 1, INVALID_ARGUMENT, "perm must be rank 1, got shape %s",
                 leat_shape_show(&perm->shape).s);
    LEAT_REQUIRE(perm->count == rank, INVALID_ARGUMENT,
                 "transpose expects a vector of size %d. But input(1) is a vector of size %lld",
                 rank, (long long)perm->count);
    for (int d = 0; d < rank; d++) {
        const int64_t p = leat_index_at(perm, d);
        LEAT_REQUIRE(p >= 0 && p < rank, INVALID_ARGUMENT, "%lld is out of range [0 .. %d)",
                     (long long)p, rank);
        seen[p] = true;
        shape.dim[d] = x->shape.dim[p];
    }
    for (int d = 0; d < rank; d++)
        LEAT_REQUIRE(seen[d], INVALID_ARGUMENT, "%d is missing from {%s}.", d,
                     leat_ints_show(perm, ",").s);
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!y->count)
        return NULL;
    leat_cl_strides(&x->shape, from);
    leat_cl_strides(&shape, to);
    for (int d = 0; d < rank; d++)
        LEAT_TRY(leat_cl_walk_dim(&w, shape.dim[d], to[d], from[leat_index_at(perm, d)]));
    return leat_cl_move(leat_cl_of(k), &w, element_of(x), y->data, x->data);
}

static leat_status strided(leat_kernel *k, bool grad)
{
    const int first = grad;
    const leat_tensor *x = leat_kernel_in(k, grad ? 4 : 0);
    const leat_strided_masks masks = leat_strided_masks_of(leat_kernel_node(k));
    leat_strided_spec s;
    leat_shape whole = x->shape;
    leat_tensor *y;
    int64_t outer[LEAT_MAX_RANK], at = 0;
    leat_cl_walk w = {0};
    if (grad)
        LEAT_TRY(leat_shape_from_tensor(leat_kernel_in(k, 0), &whole));
    LEAT_TRY(leat_strided_resolve(&whole, leat_kernel_in(k, first + (grad ? 0 : 1)),
                                  leat_kernel_in(k, first + (grad ? 1 : 2)),
                                  leat_kernel_in(k, first + (grad ? 2 : 3)), &masks, &s));
    LEAT_REQUIRE(!grad || leat_shape_equal(&s.out, &x->shape), INVALID_ARGUMENT,
                 "shape of dy was %s instead of %s", leat_shape_show(&x->shape).s,
                 leat_shape_show(&s.out).s);
    LEAT_TRY(leat_kernel_out(k, 0, grad ? &whole : &s.out, &y));
    if (grad)
        LEAT_TRY(leat_cl_fill(leat_cl_of(k), y->data, y->count, element_of(y), NULL));
    if (!x->count || !y->count)
        return NULL;
    leat_shape sizes = {.rank = s.rank};
    memcpy(sizes.dim, s.size, sizeof sizes.dim);
    int64_t inner[LEAT_MAX_RANK];
    leat_cl_strides(&whole, outer);
    leat_cl_strides(&sizes, inner);
    for (int d = 0; d < s.rank; d++) {
        const int64_t step = outer[d] * s.stride[d];
        at += outer[d] * s.begin[d];
        LEAT_TRY(leat_cl_walk_dim(&w, s.size[d], grad ? step : inner[d], grad ? inner[d] : step));
    }
    return leat_cl_move(leat_cl_of(k), &w, element_of(x), grad ? element_at(y, at) : y->data,
                        grad ? x->data : element_at(x, at));
}

static leat_status strided_slice(leat_kernel *k)
{
    return strided(k, false);
}

static leat_status strided_slice_grad(leat_kernel *k)
{
    return strided(k, true);
}

/* Copies (outer, n, inner) elements between places whose rows have a_row and b_row elements. */
static leat_status rows(leat_kernel *k, int64_t outer, int64_t row, int64_t to_row,
                        int64_t from_row, size_t size, void *to, const void *from)
{
    leat_cl_walk w = {0};
    LEAT_TRY(leat_cl_walk_dim(&w, outer, to_row, from_row));
    LEAT_TRY(leat_cl_walk_dim(&w, row, 1, 1));
    return leat_cl_move(leat_cl_of(k), &w, size, to, from);
}

static leat_status concat(leat_kernel *k)
{
    const bool two = strcmp(leat_node_op(leat_kernel_node(k)), "ConcatV2") == 0;
    const int n = leat_kernel_inputs(k) - 1, begin = two ? 0 : 1;
    const leat_tensor *axis = leat_kernel_in(k, two ? n : 0), *first = leat_kernel_in(k, begin);
    const int rank = first->shape.rank;
    leat_shape shape = first->shape;
    leat_tensor *y;
    LEAT_REQUIRE(axis->count == 1, INVALID_ARGUMENT,
                 "Concat dim tensor should be a scalar integer, but got shape %s",
                 leat_shape_show(&axis->shape).s);
    int64_t a = leat_index_at(axis, 0), outer = 1, at = 0;
    LEAT_REQUIRE(a >= -rank && a < rank, INVALID_ARGUMENT,
                 "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld",
                 -rank, rank, (long long)a);
    a += a < 0 ? rank : 0;
    shape.dim[a] = 0;
    for (int i = 0; i < n; i++) {
        const leat_shape *s = &leat_kernel_in(k, begin + i)->shape;
        LEAT_REQUIRE(s->rank == rank, INVALID_ARGUMENT,
                     "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. "
                     "shape[%d] = %s",
                     leat_shape_show(&first->shape).s, i, leat_shape_show(s).s);
        for (int d = 0; d < rank; d++)
            LEAT_REQUIRE(d == a || s->dim[d] == shape.dim[d], INVALID_ARGUMENT,
                         "ConcatOp : Dimensions of inputs should match: shape[0] = %s vs. "
                         "shape[%d] = %s",
                         leat_shape_show(&first->shape).s, i, leat_shape_show(s).s);
        shape.dim[a] += s->dim[a];
    }
    for (int d = 0; d < a; d++)
        outer *= shape.dim[d];
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    for (int i = 0; i < n && y->count; i++) {
        const leat_tensor *x = leat_kernel_in(k, begin + i);
        const int64_t row = x->count / outer;
        LEAT_TRY(
            rows(k, outer, row, y->count / outer, row, element_of(x), element_at(y, at), x->data));
        at += row;
    }
    return NULL;
}

static leat_status pack(leat_kernel *k)
{
    const int n = leat_kernel_inputs(k);
    const leat_tensor *first = leat_kernel_in(k, 0);
    const int rank = first->shape.rank + 1;
    int64_t a = leat_node_int(leat_kernel_node(k), "axis"), outer = 1;
    leat_shape shape = {.rank = rank};
    leat_tensor *y;
    LEAT_REQUIRE(rank <= LEAT_MAX_RANK && a >= -rank && a < rank, INVALID_ARGUMENT,
                 "axis = %lld not in [%d, %d)", (long long)a, -rank, rank);
    a += a < 0 ? rank : 0;
    for (int d = 0; d < rank; d++) {
        shape.dim[d] = d == a ? n : first->shape.dim[d - (d > a)];
        outer *= d < a ? shape.dim[d] : 1;
    }
    for (int i = 1; i < n; i++)
        LEAT_REQUIRE(
            leat_shape_equal(&first->shape, &leat_kernel_in(k, i)->shape), INVALID_ARGUMENT,
            "Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = %s",
            leat_shape_show(&first->shape).s, i, leat_shape_show(&leat_kernel_in(k, i)->shape).s);
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    const int64_t row = y->count ? first->count / outer : 0;
    for (int i = 0; i < n && y->count; i++)
        LEAT_TRY(rows(k, outer, row, n * row, row, element_of(y), element_at(y, i * row),
                      leat_kernel_in(k, i)->data));
    return NULL;
}

static leat_status tile(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *times = leat_kernel_in(k, 1);
    const int rank = x->shape.rank;
    leat_shape shape = x->shape;
    int64_t from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    leat_cl_walk w = {0};
    leat_tensor *y;
    LEAT_REQUIRE(times->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected multiples to be 1-D, but got shape %s",
                 leat_shape_show(&times->shape).s);
    LEAT_REQUIRE(times->count == rank, INVALID_ARGUMENT,
                 "Expected multiples argument to be a vector of length %d but got length %lld",
                 rank, (long long)times->count);
    for (int d = 0; d < rank; d++) {
        const int64_t n = leat_index_at(times, d);
        LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "Expected multiples[%d] >= 0, but got %lld", d,
                     (long long)n);
        LEAT_REQUIRE(leat_mul_ok(shape.dim[d], n, &shape.dim[d]), INVALID_ARGUMENT,
                     "the result of Tile is too large");
    }
    LEAT_REQUIRE(leat_shape_count(&shape) >= 0, INVALID_ARGUMENT,
                 "the result of Tile is too large");
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (!y->count)
        return NULL;
    leat_cl_strides(&x->shape, from);
    leat_cl_strides(&shape, to);
    for (int d = 0; d < rank; d++) {
        LEAT_TRY(leat_cl_walk_dim(&w, leat_index_at(times, d), to[d] * x->shape.dim[d], 0));
        LEAT_TRY(leat_cl_walk_dim(&w, x->shape.dim[d], to[d], from[d]));
    }
    return leat_cl_move(leat_cl_of(k), &w, element_of(x), y->data, x->data);
}

#define NUMBERS (LEAT_T(FLOAT) | LEAT_T(INT64) | LEAT_T(BOOL))
#define ROW(name, fn, host_)                                                                       \
    {                                                                                              \
        .op = name, .where = {{"T", NUMBERS}}, .run = fn, .host = host_                            \
    }

const leat_kernel_def leat_opencl_arrange[] = {
    ROW("Transpose", transpose, "perm"),
    ROW("StridedSlice", strided_slice, "begin, end, strides"),
    ROW("StridedSliceGrad", strided_slice_grad, "shape, begin, end, strides"),
    ROW("ConcatV2", concat, "axis"),
    ROW("Concat", concat, "concat_dim"),
    ROW("Pack", pack, NULL),
    ROW("Tile", tile, "multiples"),
    {0},
};
