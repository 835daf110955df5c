/* serialize_sparse.c -- sparse tensors as elements of datasets. Indices, values and shape are three
 * elements of a tensor: strings, each a TensorProto, or variants, each of which holds a tensor. */
#include "kernels/dataset/serialize_sparse.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "core/strbuf.h"
#include "kernels/dataset/tensor_variant.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

/* ---- One element ---- */

static leat_status to_string(const leat_tensor *t, leat_string *out)
{
    Leat__TensorProto *p;
    leat_strbuf bytes = {.checked = true};
    LEAT_TRY(leat_tensor_to_proto(t, LEAT_TENSOR_CONTENT, &p));
    leat_status s = leat_proto_pack(p, &bytes);
    leat_proto_free(p);
    if (!s)
        s = leat_strbuf_check(&bytes);
    if (!s && !leat_string_set(out, leat_strbuf_text(&bytes), bytes.n))
        s = leat_error(RESOURCE_EXHAUSTED, "OOM when serializing a tensor of %zu bytes", bytes.n);
    leat_strbuf_release(&bytes);
    return s;
}

/* Element i of y holds t; takes t. */
static leat_status put(leat_tensor *y, int64_t i, leat_tensor *t)
{
    if (y->dtype == LEAT_VARIANT) {
        AT(leat_variant, y)[i] = leat_tensor_variant(t);
        return NULL;
    }
    leat_status s = to_string(t, &AT(leat_string, y)[i]);
    leat_tensor_unref(t);
    return s;
}

/* The tensor in element i of x. Gives a reference. */
static leat_status get(const leat_tensor *x, int64_t i, leat_tensor **out)
{
    if (x->dtype == LEAT_VARIANT) {
        leat_tensor *t = leat_tensor_variant_get(&AT(leat_variant, x)[i]);
        LEAT_REQUIRE(t, INVALID_ARGUMENT, "Could not get a tensor from serialized_sparse[%lld]",
                     (long long)i);
        *out = leat_tensor_ref(t);
        return NULL;
    }
    const leat_string *bytes = &AT(leat_string, x)[i];
    Leat__TensorProto *p;
    leat_status s = LEAT_UNPACK(tensor_proto, bytes->data ? bytes->data : "", bytes->size, &p);
    if (s) {
        leat_status_free(s);
        return leat_error(INVALID_ARGUMENT, "Could not parse serialized_sparse[%lld]",
                          (long long)i);
    }
    s = leat_tensor_from_proto(p, out);
    leat_proto_free(p);
    return s;
}

/* ---- Serializing ---- */

static leat_status check_sparse(leat_kernel *k)
{
    const leat_tensor *i = leat_kernel_in(k, 0), *v = leat_kernel_in(k, 1),
                      *s = leat_kernel_in(k, 2);
    LEAT_REQUIRE(i->shape.rank == 2, INVALID_ARGUMENT,
                 "Input indices should be a matrix but received shape %s",
                 leat_shape_show(&i->shape).s);
    LEAT_REQUIRE(v->shape.rank == 1, INVALID_ARGUMENT,
                 "Input values should be a vector but received shape %s",
                 leat_shape_show(&v->shape).s);
    LEAT_REQUIRE(s->shape.rank == 1, INVALID_ARGUMENT,
                 "Input shape should be a vector but received shape %s",
                 leat_shape_show(&s->shape).s);
    LEAT_REQUIRE(i->shape.dim[0] == v->count, INVALID_ARGUMENT,
                 "indices must have %lld rows, one for each value, not %lld", (long long)v->count,
                 (long long)i->shape.dim[0]);
    LEAT_REQUIRE(i->shape.dim[1] == s->count, INVALID_ARGUMENT,
                 "indices must have %lld columns, one for each dimension, not %lld",
                 (long long)s->count, (long long)i->shape.dim[1]);
    return NULL;
}

static leat_status one_run(leat_kernel *k)
{
    leat_tensor *y;
    const leat_shape shape = leat_shape(3);
    LEAT_TRY(check_sparse(k));
    LEAT_TRY(leat_tensor_new(leat_kernel_out_dtype(k, 0), shape, &y));
    leat_status s = NULL;
    for (int i = 0; i < 3 && !s; i++)
        s = put(y, i, leat_tensor_ref(leat_kernel_in(k, i)));
    if (s)
        leat_tensor_unref(y);
    else
        leat_kernel_set(k, 0, y);
    return s;
}

