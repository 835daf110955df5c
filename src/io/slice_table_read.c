/* slice_table_read.c -- V1 checkpoints, of one file or of several that a pattern names. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/checked.h"
#include "core/element.h"
#include "core/map.h"
#include "io/file.h"
#include "io/path.h"
#include "io/slice_table.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

typedef struct stored {
    leat_slice slice;
    size_t table; /* index of the table that has it */
} stored;

typedef struct tensor {
    char *name;
    leat_dtype dtype;
    leat_shape shape;
    stored *slices;
    size_t n, cap;
} tensor;

struct leat_slice_reader {
    leat_table **tables;
    size_t n_tables;
    tensor **tensors;
    size_t n, cap;
    leat_map by_name;
};

void leat_slice_reader_free(leat_slice_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_tables; i++)
        leat_table_free(r->tables[i]);
    for (size_t i = 0; i < r->n; i++) {
        free(r->tensors[i]->name);
        free(r->tensors[i]->slices);
        free(r->tensors[i]);
    }
    free(r->tables);
    free(r->tensors);
    leat_map_release(&r->by_name);
    free(r);
}

static leat_status add_tensor(leat_slice_reader *r, size_t table, const Leat__SavedSliceMeta *m)
{
    leat_shape shape;
    LEAT_TRY(leat_shape_from_proto(m->shape, &shape));
    LEAT_REQUIRE(leat_shape_known(&shape) && leat_shape_count(&shape) >= 0 &&
                     leat_element_size((leat_dtype)m->type) > 0,
                 DATA_LOSS, "Invalid type or shape of tensor %s", m->name);
    tensor *t = leat_map_get(&r->by_name, m->name);
    if (!t) {
        t = leat_new(tensor);
        t->name = leat_xstrdup(m->name);
        t->dtype = (leat_dtype)m->type;
        t->shape = shape;
        leat_grow(r->tensors, r->n, r->cap);
        r->tensors[r->n++] = t;
        leat_map_put(&r->by_name, m->name, t);
    }
    LEAT_REQUIRE(leat_shape_equal(&t->shape, &shape), INTERNAL,
                 "Incompatible tensor shapes detected for tensor %s: existing = %s, new = %s",
                 m->name, leat_shape_show(&t->shape).s, leat_shape_show(&shape).s);
    LEAT_REQUIRE(t->dtype == (leat_dtype)m->type, INTERNAL,
                 "Incompatible tensor types detected for tensor %s: existing = %s, new = %s",
                 m->name, leat_dtype_name(t->dtype), leat_dtype_name((leat_dtype)m->type));
    for (size_t i = 0; i < m->n_slice; i++) {
        leat_slice slice;
        LEAT_TRY(leat_slice_from_proto(m->slice[i], &slice));
        LEAT_TRY(leat_slice_shape(&slice, &t->shape, &shape));
        leat_grow(t->slices, t->n, t->cap);
        t->slices[t->n++] = (stored){slice, table};
    }
    return NULL;
}

/* Adds the contents of the last of r->tables. */
static leat_status add_table(leat_slice_reader *r, const char *path)
{
    size_t at = r->n_tables - 1;
    const leat_table_entry *e = leat_table_find(r->tables[at], "", 0);
    Leat__SavedTensorSlices *m = NULL;
    leat_status s = e ? LEAT_UNPACK(saved_tensor_slices, e->value, e->n_value, &m) : NULL;
    if (!m) {
        if (leat_status_code(s) == LEAT_RESOURCE_EXHAUSTED)
            return s;
        leat_status_free(s);
        return leat_error(INTERNAL,
                          "Failed to find the saved tensor slices at the beginning of the "
                          "checkpoint file: %s",
                          path);
    }
    for (size_t i = 0; m->meta && i < m->meta->n_tensor && !s; i++)
        s = add_tensor(r, at, m->meta->tensor[i]);
    leat_proto_free(m);
    return s;
}

leat_status leat_slice_reader_parse(char *bytes, size_t n, leat_slice_reader **out)
{
    leat_table *t;
    LEAT_TRY(leat_table_parse(bytes, n, &t));
    leat_slice_reader *r = leat_new(leat_slice_reader);
    r->tables = leat_new(leat_table *);
    r->tables[r->n_tables++] = t;
    leat_status s = add_table(r, "");
    if (s)
        leat_slice_reader_free(r);
    else
        *out = r;
    return s;
}

static leat_status add_file(leat_slice_reader *r, const char *path)
{
    leat_status s = leat_table_open(path, &r->tables[r->n_tables]);
    if (s) {
        leat_status t =
            leat_error(DATA_LOSS,
                       "Unable to open table file %s: %s: %s: perhaps your file is in a "
                       "different file format and you need to use a different restore "
                       "operator?",
                       path, leat_code_name(leat_status_code(s)), leat_status_message(s));
        leat_status_free(s);
        return t;
    }
    r->n_tables++;
    return add_table(r, path);
}

