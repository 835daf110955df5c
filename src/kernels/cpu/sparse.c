/* sparse.c -- sparse tensors: helpers of their kernels, SparseToDense, SparseTensorDenseMatMul. */
#include "kernels/cpu/sparse.h"

#include <stdio.h>

#include "core/element.h"
#include "core/strbuf.h"
#include "kernels/cpu/shapes.h"

leat_status leat_sparse_input(leat_kernel *k, int i, leat_sparse *out)
{
    const leat_tensor *indices = leat_kernel_in(k, i), *values = leat_kernel_in(k, i + 1),
                      *shape = leat_kernel_in(k, i + 2);
    LEAT_REQUIRE(indices->shape.rank == 2, INVALID_ARGUMENT,
                 "Input indices should be a matrix but received shape %s",
                 leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(values->shape.rank == 1, INVALID_ARGUMENT,
                 "Input values should be a vector but received shape %s",
                 leat_shape_show(&values->shape).s);
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT,
                 "Input shape should be a vector but received shape %s",
                 leat_shape_show(&shape->shape).s);
    LEAT_REQUIRE(indices->shape.dim[0] == values->count, INVALID_ARGUMENT,
                 "indices and values rows (indexing dimension) must match. (indices = %lld, "
                 "values = %lld)",
                 (long long)indices->shape.dim[0], (long long)values->count);
    LEAT_REQUIRE(indices->shape.dim[1] == shape->count, INVALID_ARGUMENT,
                 "Number of dimensions must match second dimension of indices. Got %lld "
                 "dimensions, indices shape: %s",
                 (long long)shape->count, leat_shape_show(&indices->shape).s);
    leat_sparse s = {.indices = indices, .values = values, .n = values->count};
    LEAT_TRY(leat_shape_from_tensor(shape, &s.shape));
    s.rank = s.shape.rank;
    *out = s;
    return NULL;
}

static leat_text place_show(const int64_t *place, int rank)
{
    leat_text t = {{0}};
    size_t at = 0;
    for (int d = 0; d < rank && at + 24 < sizeof(t.s); d++)
        at += (size_t)snprintf(t.s + at, sizeof(t.s) - at, "%s%lld", d ? "," : "",
                               (long long)place[d]);
    return t;
}

leat_status leat_sparse_check(const leat_sparse *s, bool ordered)
{
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *place = leat_sparse_at(s, i);
        int order = i == 0 ? 1 : 0; /* the order of this index and the one before */
        for (int d = 0; d < s->rank; d++) {
            LEAT_REQUIRE(place[d] >= 0 && place[d] < s->shape.dim[d], INVALID_ARGUMENT,
                         "indices[%lld] = [%s] is out of bounds: need 0 <= index < [%s]",
                         (long long)i, place_show(place, s->rank).s,
                         place_show(s->shape.dim, s->rank).s);
            if (order == 0 && place[d] != place[d - s->rank])
                order = place[d] > place[d - s->rank] ? 1 : -1;
        }
        if (!ordered)
            continue;
        LEAT_REQUIRE(
            order >= 0, INVALID_ARGUMENT,
            "indices[%lld] = [%s] is out of order. Many sparse ops require sorted "
            "indices.\n    Use the op SparseReorder to create a correctly ordered copy.\n\n",
            (long long)i, place_show(place, s->rank).s);
        LEAT_REQUIRE(order > 0, INVALID_ARGUMENT, "indices[%lld] = [%s] is repeated", (long long)i,
                     place_show(place, s->rank).s);
    }
    return NULL;
}

/* ---- SparseToDense ---- */

static leat_status check_to_dense(const leat_tensor *indices, const leat_tensor *shape,
                                  const leat_tensor *values, const leat_tensor *fill)
{
    LEAT_REQUIRE(indices->shape.rank <= 2, INVALID_ARGUMENT,
                 "sparse_indices should be a scalar, vector, or matrix, got shape %s",
                 leat_shape_show(&indices->shape).s);
    long long n = indices->shape.rank > 0 ? indices->shape.dim[0] : 1;
    long long rank = indices->shape.rank > 1 ? indices->shape.dim[1] : 1;
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT,
                 "output_shape should be a vector, got shape %s", leat_shape_show(&shape->shape).s);
    LEAT_REQUIRE(shape->count == rank, INVALID_ARGUMENT,
                 "output_shape has incorrect number of elements: %lld should be: %lld",
                 (long long)shape->count, rank);
    LEAT_REQUIRE(values->shape.rank == 0 || (values->shape.rank == 1 && values->count == n),
                 INVALID_ARGUMENT, "sparse_values has incorrect shape %s, should be [] or [%lld]",
                 leat_shape_show(&values->shape).s, n);
    LEAT_REQUIRE(fill->shape.rank == 0, INVALID_ARGUMENT, "default_value should be a scalar.");
    return NULL;
}

