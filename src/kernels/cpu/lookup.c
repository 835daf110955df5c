/* lookup.c -- tables from keys (int32, int64, strings) to values: HashTable, which is filled once,
 * MutableHashTable and MutableHashTableOfTensors; finding, inserting, removing, exporting and
 * importing. MutableDenseHashTable uses these kernels, too, but stores its pairs in
 * lookup_dense.c. */
#include "kernels/cpu/lookup.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "core/map.h"
#include "kernels/cpu/lookup_dense.h"

typedef struct table {
    leat_resource base;
    pthread_mutex_t lock; /* guards values and filled; no other lock is taken under it */
    char *name;
    leat_dtype key_type, value_type;
    leat_shape value_shape; /* a scalar's, except for tables of tensors */
    leat_map values;        /* key -> row */
    bool once;              /* the table can be filled only once */
    bool filled;            /* the table was filled */
    leat_dense *dense;      /* stores the pairs if not NULL; then values is not used */
} table;

typedef struct row {
    leat_tensor *value; /* of value_shape */
    size_t n_key;       /* bytes of its key */
} row;

static void row_free(row *r)
{
    if (r)
        leat_tensor_unref(r->value);
    free(r);
}

static void clear(table *t)
{
    size_t i = 0;
    const char *key;
    void *value;
    while (leat_map_next(&t->values, &i, &key, &value))
        row_free(value);
    leat_map_release(&t->values);
}

static void table_free(void *resource)
{
    table *t = resource;
    clear(t);
    leat_dense_free(t->dense);
    pthread_mutex_destroy(&t->lock);
    free(t->name);
    free(t);
}

static const leat_resource_type table_type = {"N10tensorflow6lookup15LookupInterfaceE", table_free};

static leat_status make(leat_kernel *k, const char *name, leat_resource **out)
{
    const leat_node *n = leat_kernel_node(k);
    leat_shape shape = {0};
    leat_dense *dense = NULL;
    if (leat_kernel_inputs(k)) {
        LEAT_TRY(leat_dense_new(n, leat_kernel_in(k, 0), leat_kernel_in(k, 1), &dense));
    } else if (leat_node_has(n, "value_shape")) {
        shape = leat_node_shape(n, "value_shape");
        LEAT_REQUIRE(shape.rank == 1 && leat_shape_known(&shape), INVALID_ARGUMENT,
                     "Default value must be a vector, got shape %s", leat_shape_show(&shape).s);
    }
    table *t = leat_new(table);
    leat_resource_init(&t->base, &table_type);
    pthread_mutex_init(&t->lock, NULL);
    t->name = leat_xstrdup(name);
    t->key_type = leat_node_type(n, "key_dtype");
    t->value_type = leat_node_type(n, "value_dtype");
    t->value_shape = shape;
    t->values.seed = leat_hash_secret();
    t->dense = dense;
    t->once = strncmp(leat_node_op(n), "HashTable", 9) == 0;
    *out = &t->base;
    return NULL;
}

static leat_status check(const leat_node *n, const leat_resource *r)
{
    const table *t = (const table *)r;
    leat_dtype key = leat_node_type(n, "key_dtype"), value = leat_node_type(n, "value_dtype");
    LEAT_REQUIRE(t->key_type == key && t->value_type == value, INVALID_ARGUMENT,
                 "Conflicting key/value dtypes %s->%s with %s-%s for table %s",
                 leat_dtype_name(key), leat_dtype_name(value), leat_dtype_name(t->key_type),
                 leat_dtype_name(t->value_type), t->name);
    return NULL;
}

static leat_status make_run(leat_kernel *k)
{
    static const leat_resource_maker maker = {&table_type, make, check};
    return leat_resource_op_run(k, &maker);
}

/* ---- Shared by ops on tables ---- */

/* Key i of a tensor, as bytes. */
static const void *key_at(const leat_tensor *keys, int64_t i, size_t *n)
{
    if (keys->dtype == LEAT_STRING) {
        const leat_string *s = AT(leat_string, keys) + i;
        *n = s->size;
        return s->size ? s->data : "";
    }
    *n = leat_element_size(keys->dtype);
    return (const char *)keys->data + (size_t)i * *n;
}

