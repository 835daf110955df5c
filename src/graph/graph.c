/* graph.c -- making and freeing graphs, finding nodes, recording the first mistake, collections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/nearest.h"
#include "core/strbuf.h"
#include "graph/graph_int.h"

/* The poison node has all the fields that a constructor may read, and is never run. */
static const leat_op_def poison_def = {
    .name = "_Mistake", .inputs = "", .outputs = "", .attrs = ""};
static const leat_op_info poison_info = {.def = &poison_def};

leat_graph *leat_graph_new(void)
{
    leat_graph *g = leat_new_object(leat_graph, GRAPH);
    pthread_mutex_init(&g->lock, NULL);
    leat_arena_init(&g->arena);
    g->by_name.borrows_keys = g->names_used.borrows_keys = true;
    g->by_name.seed = g->names_used.seed = g->functions.seed = leat_hash_secret();
    g->scopes = leat_scopes_new();
    g->producer = 134; /* what TensorFlow 1.15 writes */
    g->poison = leat_arena_new(&g->arena, leat_node);
    g->poison->graph = g;
    g->poison->id = -1;
    g->poison->name = "_mistake";
    g->poison->op = &poison_info;
    g->poison->device = "";
    return g;
}

void leat_graph_seal(leat_graph *g)
{
    leat_map_release(&g->by_name);
    leat_map_release(&g->names_used);
}

const char *leat_graph_device(leat_graph *g, const char *device)
{
    if (!device || !device[0])
        return "";
    if (!g->last_device || strcmp(g->last_device, device) != 0)
        g->last_device = leat_arena_strdup(&g->arena, device);
    return g->last_device;
}

void leat_graph_free(leat_graph *g)
{
    if (!g)
        return;
    if (!LEAT_USABLE(GRAPH, g))
        return;
    for (int i = 0; i < g->n_nodes; i++)
        for (int a = 0; a < g->nodes[i]->n_attrs; a++)
            leat_attr_release(&g->nodes[i]->attrs[a]);
    leat_functions_free(g);
    leat_collections_free(g);
    leat_control_ctxs_free(g);
    leat_scopes_free(g->scopes);
    leat_status_free(g->status);
    leat_map_release(&g->by_name);
    leat_map_release(&g->names_used);
    leat_map_release(&g->functions);
    leat_map_release(&g->extras);
    free(g->nodes);
    leat_arena_release(&g->arena);
    pthread_mutex_destroy(&g->lock);
    leat_object_free(&g->object);
}

leat_status leat_graph_status(const leat_graph *g)
{
    LEAT_CHECK(GRAPH, g);
    return leat_status_copy(g->status);
}

leat_out leat_graph_fail(leat_graph *g, leat_loc at, leat_status s)
{
    if (g->at_override.file)
        at = g->at_override;
    if (!g->status && s) {
        g->status = at.file ? leat_status_suffix(s, " (at %s:%d)", at.file, at.line) : s;
        s = NULL;
    }
    leat_status_free(s);
    return (leat_out){g->poison, 0};
}

int leat_graph_nodes(const leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return 0;
    return g->n_nodes;
}

leat_node *leat_graph_node(const leat_graph *g, int i)
{
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    return i >= 0 && i < g->n_nodes ? g->nodes[i] : NULL;
}

leat_node *leat_graph_find(const leat_graph *g, const char *name)
{
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    return name ? leat_map_get(&g->by_name, name) : NULL;
}

leat_text leat_no_tensor(const leat_graph *g, leat_out x)
{
    leat_text t = {"no tensor (its node is NULL)"};
    const leat_node *n = leat_graph_node(g, -2 - x.index);
    if (n)
        snprintf(t.s, sizeof(t.s), "the gradient by '%.150s', on which no y depends", n->name);
    return t;
}

void *leat_graph_extra(leat_graph *g, const char *key, size_t size)
{
    void *p = leat_map_get(&g->extras, key);
    if (!p) {
        p = leat_arena_alloc(&g->arena, size);
        leat_map_put(&g->extras, key, p);
    }
    return p;
}

static leat_nearest nearest(const leat_graph *g, const char *name)
{
    leat_nearest near = leat_nearest_to(name);
    for (int i = 0; i < g->n_nodes && g->n_nodes < 100000; i++)
        leat_nearest_see(&near, g->nodes[i]->name);
    return near;
}

/* A name that is not there. After a mistake the node of this name was probably not made. */
static leat_status not_found(const leat_graph *g, const char *name)
{
    if (g->status)
        return leat_status_copy(g->status);
    leat_nearest near = nearest(g, name);
    return leat_error(NOT_FOUND, "The graph has no node \"%s\"%s", name,
                      leat_nearest_show(&near).s);
}

leat_status leat_graph_find_out(const leat_graph *g, const char *name, leat_out *out)
{
    LEAT_CHECK(GRAPH, g);
    LEAT_CHECK_ARG(name);
    bool control = name[0] == '^';
    const char *base = name + control, *colon = strrchr(base, ':');
    size_t n = strlen(base);
    long index = 0;
    if (colon && !control) {
        char *end;
        index = strtol(colon + 1, &end, 10);
        LEAT_REQUIRE(end != colon + 1 && !*end && index >= 0, INVALID_ARGUMENT,
                     "\"%s\" is not the name of a tensor: want NODE or NODE:INDEX", name);
        n = (size_t)(colon - base);
    }
    char *node_name = leat_xstrndup(base, n);
    leat_node *node = leat_graph_find(g, node_name);
    leat_status missing = node ? NULL : not_found(g, node_name);
    free(node_name);
    LEAT_TRY(missing);
    LEAT_REQUIRE(control || index < node->n_out || (!colon && index == 0), INVALID_ARGUMENT,
                 "\"%s\": node %s (%s) has %d outputs", name, node->name, node->op->def->name,
                 node->n_out);
    *out = (leat_out){node, control || node->n_out == 0 ? -1 : (int)index};
    return NULL;
}

/* ---- Collections ---- */

struct collection {
    leat_out *v;
    int n, cap;
};

void leat_collect(leat_graph *g, const char *collection, leat_out x)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    if (!leat_out_ok(x))
        return;
    struct collection *c = leat_map_get(&g->collections, collection);
    if (!c) {
        c = leat_new(struct collection);
        leat_map_put(&g->collections, collection, c);
    }
    leat_grow(c->v, c->n, c->cap);
    c->v[c->n++] = x;
}

leat_out *leat_collection(const leat_graph *g, const char *collection, const char *scope,
                          int *count_out)
{
    *count_out = 0;
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    struct collection *c = leat_map_get(&g->collections, collection);
    int n = 0, all = c ? c->n : 0;
    leat_out *v = leat_new_array(leat_out, all + 1);
    size_t len = scope ? strlen(scope) : 0;
    for (int i = 0; i < all; i++)
        if (!len || strncmp(c->v[i].node->name, scope, len) == 0)
            v[n++] = c->v[i];
    *count_out = n;
    return v;
}

bool leat_collection_next(const leat_graph *g, size_t *i, const char **name)
{
    void *value;
    return leat_map_next(&g->collections, i, name, &value);
}

void leat_collections_free(leat_graph *g)
{
    size_t i = 0;
    const char *key;
    void *value;
    while (leat_map_next(&g->collections, &i, &key, &value)) {
        free(((struct collection *)value)->v);
        free(value);
    }
    leat_map_release(&g->collections);
}
