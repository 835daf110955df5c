/* sparse.c -- SparseTensorSlice, the rows of a sparse tensor, and DenseToSparseBatch, dense tensors
 * of different shapes as one sparse batch. A sparse tensor is indices, values and a dense shape. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/serialize_sparse.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

/* A sparse tensor of n values with indices of this rank; all but the values is int64. */
static leat_status sparse_new(int64_t n, int64_t rank, leat_dtype t, leat_element *out)
{
    leat_element e = leat_element_new(3);
    leat_status s = leat_tensor_new(LEAT_INT64, leat_shape(n, rank), &e.v[0]);
    if (!s)
        s = leat_tensor_new(t, leat_shape(n), &e.v[1]);
    if (!s)
        s = leat_tensor_new(LEAT_INT64, leat_shape(rank), &e.v[2]);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

static void sparse_types(leat_dataset *d, leat_dtype t, int64_t rank)
{
    const leat_dtype types[] = {LEAT_INT64, t, LEAT_INT64};
    const leat_shape shapes[] = {leat_shape(-1, rank), leat_shape(-1), leat_shape(rank)};
    leat_dataset_types(d, 3, types, shapes);
}

static char *value_at(const leat_tensor *t, int64_t i)
{
    return (char *)t->data + (size_t)i * leat_element_size(t->dtype);
}

/* ---- SparseTensorSlice ---- */

typedef struct slices {
    leat_dataset base;
    leat_tensor *indices, *values, *shape;
} slices;

typedef struct slicer {
    leat_iterator base;
    int64_t row; /* the next one */
    int64_t at;  /* the first value of that row or a later one */
} slicer;

static leat_status set_slices(leat_dataset *base, const leat_tensor *indices,
                              const leat_tensor *values, const leat_tensor *shape)
{
    slices *d = (slices *)base;
    LEAT_REQUIRE(indices->shape.rank == 2, INVALID_ARGUMENT,
                 "Input indices must be a matrix. Got: %s", leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(values->shape.rank == 1, INVALID_ARGUMENT,
                 "Input values must be a vector. Got: %s", leat_shape_show(&values->shape).s);
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT, "Input shape must be a vector. Got: %s",
                 leat_shape_show(&shape->shape).s);
    LEAT_REQUIRE(values->count == indices->shape.dim[0], INVALID_ARGUMENT,
                 "Number of values must match first dimension of indices. Got %lld values, indices "
                 "shape: %s",
                 (long long)values->count, leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(shape->count == indices->shape.dim[1], INVALID_ARGUMENT,
                 "Number of dimensions must match second dimension of indices. Got %lld "
                 "dimensions, indices shape: %s",
                 (long long)shape->count, leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(shape->count > 0, INVALID_ARGUMENT,
                 "The shape argument requires at least one element.");
    const int64_t rank = shape->count, rows = AT(int64_t, shape)[0];
    LEAT_REQUIRE(rows >= 0, INVALID_ARGUMENT, "Dimension 0 of the shape is %lld", (long long)rows);
    for (int64_t i = 0, before = 0; i < values->count; i++) {
        int64_t row = AT(int64_t, indices)[i * rank];
        LEAT_REQUIRE(row >= before, UNIMPLEMENTED,
                     "The SparseTensor must be ordered in the batch dimension; handling "
                     "arbitrarily ordered input is not currently supported.");
        LEAT_REQUIRE(row < rows, INVALID_ARGUMENT, "Index %lld is outside of dimension 0, %lld",
                     (long long)row, (long long)rows);
        before = row;
    }
    d->indices = leat_tensor_ref(indices);
    d->values = leat_tensor_ref(values);
    d->shape = leat_tensor_ref(shape);
    sparse_types(base, values->dtype, rank - 1);
    return NULL;
}

static leat_status slices_make(leat_kernel *k, leat_dataset *d)
{
    return set_slices(d, leat_kernel_in(k, 0), leat_kernel_in(k, 1), leat_kernel_in(k, 2));
}

static void slices_release(leat_dataset *base)
{
    slices *d = (slices *)base;
    leat_tensor_unref(d->indices);
    leat_tensor_unref(d->values);
    leat_tensor_unref(d->shape);
}

static int64_t slices_cardinality(const leat_dataset *d)
{
    return AT(int64_t, ((const slices *)d)->shape)[0];
}

static leat_status slice(slicer *x, leat_element *out)
{
    const slices *d = (const slices *)x->base.d;
    const int64_t rank = d->shape->count, *index = AT(int64_t, d->indices);
    int64_t n = 0;
    while (x->at + n < d->values->count && index[(x->at + n) * rank] == x->row)
        n++;
    leat_element e;
    LEAT_TRY(sparse_new(n, rank - 1, d->values->dtype, &e));
    for (int64_t i = 0; i < n; i++)
        memcpy(AT(int64_t, e.v[0]) + i * (rank - 1), index + (x->at + i) * rank + 1,
               (size_t)(rank - 1) * sizeof(int64_t));
    memcpy(AT(int64_t, e.v[2]), AT(int64_t, d->shape) + 1, (size_t)(rank - 1) * sizeof(int64_t));
    leat_status s =
        leat_elements_copy(d->values->dtype, e.v[1]->data, value_at(d->values, x->at), n);
    if (s) {
        leat_element_clear(&e);
        return s;
    }
    x->row++;
    x->at += n;
    *out = e;
    return NULL;
}

static leat_next slices_next(leat_iterator *it, leat_pull *p)
{
    slicer *x = (slicer *)it;
    leat_element e = {0};
    if (x->row >= slices_cardinality(it->d))
        return LEAT_NEXT_END;
    leat_status s = slice(x, &e);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

static leat_status slices_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((slicer *)it)->row);
    leat_state_put_int(w, ((slicer *)it)->at);
    return NULL;
}

static leat_status slices_restore(leat_iterator *it, leat_state_reader *r)
{
    const slices *d = (const slices *)it->d;
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &((slicer *)it)->row));
    return leat_state_get_within(r, 0, d->values->count, &((slicer *)it)->at);
}

