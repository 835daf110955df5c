/* sparse_math.c -- arithmetic on sparse tensors: SparseTensorDenseAdd, SparseAdd and its gradient,
 * SparseSparseMaximum, SparseSparseMinimum, SparseDenseCwiseAdd, Mul and Div, SparseReduceSum and
 * SparseReduceMax, both also with sparse results, SparseSoftmax, SparseSliceGrad. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/sparse.h"
#include "kernels/cpu/update.h"

static void *element(const leat_tensor *t, int64_t i)
{
    return (char *)t->data + (size_t)i * leat_element_size(t->dtype);
}

static leat_status updater(leat_dtype t, leat_update_op op, leat_update_fn *out)
{
    *out = leat_update_of(t, op);
    LEAT_REQUIRE(*out, UNIMPLEMENTED, "Sparse arithmetic on %s is not supported",
                 leat_dtype_name(t));
    return NULL;
}

static int compare_places(const int64_t *a, const int64_t *b, int rank)
{
    for (int d = 0; d < rank; d++)
        if (a[d] != b[d])
            return a[d] < b[d] ? -1 : 1;
    return 0;
}

/* ---- SparseTensorDenseAdd ---- */

static leat_status dense_add_run(leat_kernel *k)
{
    const leat_tensor *indices = leat_kernel_in(k, 0), *values = leat_kernel_in(k, 1),
                      *shape = leat_kernel_in(k, 2), *b = leat_kernel_in(k, 3);
    LEAT_REQUIRE(indices->shape.rank == 2, INVALID_ARGUMENT,
                 "Input a_indices should be a matrix but received shape: %s",
                 leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(values->shape.rank == 1 && shape->shape.rank == 1, INVALID_ARGUMENT,
                 "Inputs a_values and a_shape should be vectors but received shapes: %s and %s",
                 leat_shape_show(&values->shape).s, leat_shape_show(&shape->shape).s);
    LEAT_REQUIRE(shape->count == b->shape.rank, INVALID_ARGUMENT,
                 "Two operands have different ranks; received: %lld and %d",
                 (long long)shape->count, b->shape.rank);
    for (int d = 0; d < b->shape.rank; d++)
        LEAT_REQUIRE(leat_index_at(shape, d) == b->shape.dim[d], INVALID_ARGUMENT,
                     "Dimension %d does not equal (no broadcasting is supported): sparse side %lld "
                     "vs dense side %lld",
                     d, (long long)leat_index_at(shape, d), (long long)b->shape.dim[d]);
    int rank = b->shape.rank;
    LEAT_REQUIRE(indices->shape.dim[0] == values->count && indices->shape.dim[1] == rank,
                 INVALID_ARGUMENT, "a_indices %s does not fit %lld values of rank %d",
                 leat_shape_show(&indices->shape).s, (long long)values->count, rank);
    leat_update_fn add;
    leat_tensor *y;
    LEAT_TRY(updater(b->dtype, LEAT_UPDATE_ADD, &add));
    LEAT_TRY(leat_kernel_out(k, 0, &b->shape, &y));
    memcpy(y->data, b->data, (size_t)b->count * leat_element_size(b->dtype));
    for (int64_t i = 0; i < values->count; i++) {
        int64_t at = 0;
        for (int d = 0; d < rank; d++) {
            int64_t p = leat_index_at(indices, i * rank + d);
            LEAT_REQUIRE(p >= 0 && p < b->shape.dim[d], INVALID_ARGUMENT,
                         "Sparse tensor has some invalid index on dimension %d; dense tensor "
                         "shape: %s",
                         d, leat_shape_show(&b->shape).s);
            at = at * b->shape.dim[d] + p;
        }
        add(element(y, at), element(values, i), 1, 1);
    }
    return NULL;
}

/* ---- Two sparse tensors, index by index ---- */

typedef struct pair { /* the values at one index; -1: none */
    int64_t a, b;
} pair;

static leat_status two_inputs(leat_kernel *k, leat_sparse *a, leat_sparse *b)
{
    LEAT_TRY(leat_sparse_input(k, 0, a));
    LEAT_TRY(leat_sparse_input(k, 3, b));
    LEAT_REQUIRE(a->rank == b->rank, INVALID_ARGUMENT,
                 "Operands do not have the same ranks; got shapes: %s and %s",
                 leat_ints_show(leat_kernel_in(k, 2), " ").s,
                 leat_ints_show(leat_kernel_in(k, 5), " ").s);
    for (int d = 0; d < a->rank; d++)
        LEAT_REQUIRE(a->shape.dim[d] == b->shape.dim[d], INVALID_ARGUMENT,
                     "Operands' shapes do not match: got %lld and %lld for dimension %d",
                     (long long)a->shape.dim[d], (long long)b->shape.dim[d], d);
    return NULL;
}

/* All indices of both, which are sorted; `out` has room. */
static int64_t join(const leat_sparse *a, const leat_sparse *b, pair *out)
{
    int64_t i = 0, j = 0, n = 0;
    while (i < a->n || j < b->n) {
        int c = i == a->n   ? 1
                : j == b->n ? -1
                            : compare_places(leat_sparse_at(a, i), leat_sparse_at(b, j), a->rank);
        out[n++] = (pair){c <= 0 ? i : -1, c >= 0 ? j : -1};
        i += c <= 0;
        j += c >= 0;
    }
    return n;
}

static leat_status give(leat_kernel *k, const leat_sparse *a, const leat_sparse *b, const pair *v,
                        int64_t n, const leat_tensor *values)
{
    leat_tensor *indices, *y;
    int rank = a->rank;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {n, rank}}, &indices));
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {n}}, &y));
    for (int64_t i = 0; i < n; i++)
        memcpy(AT(int64_t, indices) + i * rank,
               v[i].a >= 0 ? leat_sparse_at(a, v[i].a) : leat_sparse_at(b, v[i].b),
               sizeof(int64_t) * (size_t)rank);
    memcpy(y->data, values->data, (size_t)n * leat_element_size(y->dtype));
    return NULL;
}