static leat_status fill_dense(const leat_sparse *s, const leat_tensor *fill, leat_tensor *y)
{
    size_t size = leat_element_size(y->dtype);
    for (int64_t i = 0; i < y->count; i++)
        LEAT_TRY(leat_elements_copy(y->dtype, (char *)y->data + (size_t)i * size, fill->data, 1));
    for (int64_t i = 0; i < s->n; i++) {
        int64_t at = leat_place_flat(&y->shape, y->shape.rank, leat_sparse_at(s, i));
        size_t from = s->values->shape.rank ? (size_t)i : 0;
        LEAT_TRY(leat_elements_copy(y->dtype, (char *)y->data + (size_t)at * size,
                                    (const char *)s->values->data + from * size, 1));
    }
    return NULL;
}

static leat_status to_dense_run(leat_kernel *k)
{
    const leat_tensor *indices = leat_kernel_in(k, 0), *shape = leat_kernel_in(k, 1),
                      *values = leat_kernel_in(k, 2), *fill = leat_kernel_in(k, 3);
    LEAT_TRY(check_to_dense(indices, shape, values, fill));
    leat_sparse s = {.values = values, .n = indices->shape.rank > 0 ? indices->shape.dim[0] : 1};
    leat_tensor *y, *wide;
    LEAT_TRY(leat_shape_from_tensor(shape, &s.shape));
    s.rank = s.shape.rank;
    LEAT_TRY(
        leat_kernel_temp(k, LEAT_INT64, &(leat_shape){.rank = 1, .dim = {indices->count}}, &wide));
    for (int64_t i = 0; i < indices->count; i++)
        AT(int64_t, wide)[i] = leat_index_at(indices, i);
    s.indices = wide;
    if (leat_node_bool(leat_kernel_node(k), "validate_indices"))
        LEAT_TRY(leat_sparse_check(&s, true));
    leat_status bad = leat_sparse_check(&s, false);
    leat_status_free(bad);
    LEAT_REQUIRE(!bad, INVALID_ARGUMENT, "Indices are not valid (out of bounds).  Shape: %s",
                 leat_shape_show(&s.shape).s);
    LEAT_TRY(leat_kernel_out(k, 0, &s.shape, &y));
    return fill_dense(&s, fill, y);
}

/* ---- SparseTensorDenseMatMul ---- */

typedef struct product_args {
    leat_kernel *k;
    const leat_tensor *indices, *values, *b;
    leat_tensor *y;
    bool flip_a, flip_b; /* transposed; b is conjugated, too, but a is not, as in TensorFlow */
} product_args;

/* Row r of y += v * row c of b, for each value v at (r, c). */
#define PRODUCT(name, T, ADD)                                                                      \
    static void product_##name(const product_args *p)                                              \
    {                                                                                              \
        const int64_t n = p->y->shape.dim[1];                                                      \
        const int64_t down = p->flip_b ? 1 : n, right = p->flip_b ? p->b->shape.dim[1] : 1;        \
        leat_look look = leat_look_begin(p->k);                                                    \
        for (int64_t i = 0; i < p->values->count; i++) {                                           \
            if (leat_look_over(&look, n))                                                          \
                return;                                                                            \
            int64_t r = leat_index_at(p->indices, 2 * i + p->flip_a);                              \
            int64_t c = leat_index_at(p->indices, 2 * i + !p->flip_a);                             \
            const T v = AT(T, p->values)[i], *b = AT(T, p->b) + c * down;                          \
            T *y = AT(T, p->y) + r * n;                                                            \
            for (int64_t j = 0; j < n; j++)                                                        \
                ADD;                                                                               \
        }                                                                                          \
    }
#define ADD_REAL y[j] += v * b[j * right]
#define ADD_COMPLEX add_complex(p, &y[j].re, &y[j].im, v.re, v.im, b[j * right].re, b[j * right].im)
#define COMPLEX_SUM(T)                                                                             \
    static void add_complex_##T(const product_args *p, T *re, T *im, T a, T b, T c, T d)           \
    {                                                                                              \
        d = p->flip_b ? -d : d;                                                                    \
        *re += a * c - b * d;                                                                      \
        *im += a * d + b * c;                                                                      \
    }
