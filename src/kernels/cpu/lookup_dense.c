/* lookup_dense.c -- see lookup_dense.h. */
#include "kernels/cpu/lookup_dense.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "core/fingerprint.h"
#include "kernels/cpu/shapes.h"

struct leat_dense {
    leat_dtype key_type, value_type;
    leat_shape key_shape, value_shape; /* scalars or vectors */
    int64_t key_size, value_size;      /* elements */
    leat_tensor *empty, *deleted;      /* of key_shape */
    leat_tensor *keys, *values;        /* (n_buckets, key_size), (n_buckets, value_size) */
    int64_t n_buckets, n_entries;      /* n_buckets is a power of 2 */
    double max_load;
};

/* ---- Keys ---- */

static uint64_t hash_one(const leat_tensor *t, int64_t i)
{
    if (t->dtype == LEAT_STRING) {
        const leat_string *s = AT(leat_string, t) + i;
        return leat_hash64(s->size ? s->data : "", s->size);
    }
    return (uint64_t)leat_index_at(t, i);
}

static uint64_t hash(const leat_dense *d, const leat_tensor *t, int64_t row)
{
    if (d->key_size == 1)
        return hash_one(t, row);
    uint64_t a = 0;
    for (int64_t i = 0; i < d->key_size; i++)
        a ^= hash_one(t, row * d->key_size + i) + UINT64_C(0x9e3779b97f4a7800) + (a << 10) +
             (a >> 4);
    return a;
}

static bool same_key(const leat_dense *d, const leat_tensor *a, int64_t i, const leat_tensor *b,
                     int64_t j)
{
    size_t n = (size_t)d->key_size, size = leat_element_size(d->key_type);
    if (d->key_type != LEAT_STRING)
        return memcmp((const char *)a->data + (size_t)i * n * size,
                      (const char *)b->data + (size_t)j * n * size, n * size) == 0;
    const leat_string *x = AT(leat_string, a) + (size_t)i * n;
    const leat_string *y = AT(leat_string, b) + (size_t)j * n;
    for (size_t e = 0; e < n; e++)
        if (x[e].size != y[e].size || (x[e].size && memcmp(x[e].data, y[e].data, x[e].size) != 0))
            return false;
    return true;
}

/* Copies row `from` of a matrix of n columns to row `to` of another. */
static leat_status copy_row(leat_tensor *a, int64_t to, const leat_tensor *b, int64_t from,
                            int64_t n)
{
    size_t row = (size_t)n * leat_element_size(a->dtype);
    return leat_elements_copy(a->dtype, (char *)a->data + (size_t)to * row,
                              (const char *)b->data + (size_t)from * row, n);
}

static leat_status check_key(const leat_dense *d, const leat_tensor *keys, int64_t i)
{
    LEAT_REQUIRE(!same_key(d, d->empty, 0, keys, i), INVALID_ARGUMENT,
                 "Using the empty_key as a table key is not allowed");
    LEAT_REQUIRE(!same_key(d, d->deleted, 0, keys, i), INVALID_ARGUMENT,
                 "Using the deleted_key as a table key is not allowed");
    return NULL;
}

/* Keys may be such that their search is long: it ends with the step, between two keys. The bucket
 * of key i, or (found_out: false) where the search ends: at an empty bucket or, for
 * insertion, at a deleted one. */
static leat_status probe(const leat_dense *d, const leat_tensor *keys, int64_t i, bool to_put,
                         leat_look *look, int64_t *at_out, bool *found_out)
{
    enum { JUMP = 16 }; /* elements whose time it takes to get what is not in a cache */
    uint64_t at = hash(d, keys, i), mask = (uint64_t)d->n_buckets - 1;
    for (int64_t tries = 0; tries < d->n_buckets; at += (uint64_t)++tries) {
        if (leat_look_over(look, JUMP + d->key_size))
            return leat_kernel_check(look->k);
        *at_out = (int64_t)(at & mask);
        *found_out = same_key(d, d->keys, *at_out, keys, i);
        if (*found_out || same_key(d, d->keys, *at_out, d->empty, 0) ||
            (to_put && same_key(d, d->keys, *at_out, d->deleted, 0)))
            return NULL;
    }
    return leat_error(INTERNAL, "Internal error in MutableDenseHashTable: no bucket is empty");
}

/* ---- Making ---- */

static leat_status allocate(leat_dense *d, int64_t n)
{
    LEAT_REQUIRE(n >= 4 && (n & (n - 1)) == 0, INVALID_ARGUMENT,
                 "Number of buckets must be at least 4 and a power of 2, got: %lld", (long long)n);
    leat_tensor *keys, *values;
    LEAT_TRY(leat_tensor_new(d->key_type, leat_shape(n, d->key_size), &keys));
    leat_status s = leat_tensor_new(d->value_type, leat_shape(n, d->value_size), &values);
    if (s) {
        leat_tensor_unref(keys);
        return s;
    }
    if (!leat_is_managed(d->value_type))
        memset(values->data, 0, (size_t)values->count * leat_element_size(d->value_type));
    leat_tensor_unref(d->keys);
    leat_tensor_unref(d->values);
    d->keys = keys;
    d->values = values;
    d->n_buckets = n;
    d->n_entries = 0;
    for (int64_t i = 0; i < n && !s; i++)
        s = copy_row(keys, i, d->empty, 0, d->key_size);
    return s;
}