static double magnitude(const leat_tensor *t, int64_t i)
{
    if (t->dtype == LEAT_COMPLEX64)
        return hypot((double)AT(leat_complex64, t)[i].re, (double)AT(leat_complex64, t)[i].im);
    if (t->dtype == LEAT_COMPLEX128)
        return hypot(AT(leat_complex128, t)[i].re, AT(leat_complex128, t)[i].im);
    return fabs(leat_tensor_at(t, i));
}

/* values[i] = a op b at index i, where a missing value is 0; results below `least` are dropped (for
 * SparseAdd). */
static leat_status combine(leat_kernel *k, leat_update_op op, double least, bool drop)
{
    leat_sparse a, b;
    leat_update_fn fn;
    leat_tensor *values;
    LEAT_TRY(two_inputs(k, &a, &b));
    LEAT_TRY(updater(a.values->dtype, op, &fn));
    leat_shape room = {.rank = 1, .dim = {a.n + b.n}};
    LEAT_TRY(leat_kernel_temp(k, a.values->dtype, &room, &values));
    pair *v;
    LEAT_TRY(leat_try_array(a.n + b.n, &v));
    int64_t all = join(&a, &b, v), n = 0;
    size_t size = leat_element_size(a.values->dtype);
    memset(values->data, 0, (size_t)values->count * size);
    for (int64_t i = 0; i < all; i++) {
        static const leat_16bytes zero = {0, 0};
        if (v[i].a >= 0)
            memcpy(element(values, n), element(a.values, v[i].a), size);
        else
            memset(element(values, n), 0, size);
        fn(element(values, n), v[i].b >= 0 ? element(b.values, v[i].b) : (const void *)&zero, 1, 1);
        v[n] = v[i];
        n += !drop || magnitude(values, n) >= least;
    }
    leat_status s = give(k, &a, &b, v, n, values);
    free(v);
    return s;
}

static leat_status add_run(leat_kernel *k)
{
    const leat_tensor *least = leat_kernel_in(k, 6), *shape = leat_kernel_in(k, 2);
    LEAT_REQUIRE(least->shape.rank == 0, INVALID_ARGUMENT,
                 "The magnitude threshold must be a scalar: got shape %s",
                 leat_shape_show(&least->shape).s);
    LEAT_TRY(combine(k, LEAT_UPDATE_ADD, leat_tensor_at(least, 0), true));
    leat_kernel_set(k, 2, leat_tensor_ref(shape));
    return NULL;
}

static leat_status maximum_run(leat_kernel *k)
{
    return combine(k, LEAT_UPDATE_MAX, 0, false);
}

static leat_status minimum_run(leat_kernel *k)
{
    return combine(k, LEAT_UPDATE_MIN, 0, false);
}

