/* accumulator_sparse.c -- sums of gradients that are rows of a larger tensor: values at indices of
 * dimension 0. Both lists of indices are assumed to be sorted and are merged as in TensorFlow; a
 * row's mean is over the gradients that had this row. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/accumulator.h"
#include "kernels/cpu/update.h"

typedef struct rows {
    const leat_tensor *indices, *values, *shape; /* shape NULL: not known */
    int64_t n;
} rows;

/* ---- Checking a gradient ---- */

static leat_status check_known_shape(const leat_shape *want, const leat_tensor *got)
{
    LEAT_REQUIRE(want->rank <= got->count, INVALID_ARGUMENT,
                 "Shape mismatch: expected shape rank at least %d, got %" PRId64, want->rank,
                 got->count);
    for (int i = 0; i < want->rank; i++)
        LEAT_REQUIRE(want->dim[i] < 0 || want->dim[i] == AT(int64_t, got)[i], INVALID_ARGUMENT,
                     "Shape mismatch: expected shape dim %d to be %" PRId64 ", got %" PRId64, i,
                     want->dim[i], AT(int64_t, got)[i]);
    return NULL;
}

static leat_status check_indices(const leat_shape *want, const rows *r)
{
    for (int64_t i = 0; want->rank > 0 && want->dim[0] >= 0 && i < r->n; i++) {
        int64_t index = AT(int64_t, r->indices)[i];
        LEAT_REQUIRE(index < want->dim[0], INVALID_ARGUMENT,
                     "Shape mismatch: index of slice %" PRId64 " exceeded limits of shape; index "
                     "is %" PRId64 " exceeded %" PRId64,
                     i, index, want->dim[0]);
    }
    return NULL;
}

static leat_status check_values(const leat_accumulator *a, const leat_shape *got)
{
    const leat_shape *want = a->count ? &a->sum->shape : &a->shape;
    LEAT_REQUIRE(!a->count || want->rank == got->rank, INVALID_ARGUMENT,
                 "Shape mismatch: expected values rank %d, got %d", want->rank, got->rank);
    LEAT_REQUIRE(want->rank <= got->rank, INVALID_ARGUMENT,
                 "Shape mismatch: expected values rank at least %d, got %d", want->rank, got->rank);
    for (int i = 1; i < want->rank; i++)
        LEAT_REQUIRE(want->dim[i] < 0 || want->dim[i] == got->dim[i], INVALID_ARGUMENT,
                     "Shape mismatch: expected values dim %d to be %" PRId64 ", got %" PRId64, i,
                     want->dim[i], got->dim[i]);
    return NULL;
}

static leat_status read_rows(const leat_accumulator *a, leat_kernel *k, rows *r)
{
    r->indices = leat_kernel_in(k, 2);
    r->values = leat_kernel_in(k, 3);
    bool known = leat_node_bool(leat_kernel_node(k), "has_known_shape");
    r->shape = known ? leat_kernel_in(k, 4) : NULL;
    LEAT_REQUIRE(r->indices->shape.rank == 1, INVALID_ARGUMENT,
                 "Input indices should be vector but received shape: %s",
                 leat_shape_show(&r->indices->shape).s);
    r->n = r->indices->count;
    LEAT_REQUIRE(r->values->shape.rank > 0, INVALID_ARGUMENT, "Values cannot be 0-dimensional.");
    LEAT_REQUIRE(r->values->shape.dim[0] == r->n, INVALID_ARGUMENT,
                 "Expected %" PRId64 " non-empty input values, got %" PRId64, r->n,
                 r->values->shape.dim[0]);
    if (r->shape)
        LEAT_TRY(check_known_shape(&a->shape, r->shape));
    LEAT_TRY(check_indices(&a->shape, r));
    return check_values(a, &r->values->shape);
}

/* ---- Adding ---- */

static void set_rows(leat_accumulator *a, int64_t *indices, int32_t *counts, leat_tensor *sum)
{
    free(a->indices);
    free(a->counts);
    leat_tensor_unref(a->sum);
    a->indices = indices;
    a->counts = counts;
    a->sum = sum;
}

/* Memory for the indices and counts of n rows. */
static leat_status alloc_rows(int64_t n, int64_t **indices, int32_t **counts)
{
    LEAT_TRY(leat_try_array(n, indices));
    leat_status s = leat_try_array(n, counts);
    if (s)
        free(*indices);
    return s;
}

static leat_status first_rows(leat_accumulator *a, const rows *r)
{
    int64_t *indices;
    int32_t *counts;
    LEAT_TRY(alloc_rows(r->n, &indices, &counts));
    memcpy(indices, r->indices->data, sizeof(*indices) * (size_t)r->n);
    for (int64_t i = 0; i < r->n; i++)
        counts[i] = 1;
    set_rows(a, indices, counts, leat_tensor_ref(r->values));
    return NULL;
}

/* A row of the new sum: row i of the old sum, row j of the gradient, or both (-1: not). */
typedef struct merged {
    int64_t i, j;
} merged;

