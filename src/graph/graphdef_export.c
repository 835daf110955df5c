/* graphdef_export.c -- a graph as a GraphDef, binary or text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/object.h"
#include "graph/graphdef.h"
#include "proto/text.h"
#include "proto/wire.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *input_text(leat_out x)
{
    size_t n = strlen(x.node->name) + 16;
    char *s = leat_xmalloc(n);
    if (x.index < 0)
        snprintf(s, n, "^%s", x.node->name);
    else if (x.index == 0)
        snprintf(s, n, "%s", x.node->name);
    else
        snprintf(s, n, "%s:%d", x.node->name, x.index);
    return s;
}

leat_status leat_node_to_proto(const leat_node *n, Leat__NodeDef **out)
{
    Leat__NodeDef *p = leat_xmalloc(sizeof(*p));
    leat__node_def__init(p);
    p->name = leat_xstrdup(n->name);
    p->op = leat_xstrdup(n->op->def->name);
    p->device = leat_xstrdup(n->device);
    p->input = leat_new_array(char *, n->n_in + n->n_controls + 1);
    for (int i = 0; i < n->n_in; i++)
        p->input[p->n_input++] = input_text(n->in[i]);
    for (int i = 0; i < n->n_controls; i++)
        p->input[p->n_input++] = input_text((leat_out){n->controls[i], -1});
    qsort(p->input + n->n_in, (size_t)n->n_controls, sizeof(*p->input), by_name);
    p->attr = leat_new_array(Leat__NodeDef__AttrEntry *, n->n_attrs + 1);
    leat_status s = NULL;
    for (int i = 0; i < n->n_attrs && !s; i++) {
        Leat__NodeDef__AttrEntry *e = leat_xmalloc(sizeof(*e));
        leat__node_def__attr_entry__init(e);
        e->key = leat_xstrdup(n->attrs[i].name);
        p->attr[p->n_attr++] = e;
        s = leat_attr_to_proto(&n->attrs[i], &e->value);
    }
    if (s)
        leat_proto_free(p);
    else
        *out = p;
    return s;
}

leat_status leat_graph_to_proto(const leat_graph *g, Leat__GraphDef **out)
{
    if (g->status)
        return leat_status_copy(g->status);
    Leat__GraphDef *p = leat_xmalloc(sizeof(*p));
    leat__graph_def__init(p);
    p->node = leat_new_array(Leat__NodeDef *, g->n_nodes + 1);
    p->versions = leat_xmalloc(sizeof(*p->versions));
    leat__version_def__init(p->versions);
    p->versions->producer = g->producer;
    leat_status s = leat_functions_export(g, &p->library);
    for (int i = 0; i < g->n_nodes && !s; i++) {
        s = leat_node_to_proto(g->nodes[i], &p->node[p->n_node]);
        p->n_node += !s;
    }
    if (s)
        leat_proto_free(p);
    else
        *out = p;
    return s;
}

leat_status leat_graph_to_binary(const leat_graph *g, void **bytes_out, size_t *size_out)
{
    LEAT_CHECK(GRAPH, g);
    Leat__GraphDef *p;
    LEAT_TRY(leat_graph_to_proto(g, &p));
    leat_status s = leat_proto_bytes(p, bytes_out, size_out);
    leat_proto_free(p);
    return s;
}

leat_status leat_graph_to_text(const leat_graph *g, char **text_out)
{
    LEAT_CHECK(GRAPH, g);
    Leat__GraphDef *p;
    leat_strbuf b = {.checked = true};
    LEAT_TRY(leat_graph_to_proto(g, &p));
    leat_proto_to_text(p, &b);
    leat_proto_free(p);
    leat_status s = leat_strbuf_check(&b);
    if (s) {
        leat_strbuf_release(&b);
        return s;
    }
    *text_out = leat_strbuf_take(&b);
    return NULL;
}