/* The gradient of each value of the sum is that of the values it was computed from. */
static leat_status add_grad_run(leat_kernel *k)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *sum = leat_kernel_in(k, 3);
    for (int i = 0; i < 3; i++)
        LEAT_REQUIRE(leat_kernel_in(k, i + 1)->shape.rank == 2 &&
                         leat_kernel_in(k, i + 1)->shape.dim[1] == sum->shape.dim[1],
                     INVALID_ARGUMENT,
                     "a_indices, b_indices and sum_indices should be matrices of one width");
    LEAT_REQUIRE(dy->count == sum->shape.dim[0], INVALID_ARGUMENT,
                 "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of "
                 "sum): got %lld and %lld",
                 (long long)dy->count, (long long)sum->shape.dim[0]);
    int rank = (int)sum->shape.dim[1];
    size_t size = leat_element_size(dy->dtype);
    for (int side = 0; side < 2; side++) {
        const leat_tensor *at = leat_kernel_in(k, side + 1);
        int64_t n = at->shape.dim[0], j = 0;
        leat_tensor *dx;
        LEAT_TRY(leat_kernel_out(k, side, &(leat_shape){.rank = 1, .dim = {n}}, &dx));
        memset(dx->data, 0, (size_t)n * size);
        for (int64_t i = 0; i < n; i++) {
            const int64_t *place = AT(int64_t, at) + i * rank;
            while (j < dy->count && compare_places(AT(int64_t, sum) + j * rank, place, rank) < 0)
                j++;
            if (j < dy->count && compare_places(AT(int64_t, sum) + j * rank, place, rank) == 0)
                memcpy(element(dx, i), element(dy, j), size);
        }
    }
    return NULL;
}

/* dx is dy at indices that are in the slice, else 0. */
static leat_status slice_grad_run(leat_kernel *k)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *at = leat_kernel_in(k, 1),
                      *start = leat_kernel_in(k, 2), *out = leat_kernel_in(k, 3);
    LEAT_REQUIRE(at->shape.rank == 2 && out->shape.rank == 2, INVALID_ARGUMENT,
                 "Input and output indices should be matrices but received shapes %s and %s",
                 leat_shape_show(&at->shape).s, leat_shape_show(&out->shape).s);
    LEAT_REQUIRE(dy->count == out->shape.dim[0] && at->shape.dim[1] == out->shape.dim[1] &&
                     start->count == at->shape.dim[1],
                 INVALID_ARGUMENT,
                 "The input, output and gradients of a slice do not fit: %s, %s, %s",
                 leat_shape_show(&at->shape).s, leat_shape_show(&out->shape).s,
                 leat_shape_show(&dy->shape).s);
    int rank = (int)at->shape.dim[1];
    int64_t n = at->shape.dim[0], j = 0;
    size_t size = leat_element_size(dy->dtype);
    leat_tensor *dx;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 1, .dim = {n}}, &dx));
    memset(dx->data, 0, (size_t)n * size);
    for (int64_t i = 0; i < n && j < dy->count; i++) {
        bool same = true;
        for (int d = 0; d < rank; d++)
            same = same && AT(int64_t, at)[i * rank + d] ==
                               AT(int64_t, out)[j * rank + d] + AT(int64_t, start)[d];
        if (same)
            memcpy(element(dx, i), element(dy, j++), size);
    }
    return NULL;
}

/* ---- Sparse and dense: the dense side is broadcast to the sparse one ---- */