static int64_t merge(const leat_accumulator *a, const rows *r, merged *out)
{
    const int64_t *x = a->indices, *y = AT(int64_t, r->indices);
    int64_t i = 0, j = 0, n = 0, n_x = a->sum->shape.dim[0];
    while (i < n_x || j < r->n) {
        bool from_x = i < n_x && (j == r->n || x[i] <= y[j]);
        bool from_y = j < r->n && (i == n_x || y[j] <= x[i]);
        out[n++] = (merged){from_x ? i++ : -1, from_y ? j++ : -1};
    }
    return n;
}

/* There are no new rows: the gradient's are added to existing ones. */
static void add_known(leat_accumulator *a, const rows *r, const merged *m, int64_t n, int64_t each)
{
    leat_update_fn add = leat_update_of(a->dtype, LEAT_UPDATE_ADD);
    size_t bytes = (size_t)each * leat_element_size(a->dtype);
    char *sum = a->sum->data;
    const char *values = r->values->data;
    for (int64_t e = 0; e < n; e++) {
        if (m[e].j < 0)
            continue;
        add(sum + (size_t)m[e].i * bytes, values + (size_t)m[e].j * bytes, each, 1);
        a->counts[m[e].i]++;
    }
}

static leat_status add_new(leat_accumulator *a, leat_kernel *k, const rows *r, const merged *m,
                           int64_t n, int64_t each)
{
    leat_shape s = r->values->shape;
    s.dim[0] = n;
    leat_tensor *sum;
    int64_t *indices;
    int32_t *counts;
    LEAT_TRY(alloc_rows(n, &indices, &counts));
    leat_status bad = leat_tensor_alloc(leat_kernel_device(k)->allocator, a->dtype, &s, &sum);
    if (bad) {
        free(indices);
        free(counts);
        return bad;
    }
    leat_update_fn add = leat_update_of(a->dtype, LEAT_UPDATE_ADD);
    size_t bytes = (size_t)each * leat_element_size(a->dtype);
    const char *old = a->sum->data, *values = r->values->data;
    for (int64_t e = 0; e < n; e++) {
        int64_t i = m[e].i, j = m[e].j;
        char *to = (char *)sum->data + (size_t)e * bytes;
        const char *from = i >= 0 ? old + (size_t)i * bytes : values + (size_t)j * bytes;
        memcpy(to, from, bytes);
        if (i >= 0 && j >= 0)
            add(to, values + (size_t)j * bytes, each, 1);
        indices[e] = i >= 0 ? a->indices[i] : AT(int64_t, r->indices)[j];
        counts[e] = (i >= 0 ? a->counts[i] : 0) + (j >= 0);
    }
    set_rows(a, indices, counts, sum);
    return NULL;
}

leat_status leat_accumulator_add_rows(leat_accumulator *a, leat_kernel *k)
{
    rows r = {0};
    LEAT_TRY(read_rows(a, k, &r));
    if (!a->count)
        return first_rows(a, &r);
    int64_t n_old = a->sum->shape.dim[0], each = 1;
    for (int d = 1; d < r.values->shape.rank; d++)
        each *= r.values->shape.dim[d];
    merged *m;
    LEAT_TRY(leat_try_array(n_old + r.n, &m));
    int64_t n = merge(a, &r, m);
    leat_status s = NULL;
    if (n == n_old && leat_tensor_sole(a->sum))
        add_known(a, &r, m, n, each);
    else
        s = add_new(a, k, &r, m, n, each);
    free(m);
    return s;
}

/* ---- Taking ---- */

static leat_status mean(leat_accumulator *a, leat_kernel *k)
{
    if (!leat_tensor_sole(a->sum)) {
        leat_tensor *copy;
        LEAT_TRY(leat_tensor_clone(leat_kernel_device(k)->allocator, a->sum, &copy));
        leat_tensor_unref(a->sum);
        a->sum = copy;
    }
    int64_t n = a->sum->shape.dim[0], each = n ? a->sum->count / n : 0;
    size_t bytes = (size_t)each * leat_element_size(a->dtype);
    for (int64_t i = 0; i < n; i++)
        if (a->counts[i] > 1)
            leat_divide(a->dtype, (char *)a->sum->data + (size_t)i * bytes, each, a->counts[i]);
    return NULL;
}

leat_status leat_accumulator_give_rows(leat_accumulator *a, leat_kernel *k)
{
    leat_tensor *indices, *shape;
    leat_shape vector = {.rank = 1, .dim = {a->sum->shape.dim[0]}};
    LEAT_TRY(leat_kernel_out(k, 0, &vector, &indices));
    vector.dim[0] = a->sum->shape.rank;
    LEAT_TRY(leat_kernel_out(k, 2, &vector, &shape));
    if (a->mean && a->count > 1)
        LEAT_TRY(mean(a, k));
    memcpy(indices->data, a->indices, sizeof(*a->indices) * (size_t)indices->count);
    for (int i = 0; i < a->sum->shape.rank; i++)
        AT(int64_t, shape)[i] = a->sum->shape.dim[i];
    AT(int64_t, shape)[0] = a->shape.rank > 0 ? a->shape.dim[0] : -1;
    leat_kernel_set(k, 1, a->sum);
    a->sum = NULL;
    return NULL;
}