COMPLEX_SUM(float)
COMPLEX_SUM(double)
PRODUCT(float, float, ADD_REAL)
PRODUCT(double, double, ADD_REAL)
PRODUCT(int32, uint32_t, ADD_REAL)
#define add_complex add_complex_float
PRODUCT(complex64, leat_complex64, ADD_COMPLEX)
#undef add_complex
#define add_complex add_complex_double
PRODUCT(complex128, leat_complex128, ADD_COMPLEX)
#undef add_complex

static leat_status check_product(const product_args *p, const leat_tensor *shape, int64_t *rows,
                                 int64_t *inner)
{
    const leat_tensor *b = p->b;
    LEAT_REQUIRE(b->shape.rank == 2, INVALID_ARGUMENT, "Tensor 'b' is not a matrix");
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT, "Tensor 'a_shape' is not a vector");
    LEAT_REQUIRE(shape->count == 2, INVALID_ARGUMENT, "Tensor 'a_shape' must have 2 elements");
    LEAT_REQUIRE(p->values->shape.rank == 1, INVALID_ARGUMENT, "Tensor 'a_values' is not a vector");
    LEAT_REQUIRE(p->indices->shape.rank == 2, INVALID_ARGUMENT,
                 "Tensor 'a_indices' is not a matrix");
    LEAT_REQUIRE(p->values->count == p->indices->shape.dim[0], INVALID_ARGUMENT,
                 "Number of rows of a_indices does not match number of entries in a_values");
    LEAT_REQUIRE(p->indices->shape.dim[1] == 2, INVALID_ARGUMENT,
                 "Number of columns of a_indices does not match number of entries in a_shape");
    *rows = AT(int64_t, shape)[p->flip_a];
    *inner = AT(int64_t, shape)[!p->flip_a];
    int64_t have = b->shape.dim[p->flip_b];
    LEAT_REQUIRE(*inner == have && *rows >= 0, INVALID_ARGUMENT,
                 "Cannot multiply A and B because inner dimension does not match: %lld vs. %lld.  "
                 "Did you forget a transpose?  Dimensions of A: [%lld, %lld).  Dimensions of B: %s",
                 (long long)*inner, (long long)have, (long long)AT(int64_t, shape)[0],
                 (long long)AT(int64_t, shape)[1], leat_shape_show(&b->shape).s);
    for (int64_t i = 0; i < p->values->count; i++) {
        int64_t r = leat_index_at(p->indices, 2 * i + p->flip_a);
        int64_t c = leat_index_at(p->indices, 2 * i + !p->flip_a);
        LEAT_REQUIRE(c >= 0 && c < *inner, INVALID_ARGUMENT,
                     "k (%lld) from index[%lld,%d] out of bounds (>=%lld)", (long long)c,
                     (long long)i, !p->flip_a, (long long)*inner);
        LEAT_REQUIRE(r >= 0 && r < *rows, INVALID_ARGUMENT,
                     "m (%lld) from index[%lld,%d] out of bounds (>=%lld)", (long long)r,
                     (long long)i, p->flip_a, (long long)*rows);
    }
    return NULL;
}

static leat_status product_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    product_args p = {.k = k,
                      .indices = leat_kernel_in(k, 0),
                      .values = leat_kernel_in(k, 1),
                      .b = leat_kernel_in(k, 3),
                      .flip_a = leat_node_bool(n, "adjoint_a"),
                      .flip_b = leat_node_bool(n, "adjoint_b")};
    int64_t rows = 0, inner = 0;
    LEAT_TRY(check_product(&p, leat_kernel_in(k, 2), &rows, &inner));
    leat_shape shape = {.rank = 2, .dim = {rows, p.b->shape.dim[!p.flip_b]}};
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &p.y));
    memset(p.y->data, 0, (size_t)p.y->count * leat_element_size(p.y->dtype));
    switch (p.y->dtype) {
    case LEAT_FLOAT:
        product_float(&p);
        break;
    case LEAT_DOUBLE:
        product_double(&p);
        break;
    case LEAT_INT32:
        product_int32(&p);
        break;
    case LEAT_COMPLEX64:
        product_complex64(&p);
        break;
    default:
        product_complex128(&p);
    }
    return NULL;
}

#define NUMBERS (LEAT_T(FLOAT) | LEAT_T(DOUBLE) | LEAT_T(INT32) | LEAT_TYPES_COMPLEX)

const leat_kernel_def leat_cpu_sparse[] = {
    {.op = "SparseToDense", .run = to_dense_run},
    {.op = "SparseTensorDenseMatMul",
     .where = {{"T", NUMBERS}},
     .run = product_run,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
