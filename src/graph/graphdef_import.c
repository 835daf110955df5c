/* graphdef_import.c -- adds a GraphDef's nodes to a graph. The nodes come in any order and may form
 * loops: a Merge is added before the NextIteration that is its input, which is set last. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/object.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "proto/text.h"
#include "proto/wire.h"

typedef struct importer {
    leat_graph *g;
    Leat__NodeDef *const *defs;
    int n;
    const char *prefix;
    leat_map by_name; /* name in the GraphDef -> index + 1 */
    leat_node **made; /* by index; NULL: not added yet */
    int *pending;     /* number of inputs that are not added yet, without back edges */
    int *queue, n_queue;
    int *users, *users_at; /* consumers of node i: users[users_at[i] .. users_at[i + 1]) */
} importer;

leat_status leat_input_parse(const char *text, const char **name, size_t *name_n, int *index)
{
    *index = 0;
    if (text[0] == '^') {
        *name = text + 1;
        *name_n = strlen(text + 1);
        *index = -1;
        return NULL;
    }
    const char *colon = strrchr(text, ':');
    *name = text;
    *name_n = colon ? (size_t)(colon - text) : strlen(text);
    if (colon) {
        char *end;
        long v = strtol(colon + 1, &end, 10);
        LEAT_REQUIRE(end != colon + 1 && !*end && v >= 0 && v < INT_MAX, INVALID_ARGUMENT,
                     "Malformed input '%s'", text);
        *index = (int)v;
    }
    return NULL;
}

/* Input i of a node: an index into the GraphDef, or below 0 for a node that the graph had before
 * (inputs of a GraphDef without a prefix may be such nodes). */
static leat_status input_of(const importer *im, int node, size_t i, int *from, int *index,
                            leat_node **before)
{
    const char *name;
    size_t n;
    const Leat__NodeDef *d = im->defs[node];
    LEAT_TRY(leat_input_parse(d->input[i], &name, &n, index));
    *from = (int)(intptr_t)leat_map_get_n(&im->by_name, name, n) - 1;
    *before = *from >= 0 || im->prefix[0] ? NULL : leat_map_get_n(&im->g->by_name, name, n);
    LEAT_REQUIRE(*from >= 0 || *before, INVALID_ARGUMENT, "Node '%s': Unknown input node '%s'",
                 d->name, d->input[i]);
    return NULL;
}

static leat_role role_of(const importer *im, int node)
{
    const leat_op_info *op = leat_op_find(im->defs[node]->op);
    return op ? op->def->role : LEAT_ROLE_NONE;
}

static leat_status index_names(importer *im)
{
    for (int i = 0; i < im->n; i++) {
        const char *name = im->defs[i]->name;
        LEAT_REQUIRE(leat_name_valid(name), INVALID_ARGUMENT,
                     "Node '%s': Node name contains invalid characters", name);
        LEAT_REQUIRE(!leat_map_put(&im->by_name, name, (void *)(intptr_t)(i + 1)), INVALID_ARGUMENT,
                     "Node '%s' is not unique", name);
    }
    return NULL;
}

static leat_status link_inputs(importer *im)
{
    int from, index;
    leat_node *before;
    for (int pass = 0; pass < 2; pass++) { /* the first pass counts, the second fills */
        for (int i = 0; i < im->n; i++) {
            const bool merge = role_of(im, i) == LEAT_ROLE_MERGE;
            for (size_t j = 0; j < im->defs[i]->n_input; j++) {
                LEAT_TRY(input_of(im, i, j, &from, &index, &before));
                if (before || (merge && role_of(im, from) == LEAT_ROLE_NEXT_ITERATION))
                    continue;
                if (pass)
                    im->users[im->users_at[from + 1]] = i;
                im->users_at[from + 1]++;
                im->pending[i] += pass;
            }
        }
        int total = 0;
        for (int i = 0; i < im->n && !pass; i++) {
            int n = im->users_at[i + 1];
            im->users_at[i + 1] = total;
            total += n;
        }
        if (!pass)
            im->users = leat_new_array(int, total + 1);
    }
    return NULL;
}

