/* saved_model_write.c -- writes SavedModels: variables and assets first, the file with the graph
 * last, so that a model is there completely or not at all. */
#define _GNU_SOURCE /* strchrnul */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/strbuf.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"
#include "train/saved_model_int.h"

/* ---- Signatures ---- */
static leat_status tensor_info(const leat_signature_tensor *t, Leat__TensorInfo **out)
{
    LEAT_REQUIRE(t->x.node && t->x.index >= 0, INVALID_ARGUMENT, "it has no tensor");
    Leat__TensorInfo *d = LEAT_MESSAGE(Leat__TensorInfo, tensor_info);
    d->dtype = (Leat__DataType)leat_dtype_base(leat_out_dtype(t->x));
    leat_shape shape = leat_out_shape(t->x);
    if (t->indices.node) {
        d->encoding_case = LEAT__TENSOR_INFO__ENCODING_COO_SPARSE;
        d->coo_sparse = LEAT_MESSAGE(Leat__TensorInfo__CooSparse, tensor_info__coo_sparse);
        d->coo_sparse->values_tensor_name = leat_meta_graph_name(t->x);
        d->coo_sparse->indices_tensor_name = leat_meta_graph_name(t->indices);
        d->coo_sparse->dense_shape_tensor_name = leat_meta_graph_name(t->dense_shape);
        shape = leat_shape_unknown();
    } else {
        d->encoding_case = LEAT__TENSOR_INFO__ENCODING_NAME;
        d->name = leat_meta_graph_name(t->x);
    }
    d->tensor_shape = leat_shape_to_proto(&shape);
    *out = d;
    return NULL;
}