static leat_status start(leat_dense *d, const leat_node *n)
{
    LEAT_REQUIRE(d->max_load > 0 && d->max_load < 1, INVALID_ARGUMENT,
                 "max_load_factor must be between 0 and 1, got: %g", d->max_load);
    LEAT_REQUIRE(leat_shape_known(&d->value_shape) && d->value_shape.rank <= 1, INVALID_ARGUMENT,
                 "Empty value must be a scalar or a vector, got shape %s",
                 leat_shape_show(&d->value_shape).s);
    LEAT_REQUIRE(d->key_shape.rank <= 1, INVALID_ARGUMENT,
                 "Empty key must be a scalar or a vector, got shape %s",
                 leat_shape_show(&d->key_shape).s);
    LEAT_REQUIRE(leat_shape_equal(&d->key_shape, &d->deleted->shape), INVALID_ARGUMENT,
                 "Empty and deleted keys must have same shape, got shapes: %s and %s",
                 leat_shape_show(&d->key_shape).s, leat_shape_show(&d->deleted->shape).s);
    d->key_size = leat_shape_count(&d->key_shape);
    d->value_size = leat_shape_count(&d->value_shape);
    LEAT_REQUIRE(!same_key(d, d->empty, 0, d->deleted, 0), INVALID_ARGUMENT,
                 "Empty and deleted keys cannot be equal");
    return allocate(d, leat_node_int(n, "initial_num_buckets"));
}

leat_status leat_dense_new(const leat_node *n, const leat_tensor *empty, const leat_tensor *deleted,
                           leat_dense **out)
{
    leat_dense *d = leat_new(leat_dense);
    *d = (leat_dense){.key_type = leat_node_type(n, "key_dtype"),
                      .value_type = leat_node_type(n, "value_dtype"),
                      .key_shape = empty->shape,
                      .value_shape = leat_node_shape(n, "value_shape"),
                      .empty = leat_tensor_ref(empty),
                      .deleted = leat_tensor_ref(deleted),
                      .max_load = leat_node_float(n, "max_load_factor")};
    leat_status s = start(d, n);
    if (s)
        leat_dense_free(d);
    else
        *out = d;
    return s;
}

void leat_dense_free(leat_dense *d)
{
    if (!d)
        return;
    leat_tensor_unref(d->empty);
    leat_tensor_unref(d->deleted);
    leat_tensor_unref(d->keys);
    leat_tensor_unref(d->values);
    free(d);
}

int64_t leat_dense_size(const leat_dense *d)
{
    return d->n_entries;
}

/* ---- The ops ---- */

/* The shape of the values of these keys: the keys' without the table's key shape, then that of a
 * value. */
static leat_status values_shape(const leat_dense *d, const leat_shape *keys,
                                const leat_shape *value, leat_shape *out)
{
    int rank = d->key_shape.rank;
    LEAT_REQUIRE(keys->rank >= rank &&
                     (rank == 0 || keys->dim[keys->rank - 1] == d->key_shape.dim[0]),
                 INVALID_ARGUMENT, "Input key shape %s must end with the table's key shape %s",
                 leat_shape_show(keys).s, leat_shape_show(&d->key_shape).s);
    leat_shape front = *keys;
    front.rank -= rank;
    return leat_shape_join(&front, value, 0, out);
}

/* The number of keys: one, or the rows of a batch. */
static leat_status batch_of(const leat_dense *d, const leat_tensor *keys, int64_t *n)
{
    *n = keys->shape.rank == 0 ? 1 : keys->shape.dim[0];
    leat_shape batch = leat_shape(*n), expected;
    LEAT_TRY(leat_shape_join(&batch, &d->key_shape, 0, &expected));
    LEAT_REQUIRE(keys->count == *n * d->key_size, INVALID_ARGUMENT, "Expected key shape %s got %s",
                 leat_shape_show(&expected).s, leat_shape_show(&keys->shape).s);
    return NULL;
}

leat_status leat_dense_find(leat_kernel *k, const leat_dense *d)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *otherwise = leat_kernel_in(k, 2);
    leat_shape shape;
    leat_tensor *y;
    int64_t n, at = 0;
    bool found = false;
    LEAT_TRY(values_shape(d, &keys->shape, &d->value_shape, &shape));
    LEAT_REQUIRE(leat_shape_equal(&otherwise->shape, &d->value_shape), INVALID_ARGUMENT,
                 "Expected shape %s for default value, got %s", leat_shape_show(&d->value_shape).s,
                 leat_shape_show(&otherwise->shape).s);
    LEAT_TRY(batch_of(d, keys, &n));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < n; i++) {
        LEAT_TRY(check_key(d, keys, i));
        LEAT_TRY(probe(d, keys, i, false, &look, &at, &found));
        LEAT_TRY(copy_row(y, i, found ? d->values : otherwise, found ? at : 0, d->value_size));
    }
    return NULL;
}