/* In loc:@name, the name is that of a node of the same GraphDef. */
static void prefix_class(importer *im, leat_attr *a)
{
    if (!im->prefix[0] || strcmp(a->name, "_class") != 0 || a->kind != LEAT_ARG_STRINGS)
        return;
    const char **s = leat_arena_array(&im->g->arena, const char *, a->n);
    int *sizes = leat_arena_array(&im->g->arena, int, a->n);
    for (int i = 0; i < a->n; i++) {
        bool loc = strncmp(a->strings[i], "loc:@", 5) == 0;
        s[i] = loc ? leat_arena_printf(&im->g->arena, "loc:@%s/%s", im->prefix, a->strings[i] + 5)
                   : a->strings[i];
        sizes[i] = loc ? (int)strlen(s[i]) : a->sizes[i];
    }
    a->strings = s;
    a->sizes = sizes;
}

static leat_status gather_inputs(importer *im, int node, leat_out *in, leat_node **controls,
                                 leat_node_spec *spec)
{
    const Leat__NodeDef *d = im->defs[node];
    for (size_t j = 0; j < d->n_input; j++) {
        int from, index;
        leat_node *x;
        LEAT_TRY(input_of(im, node, j, &from, &index, &x));
        x = x ? x : im->made[from];
        if (index < 0) {
            LEAT_REQUIRE(x, INVALID_ARGUMENT, "Node '%s' waits for itself", d->name);
            controls[spec->n_controls++] = x;
            continue;
        }
        LEAT_REQUIRE(!spec->n_controls, INVALID_ARGUMENT,
                     "Node '%s': Control dependencies must come after regular dependencies",
                     d->name);
        LEAT_REQUIRE(!x || index < x->n_out, INVALID_ARGUMENT,
                     "Node '%s': Connecting to invalid output %d of source node %s which has %d "
                     "outputs.%s",
                     d->name, index, x ? x->name : "", x ? x->n_out : 0,
                     x && leat_function_is_flow(x)
                         ? " Try using tf.compat.v1.experimental.output_all_intermediates(True)."
                         : "");
        in[spec->n_in++] = (leat_out){x, x ? index : 0};
        spec->loose |= !x;
    }
    return NULL;
}

/* Attributes that TensorFlow 2 has added to ops of TensorFlow 1. Those that are hints do not change
 * results; of the others only the default value is accepted. */