/* Row `row` of the sparse tensor: values [at, at + n). */
static leat_status put_row(leat_kernel *k, leat_tensor *y, int64_t row, int64_t at, int64_t n)
{
    const leat_tensor *index = leat_kernel_in(k, 0), *values = leat_kernel_in(k, 1),
                      *shape = leat_kernel_in(k, 2);
    const int64_t rank = shape->count;
    leat_tensor *i, *v, *s;
    LEAT_TRY(leat_tensor_new(LEAT_INT64, leat_shape(n, rank - 1), &i));
    for (int64_t j = 0; j < n; j++)
        memcpy(AT(int64_t, i) + j * (rank - 1), AT(int64_t, index) + (at + j) * rank + 1,
               (size_t)(rank - 1) * sizeof(int64_t));
    LEAT_TRY(put(y, row * 3, i));
    LEAT_TRY(leat_tensor_rows(values, at, at + n, &v));
    LEAT_TRY(put(y, row * 3 + 1, v));
    LEAT_TRY(leat_tensor_rows(shape, 1, rank, &s));
    return put(y, row * 3 + 2, s);
}

static leat_status put_rows(leat_kernel *k, leat_tensor *y, int64_t rows)
{
    const leat_tensor *index = leat_kernel_in(k, 0);
    const int64_t rank = leat_kernel_in(k, 2)->count, total = index->shape.dim[0];
    int64_t at = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t n = 0;
        while (at + n < total && AT(int64_t, index)[(at + n) * rank] == row)
            n++;
        LEAT_TRY(put_row(k, y, row, at, n));
        at += n;
    }
    LEAT_REQUIRE(at == total, INVALID_ARGUMENT,
                 "Index %lld of value %lld is outside of the %lld rows, or not in their order",
                 (long long)AT(int64_t, index)[at * rank], (long long)at, (long long)rows);
    return NULL;
}

static leat_status many_run(leat_kernel *k)
{
    leat_tensor *y;
    LEAT_TRY(check_sparse(k));
    const leat_tensor *shape = leat_kernel_in(k, 2);
    LEAT_REQUIRE(shape->count > 1, INVALID_ARGUMENT,
                 "Rank of input SparseTensor should be > 1, but saw rank: %lld",
                 (long long)shape->count);
    const int64_t rows = AT(int64_t, shape)[0];
    LEAT_REQUIRE(rows >= 0, INVALID_ARGUMENT, "The shape has a dimension of %lld", (long long)rows);
    LEAT_TRY(leat_tensor_new(leat_kernel_out_dtype(k, 0), leat_shape(rows, 3), &y));
    leat_status s = put_rows(k, y, rows);
    if (s)
        leat_tensor_unref(y);
    else
        leat_kernel_set(k, 0, y);
    return s;
}

leat_status leat_sparse_variants(const leat_element *e, leat_tensor **out)
{
    leat_tensor *y;
    LEAT_TRY(leat_tensor_new(LEAT_VARIANT, leat_shape(3), &y));
    for (int i = 0; i < 3; i++)
        AT(leat_variant, y)[i] = leat_tensor_variant(leat_tensor_ref(e->v[i]));
    *out = y;
    return NULL;
}

/* ---- Deserializing ---- */

typedef struct sparse {
    leat_tensor *part[3]; /* indices, values, shape; references */
} sparse;

static void release(sparse *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < 3; j++)
            leat_tensor_unref(v[i].part[j]);
    free(v);
}

