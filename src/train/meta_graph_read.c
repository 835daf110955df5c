/* meta_graph_read.c -- reads a MetaGraphDef into a graph, like TensorFlow's import_meta_graph:
 * nodes, collections, queue runners, and a saver that uses the nodes of the file. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/strbuf.h"
#include "graph/graphdef.h"
#include "io/file.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/wire.h"
#include "train/input_state.h"
#include "train/saver.h"
#include "train/train_int.h"

leat_status leat_meta_graph_find(const leat_graph *g, const char *name, leat_out *out)
{
    if (strchr(name, ':'))
        return leat_graph_find_out(g, name, out);
    leat_node *n = leat_graph_find(g, name);
    LEAT_REQUIRE(n, NOT_FOUND, "The name '%s' refers to an Operation not in the graph.", name);
    *out = (leat_out){n, -1};
    return NULL;
}

static leat_status add_names(leat_graph *g, const char *key,
                             const Leat__CollectionDef__NodeList *list)
{
    for (size_t i = 0; i < list->n_value; i++) {
        leat_out x;
        LEAT_TRY(leat_meta_graph_find(g, list->value[i], &x));
        leat_collect(g, key, x);
    }
    return NULL;
}

/* Whether a collection is one of those that TensorFlow keeps variables in. */
static bool of_variables(const char *key)
{
    static const char *const keys[] = {
        LEAT_GLOBAL_VARIABLES, LEAT_TRAINABLE_VARIABLES,   "local_variables", "global_step",
        "model_variables",     "moving_average_variables", "metric_variables"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static leat_status add_variable(leat_graph *g, const char *key, ProtobufCBinaryData bytes)
{
    Leat__VariableDef *d;
    leat_out v = {0};
    leat_status s = LEAT_UNPACK(variable_def, bytes.data, bytes.len, &d);
    if (!s) {
        s = leat_meta_graph_find(g, d->variable_name, &v);
        if (!s && !leat_variable_ref(v).node)
            s = leat_error(INVALID_ARGUMENT, "\"%s\" is not a variable", d->variable_name);
        leat_proto_free(d);
    }
    if (!s)
        leat_collect(g, key, leat_variable_ref(v));
    return s;
}

static leat_status fill_runner(const leat_graph *g, const Leat__QueueRunnerDef *d, leat_runner *r)
{
    LEAT_REQUIRE(d->n_enqueue_op_name, INVALID_ARGUMENT, "Must provide queue and enqueue_ops.");
    LEAT_TRY(leat_meta_graph_find(g, d->queue_name, &r->queue));
    LEAT_TRY(leat_meta_graph_find(g, d->close_op_name, &r->close_op));
    LEAT_TRY(leat_meta_graph_find(g, d->cancel_op_name, &r->cancel_op));
    for (size_t i = 0; i < d->n_enqueue_op_name; i++)
        LEAT_TRY(leat_meta_graph_find(g, d->enqueue_op_name[i], &r->enqueue_ops[r->n++]));
    for (size_t i = 0; i < d->n_queue_closed_exception_types; i++) {
        int32_t code = d->queue_closed_exception_types[i];
        LEAT_REQUIRE(code > 0 && code < 32, INVALID_ARGUMENT, "%d is not the code of an error",
                     code);
        r->closed_codes |= 1u << code;
    }
    return NULL;
}

static leat_status add_runner(leat_graph *g, ProtobufCBinaryData bytes)
{
    Leat__QueueRunnerDef *d;
    LEAT_TRY(LEAT_UNPACK(queue_runner_def, bytes.data, bytes.len, &d));
    leat_runner r = {.closed_codes = LEAT_RUNNER_CLOSED,
                     .enqueue_ops = leat_new_array(leat_out, d->n_enqueue_op_name + 1)};
    leat_status s = fill_runner(g, d, &r);
    if (!s)
        leat_runner_add(g, &r);
    free(r.enqueue_ops);
    leat_proto_free(d);
    return s;
}

static leat_status add_collection(leat_graph *g, const char *key, const Leat__CollectionDef *d)
{
    if (d->kind_case == LEAT__COLLECTION_DEF__KIND_NODE_LIST)
        return add_names(g, key, d->node_list);
    bool runners = strcmp(key, LEAT_QUEUE_RUNNERS) == 0;
    if (d->kind_case != LEAT__COLLECTION_DEF__KIND_BYTES_LIST || !(runners || of_variables(key)))
        return NULL; /* numbers, and other messages, which are not read */
    for (size_t i = 0; i < d->bytes_list->n_value; i++)
        LEAT_TRY(runners ? add_runner(g, d->bytes_list->value[i])
                         : add_variable(g, key, d->bytes_list->value[i]));
    return NULL;
}

/* A saver of Leat's has an op beside the one that restores variables if the position of the input
 * is part of its checkpoints. */
static void find_restore_input(leat_graph *g, leat_saver *v)
{
    const char *restore = leat_node_name(v->restore.node), *slash = strrchr(restore, '/');
    leat_strbuf name = {0};
    leat_strbuf_printf(&name, "%.*s%s", slash ? (int)(slash + 1 - restore) : 0, restore,
                       LEAT_RESTORE_INPUT);
    leat_node *n = leat_graph_find(g, leat_strbuf_text(&name));
    leat_strbuf_release(&name);
    if (!n)
        return;
    v->restore_input = (leat_out){n, -1};
    leat_runners_prepare(g);
}

static leat_status saver_of(leat_graph *g, const Leat__SaverDef *d, leat_saver **out)
{
    int n = 0;
    leat_saver_options o = {0};
    if (!d) {
        free(leat_collection(g, LEAT_GLOBAL_VARIABLES, NULL, &n));
        *out = n ? leat_saver_new_at((leat_loc){0}, g, &o) : NULL;
        return NULL;
    }
    leat_out filename, save, restore;
    LEAT_TRY(leat_meta_graph_find(g, d->filename_tensor_name, &filename));
    LEAT_TRY(leat_meta_graph_find(g, d->save_tensor_name, &save));
    LEAT_TRY(leat_meta_graph_find(g, d->restore_op_name, &restore));
    LEAT_REQUIRE(filename.index >= 0 && save.index >= 0, INVALID_ARGUMENT,
                 "The saver's filename and save ops must be tensors");
    o.max_to_keep = d->max_to_keep > 0 ? d->max_to_keep : -1;
    o.keep_every_hours = d->keep_checkpoint_every_n_hours;
    o.sharded = d->sharded;
    leat_saver *v = leat_saver_make(g, &o);
    v->filename = filename;
    v->save = save;
    v->restore = restore;
    find_restore_input(g, v);
    *out = v;
    return NULL;
}

leat_status leat_meta_graph_from_proto(leat_graph *g, const Leat__MetaGraphDef *m,
                                       leat_saver **saver_out)
{
    LEAT_REQUIRE(m->graph_def, INVALID_ARGUMENT, "there is no graph in it");
    LEAT_TRY(leat_graph_from_proto(g, m->graph_def, ""));
    for (size_t i = 0; i < m->n_collection_def; i++) {
        const Leat__MetaGraphDef__CollectionDefEntry *e = m->collection_def[i];
        if (e->value)
            LEAT_TRY(leat_status_prefix(add_collection(g, e->key, e->value),
                                        "Collection \"%s\": ", e->key));
    }
    return saver_out ? saver_of(g, m->saver_def, saver_out) : NULL;
}

leat_status leat_meta_graph_parse(leat_graph *g, const void *bytes, size_t n,
                                  leat_saver **saver_out)
{
    Leat__MetaGraphDef *m;
    LEAT_TRY(LEAT_UNPACK(meta_graph_def, bytes, n, &m));
    leat_status s = leat_meta_graph_from_proto(g, m, saver_out);
    leat_proto_free(m);
    return s;
}

leat_status leat_meta_graph_read(leat_graph *g, const char *path, leat_saver **saver_out)
{
    LEAT_CHECK(GRAPH, g);
    LEAT_CHECK_ARG(path);
    char *bytes;
    size_t n;
    LEAT_TRY(leat_file_read(path, &bytes, &n));
    leat_status s = leat_meta_graph_parse(g, bytes, n, saver_out);
    free(bytes);
    return s ? leat_status_prefix(s, "%s: ", path) : NULL;
}