/* The shape of the values of these keys: that of the keys, then that of a value. */
static leat_status values_shape(const table *t, const leat_shape *keys, leat_shape *out)
{
    LEAT_REQUIRE(keys->rank + t->value_shape.rank <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "Keys of shape %s have too many dimensions", leat_shape_show(keys).s);
    *out = *keys;
    for (int i = 0; i < t->value_shape.rank; i++)
        out->dim[out->rank++] = t->value_shape.dim[i];
    return NULL;
}

/* A table that is filled once may have a key twice only with the same value. */
static leat_status check_same(const row *before, const leat_tensor *v)
{
    char *x = leat_tensor_text(before->value, -1), *y = leat_tensor_text(v, -1);
    leat_status s = strcmp(x, y) == 0
                        ? NULL
                        : leat_error(FAILED_PRECONDITION,
                                     "HashTable has different value for same key. Key has %s and "
                                     "trying to add value %s",
                                     x, y);
    free(x);
    free(y);
    return s;
}

static leat_status put_one(table *t, const void *key, size_t n, const void *value)
{
    leat_tensor *v;
    LEAT_TRY(leat_tensor_new(t->value_type, t->value_shape, &v));
    leat_status s = leat_elements_copy(t->value_type, v->data, value, v->count);
    row *before = leat_map_get_n(&t->values, key, n);
    if (!s && before && t->once)
        s = check_same(before, v);
    if (s) {
        leat_tensor_unref(v);
        return s;
    }
    row *r = leat_new(row);
    *r = (row){v, n};
    row_free(leat_map_put_n(&t->values, key, n, r));
    return NULL;
}

/* Elements whose time it takes to find or insert a key. */
enum { A_KEY = 64 };

/* With a kernel: ends between two keys once its step is over. NULL: all keys are put. */
static leat_status put(leat_kernel *k, table *t, const leat_tensor *keys, const leat_tensor *values)
{
    const int64_t count = leat_shape_count(&t->value_shape);
    size_t bytes = (size_t)count * leat_element_size(t->value_type);
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < keys->count; i++) {
        if (k && leat_look_over(&look, A_KEY + count))
            return leat_kernel_check(k);
        size_t n;
        const void *key = key_at(keys, i, &n);
        LEAT_TRY(put_one(t, key, n, (const char *)values->data + (size_t)i * bytes));
    }
    return NULL;
}

typedef leat_status table_fn(leat_kernel *k, table *t);

static leat_status with_table(leat_kernel *k, table_fn *fn)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, 0, &table_type, &r));
    table *t = (table *)r;
    pthread_mutex_lock(&t->lock);
    leat_status s = fn(k, t);
    pthread_mutex_unlock(&t->lock);
    leat_resource_unref(r);
    return s;
}

/* ---- The ops ---- */

static leat_status find(leat_kernel *k, table *t)
{
    LEAT_TRY(
        leat_kernel_signature(k, (leat_dtype[]){t->key_type, t->value_type}, 2, &t->value_type, 1));
    if (t->dense)
        return leat_dense_find(k, t->dense);
    const leat_tensor *keys = leat_kernel_in(k, 1), *otherwise = leat_kernel_in(k, 2);
    LEAT_REQUIRE(leat_shape_equal(&otherwise->shape, &t->value_shape), INVALID_ARGUMENT,
                 "Expected shape %s for default value, got %s", leat_shape_show(&t->value_shape).s,
                 leat_shape_show(&otherwise->shape).s);
    LEAT_REQUIRE(!t->once || t->filled, FAILED_PRECONDITION, "Table not initialized.");
    leat_shape shape;
    leat_tensor *y;
    LEAT_TRY(values_shape(t, &keys->shape, &shape));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    size_t bytes = (size_t)otherwise->count * leat_element_size(t->value_type);
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < keys->count; i++) {
        if (leat_look_over(&look, A_KEY + otherwise->count))
            return leat_kernel_check(k);
        size_t n;
        const void *key = key_at(keys, i, &n);
        const row *r = leat_map_get_n(&t->values, key, n);
        LEAT_TRY(leat_elements_copy(t->value_type, (char *)y->data + (size_t)i * bytes,
                                    (r ? r->value : otherwise)->data, otherwise->count));
    }
    return NULL;
}

static leat_status check_types(leat_kernel *k, const table *t)
{
    return leat_kernel_signature(k, (leat_dtype[]){t->key_type, t->value_type}, 2, NULL, 0);
}

