/* table.c -- HashTableV2, MutableHashTableV2, MutableHashTableOfTensorsV2 and what is done with
 * them: LookupTableFindV2, SizeV2, ExportV2, ImportV2, InsertV2, RemoveV2, InitializeTableV2. */
#include "kernels/cpu/table.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "core/strbuf.h"
#include "kernels/cpu/shapes.h"

static int64_t value_count(const leat_table *t)
{
    return leat_shape_count(&t->shape);
}

static void entry_free(const leat_table *t, leat_table_entry *e)
{
    leat_elements_release(t->value, e->value, value_count(t));
    free(e->value);
    free(e->key);
    free(e);
}

void leat_table_clear(leat_table *t)
{
    for (int64_t i = 0; i < t->n; i++)
        entry_free(t, t->v[i]);
    t->n = 0;
    leat_map_release(&t->index);
    t->index = (leat_map){0};
}

static void table_free(void *resource)
{
    leat_table *t = resource;
    leat_table_clear(t);
    free(t->v);
    free(t->name);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static const leat_resource_type table_type = {"N10tensorflow6lookup15LookupInterfaceE", table_free};

/* The bytes of element i; *n of them. */
static const void *key_bytes(const leat_tensor *keys, int64_t i, size_t *n)
{
    if (keys->dtype == LEAT_STRING) {
        const leat_string *s = AT(leat_string, keys) + i;
        *n = s->size;
        return s->data ? s->data : "";
    }
    *n = leat_element_size(keys->dtype);
    return (const char *)keys->data + (size_t)i * *n;
}

leat_table_entry *leat_table_get(const leat_table *t, const leat_tensor *keys, int64_t i)
{
    size_t n;
    const void *key = key_bytes(keys, i, &n);
    return leat_map_get_n(&t->index, key, n);
}

static const void *row_of(const leat_tensor *values, int64_t i, int64_t each)
{
    return (const char *)values->data + (size_t)(i * each) * leat_element_size(values->dtype);
}

/* One element, for messages; to be freed. */
static char *element_text(leat_dtype t, const void *data)
{
    leat_tensor *x;
    leat_status s = leat_tensor_new(t, leat_shape(), &x);
    if (!s)
        s = leat_elements_copy(t, x->data, data, 1);
    leat_status_free(s);
    char *text = s ? leat_xstrdup("?") : leat_tensor_text(x, -1);
    if (!s)
        leat_tensor_unref(x);
    return text;
}

static leat_status same_value(const leat_table *t, const leat_table_entry *e,
                              const leat_tensor *keys, int64_t i, const void *value)
{
    bool same;
    if (t->value == LEAT_STRING) {
        const leat_string *a = e->value, *b = value;
        same = a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
    } else {
        same = memcmp(e->value, value, leat_element_size(t->value)) == 0;
    }
    if (same)
        return NULL;
    char *key = element_text(t->key, row_of(keys, i, 1)), *had = element_text(t->value, e->value);
    char *new = element_text(t->value, value);
    leat_status s = leat_error(FAILED_PRECONDITION,
                               "HashTable has different value for same key. Key %s has %s and "
                               "trying to add value %s",
                               key, had, new);
    free(key);
    free(had);
    free(new);
    return s;
}

leat_status leat_table_put(leat_table *t, const leat_tensor *keys, const leat_tensor *values,
                           int64_t i)
{
    int64_t each = value_count(t);
    const void *value = row_of(values, i, each);
    leat_table_entry *e = leat_table_get(t, keys, i);
    if (e && t->fixed)
        return same_value(t, e, keys, i, value);
    if (!e) {
        size_t n;
        const void *key = key_bytes(keys, i, &n);
        e = leat_new(leat_table_entry);
        e->key = leat_xmalloc(n + 1);
        memcpy(e->key, key, n);
        e->key_n = n;
        e->value = leat_xcalloc((size_t)each + 1, leat_element_size(t->value));
        e->at = t->n;
        leat_grow(t->v, t->n, t->cap);
        t->v[t->n++] = e;
        leat_map_put_n(&t->index, key, n, e);
    }
    return leat_elements_copy(t->value, e->value, value, each);
}

/* ---- Making ---- */

static leat_status make(const leat_node *n, const char *name, leat_resource **out)
{
    leat_shape shape = {0};
    if (leat_node_has(n, "value_shape"))
        shape = leat_node_shape(n, "value_shape");
    LEAT_REQUIRE(leat_shape_known(&shape) && shape.rank <= 1, INVALID_ARGUMENT,
                 "Default value must be a vector, got shape %s", leat_shape_show(&shape).s);
    leat_table *t = leat_new(leat_table);
    leat_resource_init(&t->base, &table_type);
    pthread_mutex_init(&t->lock, NULL);
    t->name = leat_xstrdup(name);
    t->key = leat_node_type(n, "key_dtype");
    t->value = leat_node_type(n, "value_dtype");
    t->shape = shape;
    t->fixed = strcmp(leat_node_op(n), "HashTableV2") == 0;
    t->ready = !t->fixed;
    *out = &t->base;
    return NULL;
}

static leat_status check(const leat_node *n, const leat_resource *r)
{
    const leat_table *t = (const leat_table *)r;
    leat_dtype key = leat_node_type(n, "key_dtype"), value = leat_node_type(n, "value_dtype");
    LEAT_REQUIRE(key == t->key && value == t->value, INVALID_ARGUMENT,
                 "Conflicting key/value dtypes %s->%s with %s-%s for table %s",
                 leat_dtype_name(key), leat_dtype_name(value), leat_dtype_name(t->key),
                 leat_dtype_name(t->value), t->name);
    return NULL;
}

static leat_status table_run(leat_kernel *k)
{
    static const leat_resource_maker maker = {&table_type, make, check};
    return leat_resource_op_run(k, &maker);
}

leat_status leat_table_of(leat_kernel *k, leat_table **out)
{
    leat_resource *r = NULL;
    LEAT_TRY(leat_kernel_resource(k, 0, &table_type, &r));
    *out = (leat_table *)r;
    return NULL;
}

/* ---- Finding ---- */

static leat_status find_all(leat_kernel *k, leat_table *t)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *other = leat_kernel_in(k, 2);
    leat_shape s;
    leat_tensor *y;
    LEAT_TRY(
        leat_kernel_signature(k, (leat_dtype[]){t->key, t->value}, 2, (leat_dtype[]){t->value}, 1));
    LEAT_REQUIRE(leat_shape_equal(&other->shape, &t->shape), INVALID_ARGUMENT,
                 "Expected shape %s for default value, got %s", leat_shape_show(&t->shape).s,
                 leat_shape_show(&other->shape).s);
    LEAT_TRY(leat_shape_join(&keys->shape, &t->shape, 0, &s));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    LEAT_REQUIRE(t->ready, FAILED_PRECONDITION, "Table not initialized.");
    int64_t each = value_count(t);
    size_t bytes = (size_t)each * leat_element_size(t->value);
    for (int64_t i = 0; i < keys->count; i++) {
        const leat_table_entry *e = leat_table_get(t, keys, i);
        LEAT_TRY(leat_elements_copy(t->value, (char *)y->data + (size_t)i * bytes,
                                    e ? e->value : other->data, each));
    }
    return NULL;
}