static leat_status cwise(leat_kernel *k, leat_update_op op)
{
    const leat_tensor *b = leat_kernel_in(k, 3);
    leat_sparse s;
    leat_update_fn fn;
    leat_tensor *y;
    LEAT_TRY(leat_sparse_input(k, 0, &s));
    bool fits = b->shape.rank <= s.rank;
    int lead = s.rank - b->shape.rank;
    for (int d = 0; fits && d < b->shape.rank; d++)
        fits = b->shape.dim[d] == 1 || b->shape.dim[d] == s.shape.dim[d + lead];
    LEAT_REQUIRE(fits, INVALID_ARGUMENT,
                 "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible "
                 "shapes: %s vs. %s",
                 leat_shape_show(&s.shape).s, leat_shape_show(&b->shape).s);
    leat_status bad = leat_sparse_check(&s, false);
    leat_status_free(bad);
    LEAT_REQUIRE(!bad, INVALID_ARGUMENT,
                 "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
    LEAT_TRY(updater(b->dtype, op, &fn));
    LEAT_TRY(leat_kernel_out(k, 0, &s.values->shape, &y));
    memcpy(y->data, s.values->data, (size_t)s.n * leat_element_size(y->dtype));
    for (int64_t i = 0; i < s.n; i++) {
        int64_t at = 0;
        for (int d = 0; d < b->shape.rank; d++)
            at =
                at * b->shape.dim[d] + (b->shape.dim[d] == 1 ? 0 : leat_sparse_at(&s, i)[d + lead]);
        LEAT_REQUIRE(fn(element(y, i), element(b, at), 1, 1), INVALID_ARGUMENT,
                     "Integer division by zero");
    }
    return NULL;
}

static leat_status cwise_add_run(leat_kernel *k)
{
    return cwise(k, LEAT_UPDATE_ADD);
}

static leat_status cwise_mul_run(leat_kernel *k)
{
    return cwise(k, LEAT_UPDATE_MUL);
}

static leat_status cwise_div_run(leat_kernel *k)
{
    return cwise(k, LEAT_UPDATE_DIV);
}

/* ---- Reductions ---- */

typedef struct reduction {
    leat_sparse s;
    bool reduced[LEAT_MAX_RANK];
    leat_shape kept; /* shape of the kept dims, with size 1 for reduced ones if keep_dims */
    leat_shape out;
} reduction;

static leat_status read_reduction(leat_kernel *k, reduction *r)
{
    const leat_tensor *axes = leat_kernel_in(k, 3);
    bool keep = leat_node_bool(leat_kernel_node(k), "keep_dims");
    *r = (reduction){.kept = {0}};
    LEAT_TRY(leat_sparse_input(k, 0, &r->s));
    LEAT_TRY(leat_sparse_check(&r->s, false));
    LEAT_REQUIRE(axes->shape.rank <= 1, INVALID_ARGUMENT,
                 "Expected reduction_axes to be a scalar or a vector; got shape: %s",
                 leat_shape_show(&axes->shape).s);
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t a = leat_index_at(axes, i);
        LEAT_REQUIRE(a >= -r->s.rank && a < r->s.rank, INVALID_ARGUMENT,
                     "Invalid reduction dimension %lld, for input with %d dimensions.",
                     (long long)a, r->s.rank);
        r->reduced[a < 0 ? a + r->s.rank : a] = true;
    }
    for (int d = 0; d < r->s.rank; d++) {
        if (!r->reduced[d])
            r->kept.dim[r->kept.rank++] = r->s.shape.dim[d];
        if (!r->reduced[d] || keep)
            r->out.dim[r->out.rank++] = r->reduced[d] ? 1 : r->s.shape.dim[d];
    }
    return NULL;
}

/* The element of the result that value i belongs to. */
static int64_t group_of(const reduction *r, int64_t i)
{
    int64_t at = 0;
    for (int d = 0; d < r->s.rank; d++)
        if (!r->reduced[d])
            at = at * r->s.shape.dim[d] + leat_sparse_at(&r->s, i)[d];
    return at;
}

/* A dense result, and which of its elements have a contribution; the others are 0. */
static leat_status reduce(const reduction *r, leat_update_op op, leat_tensor *y, bool *seen)
{
    leat_update_fn fn;
    LEAT_TRY(updater(y->dtype, op, &fn));
    size_t size = leat_element_size(y->dtype);
    memset(y->data, 0, (size_t)y->count * size);
    memset(seen, 0, (size_t)y->count);
    for (int64_t i = 0; i < r->s.n; i++) {
        int64_t g = group_of(r, i);
        if (!seen[g])
            memcpy(element(y, g), element(r->s.values, i), size);
        else
            fn(element(y, g), element(r->s.values, i), 1, 1);
        seen[g] = true;
    }
    return NULL;
}

static leat_status reduce_dense(leat_kernel *k, leat_update_op op)
{
    reduction r;
    leat_tensor *y, *seen;
    LEAT_TRY(read_reduction(k, &r));
    LEAT_TRY(leat_kernel_out(k, 0, &r.out, &y));
    LEAT_TRY(leat_kernel_temp(k, LEAT_BOOL, &r.out, &seen));
    return reduce(&r, op, y, seen->data);
}

