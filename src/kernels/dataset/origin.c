/* origin.c -- see origin.h. */
#include "kernels/dataset/origin.h"

#include <leat/ops.h>

#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/fingerprint.h"
#include "core/map.h"
#include "graph/graphdef.h"
#include "proto/wire.h"
#include "runtime/callable_int.h"

/* ---- Origins ---- */

/* A node's op and attributes, shared by all datasets that the node makes. */
typedef struct recipe {
    leat_note note;
    atomic_int refs;
    leat_status bad;    /* why the attributes could not be written; NULL: they are there */
    leat_strbuf packed; /* a NodeDef without name, device and inputs */
} recipe;

struct leat_origin {
    recipe *recipe;      /* a reference */
    leat_callables *set; /* whose library has the node's functions; a reference, or NULL */
    int n;
    leat_tensor *in[];
};

static void recipe_unref(leat_note *note)
{
    recipe *x = (recipe *)note;
    if (atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    leat_status_free(x->bad);
    leat_strbuf_release(&x->packed);
    free(x);
}

static leat_status pack_node(const leat_node *n, leat_strbuf *out)
{
    Leat__NodeDef *p = leat_xmalloc(sizeof(*p));
    leat__node_def__init(p);
    p->op = leat_xstrdup(n->op->def->name);
    p->attr = leat_new_array(Leat__NodeDef__AttrEntry *, n->n_attrs + 1);
    leat_status s = NULL;
    for (int i = 0; i < n->n_attrs && !s; i++) {
        if (n->attrs[i].name[0] == '_') /* set by passes: about this graph alone */
            continue;
        Leat__NodeDef__AttrEntry *e = leat_xmalloc(sizeof(*e));
        leat__node_def__attr_entry__init(e);
        e->key = leat_xstrdup(n->attrs[i].name);
        p->attr[p->n_attr++] = e;
        s = leat_attr_to_proto(&n->attrs[i], &e->value);
    }
    if (!s)
        s = leat_proto_pack(p, out);
    leat_proto_free(p);
    return s;
}

static leat_note *recipe_new(const leat_node *n)
{
    recipe *x = leat_new(recipe);
    x->note.free = recipe_unref;
    atomic_init(&x->refs, 1);
    x->bad = pack_node(n, &x->packed);
    return &x->note;
}

leat_origin *leat_origin_new(leat_kernel *k)
{
    const int n = leat_kernel_inputs(k);
    leat_origin *o = leat_xmalloc(sizeof(*o) + (size_t)n * sizeof(*o->in));
    o->recipe = (recipe *)leat_kernel_note(k, recipe_new);
    atomic_fetch_add(&o->recipe->refs, 1);
    o->set = leat_kernel_callables(k);
    if (o->set)
        leat_callables_ref(o->set);
    o->n = n;
    for (int i = 0; i < n; i++)
        o->in[i] = leat_tensor_ref(leat_kernel_in(k, i));
    return o;
}

void leat_origin_free(leat_origin *o)
{
    if (!o)
        return;
    for (int i = 0; i < o->n; i++)
        leat_tensor_unref(o->in[i]);
    leat_callables_unref(o->set);
    recipe_unref(&o->recipe->note);
    free(o);
}

/* ---- The graph ---- */

/* Sets a message's text, which was read from bytes. Takes x. */
static void replace_text(char **text, char *x)
{
    if (*text != protobuf_c_empty_string)
        free(*text);
    *text = x;
}

typedef struct builder {
    leat_graph *g;
    leat_map done; /* the address of a dataset -> its node */
    int n;         /* datasets */
} builder;

static leat_status add_dataset(builder *b, leat_dataset *d, const leat_node **out);

/* The node that gives input i of d's node. */
static leat_status add_input(builder *b, const leat_dataset *d, int i, const leat_node **out)
{
    const leat_tensor *t = d->origin->in[i];
    leat_dataset *in;
    if (t->dtype == LEAT_VARIANT) {
        LEAT_TRY(leat_dataset_in(t, &in));
        return add_dataset(b, in, out);
    }
    LEAT_REQUIRE(t->dtype != LEAT_RESOURCE, FAILED_PRECONDITION,
                 "Dataset %s (%s) uses a resource of this process, input %d of its node: it cannot "
                 "be written as a graph",
                 d->name, d->op, i);
    leat_out c = leat_const(b->g, t);
    LEAT_TRY(leat_graph_status(b->g));
    *out = c.node;
    return NULL;
}

static leat_status add_functions(builder *b, const leat_dataset *d, const leat_node *n)
{
    leat_callables *set = d->origin->set;
    if (!set)
        return NULL;
    pthread_mutex_lock(&set->lock);
    leat_status s = leat_functions_gather_for(n, set->library, b->g);
    pthread_mutex_unlock(&set->lock);
    return s;
}

/* Gives p its inputs and adds it to the graph. */
static leat_status add_node(builder *b, leat_dataset *d, Leat__NodeDef *p, const leat_node **out)
{
    p->input = leat_new_array(char *, d->origin->n + 1);
    for (int i = 0; i < d->origin->n; i++) {
        const leat_node *in = NULL;
        LEAT_TRY(add_input(b, d, i, &in));
        p->input[p->n_input++] = leat_xstrdup(in->name);
    }
    char name[32];
    snprintf(name, sizeof(name), "dataset_%d", b->n++);
    replace_text(&p->name, leat_xstrdup(name));
    LEAT_TRY(leat_nodes_import(b->g, &p, 1, ""));
    *out = leat_graph_find(b->g, name);
    leat_map_put_n(&b->done, &d, sizeof(d), (void *)*out);
    return add_functions(b, d, *out);
}

static leat_status add_dataset(builder *b, leat_dataset *d, const leat_node **out)
{
    *out = leat_map_get_n(&b->done, &d, sizeof(d));
    if (*out)
        return NULL;
    LEAT_REQUIRE(d->origin, UNIMPLEMENTED,
                 "Dataset %s (%s) was made by the program, not by a node: it cannot be written as "
                 "a graph",
                 d->name, d->op);
    const recipe *r = d->origin->recipe;
    Leat__NodeDef *p;
    LEAT_TRY(leat_status_copy(r->bad));
    LEAT_TRY(LEAT_UNPACK(node_def, leat_strbuf_text(&r->packed), r->packed.n, &p));
    leat_status s = add_node(b, d, p, out);
    leat_proto_free(p);
    return s;
}

leat_status leat_dataset_graph(leat_dataset *d, leat_graph **out)
{
    builder b = {.g = leat_graph_new()};
    const leat_node *n = NULL;
    leat_status s = add_dataset(&b, d, &n);
    if (!s) {
        leat_op(b.g, "_Retval", leat_in(((leat_out){(leat_node *)n, 0})),
                leat_attr_int("index", 0));
        s = leat_status_copy(leat_graph_status(b.g));
    }
    leat_map_release(&b.done);
    if (s)
        leat_graph_free(b.g);
    else
        *out = b.g;
    return s;
}

/* ---- State ---- */

static bool is_listed(const char *op, const char *const *listed, int n)
{
    /* Ops whose state does not change what a dataset gives, as in TensorFlow. */
    static const char *const harmless[] = {
        "Assert", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2",
        "Print",  "PrintV2",           "Timestamp",       NULL};
    for (int i = 0; harmless[i]; i++)
        if (strcmp(op, harmless[i]) == 0)
            return true;
    for (int i = 0; i < n; i++)
        if (strcmp(op, listed[i]) == 0)
            return true;
    return false;
}

/* Whether an op has state, other than a source of data that makes its own. */
static bool has_state(const char *op)
{
    const leat_op_info *info = leat_op_find(op);
    const size_t n = strlen(op);
    const bool dataset = (n > 7 && strcmp(op + n - 7, "Dataset") == 0) ||
                         (n > 9 && strcmp(op + n - 9, "DatasetV2") == 0);
    return info && info->def->flags & LEAT_OP_STATEFUL && !dataset;
}

leat_status leat_dataset_graph_check(const leat_graph *g, const char *const *listed, int n)
{
    for (int i = 0; i < g->n_functions; i++) {
        const Leat__FunctionDef *f = g->function_list[i]->def;
        for (size_t j = 0; j < f->n_node_def; j++) {
            const char *op = f->node_def[j]->op;
            LEAT_REQUIRE(!has_state(op) || is_listed(op, listed, n), FAILED_PRECONDITION,
                         "%s is stateful. (function %s, node %s)", op, g->function_list[i]->name,
                         f->node_def[j]->name);
        }
    }
    return NULL;
}

/* ---- Fingerprints: the hash of the graph with numbers for names ---- */

typedef struct renamer {
    leat_map functions, nodes; /* name -> 1 + number */
} renamer;

static void set_text(char **text, const char *form, size_t number)
{
    char name[40];
    snprintf(name, sizeof(name), form, number);
    replace_text(text, leat_xstrdup(name));
}

static void rename_by(const leat_map *names, const char *form, char **text)
{
    const size_t number = (size_t)(intptr_t)leat_map_get(names, *text);
    if (number)
        set_text(text, form, number - 1);
}

static void rename_value(const renamer *x, Leat__AttrValue *v);

static void rename_function(const renamer *x, Leat__NameAttrList *f)
{
    rename_by(&x->functions, "f%zu", &f->name);
    for (size_t i = 0; i < f->n_attr; i++)
        rename_value(x, f->attr[i]->value);
}

static void rename_value(const renamer *x, Leat__AttrValue *v)
{
    if (v && v->value_case == LEAT__ATTR_VALUE__VALUE_FUNC)
        rename_function(x, v->func);
    for (size_t i = 0; v && v->value_case == LEAT__ATTR_VALUE__VALUE_LIST && i < v->list->n_func;
         i++)
        rename_function(x, v->list->func[i]);
}

/* "node:out:1", "^node" or "argument". */
static void rename_input(const renamer *x, char **input)
{
    const char *name = *input + (**input == '^'), *end = strchr(name, ':');
    const size_t n = end ? (size_t)(end - name) : strlen(name);
    const size_t number = (size_t)(intptr_t)leat_map_get_n(&x->nodes, name, n);
    if (!number)
        return;
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s%zu%s", **input == '^' ? "^" : "", number - 1, name + n);
    replace_text(input, leat_strbuf_take(&b));
}

/* Attributes that begin with _ are notes of the client about its graph. */
static void drop_notes(Leat__NodeDef *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->n_attr; i++) {
        if (n->attr[i]->key[0] == '_')
            leat_proto_free(n->attr[i]);
        else
            n->attr[kept++] = n->attr[i];
    }
    n->n_attr = kept;
    leat_proto_free(n->experimental_debug_info);
    n->experimental_debug_info = NULL;
}