static leat_status size(leat_kernel *k, leat_table *t)
{
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    AT(int64_t, y)[0] = t->n;
    return NULL;
}

static leat_status export(leat_kernel *k, leat_table *t)
{
    leat_shape s = {.rank = 1, .dim = {t->n}}, all;
    leat_tensor *keys, *values;
    int64_t each = value_count(t);
    size_t bytes = (size_t)each * leat_element_size(t->value);
    LEAT_REQUIRE(t->ready, ABORTED, "Table is not initialized.");
    LEAT_REQUIRE(leat_kernel_out_dtype(k, 0) == t->key && leat_kernel_out_dtype(k, 1) == t->value,
                 INVALID_ARGUMENT, "The table's entries are %s to %s", leat_dtype_name(t->key),
                 leat_dtype_name(t->value));
    LEAT_TRY(leat_shape_join(&s, &t->shape, 0, &all));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &keys));
    LEAT_TRY(leat_kernel_out(k, 1, &all, &values));
    for (int64_t i = 0; i < t->n; i++) {
        const leat_table_entry *e = t->v[i];
        if (t->key == LEAT_STRING)
            LEAT_REQUIRE(leat_string_set(AT(leat_string, keys) + i, e->key, e->key_n),
                         RESOURCE_EXHAUSTED, "no memory for a string of %zu bytes", e->key_n);
        else
            memcpy((char *)keys->data + (size_t)i * e->key_n, e->key, e->key_n);
        LEAT_TRY(
            leat_elements_copy(t->value, (char *)values->data + (size_t)i * bytes, e->value, each));
    }
    return NULL;
}

/* ---- Changing ---- */

