/* function_gather.c -- which functions a graph needs when it runs: those that attributes of its
 * nodes name, and those that the bodies of these name in turn. */
#include <stdlib.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "proto/wire.h"

typedef struct gatherer {
    const leat_graph *library;
    leat_graph *to;
    leat_map seen; /* names of functions that are, or were, in the queue */
    const char **queue;
    int n_queue, cap_queue;
} gatherer;

static void need(gatherer *x, const char *name)
{
    if (!name[0] || leat_map_get(&x->seen, name))
        return;
    leat_map_put(&x->seen, name, x);
    leat_grow(x->queue, x->n_queue, x->cap_queue);
    x->queue[x->n_queue++] = name;
}

/* ---- Of nodes ---- */

static void need_attr(gatherer *x, const leat_attr *a)
{
    int n = a->kind == LEAT_ARG_FUNC ? 1 : a->kind == LEAT_ARG_FUNCS ? a->n : 0;
    const leat_func *f = a->kind == LEAT_ARG_FUNC ? a->func : n ? a->funcs : NULL;
    for (int i = 0; i < n; i++) {
        need(x, f[i].name);
        for (int k = 0; k < f[i].n_attrs; k++)
            need_attr(x, &f[i].attrs[k]);
    }
}

static leat_status need_node(gatherer *x, const leat_node *n)
{
    int first = x->n_queue;
    for (int i = 0; i < n->n_attrs; i++)
        need_attr(x, &n->attrs[i]);
    for (int i = first; i < x->n_queue; i++)
        LEAT_REQUIRE(leat_function_find(x->library, x->queue[i]), NOT_FOUND,
                     "Function %s is not defined. (node '%s')", x->queue[i], n->name);
    return NULL;
}

/* ---- Of bodies ---- */

static void need_value(gatherer *x, const Leat__AttrValue *v);

static void need_func(gatherer *x, const Leat__NameAttrList *f)
{
    need(x, f->name);
    for (size_t i = 0; i < f->n_attr; i++)
        need_value(x, f->attr[i]->value);
}

static void need_value(gatherer *x, const Leat__AttrValue *v)
{
    if (v && v->value_case == LEAT__ATTR_VALUE__VALUE_FUNC)
        need_func(x, v->func);
    for (size_t i = 0; v && v->value_case == LEAT__ATTR_VALUE__VALUE_LIST && i < v->list->n_func;
         i++)
        need_func(x, v->list->func[i]);
}

static void need_body(gatherer *x, const leat_function *f)
{
    for (size_t i = 0; i < f->def->n_node_def; i++) {
        const Leat__NodeDef *n = f->def->node_def[i];
        if (!leat_op_find(n->op))
            need(x, n->op);
        for (size_t k = 0; k < n->n_attr; k++)
            need_value(x, n->attr[k]->value);
    }
    if (f->gradient)
        need(x, f->gradient);
}

static leat_status copy_function(leat_graph *to, const leat_function *f)
{
    leat_function *copy = leat_map_get(&to->functions, f->name);
    if (!copy) {
        Leat__FunctionDef *def = NULL;
        leat_strbuf b = {0};
        leat_status s = leat_proto_pack(f->def, &b);
        if (!s)
            s = LEAT_UNPACK(function_def, leat_strbuf_text(&b), b.n, &def);
        leat_strbuf_release(&b);
        LEAT_TRY(s);
        LEAT_TRY(leat_function_add(to, def));
        copy = leat_map_get(&to->functions, f->name);
    }
    if (f->gradient && !copy->gradient)
        copy->gradient = leat_arena_strdup(&to->arena, f->gradient);
    return NULL;
}

bool leat_node_names_functions(const leat_node *n)
{
    for (int i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].kind == LEAT_ARG_FUNC || n->attrs[i].kind == LEAT_ARG_FUNCS)
            return true;
    return false;
}

bool leat_graph_names_functions(const leat_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && leat_node_names_functions(g->nodes[i]))
            return true;
    return false;
}

/* Copies the functions in the queue, and those that their bodies name. Takes s, which may be an
 * error, and what x has. */
static leat_status gather(gatherer *x, leat_status s)
{
    for (int at = 0; at < x->n_queue && !s; at++) {
        const leat_function *f = leat_function_find(x->library, x->queue[at]);
        if (!f) /* whoever calls it will be told so */
            continue;
        need_body(x, f);
        s = copy_function(x->to, f);
    }
    leat_map_release(&x->seen);
    free(x->queue);
    return s;
}

leat_status leat_functions_gather(const leat_graph *g, const leat_graph *library, leat_graph *to)
{
    gatherer x = {.library = library, .to = to};
    leat_status s = NULL;
    for (int i = 0; i < g->n_nodes && !s; i++)
        if (!g->nodes[i]->dead)
            s = need_node(&x, g->nodes[i]);
    return gather(&x, s);
}

leat_status leat_functions_gather_for(const leat_node *n, const leat_graph *library, leat_graph *to)
{
    gatherer x = {.library = library, .to = to};
    return gather(&x, need_node(&x, n));
}