static leat_status read_one(const leat_tensor *x, int64_t i, leat_dtype t, int64_t rank,
                            sparse *out)
{
    for (int j = 0; j < 3; j++)
        LEAT_TRY(get(x, i * 3 + j, &out->part[j]));
    const leat_tensor *index = out->part[0], *values = out->part[1], *shape = out->part[2];
    LEAT_REQUIRE(index->dtype == LEAT_INT64 && index->shape.rank == 2, INVALID_ARGUMENT,
                 "Expected serialized_sparse[%lld, 0] to represent an index matrix but received "
                 "shape %s",
                 (long long)i, leat_shape_show(&index->shape).s);
    LEAT_REQUIRE(values->dtype == t, INVALID_ARGUMENT,
                 "Requested SparseTensor of type %s but SparseTensor[%lld].values.dtype() == %s",
                 leat_dtype_name(t), (long long)i, leat_dtype_name(values->dtype));
    LEAT_REQUIRE(values->shape.rank == 1 && values->count == index->shape.dim[0], INVALID_ARGUMENT,
                 "Expected row counts of SparseTensor[%lld].indices and SparseTensor[%lld].values "
                 "to match but they do not: %lld vs. %lld",
                 (long long)i, (long long)i, (long long)index->shape.dim[0],
                 (long long)values->count);
    LEAT_REQUIRE(
        shape->dtype == LEAT_INT64 && shape->shape.rank == 1 && shape->count == index->shape.dim[1],
        INVALID_ARGUMENT,
        "Expected column counts of SparseTensor[%lld].indices to match size of "
        "SparseTensor[%lld].shape but they do not: %lld vs. %lld",
        (long long)i, (long long)i, (long long)index->shape.dim[1], (long long)shape->count);
    LEAT_REQUIRE(rank < 0 || shape->count == rank, INVALID_ARGUMENT,
                 "Inconsistent shape across SparseTensors: rank prior to SparseTensor[%lld] was: "
                 "%lld but rank of SparseTensor[%lld] is: %lld",
                 (long long)i, (long long)rank, (long long)i, (long long)shape->count);
    return NULL;
}

/* Joins n sparse tensors, which are at the indices of the first `lead` dimensions of x. */
static leat_status join(leat_kernel *k, const sparse *v, int64_t n, int lead)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const int64_t rank = n ? v[0].part[2]->count : 0;
    int64_t total = 0, at = 0;
    leat_tensor *index, *values, *shape;
    for (int64_t i = 0; i < n; i++)
        total += v[i].part[1]->count;
    leat_shape s = leat_shape(total, lead + rank);
    LEAT_TRY(leat_kernel_out(k, 0, &s, &index));
    s = leat_shape(total);
    LEAT_TRY(leat_kernel_out(k, 1, &s, &values));
    s = leat_shape(lead + rank);
    LEAT_TRY(leat_kernel_out(k, 2, &s, &shape));
    memset(shape->data, 0, leat_tensor_bytes(shape));
    for (int j = 0; j < lead; j++)
        AT(int64_t, shape)[j] = x->shape.dim[j];
    for (int64_t i = 0; i < n; i++) {
        const leat_tensor *from = v[i].part[0];
        for (int64_t r = 0; r < from->shape.dim[0]; r++) {
            int64_t *to = AT(int64_t, index) + (at + r) * (lead + rank), left = i;
            for (int j = lead - 1; j >= 0; left /= x->shape.dim[j--])
                to[j] = left % x->shape.dim[j];
            memcpy(to + lead, AT(int64_t, from) + r * rank, (size_t)rank * sizeof(int64_t));
        }
        for (int64_t j = 0; j < rank; j++)
            if (AT(int64_t, v[i].part[2])[j] > AT(int64_t, shape)[lead + j])
                AT(int64_t, shape)[lead + j] = AT(int64_t, v[i].part[2])[j];
        LEAT_TRY(leat_elements_copy(
            values->dtype, (char *)values->data + (size_t)at * leat_element_size(values->dtype),
            v[i].part[1]->data, v[i].part[1]->count));
        at += v[i].part[1]->count;
    }
    return NULL;
}

static leat_status deserialize_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const int lead = x->shape.rank - 1;
    LEAT_REQUIRE(x->shape.rank > 0, INVALID_ARGUMENT,
                 "Serialized sparse should have non-zero rank %s", leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(x->shape.dim[lead] == 3, INVALID_ARGUMENT,
                 "Serialized sparse should have 3 as the last dimension %s",
                 leat_shape_show(&x->shape).s);
    const int64_t n = x->count / 3;
    LEAT_REQUIRE(lead == 0 || n > 0, INVALID_ARGUMENT,
                 "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
    sparse *v;
    LEAT_TRY(leat_try_array(n + 1, &v));
    leat_status s = NULL;
    for (int64_t i = 0; i < n && !s; i++)
        s = read_one(x, i, leat_kernel_out_dtype(k, 1), i && !s ? v[0].part[2]->count : -1, &v[i]);
    if (!s)
        s = join(k, v, n, lead);
    release(v, n);
    return s;
}

const leat_kernel_def leat_data_kernels_serialize_sparse[] = {
    {.op = "SerializeSparse", .run = one_run},
    {.op = "SerializeManySparse", .run = many_run},
    {.op = "DeserializeSparse", .run = deserialize_run},
    {0},
};