static void rename_node(const renamer *x, Leat__NodeDef *n, size_t number)
{
    drop_notes(n);
    rename_by(&x->functions, "f%zu", &n->op);
    set_text(&n->name, "%zu", number);
    for (size_t i = 0; i < n->n_input; i++)
        rename_input(x, &n->input[i]);
    for (size_t i = 0; i < n->n_attr; i++)
        rename_value(x, n->attr[i]->value);
}

static void number_of(leat_map *names, const char *name, size_t number)
{
    leat_map_put(names, name, (void *)(intptr_t)(number + 1));
}

static void rename_body(renamer *x, Leat__FunctionDef *f, size_t number)
{
    Leat__OpDef *s = f->signature;
    for (size_t i = 0; i < s->n_input_arg; i++)
        number_of(&x->nodes, s->input_arg[i]->name, i);
    for (size_t i = 0; i < f->n_node_def; i++)
        number_of(&x->nodes, f->node_def[i]->name, s->n_input_arg + i);
    for (size_t i = 0; i < f->n_node_def; i++)
        rename_node(x, f->node_def[i], s->n_input_arg + i);
    for (size_t i = 0; i < s->n_input_arg; i++)
        set_text(&s->input_arg[i]->name, "%zu", i);
    for (size_t i = 0; i < f->n_ret; i++)
        rename_input(x, &f->ret[i]->value);
    for (size_t i = 0; i < f->n_control_ret; i++) {
        rename_by(&x->nodes, "%zu", &f->control_ret[i]->key);
        rename_by(&x->nodes, "%zu", &f->control_ret[i]->value);
    }
    for (size_t i = 0; i < s->n_control_output; i++)
        rename_by(&x->nodes, "%zu", &s->control_output[i]);
    set_text(&s->name, "f%zu", number);
    leat_map_release(&x->nodes);
}

