/* slice_table_write.c -- V1 checkpoints, written as TensorFlow writes them, byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/element.h"
#include "io/file.h"
#include "io/slice_table.h"
#include "proto/field.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

static Leat__SavedSliceMeta *find(leat_slice_writer *w, const char *name, size_t n)
{
    Leat__SavedTensorSliceMeta *m = w->meta->meta;
    for (size_t i = 0; i < m->n_tensor; i++)
        if (strlen(m->tensor[i]->name) == n && memcmp(m->tensor[i]->name, name, n) == 0)
            return m->tensor[i];
    return NULL;
}

static Leat__SavedSliceMeta *add_meta(leat_slice_writer *w, const char *name, size_t n,
                                      leat_dtype dtype, const leat_shape *whole)
{
    Leat__SavedTensorSliceMeta *m = w->meta->meta;
    Leat__SavedSliceMeta *t =
        (Leat__SavedSliceMeta *)leat_message_new(&leat__saved_slice_meta__descriptor);
    t->name = leat_xstrndup(name, n);
    t->shape = leat_shape_to_proto(whole);
    t->type = (Leat__DataType)dtype;
    m->tensor = leat_xrealloc(m->tensor, (m->n_tensor + 1) * sizeof(*m->tensor));
    m->tensor[m->n_tensor++] = t;
    return t;
}

/* Writes the values only: dtype and shape are in the entry "". */
static leat_status fill(Leat__TensorProto *p, const leat_tensor *t)
{
    size_t bytes = (size_t)t->count * leat_element_size(t->dtype);
    LEAT_REQUIRE(bytes < (size_t)1 << 30, INVALID_ARGUMENT,
                 "Tensor slice is too large to serialize (conservative estimate: %zu bytes)",
                 bytes);
    switch (t->dtype) {
    case LEAT_UINT32:
    case LEAT_UINT64:
    case LEAT_QINT16:
    case LEAT_BFLOAT16:
    case LEAT_RESOURCE:
    case LEAT_VARIANT:
        return leat_error(UNIMPLEMENTED, "Saving data type %s not yet supported",
                          leat_dtype_name(t->dtype));
    default:
        return leat_tensor_to_field(t, p);
    }
}

static leat_status add_record(leat_slice_writer *w, const char *name, size_t n,
                              const leat_slice *slice, const leat_tensor *t)
{
    Leat__SavedTensorSlices *m =
        (Leat__SavedTensorSlices *)leat_message_new(&leat__saved_tensor_slices__descriptor);
    m->data = (Leat__SavedSlice *)leat_message_new(&leat__saved_slice__descriptor);
    m->data->name = leat_xstrndup(name, n);
    m->data->slice = leat_slice_to_proto(slice);
    m->data->data = (Leat__TensorProto *)leat_message_new(&leat__tensor_proto__descriptor);
    leat_status s = fill(m->data->data, t);
    if (!s) {
        leat_grow(w->records, w->n, w->cap);
        struct leat_slice_record *r = &w->records[w->n++];
        *r = (struct leat_slice_record){0};
        leat_slice_key(name, n, slice, &r->key);
        s = leat_proto_pack(m, &r->value);
    }
    leat_proto_free(m);
    return s;
}

static void begin(leat_slice_writer *w)
{
    w->meta = (Leat__SavedTensorSlices *)leat_message_new(&leat__saved_tensor_slices__descriptor);
    w->meta->meta =
        (Leat__SavedTensorSliceMeta *)leat_message_new(&leat__saved_tensor_slice_meta__descriptor);
    w->meta->meta->versions = (Leat__VersionDef *)leat_message_new(&leat__version_def__descriptor);
    w->meta->meta->versions->producer = 1;
}

leat_status leat_slice_writer_add(leat_slice_writer *w, const char *name, size_t n,
                                  const leat_shape *whole, const leat_slice *slice,
                                  const leat_tensor *t)
{
    if (!w->meta)
        begin(w);
    Leat__SavedSliceMeta *m = find(w, name, n);
    leat_shape before;
    if (m) {
        LEAT_TRY(leat_shape_from_proto(m->shape, &before));
        LEAT_REQUIRE(
            leat_shape_equal(&before, whole), INTERNAL,
            "Mismatching shapes: existing tensor = %s, trying to add name %.*s, shape = %s",
            leat_shape_show(&before).s, (int)n, name, leat_shape_show(whole).s);
        LEAT_REQUIRE((leat_dtype)m->type == t->dtype, INTERNAL,
                     "Mismatching types: existing type = %s, trying to add name %.*s, type = %s",
                     leat_dtype_name((leat_dtype)m->type), (int)n, name, leat_dtype_name(t->dtype));
    } else {
        m = add_meta(w, name, n, t->dtype, whole);
    }
    m->slice = leat_xrealloc(m->slice, (m->n_slice + 1) * sizeof(*m->slice));
    m->slice[m->n_slice++] = leat_slice_to_proto(slice);
    return add_record(w, name, n, slice, t);
}

static int by_key(const void *a, const void *b)
{
    const leat_strbuf *x = &((const struct leat_slice_record *)a)->key;
    const leat_strbuf *y = &((const struct leat_slice_record *)b)->key;
    int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

leat_status leat_slice_writer_finish(leat_slice_writer *w, const char *path)
{
    if (!w->meta)
        begin(w);
    leat_table_writer table = {0};
    leat_strbuf meta = {0};
    leat_status s = leat_proto_pack(w->meta, &meta);
    if (w->n)
        qsort(w->records, w->n, sizeof(*w->records), by_key);
    if (!s)
        leat_table_add(&table, "", 0, meta.s, meta.n);
    for (size_t i = 0; i < w->n && !s; i++) {
        struct leat_slice_record *r = &w->records[i];
        if (i == 0 || by_key(r - 1, r) != 0) /* of two with the same key the first is kept */
            leat_table_add(&table, r->key.s, r->key.n, r->value.s, r->value.n);
    }
    if (!s)
        s = leat_table_finish(&table);
    if (!s)
        s = leat_file_write(path, table.out.s, table.out.n);
    leat_table_writer_release(&table);
    leat_strbuf_release(&meta);
    return s;
}

void leat_slice_writer_release(leat_slice_writer *w)
{
    leat_proto_free(w->meta);
    for (size_t i = 0; i < w->n; i++) {
        leat_strbuf_release(&w->records[i].key);
        leat_strbuf_release(&w->records[i].value);
    }
    free(w->records);
    *w = (leat_slice_writer){0};
}