static bool is_of_later_version(const char *op, const leat_attr *a)
{
    static const char *const hints[] = {"grad_a",
                                        "grad_b",
                                        "grad_x",
                                        "grad_y",
                                        "allowed_devices",
                                        "debug_name",
                                        "validate_shape",
                                        "metadata",
                                        "cardinality_options",
                                        "is_files",
                                        "replicate_on_split",
                                        "sparse_gradient",
                                        "ram_budget",
                                        "buffer_size_min",
                                        "use_default_device",
                                        "force_synchronous",
                                        "log_warning",
                                        "external_state_policy"};
    static const leat_attr defaults[] = {
        {.name = "multiply_linear_by_lr", .kind = LEAT_ARG_BOOL},
        {.name = "allow_missing_files", .kind = LEAT_ARG_BOOL},
        {.name = "resize_if_index_out_of_bounds", .kind = LEAT_ARG_BOOL},
        {.name = "narrow_range", .kind = LEAT_ARG_BOOL},
        {.name = "perturb_singular", .kind = LEAT_ARG_BOOL},
        {.name = "bad_indices_policy", .kind = LEAT_ARG_STRING, .s = ""},
        {.name = "explicit_paddings", .kind = LEAT_ARG_INTS},
        {.name = "exponential_avg_factor", .kind = LEAT_ARG_FLOAT, .f = 1},
        {.name = "offset", .kind = LEAT_ARG_INT},
        {.name = "axis", .kind = LEAT_ARG_INT, .i = -1},
        {.name = "blank_index", .kind = LEAT_ARG_INT, .i = -1},
        {.name = "auto_shard_policy", .kind = LEAT_ARG_INT},
        {.name = "Tk", .kind = LEAT_ARG_TYPE, .i = LEAT_INT32},
        {.name = "index_type", .kind = LEAT_ARG_TYPE, .i = LEAT_INT32},
        {.name = "Tsegmentids", .kind = LEAT_ARG_TYPE, .i = LEAT_INT32},
        {.name = "shape_type", .kind = LEAT_ARG_TYPE, .i = LEAT_INT32},
        {.name = "Tshape", .kind = LEAT_ARG_TYPE, .i = LEAT_INT32},
        {.name = "Treal", .kind = LEAT_ARG_TYPE, .i = LEAT_FLOAT},
        {.name = "Tcomplex", .kind = LEAT_ARG_TYPE, .i = LEAT_COMPLEX64},
    };
    const leat_op_info *info = leat_op_find(op);
    if (!info || leat_op_attr_index(info, a->name) >= 0)
        return false;
    for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++)
        if (strcmp(a->name, hints[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
        if (strcmp(a->name, defaults[i].name) == 0)
            /* A list without items has no kind in a message. */
            return defaults[i].kind == LEAT_ARG_INTS ? a->n == 0 : leat_attr_equal(a, &defaults[i]);
    return false;
}

/* An attribute of TensorFlow 2 that the kernel of an op of TensorFlow 1 knows by another name,
 * since the op's definition does not have it. */
static void rename_later(const char *op, leat_attr *a)
{
    if (strcmp(a->name, "stop_on_empty_dataset") == 0 && leat_op_find(op) &&
        leat_op_attr_index(leat_op_find(op), a->name) < 0)
        a->name = "_stop_on_empty_dataset";
}

static leat_status make(importer *im, int node)
{
    const Leat__NodeDef *d = im->defs[node];
    leat_out *in = leat_new_array(leat_out, d->n_input + 1);
    leat_node **controls = leat_new_array(leat_node *, d->n_input + 1);
    leat_attr *attrs = leat_new_array(leat_attr, d->n_attr + 1);
    leat_node_spec spec = {.op = d->op,
                           .device = d->device,
                           .in = in,
                           .controls = controls,
                           .attrs = attrs,
                           .exact_name = true};
    spec.name =
        im->prefix[0] ? leat_arena_printf(&im->g->arena, "%s/%s", im->prefix, d->name) : d->name;
    leat_status s = gather_inputs(im, node, in, controls, &spec);
    for (size_t i = 0; i < d->n_attr && !s; i++) {
        s = leat_attr_from_proto(&im->g->arena, d->attr[i]->key, d->attr[i]->value,
                                 &attrs[spec.n_attrs]);
        if (s)
            break;
        if (is_of_later_version(d->op, &attrs[spec.n_attrs])) {
            leat_attr_release(&attrs[spec.n_attrs]);
        } else {
            rename_later(d->op, &attrs[spec.n_attrs]);
            prefix_class(im, &attrs[spec.n_attrs++]);
        }
    }
    if (!s)
        s = leat_graph_add(im->g, &spec, &im->made[node]);
    for (int i = 0; i < spec.n_attrs; i++)
        leat_attr_release(&attrs[i]);
    free(in);
    free(controls);
    free(attrs);
    return s && !strstr(leat_status_message(s), d->name)
               ? leat_status_suffix(s, " (node '%s', op %s)", d->name, d->op)
               : s;
}

static leat_status make_all(importer *im)
{
    for (int i = 0; i < im->n; i++)
        if (im->pending[i] == 0)
            im->queue[im->n_queue++] = i;
    for (int at = 0; at < im->n_queue; at++) {
        int i = im->queue[at];
        LEAT_TRY(make(im, i));
        for (int u = im->users_at[i]; u < im->users_at[i + 1]; u++)
            if (--im->pending[im->users[u]] == 0)
                im->queue[im->n_queue++] = im->users[u];
    }
    LEAT_REQUIRE(im->n_queue == im->n, INVALID_ARGUMENT,
                 "%d nodes in a cycle, and no NextIteration leads back", im->n - im->n_queue);
    return NULL;
}

static leat_status close_loops(importer *im)
{
    for (int i = 0; i < im->n; i++) {
        leat_node *n = im->made[i];
        for (int j = 0; j < n->n_in; j++) {
            if (n->in[j].node)
                continue;
            int from, index;
            leat_node *before;
            LEAT_TRY(input_of(im, i, (size_t)j, &from, &index, &before));
            LEAT_TRY(leat_node_set_input(n, j, (leat_out){im->made[from], index}));
        }
    }
    return NULL;
}

/* Removes the nodes from `first` on. */
static void truncate_graph(leat_graph *g, int first)
{
    pthread_mutex_lock(&g->lock);
    while (g->n_nodes > first) {
        leat_node *n = g->nodes[--g->n_nodes];
        leat_map_remove(&g->by_name, n->name);
        for (int a = 0; a < n->n_attrs; a++)
            leat_attr_release(&n->attrs[a]);
    }
    pthread_mutex_unlock(&g->lock);
}

leat_status leat_nodes_import(leat_graph *g, Leat__NodeDef *const *nodes, size_t n,
                              const char *prefix)
{
    LEAT_REQUIRE(n < INT_MAX / 8, INVALID_ARGUMENT, "%zu nodes are too many", n);
    LEAT_REQUIRE(!prefix[0] || leat_name_valid(prefix), INVALID_ARGUMENT,
                 "'%s' is not a valid prefix of names", prefix);
    importer im = {.g = g, .defs = nodes, .n = (int)n, .prefix = prefix};
    im.by_name.seed = leat_hash_secret();
    im.made = leat_new_array(leat_node *, n + 1);
    im.pending = leat_new_array(int, n + 1);
    im.queue = leat_new_array(int, n + 1);
    im.users_at = leat_new_array(int, n + 2);
    int first = g->n_nodes;
    leat_status s = index_names(&im);
    if (!s)
        s = link_inputs(&im);
    if (!s)
        s = make_all(&im);
    if (!s)
        s = close_loops(&im);
    if (s)
        truncate_graph(g, first);
    leat_map_release(&im.by_name);
    free(im.made);
    free(im.pending);
    free(im.queue);
    free(im.users);
    free(im.users_at);
    return s;
}

leat_status leat_graph_from_proto(leat_graph *g, const Leat__GraphDef *p, const char *prefix)
{
    enum { OUR_VERSION = 134 }; /* TensorFlow 1.15's */
    if (p->versions)
        LEAT_REQUIRE(p->versions->min_consumer <= OUR_VERSION, INVALID_ARGUMENT,
                     "GraphDef min consumer version %d above current version %d: it wants a newer "
                     "reader",
                     p->versions->min_consumer, OUR_VERSION);
    const int producer = p->versions ? p->versions->producer : 0; /* 0: before versions were kept */
    pthread_mutex_lock(&g->lock);
    if (producer >= 0 && producer < g->producer)
        g->producer = producer;
    pthread_mutex_unlock(&g->lock);
    int functions = g->n_functions;
    if (p->library)
        LEAT_TRY(leat_functions_import(g, p->library));
    leat_status s = leat_nodes_import(g, p->node, p->n_node, prefix ? prefix : "");
    if (s)
        leat_functions_truncate(g, functions);
    return s;
}

leat_status leat_graph_from_binary(leat_graph *g, const void *bytes, size_t size,
                                   const char *prefix)
{
    LEAT_CHECK(GRAPH, g);
    Leat__GraphDef *p;
    LEAT_TRY(LEAT_UNPACK(graph_def, bytes, size, &p));
    leat_status s = leat_graph_from_proto(g, p, prefix);
    leat_proto_free(p);
    return s;
}

leat_status leat_graph_from_text(leat_graph *g, const char *text, const char *prefix)
{
    LEAT_CHECK(GRAPH, g);
    LEAT_CHECK_ARG(text);
    Leat__GraphDef *p;
    LEAT_TRY(LEAT_FROM_TEXT(graph_def, text, strlen(text), &p));
    leat_status s = leat_graph_from_proto(g, p, prefix);
    leat_proto_free(p);
    return s;
}
