/* saved_model.c -- loads SavedModels: chooses a graph by its tags, restores its variables, runs its
 * main op, finds the tensors of its signatures. */
#define _GNU_SOURCE /* strchrnul */
#include <leat/saved_model.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/buffer.h"
#include "core/strbuf.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/text.h"
#include "proto/wire.h"
#include "train/saved_model_int.h"

struct leat_saved_model {
    leat_object object;
    Leat__SavedModel *file; /* signatures borrow their names */
    leat_graph *graph;
    leat_session *session;
    leat_signature *signatures;
    int n_signatures;
};

/* ---- Tags ---- */
static bool has_tag(const Leat__MetaGraphDef *m, const char *tag, size_t n)
{
    const Leat__MetaGraphDef__MetaInfoDef *info = m->meta_info_def;
    for (size_t i = 0; info && i < info->n_tags; i++)
        if (strlen(info->tags[i]) == n && memcmp(info->tags[i], tag, n) == 0)
            return true;
    return false;
}

static bool has_tags(const Leat__MetaGraphDef *m, const char *tags)
{
    size_t count = 0;
    for (const char *end; *tags; tags = *end ? end + 1 : end, count++) {
        end = strchrnul(tags, ',');
        if (!has_tag(m, tags, (size_t)(end - tags)))
            return false;
    }
    return count == (m->meta_info_def ? m->meta_info_def->n_tags : 0);
}