static const leat_dataset_kind slices_kind = {
    .size = sizeof(slices),
    .iterator_size = sizeof(slicer),
    .make = slices_make,
    .release = slices_release,
    .cardinality = slices_cardinality,
    .next = slices_next,
    .save = slices_save,
    .restore = slices_restore,
};
LEAT_DATASET_RUN(slices_kind)

leat_status leat_dataset_of_sparse(const leat_tensor *indices, const leat_tensor *values,
                                   const leat_tensor *shape, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_REQUIRE(indices->dtype == LEAT_INT64 && shape->dtype == LEAT_INT64, INVALID_ARGUMENT,
                 "The indices and the shape of a sparse tensor are int64, not %s and %s",
                 leat_dtype_name(indices->dtype), leat_dtype_name(shape->dtype));
    LEAT_TRY(
        leat_dataset_over(&slices_kind, "SparseTensorSliceDataset", "sparse_slices", NULL, 0, &d));
    leat_status s = set_slices(d, indices, values, shape);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

/* ---- DenseToSparseBatch ---- */

typedef struct to_sparse {
    leat_dataset base;
    int64_t size;
    leat_shape row; /* -1: as large as the largest element of the batch */
} to_sparse;

typedef struct gatherer {
    leat_iterator base;
    leat_elements got;
} gatherer;

static leat_status to_sparse_make(leat_kernel *k, leat_dataset *base)
{
    to_sparse *d = (to_sparse *)base;
    const leat_dataset *in = base->in[0];
    const leat_tensor *row = leat_kernel_in(k, 2);
    LEAT_REQUIRE(in->n == 1, INVALID_ARGUMENT,
                 "DenseToSparseBatchDataset only supports inputs with a single component.");
    LEAT_TRY(leat_data_int(k, 1, "batch_size", &d->size));
    LEAT_REQUIRE(d->size > 0, INVALID_ARGUMENT, "Batch size must be greater than zero.");
    LEAT_REQUIRE(row->shape.rank == 1, INVALID_ARGUMENT, "row_shape must be a vector");
    LEAT_REQUIRE(row->count < LEAT_MAX_RANK, INVALID_ARGUMENT, "row_shape has %lld dimensions",
                 (long long)row->count);
    d->row.rank = (int)row->count;
    for (int i = 0; i < d->row.rank; i++) {
        d->row.dim[i] = AT(int64_t, row)[i];
        LEAT_REQUIRE(d->row.dim[i] >= -1, INVALID_ARGUMENT, "Dimension %lld must be >= -1",
                     (long long)d->row.dim[i]);
    }
    /* An element is one tensor of three variants: indices, values and shape. */
    leat_dataset_types(base, 1, (leat_dtype[]){LEAT_VARIANT}, (leat_shape[]){leat_shape(3)});
    return NULL;
}

static leat_status check_element(const to_sparse *d, const leat_element *e, leat_shape *most)
{
    const leat_dtype t = d->base.in[0]->types[0];
    LEAT_REQUIRE(e->n == 1 && e->v[0]->dtype == t, INVALID_ARGUMENT,
                 "An element is no tensor of type %s", leat_dtype_name(t));
    const leat_shape *s = &e->v[0]->shape;
    LEAT_REQUIRE(s->rank == d->row.rank, INVALID_ARGUMENT,
                 "Input element had shape (%s) that is incompatible with the row shape (%s).",
                 leat_shape_show(s).s, leat_shape_show(&d->row).s);
    for (int i = 0; i < s->rank; i++) {
        LEAT_REQUIRE(d->row.dim[i] < 0 || s->dim[i] <= d->row.dim[i], DATA_LOSS,
                     "Input element had shape (%s) that is larger than the row shape (%s).",
                     leat_shape_show(s).s, leat_shape_show(&d->row).s);
        if (s->dim[i] > most->dim[i])
            most->dim[i] = s->dim[i];
    }
    return NULL;
}

static leat_status put_element(leat_element *y, int64_t at, int64_t batch, const leat_tensor *x)
{
    const int rank = x->shape.rank;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t *index = AT(int64_t, y->v[0]) + (at + i) * (rank + 1), left = i;
        index[0] = batch;
        for (int j = rank - 1; j >= 0; left /= x->shape.dim[j--])
            index[1 + j] = left % x->shape.dim[j];
    }
    return leat_elements_copy(x->dtype, value_at(y->v[1], at), x->data, x->count);
}

