/* meta_graph.c -- writing MetaGraphDef files: a graph, its collections and its saver, for
 * TensorFlow's import_meta_graph and for meta_graph_read.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/strbuf.h"
#include "graph/graphdef.h"
#include "io/file.h"
#include "io/slice.h"
#include "proto/field.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/wire.h"
#include "train/saver.h"
#include "train/train_int.h"

char *leat_meta_graph_name(leat_out x)
{
    leat_strbuf b = {0};
    if (!x.node)
        return NULL;
    leat_strbuf_puts(&b, x.node->name);
    if (x.index >= 0)
        leat_strbuf_printf(&b, ":%d", x.index);
    return leat_strbuf_take(&b);
}

static bool trainable(const leat_graph *g, leat_out v)
{
    int n;
    leat_out *all = leat_trainable_variables(g, &n);
    bool found = false;
    for (int i = 0; i < n; i++)
        found |= all[i].node == v.node;
    free(all);
    return found;
}

static int64_t *dims_of(const int64_t *dims, int n)
{
    return memcpy(leat_new_array(int64_t, n ? n : 1), dims, sizeof(int64_t) * (size_t)n);
}

/* The slice that v is of a partitioned variable; NULL if v is a whole variable. */
static leat_status slice_info(leat_out v, Leat__SaveSliceInfoDef **out)
{
    const char *name, *spec = leat_variable_slice(v, &name);
    leat_shape whole, part;
    leat_slice slice;
    *out = NULL;
    if (!spec)
        return NULL;
    LEAT_TRY(leat_slice_parse(spec, strlen(spec), &whole, &slice, &part));
    Leat__SaveSliceInfoDef *d = LEAT_MESSAGE(Leat__SaveSliceInfoDef, save_slice_info_def);
    d->full_name = leat_xstrdup(name);
    d->n_full_shape = d->n_var_offset = d->n_var_shape = (size_t)whole.rank;
    d->full_shape = dims_of(whole.dim, whole.rank);
    d->var_offset = dims_of(slice.start, whole.rank);
    d->var_shape = dims_of(part.dim, whole.rank);
    *out = d;
    return NULL;
}

static leat_status variable_def(const leat_graph *g, leat_out v, ProtobufCBinaryData *out)
{
    Leat__VariableDef *d = LEAT_MESSAGE(Leat__VariableDef, variable_def);
    d->variable_name = leat_meta_graph_name(leat_variable_ref(v));
    d->initializer_name = leat_meta_graph_name(leat_done(leat_variable_initializer(v)));
    d->snapshot_name = leat_meta_graph_name(leat_variable_value(v));
    d->initial_value_name = leat_meta_graph_name(leat_variable_initial_value(v));
    d->is_resource = leat_variable_is_resource(v);
    d->trainable = trainable(g, leat_variable_ref(v));
    leat_status s = slice_info(v, &d->save_slice_info_def);
    if (!s)
        s = leat_proto_bytes(d, (void **)&out->data, &out->len);
    leat_proto_free(d);
    return s;
}

Leat__CollectionDef *leat_meta_graph_collection(Leat__MetaGraphDef *m, const char *name)
{
    Leat__MetaGraphDef__CollectionDefEntry *e =
        LEAT_MESSAGE(Leat__MetaGraphDef__CollectionDefEntry, meta_graph_def__collection_def_entry);
    e->key = leat_xstrdup(name);
    e->value = LEAT_MESSAGE(Leat__CollectionDef, collection_def);
    m->collection_def =
        leat_xrealloc(m->collection_def, sizeof(*m->collection_def) * (m->n_collection_def + 1));
    m->collection_def[m->n_collection_def++] = e;
    return e->value;
}

static leat_status runner_def(const leat_runner *r, ProtobufCBinaryData *out)
{
    Leat__QueueRunnerDef *d = LEAT_MESSAGE(Leat__QueueRunnerDef, queue_runner_def);
    d->queue_name = leat_xstrdup(r->queue.node->name);
    d->close_op_name = leat_xstrdup(r->close_op.node->name);
    d->cancel_op_name = leat_xstrdup(r->cancel_op.node->name);
    d->enqueue_op_name = leat_new_array(char *, r->n);
    for (int i = 0; i < r->n; i++)
        d->enqueue_op_name[d->n_enqueue_op_name++] = leat_xstrdup(r->enqueue_ops[i].node->name);
    d->queue_closed_exception_types = leat_new_array(int32_t, 32);
    for (int c = 0; c < 32; c++)
        if (r->closed_codes >> c & 1)
            d->queue_closed_exception_types[d->n_queue_closed_exception_types++] = c;
    leat_status s = leat_proto_bytes(d, (void **)&out->data, &out->len);
    leat_proto_free(d);
    return s;
}