static leat_status check_pairs(leat_kernel *k, const table *t)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *values = leat_kernel_in(k, 2);
    leat_shape shape;
    LEAT_TRY(values_shape(t, &keys->shape, &shape));
    LEAT_REQUIRE(leat_shape_equal(&shape, &values->shape), INVALID_ARGUMENT,
                 "Expected shape %s for value, got %s", leat_shape_show(&shape).s,
                 leat_shape_show(&values->shape).s);
    return NULL;
}

static leat_status fill_once(table *t, const leat_tensor *keys, const leat_tensor *values)
{
    LEAT_REQUIRE(keys->count > 0, INVALID_ARGUMENT, "keys and values cannot be empty tensors.");
    LEAT_REQUIRE(!t->filled || (size_t)keys->count == t->values.n, FAILED_PRECONDITION,
                 "Table was already initialized with different data.");
    if (t->filled)
        return NULL;
    leat_status s = put(NULL, t, keys, values);
    t->filled = !s;
    return s;
}

leat_status leat_lookup_find(leat_kernel *k, leat_dtype *key, leat_dtype *value,
                             leat_resource **out)
{
    LEAT_TRY(leat_kernel_resource(k, 0, &table_type, out));
    const table *t = (const table *)*out;
    *key = t->key_type;
    *value = t->value_type;
    if (t->once)
        return NULL;
    leat_status s = leat_error(INVALID_ARGUMENT, "Table %s is not initializable", t->name);
    leat_resource_unref(*out);
    return s;
}

leat_status leat_lookup_fill(leat_resource *r, const leat_tensor *keys, const leat_tensor *values)
{
    table *t = (table *)r;
    pthread_mutex_lock(&t->lock);
    leat_status s = t->filled ? NULL : put(NULL, t, keys, values);
    t->filled |= !s;
    pthread_mutex_unlock(&t->lock);
    return s;
}

static leat_status insert(leat_kernel *k, table *t)
{
    LEAT_TRY(check_types(k, t));
    if (t->dense)
        return leat_dense_insert(k, t->dense);
    LEAT_TRY(check_pairs(k, t));
    LEAT_REQUIRE(!t->once, UNIMPLEMENTED,
                 "Insert not supported by InitializableLookupTable implementations");
    return put(k, t, leat_kernel_in(k, 1), leat_kernel_in(k, 2));
}

static leat_status import(leat_kernel *k, table *t)
{
    LEAT_TRY(check_types(k, t));
    if (t->dense)
        return leat_dense_import(k, t->dense);
    LEAT_TRY(check_pairs(k, t));
    if (t->once)
        return fill_once(t, leat_kernel_in(k, 1), leat_kernel_in(k, 2));
    clear(t);
    return put(NULL, t, leat_kernel_in(k, 1), leat_kernel_in(k, 2));
}

static leat_status initialize(leat_kernel *k, table *t)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *values = leat_kernel_in(k, 2);
    LEAT_REQUIRE(t->once, INVALID_ARGUMENT, "Table %s is not initializable", t->name);
    LEAT_TRY(check_types(k, t));
    LEAT_REQUIRE(keys->shape.rank == 1, INVALID_ARGUMENT,
                 "Keys must be a vector, but received shape%s", leat_shape_show(&keys->shape).s);
    LEAT_REQUIRE(values->shape.rank == 1, INVALID_ARGUMENT,
                 "Values must be a vector, but received shape%s",
                 leat_shape_show(&values->shape).s);
    LEAT_REQUIRE(keys->count == values->count, INVALID_ARGUMENT,
                 "Keys and values must have the same size %lld vs %lld", (long long)keys->count,
                 (long long)values->count);
    return fill_once(t, keys, values);
}

static leat_status take_out(leat_kernel *k, table *t)
{
    LEAT_TRY(leat_kernel_signature(k, &t->key_type, 1, NULL, 0));
    if (t->dense)
        return leat_dense_remove(k, t->dense);
    LEAT_REQUIRE(!t->once, UNIMPLEMENTED,
                 "Remove not supported by InitializableLookupTable implementations");
    const leat_tensor *keys = leat_kernel_in(k, 1);
    for (int64_t i = 0; i < keys->count; i++) {
        size_t n;
        const void *key = key_at(keys, i, &n);
        row_free(leat_map_remove_n(&t->values, key, n));
    }
    return NULL;
}