/* Functions keep their numbers, which are those of the order in which they are named. */
static void rename_all(Leat__GraphDef *p)
{
    const uint64_t seed = leat_hash_secret(); /* Names are the client's. */
    renamer x = {.functions.seed = seed, .nodes.seed = seed};
    Leat__FunctionDefLibrary *lib = p->library;
    for (size_t i = 0; lib && i < lib->n_function; i++)
        number_of(&x.functions, lib->function[i]->signature->name, i);
    for (size_t i = 0; i < p->n_node; i++)
        rename_node(&x, p->node[i], i);
    for (size_t i = 0; lib && i < lib->n_function; i++)
        rename_body(&x, lib->function[i], i);
    for (size_t i = 0; lib && i < lib->n_gradient; i++) {
        rename_by(&x.functions, "f%zu", &lib->gradient[i]->function_name);
        rename_by(&x.functions, "f%zu", &lib->gradient[i]->gradient_func);
    }
    leat_map_release(&x.functions);
}

leat_status leat_dataset_fingerprint(leat_dataset *d, uint64_t *out)
{
    leat_graph *g;
    Leat__GraphDef *p = NULL;
    leat_strbuf b = {.checked = true};
    LEAT_TRY(leat_dataset_graph(d, &g));
    leat_status s = leat_graph_to_proto(g, &p);
    leat_graph_free(g);
    LEAT_TRY(s);
    rename_all(p);
    s = leat_proto_pack(p, &b);
    leat_proto_free(p);
    if (!s)
        s = leat_strbuf_check(&b);
    if (!s)
        *out = leat_fingerprint64(leat_strbuf_text(&b), b.n);
    leat_strbuf_release(&b);
    return s;
}