/* Entries of inputs and of outputs have the same layout, but types of their own. */
#define ADD_TENSORS(d, field, Entry, entry, s)                                                     \
    do {                                                                                           \
        (d)->field = leat_xcalloc((size_t)(s)->n_##field + 1, sizeof(*(d)->field));                \
        for (int i = 0; i < (s)->n_##field; i++) {                                                 \
            Leat__SignatureDef__##Entry *e =                                                       \
                LEAT_MESSAGE(Leat__SignatureDef__##Entry, signature_def__##entry);                 \
            (d)->field[(d)->n_##field++] = e;                                                      \
            e->key = leat_xstrdup((s)->field[i].name ? (s)->field[i].name : "");                   \
            LEAT_TRY(leat_status_prefix(tensor_info(&(s)->field[i], &e->value),                    \
                                        "\"%s\" of signature \"%s\": ", e->key, (s)->name));       \
        }                                                                                          \
    } while (0)

static leat_status add_signature(Leat__MetaGraphDef *m, const leat_signature *s)
{
    LEAT_REQUIRE(s->name && s->name[0], INVALID_ARGUMENT, "a signature has no name");
    Leat__MetaGraphDef__SignatureDefEntry *e =
        LEAT_MESSAGE(Leat__MetaGraphDef__SignatureDefEntry, meta_graph_def__signature_def_entry);
    m->signature_def[m->n_signature_def++] = e;
    e->key = leat_xstrdup(s->name);
    e->value = LEAT_MESSAGE(Leat__SignatureDef, signature_def);
    e->value->method_name = leat_xstrdup(s->method ? s->method : "tensorflow/serving/predict");
    Leat__SignatureDef *d = e->value;
    ADD_TENSORS(d, inputs, InputsEntry, inputs_entry, s);
    ADD_TENSORS(d, outputs, OutputsEntry, outputs_entry, s);
    return NULL;
}
#undef ADD_TENSORS

/* ---- The graph ---- */
static leat_status add_tags(Leat__MetaGraphDef *m, const char *tags)
{
    Leat__MetaGraphDef__MetaInfoDef *info = m->meta_info_def;
    info->tags = leat_new_array(char *, strlen(tags) + 1);
    for (const char *end; *tags; tags = *end ? end + 1 : end) {
        end = strchrnul(tags, ',');
        info->tags[info->n_tags++] = leat_xstrndup(tags, (size_t)(end - tags));
    }
    LEAT_REQUIRE(info->n_tags, INVALID_ARGUMENT, "the graph has no tags");
    return NULL;
}

static void add_main_op(Leat__MetaGraphDef *m, leat_out op)
{
    Leat__CollectionDef *c = leat_meta_graph_collection(m, LEAT_SAVED_MODEL_MAIN_OP);
    c->kind_case = LEAT__COLLECTION_DEF__KIND_NODE_LIST;
    c->node_list = LEAT_MESSAGE(Leat__CollectionDef__NodeList, collection_def__node_list);
    c->node_list->value = leat_new_array(char *, 1);
    c->node_list->value[c->node_list->n_value++] = leat_meta_graph_name(leat_done(op));
}

static leat_status add_asset(Leat__MetaGraphDef *m, const leat_asset *a)
{
    Leat__AssetFileDef *d = LEAT_MESSAGE(Leat__AssetFileDef, asset_file_def);
    m->asset_file_def[m->n_asset_file_def++] = d;
    d->filename = leat_xstrdup(leat_path_base(a->path));
    return leat_status_prefix(tensor_info(&(leat_signature_tensor){.x = a->x}, &d->tensor_info),
                              "Asset %s: ", a->path);
}

static leat_status fill(Leat__MetaGraphDef *m, const leat_saved_model_write_options *o)
{
    LEAT_TRY(add_tags(m, o->tags ? o->tags : LEAT_SAVED_MODEL_TAG));
    m->signature_def = leat_xcalloc((size_t)o->n_signatures + 1, sizeof(*m->signature_def));
    for (int i = 0; i < o->n_signatures; i++)
        LEAT_TRY(add_signature(m, &o->signatures[i]));
    m->asset_file_def = leat_xcalloc((size_t)o->n_assets + 1, sizeof(*m->asset_file_def));
    for (int i = 0; i < o->n_assets; i++)
        LEAT_TRY(add_asset(m, &o->assets[i]));
    if (o->main_op.node)
        add_main_op(m, o->main_op);
    for (size_t i = 0; o->clear_devices && i < m->graph_def->n_node; i++)
        m->graph_def->node[i]->device[0] = 0;
    return NULL;
}

static leat_status write_graph(const leat_graph *g, const leat_saver *saver, const char *path,
                               const leat_saved_model_write_options *o)
{
    Leat__SavedModel file = LEAT__SAVED_MODEL__INIT;
    Leat__MetaGraphDef *m;
    LEAT_TRY(leat_meta_graph_to_proto(g, saver, &m));
    file.saved_model_schema_version = 1;
    file.n_meta_graphs = 1;
    file.meta_graphs = &m;
    void *bytes = NULL;
    size_t n = 0;
    leat_status s = fill(m, o);
    if (!s)
        s = leat_proto_bytes(&file, &bytes, &n);
    leat_proto_free(m);
    if (!s)
        s = leat_file_write(path, bytes, n);
    free(bytes);
    return s;
}

/* ---- Files ---- */
static leat_status copy_asset(const char *from, const char *to)
{
    enum { PIECE = 1 << 20 };
    leat_file *in = NULL;
    leat_new_file *out = NULL;
    LEAT_TRY(leat_file_open(from, &in));
    const int64_t size = leat_file_size(in);
    char *piece = leat_xcalloc(1, PIECE);
    leat_status s = leat_new_file_open(to, &out);
    for (int64_t at = 0; !s && at < size; at += PIECE) {
        const size_t n = (size_t)(size - at < PIECE ? size - at : PIECE);
        s = leat_file_read_at(in, piece, n, at);
        if (!s)
            s = leat_new_file_write(out, piece, n);
    }
    if (!s)
        s = leat_new_file_sync(out);
    if (!s)
        s = leat_new_file_publish(out);
    if (out)
        leat_new_file_free(out);
    free(piece);
    leat_file_close(in);
    return s;
}

static leat_status copy_assets(const char *dir, const leat_saved_model_write_options *o)
{
    for (int i = 0; i < o->n_assets; i++) {
        LEAT_CHECK_ARG(o->assets[i].path);
        const char *base = leat_path_base(o->assets[i].path);
        for (int k = 0; k < i; k++)
            LEAT_REQUIRE(strcmp(leat_path_base(o->assets[k].path), base) != 0, INVALID_ARGUMENT,
                         "two assets are called %s: %s and %s", base, o->assets[k].path,
                         o->assets[i].path);
        char *to = leat_path_join(dir, base);
        leat_status s = copy_asset(o->assets[i].path, to);
        free(to);
        LEAT_TRY(s);
    }
    return NULL;
}

static leat_status write_model(leat_graph *g, leat_session *s, const char *dir, leat_saver *saver,
                               const leat_saved_model_write_options *o)
{
    char *file = leat_path_join(dir, LEAT_SAVED_MODEL_FILE);
    char *variables = leat_path_join(dir, LEAT_SAVED_MODEL_VARIABLES);
    char *assets = leat_path_join(dir, LEAT_SAVED_MODEL_ASSETS_DIR);
    leat_status status = NULL;
    if (leat_path_exists(file))
        status = leat_error(ALREADY_EXISTS,
                            "%s is there already; a model is written to a new "
                            "directory",
                            file);
    if (!status)
        status =
            leat_saver_save(saver, s, variables, -1, NULL, .no_meta_graph = true, .no_state = true);
    if (!status)
        status = copy_assets(assets, o);
    if (!status)
        status = write_graph(g, saver, file, o);
    free(assets);
    free(variables);
    free(file);
    return leat_status_prefix(status, "SavedModel %s: ", dir);
}

leat_status leat_saved_model_write_with(leat_graph *g, leat_session *s, const char *dir,
                                        const leat_saved_model_write_options *o)
{
    LEAT_CHECK(GRAPH, g);
    LEAT_CHECK(SESSION, s);
    LEAT_CHECK_ARG(dir);
    leat_saver *own = o->saver ? NULL : leat_saver_new(g, .sharded = true, .allow_empty = true);
    leat_status status = leat_graph_status(g);
    if (!status)
        status = write_model(g, s, dir, o->saver ? o->saver : own, o);
    leat_saver_free(own);
    return status;
}