static leat_status choose(const Leat__SavedModel *file, const char *tags,
                          const Leat__MetaGraphDef **out)
{
    LEAT_REQUIRE(file->n_meta_graphs, INVALID_ARGUMENT, "there is no graph in it");
    if (!tags && file->n_meta_graphs == 1) {
        *out = file->meta_graphs[0];
        return NULL;
    }
    for (size_t i = 0; i < file->n_meta_graphs; i++)
        if (has_tags(file->meta_graphs[i], tags ? tags : LEAT_SAVED_MODEL_TAG)) {
            *out = file->meta_graphs[i];
            return NULL;
        }
    leat_strbuf b = {0};
    for (size_t i = 0; i < file->n_meta_graphs; i++) {
        const Leat__MetaGraphDef__MetaInfoDef *info = file->meta_graphs[i]->meta_info_def;
        leat_strbuf_puts(&b, i ? "; " : "");
        for (size_t k = 0; info && k < info->n_tags; k++)
            leat_strbuf_printf(&b, "%s%s", k ? "," : "", info->tags[k]);
    }
    leat_status s =
        leat_error(NOT_FOUND, "no graph has exactly the tags %s; the graphs' tags are: %s",
                   tags ? tags : LEAT_SAVED_MODEL_TAG, leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}

/* ---- Signatures ---- */
static leat_status find(const leat_graph *g, const char *name, leat_out *out)
{
    LEAT_TRY(leat_meta_graph_find(g, name, out));
    LEAT_REQUIRE(out->index >= 0, INVALID_ARGUMENT, "\"%s\" is a node, not a tensor", name);
    return NULL;
}

static leat_status find_tensor(const leat_graph *g, const Leat__TensorInfo *info,
                               leat_signature_tensor *out)
{
    switch (info->encoding_case) {
    case LEAT__TENSOR_INFO__ENCODING_NAME:
        return find(g, info->name, &out->x);
    case LEAT__TENSOR_INFO__ENCODING_COO_SPARSE:
        LEAT_TRY(find(g, info->coo_sparse->values_tensor_name, &out->x));
        LEAT_TRY(find(g, info->coo_sparse->indices_tensor_name, &out->indices));
        return find(g, info->coo_sparse->dense_shape_tensor_name, &out->dense_shape);
    default:
        return leat_error(UNIMPLEMENTED, "composite tensors in signatures");
    }
}

/* Entries of inputs and of outputs have the same layout, but types of their own. */
#define FIND_TENSORS(d, field, g, out)                                                             \
    do {                                                                                           \
        leat_signature_tensor *all = leat_new_array(leat_signature_tensor, (d)->n_##field + 1);    \
        (out)->field = all;                                                                        \
        for (size_t i = 0; i < (d)->n_##field; i++) {                                              \
            all[i].name = (d)->field[i]->key;                                                      \
            (out)->n_##field = (int)i + 1;                                                         \
            leat_status s = find_tensor(g, (d)->field[i]->value, &all[i]);                         \
            if (s)                                                                                 \
                return leat_status_prefix(s, "\"%s\" of signature \"%s\": ", all[i].name,          \
                                          (out)->name);                                            \
        }                                                                                          \
    } while (0)

static leat_status find_signature(const leat_graph *g, const Leat__SignatureDef *d,
                                  leat_signature *out)
{
    FIND_TENSORS(d, inputs, g, out);
    FIND_TENSORS(d, outputs, g, out);
    return NULL;
}
#undef FIND_TENSORS

static leat_status find_signatures(leat_saved_model *m, const Leat__MetaGraphDef *d)
{
    m->signatures = leat_new_array(leat_signature, d->n_signature_def + 1);
    for (size_t i = 0; i < d->n_signature_def; i++) {
        const Leat__MetaGraphDef__SignatureDefEntry *e = d->signature_def[i];
        if (strncmp(e->key, "__saved_model_", 14) == 0) /* what to run, not what to use */
            continue;
        leat_signature *s = &m->signatures[m->n_signatures++];
        s->name = e->key;
        s->method = e->value->method_name;
        LEAT_TRY(find_signature(m->graph, e->value, s));
    }
    return NULL;
}

/* ---- Restoring ---- */
typedef struct feeds {
    leat_feed *v;
    int n;
} feeds;

/* A tensor that is named again is fed once. */
static leat_status add_feed(feeds *f, leat_out x, const char *dir, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (f->v[i].x.node == x.node && f->v[i].x.index == x.index)
            return NULL;
    char *path = leat_path_join(dir, name);
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_of_string(path, strlen(path), &t);
    free(path);
    if (!s)
        f->v[f->n++] = (leat_feed){x, t};
    return s;
}

static leat_status add_asset(feeds *f, const leat_graph *g, const char *dir,
                             const Leat__AssetFileDef *d)
{
    LEAT_REQUIRE(d->tensor_info &&
                     d->tensor_info->encoding_case == LEAT__TENSOR_INFO__ENCODING_NAME,
                 INVALID_ARGUMENT, "Asset \"%s\" has no tensor", d->filename);
    leat_out x;
    LEAT_TRY(leat_status_prefix(find(g, d->tensor_info->name, &x), "Asset \"%s\": ", d->filename));
    LEAT_REQUIRE(leat_out_dtype(x) == LEAT_STRING, INVALID_ARGUMENT,
                 "Asset \"%s\": the tensor \"%s\" is not a string", d->filename,
                 d->tensor_info->name);
    return add_feed(f, x, dir, d->filename);
}

static const Leat__CollectionDef *collection(const Leat__MetaGraphDef *d, const char *name)
{
    for (size_t i = 0; i < d->n_collection_def; i++)
        if (strcmp(d->collection_def[i]->key, name) == 0)
            return d->collection_def[i]->value;
    return NULL;
}

/* Older files have the assets in a collection. */
static leat_status add_collected_assets(feeds *f, const leat_graph *g, const char *dir,
                                        const Leat__CollectionDef__AnyList *list)
{
    f->v = leat_new_array(leat_feed, list->n_value + 1);
    for (size_t i = 0; i < list->n_value; i++) {
        Leat__AssetFileDef *d = NULL;
        LEAT_TRY(
            LEAT_UNPACK(asset_file_def, list->value[i]->value.data, list->value[i]->value.len, &d));
        leat_status s = add_asset(f, g, dir, d);
        leat_proto_free(d);
        LEAT_TRY(s);
    }
    return NULL;
}

static leat_status add_assets(feeds *f, const leat_graph *g, const char *dir,
                              const Leat__MetaGraphDef *d)
{
    const Leat__CollectionDef *c = collection(d, LEAT_SAVED_MODEL_ASSETS);
    if (!d->n_asset_file_def && c && c->kind_case == LEAT__COLLECTION_DEF__KIND_ANY_LIST)
        return add_collected_assets(f, g, dir, c->any_list);
    f->v = leat_new_array(leat_feed, d->n_asset_file_def + 1);
    for (size_t i = 0; i < d->n_asset_file_def; i++)
        LEAT_TRY(add_asset(f, g, dir, d->asset_file_def[i]));
    return NULL;
}

/* The op to be run after loading; NULL if there is none. */
static leat_status main_op_name(const Leat__MetaGraphDef *d, const char **out)
{
    static const char *const collections[] = {LEAT_SAVED_MODEL_MAIN_OP, "legacy_init_op"};
    *out = NULL;
    for (size_t i = 0; i < d->n_signature_def; i++) {
        const Leat__SignatureDef *sig = d->signature_def[i]->value;
        if (strcmp(d->signature_def[i]->key, LEAT_SAVED_MODEL_INIT_OP) != 0)
            continue;
        for (size_t k = 0; k < sig->n_outputs; k++)
            if (strcmp(sig->outputs[k]->key, LEAT_SAVED_MODEL_INIT_OP) == 0 &&
                sig->outputs[k]->value->encoding_case == LEAT__TENSOR_INFO__ENCODING_NAME)
                *out = sig->outputs[k]->value->name;
        LEAT_REQUIRE(*out, FAILED_PRECONDITION, "Could not find output %s",
                     LEAT_SAVED_MODEL_INIT_OP);
        return NULL;
    }
    for (size_t i = 0; i < 2 && !*out; i++) {
        const Leat__CollectionDef *c = collection(d, collections[i]);
        if (!c)
            continue;
        LEAT_REQUIRE(
            c->kind_case == LEAT__COLLECTION_DEF__KIND_NODE_LIST && c->node_list->n_value == 1,
            FAILED_PRECONDITION, "Expected exactly one op in the collection %s", collections[i]);
        *out = c->node_list->value[0];
    }
    return NULL;
}

static leat_status run_main_op(leat_saved_model *m, const Leat__MetaGraphDef *d, const feeds *f)
{
    const char *name;
    leat_out op;
    LEAT_TRY(main_op_name(d, &name));
    if (!name)
        return NULL;
    LEAT_TRY(leat_meta_graph_find(m->graph, name, &op));
    return leat_status_prefix(leat_session_run(m->session, (leat_feeds){f->v, f->n}, LEAT_NO_FETCH,
                                               LEAT_TARGET(leat_done(op))),
                              "The model's main op: ");
}

static leat_status restore(leat_saved_model *m, const Leat__MetaGraphDef *d, const char *dir,
                           leat_saver *saver)
{
    char *assets = leat_path_join(dir, LEAT_SAVED_MODEL_ASSETS_DIR);
    char *variables = leat_path_join(dir, LEAT_SAVED_MODEL_VARIABLES);
    feeds f = {0};
    leat_status s = add_assets(&f, m->graph, assets, d);
    if (!s && saver)
        s = leat_saver_restore(saver, m->session, variables);
    if (!s)
        s = run_main_op(m, d, &f);
    for (int i = 0; i < f.n; i++)
        leat_tensor_unref((leat_tensor *)f.v[i].value);
    free(f.v);
    free(variables);
    free(assets);
    return s;
}

/* ---- Loading ---- */
static leat_status parse(const char *bytes, size_t n, bool text, Leat__SavedModel **out)
{
    if (!text)
        return LEAT_UNPACK(saved_model, bytes, n, out);
    Leat__SavedModel *m;
    void *again = NULL;
    size_t size;
    LEAT_TRY(LEAT_FROM_TEXT(saved_model, bytes, n, &m));
    leat_status s = leat_proto_bytes(m, &again, &size); /* maps are in order after this */
    leat_proto_free(m);
    if (!s)
        s = LEAT_UNPACK(saved_model, again, size, out);
    free(again);
    return s;
}

static leat_status read_message(const char *dir, Leat__SavedModel **out)
{
    static const char *const names[] = {LEAT_SAVED_MODEL_FILE, LEAT_SAVED_MODEL_FILE "txt"};
    for (int text = 0; text < 2; text++) {
        char *path = leat_path_join(dir, names[text]), *bytes;
        size_t n;
        if (!leat_path_exists(path)) {
            free(path);
            continue;
        }
        leat_status s = leat_file_read(path, &bytes, &n);
        if (!s) {
            s = leat_status_prefix(parse(bytes, n, text, out), "%s: ", path);
            free(bytes);
        }
        free(path);
        return s;
    }
    return leat_error(NOT_FOUND, "%s is no SavedModel: it has neither %s nor %s", dir, names[0],
                      names[1]);
}

static leat_status load(leat_saved_model *m, const char *dir, const leat_saved_model_options *o)
{
    static const leat_session_options defaults = {.allow_soft_placement = true};
    const Leat__MetaGraphDef *d = NULL;
    leat_saver *saver = NULL;
    LEAT_TRY(choose(m->file, o->tags, &d));
    m->graph = leat_graph_new();
    leat_status s = leat_meta_graph_from_proto(m->graph, d, &saver);
    if (!s)
        s = find_signatures(m, d);
    if (!s)
        s = leat_session_open_with(m->graph, o->session ? o->session : &defaults, &m->session);
    if (!s)
        s = restore(m, d, dir, saver);
    leat_saver_free(saver);
    return s;
}

leat_status leat_saved_model_load_with(const char *dir, const leat_saved_model_options *o,
                                       leat_saved_model **out)
{
    LEAT_CHECK_ARG(dir);
    LEAT_CHECK_ARG(out);
    Leat__SavedModel *file;
    LEAT_TRY(read_message(dir, &file));
    leat_saved_model *m = leat_new_object(leat_saved_model, SAVED_MODEL);
    m->file = file;
    leat_status s = load(m, dir, o);
    if (s) {
        leat_saved_model_close(m);
        return leat_status_prefix(s, "SavedModel %s: ", dir);
    }
    *out = m;
    return NULL;
}

void leat_saved_model_close(leat_saved_model *m)
{
    if (!m)
        return;
    if (!LEAT_USABLE(SAVED_MODEL, m))
        return;
    if (m->session)
        leat_session_close(m->session);
    leat_graph_free(m->graph);
    for (int i = 0; i < m->n_signatures; i++) {
        free((void *)m->signatures[i].inputs);
        free((void *)m->signatures[i].outputs);
    }
    free(m->signatures);
    leat_proto_free(m->file);
    leat_object_free(&m->object);
}

/* ---- What a model has ---- */
leat_graph *leat_saved_model_graph(const leat_saved_model *m)
{
    return LEAT_USABLE(SAVED_MODEL, m) ? m->graph : NULL;
}

leat_session *leat_saved_model_session(const leat_saved_model *m)
{
    return LEAT_USABLE(SAVED_MODEL, m) ? m->session : NULL;
}

const leat_signature *leat_saved_model_signatures(const leat_saved_model *m, int *count_out)
{
    *count_out = 0;
    if (!LEAT_USABLE(SAVED_MODEL, m))
        return NULL;
    *count_out = m->n_signatures;
    return m->signatures;
}

leat_status leat_saved_model_signature(const leat_saved_model *m, const char *name,
                                       const leat_signature **out)
{
    LEAT_CHECK(SAVED_MODEL, m);
    LEAT_CHECK_ARG(name);
    leat_strbuf b = {0};
    for (int i = 0; i < m->n_signatures; i++) {
        if (strcmp(m->signatures[i].name, name) == 0) {
            *out = &m->signatures[i];
            leat_strbuf_release(&b);
            return NULL;
        }
        leat_strbuf_printf(&b, "%s%s", i ? ", " : "", m->signatures[i].name);
    }
    leat_status s = leat_error(NOT_FOUND, "no signature \"%s\"; the model's signatures are: %s",
                               name, m->n_signatures ? leat_strbuf_text(&b) : "none");
    leat_strbuf_release(&b);
    return s;
}

static leat_status find_name(const leat_signature *s, const char *what,
                             const leat_signature_tensor *v, int n, const char *name, leat_out *out)
{
    leat_strbuf b = {0};
    for (int i = 0; i < n; i++) {
        if (strcmp(v[i].name, name) == 0) {
            *out = v[i].x;
            leat_strbuf_release(&b);
            return NULL;
        }
        leat_strbuf_printf(&b, "%s%s", i ? ", " : "", v[i].name);
    }
    leat_status bad = leat_error(NOT_FOUND, "signature \"%s\" has no %s \"%s\"; its %ss are: %s",
                                 s->name, what, name, what, n ? leat_strbuf_text(&b) : "none");
    leat_strbuf_release(&b);
    return bad;
}

leat_status leat_signature_input(const leat_signature *s, const char *name, leat_out *out)
{
    LEAT_CHECK_ARG(s);
    LEAT_CHECK_ARG(name);
    return find_name(s, "input", s->inputs, s->n_inputs, name, out);
}

leat_status leat_signature_output(const leat_signature *s, const char *name, leat_out *out)
{
    LEAT_CHECK_ARG(s);
    LEAT_CHECK_ARG(name);
    return find_name(s, "output", s->outputs, s->n_outputs, name, out);
}