static leat_status reduce_sparse(leat_kernel *k, leat_update_op op)
{
    reduction r;
    leat_tensor *dense, *seen, *indices, *values, *shape;
    LEAT_TRY(read_reduction(k, &r));
    LEAT_TRY(leat_kernel_temp(k, leat_kernel_in(k, 1)->dtype, &r.out, &dense));
    LEAT_TRY(leat_kernel_temp(k, LEAT_BOOL, &r.out, &seen));
    LEAT_TRY(reduce(&r, op, dense, seen->data));
    int64_t n = 0, rank = r.out.rank;
    for (int64_t i = 0; i < dense->count; i++)
        n += AT(bool, seen)[i];
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {n, rank}}, &indices));
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {n}}, &values));
    LEAT_TRY(leat_kernel_out(k, 2, &(leat_shape){.rank = 1, .dim = {rank}}, &shape));
    memcpy(shape->data, r.out.dim, sizeof(int64_t) * (size_t)rank);
    n = 0;
    for (int64_t i = 0; i < dense->count; i++) {
        if (!AT(bool, seen)[i])
            continue;
        int64_t left = i;
        for (int64_t d = rank - 1; d >= 0; d--) {
            AT(int64_t, indices)[n * rank + d] = left % r.out.dim[d];
            left /= r.out.dim[d];
        }
        memcpy(element(values, n++), element(dense, i), leat_element_size(dense->dtype));
    }
    return NULL;
}

static leat_status sum_run(leat_kernel *k)
{
    return reduce_dense(k, LEAT_UPDATE_ADD);
}

static leat_status max_run(leat_kernel *k)
{
    return reduce_dense(k, LEAT_UPDATE_MAX);
}

static leat_status sum_sparse_run(leat_kernel *k)
{
    return reduce_sparse(k, LEAT_UPDATE_ADD);
}

static leat_status max_sparse_run(leat_kernel *k)
{
    return reduce_sparse(k, LEAT_UPDATE_MAX);
}

/* ---- SparseSoftmax, over the values of each row of the last dimension ---- */

static leat_status softmax_run(leat_kernel *k)
{
    leat_sparse s;
    leat_tensor *y;
    LEAT_TRY(leat_sparse_input(k, 0, &s));
    LEAT_REQUIRE(s.rank >= 2, INVALID_ARGUMENT,
                 "Input should have rank >= 2, but received shape: %s",
                 leat_ints_show(leat_kernel_in(k, 2), " ").s);
    LEAT_TRY(leat_kernel_out(k, 0, &s.values->shape, &y));
    for (int64_t from = 0, to; from < s.n; from = to) {
        double most = -INFINITY, sum = 0;
        for (to = from; to < s.n && compare_places(leat_sparse_at(&s, from), leat_sparse_at(&s, to),
                                                   s.rank - 1) == 0;
             to++)
            most = fmax(most, leat_tensor_at(s.values, to));
        for (int64_t i = from; i < to; i++)
            sum += exp(leat_tensor_at(s.values, i) - most);
        for (int64_t i = from; i < to; i++) {
            double v = exp(leat_tensor_at(s.values, i) - most) / sum;
            if (y->dtype == LEAT_FLOAT)
                AT(float, y)[i] = (float)v;
            else
                AT(double, y)[i] = v;
        }
    }
    return NULL;
}

const leat_kernel_def leat_cpu_sparse_math[] = {
    {.op = "SparseTensorDenseAdd", .run = dense_add_run},
    {.op = "SparseAdd", .run = add_run},
    {.op = "SparseAddGrad", .run = add_grad_run},
    {.op = "SparseSliceGrad", .run = slice_grad_run},
    {.op = "SparseSparseMaximum", .run = maximum_run},
    {.op = "SparseSparseMinimum", .run = minimum_run},
    {.op = "SparseDenseCwiseAdd", .run = cwise_add_run},
    {.op = "SparseDenseCwiseMul", .run = cwise_mul_run},
    {.op = "SparseDenseCwiseDiv", .run = cwise_div_run},
    {.op = "SparseReduceSum", .run = sum_run},
    {.op = "SparseReduceMax", .run = max_run},
    {.op = "SparseReduceSumSparse", .run = sum_sparse_run},
    {.op = "SparseReduceMaxSparse", .run = max_sparse_run},
    {.op = "SparseSoftmax", .run = softmax_run},
    {0},
};