static leat_status insert(leat_kernel *k, leat_table *t)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *values = leat_kernel_in(k, 2);
    leat_shape want;
    bool import = leat_node_is(leat_kernel_node(k), "LookupTableImportV2");
    LEAT_TRY(leat_kernel_signature(k, (leat_dtype[]){t->key, t->value}, 2, NULL, 0));
    LEAT_REQUIRE(!t->fixed || import, UNIMPLEMENTED, "Insert not supported by HashTable");
    LEAT_TRY(leat_shape_join(&keys->shape, &t->shape, 0, &want));
    LEAT_REQUIRE(leat_shape_equal(&values->shape, &want), INVALID_ARGUMENT,
                 "Expected shape %s for value, got %s", leat_shape_show(&want).s,
                 leat_shape_show(&values->shape).s);
    if (t->fixed)
        return leat_table_fill(t, keys, values);
    if (import)
        leat_table_clear(t);
    for (int64_t i = 0; i < keys->count; i++)
        LEAT_TRY(leat_table_put(t, keys, values, i));
    return NULL;
}

static leat_status remove_keys(leat_kernel *k, leat_table *t)
{
    const leat_tensor *keys = leat_kernel_in(k, 1);
    LEAT_REQUIRE(keys->dtype == t->key, INVALID_ARGUMENT, "Key must be type %s but got %s",
                 leat_dtype_name(t->key), leat_dtype_name(keys->dtype));
    LEAT_REQUIRE(!t->fixed, UNIMPLEMENTED, "Remove not supported by HashTable");
    for (int64_t i = 0; i < keys->count; i++) {
        leat_table_entry *e = leat_table_get(t, keys, i);
        if (!e)
            continue;
        leat_map_remove_n(&t->index, e->key, e->key_n);
        t->v[e->at] = t->v[--t->n]; /* the last takes its place */
        t->v[e->at]->at = e->at;
        entry_free(t, e);
    }
    return NULL;
}

leat_status leat_table_fill(leat_table *t, const leat_tensor *keys, const leat_tensor *values)
{
    LEAT_REQUIRE(t->fixed, INVALID_ARGUMENT, "Table %s is not initializable", t->name);
    if (t->ready) {
        LEAT_REQUIRE(t->n == keys->count, FAILED_PRECONDITION,
                     "Table was already initialized with different data.");
        return NULL;
    }
    leat_status s = NULL;
    for (int64_t i = 0; i < keys->count && !s; i++)
        s = leat_table_put(t, keys, values, i);
    if (s)
        leat_table_clear(t);
    t->ready = !s;
    return s;
}

static leat_status initialize(leat_kernel *k, leat_table *t)
{
    const leat_tensor *keys = leat_kernel_in(k, 1), *values = leat_kernel_in(k, 2);
    LEAT_TRY(leat_kernel_signature(k, (leat_dtype[]){t->key, t->value}, 2, NULL, 0));
    LEAT_REQUIRE(keys->shape.rank == 1, INVALID_ARGUMENT,
                 "Keys must be a vector, but received shape%s", leat_shape_show(&keys->shape).s);
    LEAT_REQUIRE(values->shape.rank == 1, INVALID_ARGUMENT,
                 "Values must be a vector, but received shape%s",
                 leat_shape_show(&values->shape).s);
    LEAT_REQUIRE(keys->count == values->count, INVALID_ARGUMENT,
                 "Keys and values must have the same size %lld vs %lld", (long long)keys->count,
                 (long long)values->count);
    return leat_table_fill(t, keys, values);
}

/* Does it with the table locked. */
#define LOCKED(name)                                                                               \
    static leat_status name##_run(leat_kernel *k)                                                  \
    {                                                                                              \
        leat_table *t = NULL;                                                                      \
        LEAT_TRY(leat_table_of(k, &t));                                                            \
        pthread_mutex_lock(&t->lock);                                                              \
        leat_status s = name(k, t);                                                                \
        pthread_mutex_unlock(&t->lock);                                                            \
        leat_resource_unref(&t->base);                                                             \
        return s;                                                                                  \
    }
LOCKED(find_all)
LOCKED(size)
LOCKED(export)
LOCKED(insert)
LOCKED(remove_keys)
LOCKED(initialize)

#define TABLE(name)                                                                                \
    {                                                                                              \
        .op = name, .run = table_run, .state_size = sizeof(leat_resource_op),                      \
        .release = leat_resource_op_release                                                        \
    }

const leat_kernel_def leat_cpu_table[] = {
    TABLE("HashTableV2"),
    TABLE("MutableHashTableV2"),
    TABLE("MutableHashTableOfTensorsV2"),
    {.op = "LookupTableFindV2", .run = find_all_run},
    {.op = "LookupTableSizeV2", .run = size_run},
    {.op = "LookupTableExportV2", .run = export_run},
    {.op = "LookupTableImportV2", .run = insert_run},
    {.op = "LookupTableInsertV2", .run = insert_run},
    {.op = "LookupTableRemoveV2", .run = remove_keys_run},
    {.op = "InitializeTableV2", .run = initialize_run},
    {0},
};