static leat_status join(gatherer *g, leat_element *out)
{
    const to_sparse *d = (const to_sparse *)g->base.d;
    leat_shape most = d->row;
    int64_t n = 0, at = 0;
    for (int64_t i = 0; i < g->got.n; i++) {
        LEAT_TRY(check_element(d, &g->got.v[i], &most));
        n += g->got.v[i].v[0]->count;
    }
    leat_element e;
    LEAT_TRY(sparse_new(n, 1 + d->row.rank, d->base.in[0]->types[0], &e));
    leat_status s = NULL;
    for (int64_t i = 0; i < g->got.n && !s; at += g->got.v[i++].v[0]->count)
        s = put_element(&e, at, i, g->got.v[i].v[0]);
    AT(int64_t, e.v[2])[0] = g->got.n;
    memcpy(AT(int64_t, e.v[2]) + 1, most.dim, (size_t)most.rank * sizeof(int64_t));
    leat_element one = leat_element_new(1);
    if (!s)
        s = leat_sparse_variants(&e, &one.v[0]);
    leat_element_clear(&e);
    if (s)
        leat_element_clear(&one);
    else
        *out = one;
    return s;
}

static leat_next to_sparse_next(leat_iterator *it, leat_pull *p)
{
    gatherer *g = (gatherer *)it;
    leat_element e = {0};
    if (p->why == LEAT_WHY_START)
        leat_elements_clear(&g->got);
    else if (!p->end)
        leat_elements_add(&g->got, &p->element);
    if ((p->why == LEAT_WHY_START || !p->end) && g->got.n < ((const to_sparse *)it->d)->size)
        return leat_pull_from(p, it->input);
    if (g->got.n == 0)
        return LEAT_NEXT_END;
    leat_status s = join(g, &e);
    leat_elements_clear(&g->got);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

static void to_sparse_close(leat_iterator *it)
{
    leat_elements_clear(&((gatherer *)it)->got);
}

static const leat_dataset_kind to_sparse_kind = {
    .size = sizeof(to_sparse),
    .iterator_size = sizeof(gatherer),
    .inputs = 1,
    .make = to_sparse_make,
    .next = to_sparse_next,
    .close = to_sparse_close,
};
LEAT_DATASET_RUN(to_sparse_kind)

const leat_kernel_def leat_data_kernels_sparse[] = {
    {.op = "SparseTensorSliceDataset", .run = slices_kind_run},
    {.op = "DenseToSparseBatchDataset", .run = to_sparse_kind_run},
    {.op = "ExperimentalDenseToSparseBatchDataset", .run = to_sparse_kind_run},
    {0},
};