leat_status leat_slice_reader_open(const char *pattern, leat_slice_reader **out)
{
    char **found;
    size_t n;
    LEAT_TRY(leat_path_match(pattern, &found, &n));
    LEAT_REQUIRE(n, NOT_FOUND,
                 "Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
                 "for %s",
                 pattern);
    leat_slice_reader *r = leat_new(leat_slice_reader);
    r->tables = leat_new_array(leat_table *, n);
    leat_status s = NULL;
    for (size_t i = 0; i < n && !s; i++)
        s = add_file(r, found[i]);
    leat_paths_free(found, n);
    if (s)
        leat_slice_reader_free(r);
    else
        *out = r;
    return s;
}

const char *leat_slice_reader_name(const leat_slice_reader *r, size_t i)
{
    return i < r->n ? r->tensors[i]->name : NULL;
}

bool leat_slice_reader_has(const leat_slice_reader *r, const char *name, size_t n,
                           leat_dtype *dtype, leat_shape *shape)
{
    const tensor *t = leat_map_get_n(&r->by_name, name, n);
    if (!t)
        return false;
    *dtype = t->dtype;
    *shape = t->shape;
    return true;
}

/* The number of values that a message has for a dtype. */
static size_t values(const Leat__TensorProto *p, leat_dtype t)
{
    switch (t) {
    case LEAT_FLOAT:
        return p->n_float_val;
    case LEAT_DOUBLE:
        return p->n_double_val;
    case LEAT_COMPLEX64:
        return p->n_scomplex_val / 2;
    case LEAT_COMPLEX128:
        return p->n_dcomplex_val / 2;
    case LEAT_INT64:
        return p->n_int64_val;
    case LEAT_STRING:
        return p->n_string_val;
    case LEAT_BOOL:
        return p->n_bool_val;
    case LEAT_HALF:
        return p->n_half_val;
    case LEAT_INT32:
    case LEAT_INT16:
    case LEAT_INT8:
    case LEAT_UINT8:
    case LEAT_UINT16:
    case LEAT_QINT32:
    case LEAT_QINT8:
    case LEAT_QUINT8:
    case LEAT_QUINT16:
        return p->n_int_val;
    default:
        return 0;
    }
}

/* Reads a stored slice. */
static leat_status read_stored(const leat_slice_reader *r, const tensor *t, const stored *at,
                               leat_tensor **out)
{
    leat_shape shape;
    leat_strbuf key = {0};
    LEAT_TRY(leat_slice_shape(&at->slice, &t->shape, &shape));
    leat_slice_key(t->name, strlen(t->name), &at->slice, &key);
    const leat_table_entry *e = leat_table_find(r->tables[at->table], key.s, key.n);
    leat_strbuf_release(&key);
    Leat__SavedTensorSlices *m = NULL;
    leat_status s = e ? LEAT_UNPACK(saved_tensor_slices, e->value, e->n_value, &m) : NULL;
    Leat__TensorProto *p = m && m->data ? m->data->data : NULL;
    if (!s && (!p || values(p, t->dtype) < (size_t)leat_shape_count(&shape)))
        s = leat_error(INVALID_ARGUMENT, "Error copying slice data");
    if (!s) {
        p->dtype = (Leat__DataType)t->dtype;
        leat_proto_free(p->tensor_shape);
        p->tensor_shape = leat_shape_to_proto(&shape);
        p->tensor_content.len = 0;
        s = leat_tensor_from_proto(p, out);
    }
    leat_proto_free(m);
    return s;
}

leat_status leat_slice_reader_read(const leat_slice_reader *r, const char *name, size_t n,
                                   const leat_slice *slice, leat_tensor **out)
{
    const tensor *t = leat_map_get_n(&r->by_name, name, n);
    LEAT_REQUIRE(t, NOT_FOUND, "%.*s not found in checkpoint file", (int)n, name);
    leat_shape shape, both_shape;
    LEAT_TRY(leat_slice_shape(slice, &t->shape, &shape));
    int64_t missing = leat_shape_count(&shape);
    for (size_t i = 0; i < t->n && missing >= 0; i++) {
        leat_slice both;
        if (leat_slice_equal(&t->slices[i].slice, slice))
            return read_stored(r, t, &t->slices[i], out);
        if (!leat_slice_intersect(slice, &t->slices[i].slice, &both))
            continue;
        LEAT_TRY(leat_slice_shape(&both, &t->shape, &both_shape));
        missing -= leat_shape_count(&both_shape);
    }
    LEAT_REQUIRE(missing == 0, INVALID_ARGUMENT, "Error copying slice data");
    leat_tensor *all;
    LEAT_TRY(leat_tensor_new(t->dtype, shape, &all));
    leat_status s = NULL;
    for (size_t i = 0; i < t->n && !s; i++) {
        leat_tensor *part = NULL;
        s = read_stored(r, t, &t->slices[i], &part);
        if (!s)
            s = leat_slice_copy(t->dtype, &t->shape, &t->slices[i].slice, part->data, slice,
                                all->data);
        leat_tensor_unref(part);
    }
    if (s)
        leat_tensor_unref(all);
    else
        *out = all;
    return s;
}