static leat_status add_runners(const leat_graph *g, Leat__MetaGraphDef *m)
{
    int n = 0;
    for (const leat_runner *r = leat_runners(g); r; r = r->next)
        n++;
    if (!n)
        return NULL;
    Leat__CollectionDef *d = leat_meta_graph_collection(m, LEAT_QUEUE_RUNNERS);
    d->kind_case = LEAT__COLLECTION_DEF__KIND_BYTES_LIST;
    d->bytes_list = LEAT_MESSAGE(Leat__CollectionDef__BytesList, collection_def__bytes_list);
    d->bytes_list->value = leat_new_array(ProtobufCBinaryData, n);
    for (const leat_runner *r = leat_runners(g); r; r = r->next)
        LEAT_TRY(runner_def(r, &d->bytes_list->value[d->bytes_list->n_value++]));
    return NULL;
}

/* Variables are written as VariableDef messages if all entries are variables; else the names of
 * tensors. */
static leat_status fill_collection(const leat_graph *g, const char *name, Leat__CollectionDef *d)
{
    int n, variables = 0;
    leat_out *v = leat_collection(g, name, NULL, &n);
    for (int i = 0; i < n; i++)
        variables += leat_variable_ref(v[i]).node != NULL && leat_variable_initializer(v[i]).node;
    leat_status s = NULL;
    if (n && variables == n) {
        d->kind_case = LEAT__COLLECTION_DEF__KIND_BYTES_LIST;
        d->bytes_list = LEAT_MESSAGE(Leat__CollectionDef__BytesList, collection_def__bytes_list);
        d->bytes_list->value = leat_new_array(ProtobufCBinaryData, n);
        for (int i = 0; i < n && !s; i++)
            s = variable_def(g, v[i], &d->bytes_list->value[d->bytes_list->n_value++]);
    } else {
        d->kind_case = LEAT__COLLECTION_DEF__KIND_NODE_LIST;
        d->node_list = LEAT_MESSAGE(Leat__CollectionDef__NodeList, collection_def__node_list);
        d->node_list->value = leat_new_array(char *, n ? n : 1);
        for (int i = 0; i < n; i++)
            d->node_list->value[d->node_list->n_value++] = leat_meta_graph_name(v[i]);
    }
    free(v);
    return s;
}

static leat_status add_collections(const leat_graph *g, Leat__MetaGraphDef *m)
{
    size_t at = 0;
    const char *name;
    while (leat_collection_next(g, &at, &name))
        LEAT_TRY(fill_collection(g, name, leat_meta_graph_collection(m, name)));
    return add_runners(g, m);
}

static Leat__SaverDef *saver_def(const leat_saver *v)
{
    Leat__SaverDef *d = LEAT_MESSAGE(Leat__SaverDef, saver_def);
    d->filename_tensor_name = leat_meta_graph_name(v->filename);
    d->save_tensor_name = leat_meta_graph_name(v->save);
    d->restore_op_name = leat_meta_graph_name(v->restore);
    d->max_to_keep = v->max_to_keep;
    d->sharded = v->sharded;
    d->keep_checkpoint_every_n_hours = (float)v->keep_every_hours;
    d->version = LEAT__SAVER_DEF__CHECKPOINT_FORMAT_VERSION__V2;
    return d;
}

leat_status leat_meta_graph_to_proto(const leat_graph *g, const leat_saver *v,
                                     Leat__MetaGraphDef **out)
{
    Leat__MetaGraphDef *m = LEAT_MESSAGE(Leat__MetaGraphDef, meta_graph_def);
    m->meta_info_def = LEAT_MESSAGE(Leat__MetaGraphDef__MetaInfoDef, meta_graph_def__meta_info_def);
    m->meta_info_def->tensorflow_version = leat_xstrdup("1.15.0");
    m->meta_info_def->tensorflow_git_version = leat_xstrdup("leat");
    leat_status s = leat_graph_to_proto(g, &m->graph_def);
    if (!s)
        s = add_collections(g, m);
    if (!s && v && !v->empty)
        m->saver_def = saver_def(v);
    if (s)
        leat_proto_free(m);
    else
        *out = m;
    return s;
}

leat_status leat_meta_graph_write(const leat_graph *g, const leat_saver *v, const char *path)
{
    LEAT_CHECK(GRAPH, g);
    if (v)
        LEAT_CHECK(SAVER, v);
    LEAT_CHECK_ARG(path);
    Leat__MetaGraphDef *m;
    LEAT_TRY(leat_meta_graph_to_proto(g, v, &m));
    void *bytes = NULL;
    size_t n = 0;
    leat_status s = leat_proto_bytes(m, &bytes, &n);
    leat_proto_free(m);
    if (!s)
        s = leat_file_write(path, bytes, n);
    free(bytes);
    return s;
}