static leat_status put(leat_dense *d, const leat_tensor *keys, const leat_tensor *values, int64_t i,
                       leat_look *look)
{
    int64_t at = 0;
    bool found = false;
    LEAT_TRY(probe(d, keys, i, true, look, &at, &found));
    if (!found)
        LEAT_TRY(copy_row(d->keys, at, keys, i, d->key_size));
    d->n_entries += !found;
    return copy_row(d->values, at, values, i, d->value_size);
}

/* Makes more buckets and inserts all pairs again. After an error the table is as it was. */
static leat_status grow(leat_dense *d, int64_t n, leat_look *look)
{
    const leat_dense before = *d;
    leat_tensor *keys = leat_tensor_ref(d->keys), *values = leat_tensor_ref(d->values);
    leat_status s = allocate(d, n);
    for (int64_t i = 0; i < before.n_buckets && !s; i++)
        if (!same_key(d, d->empty, 0, keys, i) && !same_key(d, d->deleted, 0, keys, i))
            s = put(d, keys, values, i, look);
    leat_tensor_unref(s ? d->keys : keys);
    leat_tensor_unref(s ? d->values : values);
    if (s)
        *d = before;
    return s;
}

static leat_status check_values(const leat_dense *d, const leat_tensor *keys,
                                const leat_tensor *values, const leat_shape *value)
{
    leat_shape shape;
    LEAT_TRY(values_shape(d, &keys->shape, value, &shape));
    LEAT_REQUIRE(leat_shape_equal(&shape, &values->shape), INVALID_ARGUMENT,
                 "Expected shape %s for value, got %s", leat_shape_show(&shape).s,
                 leat_shape_show(&values->shape).s);
    return NULL;
}

leat_status leat_dense_insert(leat_kernel *k, leat_dense *d)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *values = leat_kernel_in(k, 2);
    int64_t n;
    LEAT_TRY(check_values(d, keys, values, &d->value_shape));
    LEAT_TRY(batch_of(d, keys, &n));
    leat_look look = leat_look_begin(k);
    int64_t buckets = d->n_buckets;
    while ((double)(d->n_entries + n) > (double)buckets * d->max_load && buckets < 1LL << 61)
        buckets *= 2;
    if (buckets != d->n_buckets)
        LEAT_TRY(grow(d, buckets, &look));
    for (int64_t i = 0; i < n; i++) {
        LEAT_TRY(check_key(d, keys, i));
        LEAT_TRY(put(d, keys, values, i, &look));
    }
    return NULL;
}

leat_status leat_dense_remove(leat_kernel *k, leat_dense *d)
{
    const leat_tensor *keys = leat_kernel_in(k, 1);
    leat_shape unused;
    int64_t n, at = 0;
    bool found = false;
    LEAT_TRY(values_shape(d, &keys->shape, &d->value_shape, &unused));
    LEAT_TRY(batch_of(d, keys, &n));
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < n; i++) {
        LEAT_TRY(check_key(d, keys, i));
        LEAT_TRY(probe(d, keys, i, false, &look, &at, &found));
        if (found)
            LEAT_TRY(copy_row(d->keys, at, d->deleted, 0, d->key_size));
        d->n_entries -= found;
    }
    return NULL;
}

/* Restores the result of an export: the buckets as they were. */
leat_status leat_dense_import(leat_kernel *k, leat_dense *d)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *values = leat_kernel_in(k, 2);
    int64_t n = keys->shape.rank ? keys->shape.dim[0] : 0;
    leat_shape key_row = leat_shape(n, d->key_size), value_row = leat_shape(n, d->value_size);
    LEAT_REQUIRE(leat_shape_equal(&keys->shape, &key_row), INVALID_ARGUMENT,
                 "Expected key shape %s got %s", leat_shape_show(&key_row).s,
                 leat_shape_show(&keys->shape).s);
    LEAT_REQUIRE(leat_shape_equal(&values->shape, &value_row), INVALID_ARGUMENT,
                 "Expected shape %s for value, got %s", leat_shape_show(&value_row).s,
                 leat_shape_show(&values->shape).s);
    LEAT_TRY(allocate(d, n));
    LEAT_TRY(leat_elements_copy(d->key_type, d->keys->data, keys->data, keys->count));
    for (int64_t i = 0; i < n; i++)
        d->n_entries +=
            !same_key(d, d->empty, 0, d->keys, i) && !same_key(d, d->deleted, 0, d->keys, i);
    return leat_elements_copy(d->value_type, d->values->data, values->data, values->count);
}

leat_status leat_dense_export(leat_kernel *k, const leat_dense *d)
{
    leat_tensor *keys, *values;
    LEAT_TRY(leat_kernel_out(k, 0, &d->keys->shape, &keys));
    LEAT_TRY(leat_kernel_out(k, 1, &d->values->shape, &values));
    LEAT_TRY(leat_elements_copy(d->key_type, keys->data, d->keys->data, keys->count));
    return leat_elements_copy(d->value_type, values->data, d->values->data, values->count);
}