static leat_status size(leat_kernel *k, table *t)
{
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    AT(int64_t, y)[0] = t->dense ? leat_dense_size(t->dense) : (int64_t)t->values.n;
    return NULL;
}

static leat_status export(leat_kernel *k, table *t)
{
    LEAT_TRY(leat_kernel_signature(k, NULL, 0, (leat_dtype[]){t->key_type, t->value_type}, 2));
    if (t->dense)
        return leat_dense_export(k, t->dense);
    leat_shape vector = leat_shape((int64_t)t->values.n), shape;
    leat_tensor *keys, *values;
    LEAT_TRY(values_shape(t, &vector, &shape));
    LEAT_TRY(leat_kernel_out(k, 0, &vector, &keys));
    LEAT_TRY(leat_kernel_out(k, 1, &shape, &values));
    size_t bytes = leat_element_size(t->value_type) * (size_t)leat_shape_count(&t->value_shape);
    size_t i = 0, at = 0;
    const char *key;
    void *value;
    for (; leat_map_next(&t->values, &i, &key, &value); at++) {
        const row *r = value;
        if (t->key_type == LEAT_STRING)
            LEAT_REQUIRE(leat_string_set(AT(leat_string, keys) + at, key, r->n_key),
                         RESOURCE_EXHAUSTED, "No memory for a key of %zu bytes", r->n_key);
        else
            memcpy((char *)keys->data + at * r->n_key, key, r->n_key);
        LEAT_TRY(leat_elements_copy(t->value_type, (char *)values->data + at * bytes,
                                    r->value->data, r->value->count));
    }
    return NULL;
}

#define ON_TABLE(fn)                                                                               \
    static leat_status fn##_run(leat_kernel *k)                                                    \
    {                                                                                              \
        return with_table(k, fn);                                                                  \
    }
ON_TABLE(find)
ON_TABLE(insert)
ON_TABLE(import)
ON_TABLE(initialize)
ON_TABLE(take_out)
ON_TABLE(size)
ON_TABLE(export)

/* The pairs of dtypes that TensorFlow has. */
#define COMMON (LEAT_T(FLOAT) | LEAT_T(DOUBLE) | LEAT_T(INT32) | LEAT_T(STRING))
#define TABLE_OF(name, keys, values)                                                               \
    {                                                                                              \
        .op = name, .where = {{"key_dtype", keys}, {"value_dtype", values}}, .run = make_run,      \
        .state_size = sizeof(leat_resource_op), .release = leat_resource_op_release                \
    }
#define TABLE(name)                                                                                \
    TABLE_OF(name, LEAT_T(INT32), COMMON), TABLE_OF(name, LEAT_T(INT64), COMMON | LEAT_T(INT64)),  \
        TABLE_OF(name, LEAT_T(STRING), COMMON | LEAT_T(INT64) | LEAT_T(BOOL))
#define DENSE (LEAT_T(FLOAT) | LEAT_T(DOUBLE) | LEAT_T(INT32))
const leat_kernel_def leat_cpu_lookup[] = {
    TABLE("HashTable"),
    TABLE("HashTableV2"),
    TABLE("MutableHashTable"),
    TABLE("MutableHashTableV2"),
    TABLE("MutableHashTableOfTensors"),
    TABLE("MutableHashTableOfTensorsV2"),
    TABLE_OF("MutableDenseHashTableV2", LEAT_T(INT32), DENSE),
    TABLE_OF("MutableDenseHashTableV2", LEAT_T(INT64) | LEAT_T(STRING),
             DENSE | LEAT_T(INT64) | LEAT_T(BOOL)),
    {.op = "InitializeTable", .run = initialize_run},
    {.op = "InitializeTableV2", .run = initialize_run},
    {.op = "LookupTableFind", .run = find_run},
    {.op = "LookupTableFindV2", .run = find_run},
    {.op = "LookupTableInsert", .run = insert_run},
    {.op = "LookupTableInsertV2", .run = insert_run},
    {.op = "LookupTableImport", .run = import_run},
    {.op = "LookupTableImportV2", .run = import_run},
    {.op = "LookupTableExport", .run = export_run},
    {.op = "LookupTableExportV2", .run = export_run},
    {.op = "LookupTableSize", .run = size_run},
    {.op = "LookupTableSizeV2", .run = size_run},
    {.op = "LookupTableRemoveV2", .run = take_out_run},
    {0},
};
