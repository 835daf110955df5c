/* function_body.c -- a FunctionDef as a graph. In a FunctionDef, inputs name arguments ("x", "x:1")
 * or outputs by the name that the op's definition gives them ("node:out", "node:out:1"; without a
 * number, all of a list); attributes may be placeholders for those of the call. Both are replaced,
 * and what results is imported like any other graph. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "proto/wire.h"

enum { MOST = 1 << 20 }; /* tensors that may be passed */

/* What a name in the body stands for. */
typedef struct item {
    const Leat__NodeDef *node; /* with its attributes bound; NULL: an argument */
    const leat_op_info *op;
    int first, n; /* an argument's tensors */
} item;

typedef struct maker {
    const leat_graph *library;
    const leat_function *f;
    const leat_attr *attrs; /* of the call */
    int n_attrs;
    leat_arena arena;
    leat_map names; /* -> item */
    Leat__NodeDef **defs;
    int n_defs, n_args;
    Leat__AttrValue **owned; /* made for placeholders */
    int n_owned, cap_owned;
    char **flat; /* of the input that was expanded last */
    int n_flat, cap_flat;
} maker;

static const leat_attr *bound(const maker *m, const char *name)
{
    for (int i = 0; i < m->n_attrs; i++)
        if (strcmp(m->attrs[i].name, name) == 0)
            return &m->attrs[i];
    int at = leat_op_attr_index(m->f->info, name);
    return at >= 0 ? m->f->info->attrs[at].fallback : NULL;
}

/* ---- Attributes ---- */

static leat_status bind(maker *m, Leat__AttrValue *v, Leat__AttrValue **out);

static leat_status bind_func(maker *m, const Leat__NameAttrList *f, Leat__NameAttrList **out)
{
    Leat__NameAttrList *c = leat_arena_memdup(&m->arena, f, sizeof(*f));
    c->attr = leat_arena_array(&m->arena, Leat__NameAttrList__AttrEntry *, f->n_attr);
    for (size_t i = 0; i < f->n_attr; i++) {
        c->attr[i] = leat_arena_memdup(&m->arena, f->attr[i], sizeof(*f->attr[i]));
        LEAT_TRY(bind(m, f->attr[i]->value, &c->attr[i]->value));
    }
    *out = c;
    return NULL;
}

static leat_status bind(maker *m, Leat__AttrValue *v, Leat__AttrValue **out)
{
    *out = v;
    if (v->value_case == LEAT__ATTR_VALUE__VALUE_PLACEHOLDER) {
        const leat_attr *a = bound(m, v->placeholder);
        LEAT_REQUIRE(a, INVALID_ARGUMENT, "Attr %s is not found from the call", v->placeholder);
        LEAT_TRY(leat_attr_to_proto(a, out));
        leat_grow(m->owned, m->n_owned, m->cap_owned);
        m->owned[m->n_owned++] = *out;
    } else if (v->value_case == LEAT__ATTR_VALUE__VALUE_FUNC) {
        *out = leat_arena_memdup(&m->arena, v, sizeof(*v));
        return bind_func(m, v->func, &(*out)->func);
    } else if (v->value_case == LEAT__ATTR_VALUE__VALUE_LIST && v->list->n_func) {
        *out = leat_arena_memdup(&m->arena, v, sizeof(*v));
        Leat__AttrValue__ListValue *l = leat_arena_memdup(&m->arena, v->list, sizeof(*l));
        (*out)->list = l;
        l->func = leat_arena_array(&m->arena, Leat__NameAttrList *, l->n_func);
        for (size_t i = 0; i < l->n_func; i++)
            LEAT_TRY(bind_func(m, v->list->func[i], &l->func[i]));
    }
    return NULL;
}

/* ---- Arguments ---- */

/* How many tensors an argument of the signature is, and of which dtypes. */
static leat_status arg_types(const maker *m, const leat_arg_info *arg, leat_dtype **types, int *n)
{
    const leat_op_info *op = m->f->info;
    const leat_attr *number = NULL, *type = NULL, *list = NULL;
    if (arg->number_attr >= 0)
        number = bound(m, op->attrs[arg->number_attr].name);
    if (arg->type_attr >= 0)
        type = bound(m, op->attrs[arg->type_attr].name);
    if (arg->list_attr >= 0)
        list = bound(m, op->attrs[arg->list_attr].name);
    LEAT_REQUIRE((arg->number_attr < 0 || (number && number->kind == LEAT_ARG_INT)) &&
                     (arg->type_attr < 0 || (type && type->kind == LEAT_ARG_TYPE)) &&
                     (arg->list_attr < 0 || (list && list->kind == LEAT_ARG_TYPES)),
                 INVALID_ARGUMENT, "the attributes of the call do not tell the type of '%s'",
                 arg->name);
    int64_t count = number ? number->i : list ? list->n : 1;
    LEAT_REQUIRE(count >= 0 && count <= MOST, INVALID_ARGUMENT, "'%s' would be %lld tensors",
                 arg->name, (long long)count);
    *types = leat_arena_array((leat_arena *)&m->arena, leat_dtype, count);
    *n = (int)count;
    for (int i = 0; i < *n; i++)
        (*types)[i] = list ? list->types[i] : type ? (leat_dtype)type->i : arg->type;
    return NULL;
}

static Leat__AttrValue *new_value(maker *m)
{
    Leat__AttrValue *v = leat_arena_new(&m->arena, Leat__AttrValue);
    leat__attr_value__init(v);
    return v;
}

static Leat__NodeDef__AttrEntry *entry(maker *m, const char *key, Leat__AttrValue *v)
{
    Leat__NodeDef__AttrEntry *e = leat_arena_new(&m->arena, Leat__NodeDef__AttrEntry);
    leat__node_def__attr_entry__init(e);
    e->key = (char *)key;
    e->value = v;
    return e;
}

static void add_arg(maker *m, char *name, leat_dtype t)
{
    Leat__NodeDef *d = leat_arena_new(&m->arena, Leat__NodeDef);
    leat__node_def__init(d);
    d->name = name;
    d->op = "_Arg";
    d->attr = leat_arena_array(&m->arena, Leat__NodeDef__AttrEntry *, 2);
    Leat__AttrValue *type = new_value(m), *index = new_value(m);
    type->value_case = LEAT__ATTR_VALUE__VALUE_TYPE;
    type->type = (Leat__DataType)t;
    index->value_case = LEAT__ATTR_VALUE__VALUE_I;
    index->i = m->n_args++;
    d->attr[d->n_attr++] = entry(m, "T", type);
    d->attr[d->n_attr++] = entry(m, "index", index);
    m->defs[m->n_defs++] = d;
}

static leat_status name_item(maker *m, const char *name, const item *it)
{
    LEAT_REQUIRE(!leat_map_put(&m->names, name, leat_arena_memdup(&m->arena, it, sizeof(*it))),
                 INVALID_ARGUMENT, "Duplicated name '%s'", name);
    return NULL;
}

static leat_status make_args(maker *m)
{
    const leat_op_info *op = m->f->info;
    leat_dtype **types = leat_arena_array(&m->arena, leat_dtype *, op->n_in);
    int *n = leat_arena_array(&m->arena, int, op->n_in);
    size_t total = m->f->def->n_node_def;
    for (int i = 0; i < op->n_in; i++) {
        LEAT_TRY(arg_types(m, &op->in[i], &types[i], &n[i]));
        total += (size_t)n[i];
    }
    LEAT_REQUIRE(total < INT_MAX / 64, INVALID_ARGUMENT, "%zu nodes are too many", total);
    m->defs = leat_arena_array(&m->arena, Leat__NodeDef *, total + 1);
    for (int i = 0; i < op->n_in; i++) {
        const leat_arg_info *arg = &op->in[i];
        bool single = arg->number_attr < 0 && arg->list_attr < 0;
        LEAT_TRY(name_item(m, arg->name, &(item){.first = m->n_args, .n = n[i]}));
        for (int k = 0; k < n[i]; k++)
            add_arg(
                m, single ? (char *)arg->name : leat_arena_printf(&m->arena, "%s_%d", arg->name, k),
                types[i][k]);
    }
    return NULL;
}

/* ---- Inputs ---- */

static leat_status add_flat(maker *m, const char *name, int64_t index)
{
    LEAT_REQUIRE(m->n_flat < MOST, INVALID_ARGUMENT, "too many inputs");
    leat_grow(m->flat, m->n_flat, m->cap_flat);
    m->flat[m->n_flat++] = leat_arena_printf(&m->arena, "%s:%lld", name, (long long)index);
    return NULL;
}

/* The number of tensors in output `arg` of a node. */
static int64_t output_length(const item *it, const leat_arg_info *arg)
{
    int at = arg->number_attr >= 0 ? arg->number_attr : arg->list_attr;
    if (at < 0)
        return 1;
    const leat_attr_info *info = &it->op->attrs[at];
    for (size_t i = 0; i < it->node->n_attr; i++) {
        const Leat__AttrValue *v = it->node->attr[i]->value;
        if (strcmp(it->node->attr[i]->key, info->name) != 0)
            continue;
        if (arg->number_attr >= 0)
            return v->value_case == LEAT__ATTR_VALUE__VALUE_I ? v->i : 0;
        return v->value_case == LEAT__ATTR_VALUE__VALUE_LIST ? (int64_t)v->list->n_type : 0;
    }
    return !info->fallback ? 0 : arg->number_attr >= 0 ? info->fallback->i : info->fallback->n;
}

static leat_status parse_index(const char *text, const char *input, int64_t *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    LEAT_REQUIRE(end != text && !*end && *out >= 0 && *out < MOST, INVALID_ARGUMENT,
                 "Malformed input '%s'", input);
    return NULL;
}

static leat_status expand_output(maker *m, const item *it, const char *out, const char *input)
{
    const char *colon = strchr(out, ':');
    size_t n = colon ? (size_t)(colon - out) : strlen(out);
    int64_t at = 0, index = -1;
    if (colon)
        LEAT_TRY(parse_index(colon + 1, input, &index));
    for (int a = 0; a < it->op->n_out; a++) {
        int64_t length = output_length(it, &it->op->out[a]);
        LEAT_REQUIRE(length >= 0 && length <= MOST && at <= MOST, INVALID_ARGUMENT,
                     "Node '%s' would have too many outputs", it->node->name);
        if (strncmp(it->op->out[a].name, out, n) != 0 || it->op->out[a].name[n]) {
            at += length;
            continue;
        }
        LEAT_REQUIRE(index < length, INVALID_ARGUMENT, "'%s': there is no such output", input);
        for (int64_t i = index < 0 ? 0 : index; i < (index < 0 ? length : index + 1); i++)
            LEAT_TRY(add_flat(m, it->node->name, at + i));
        return NULL;
    }
    return leat_error(INVALID_ARGUMENT, "'%s': %s has no output of that name", input,
                      it->op->def->name);
}

/* The tensors that an input stands for, as GraphDefs name them, in m->flat. */
static leat_status expand(maker *m, const char *input)
{
    m->n_flat = 0;
    const char *colon = strchr(input, ':');
    size_t n = colon ? (size_t)(colon - input) : strlen(input);
    const item *it = leat_map_get_n(&m->names, input, n);
    LEAT_REQUIRE(it, INVALID_ARGUMENT, "input %s is not found", input);
    if (it->node && colon)
        return expand_output(m, it, colon + 1, input);
    LEAT_REQUIRE(!it->node, INVALID_ARGUMENT, "input %s is not found: it names no output", input);
    int64_t index = -1;
    if (colon)
        LEAT_TRY(parse_index(colon + 1, input, &index));
    LEAT_REQUIRE(index < it->n, INVALID_ARGUMENT, "'%s': there is no such argument", input);
    for (int64_t i = index < 0 ? 0 : index; i < (index < 0 ? it->n : index + 1); i++)
        LEAT_TRY(add_flat(m, m->defs[it->first + i]->name, 0));
    return NULL;
}

/* "^node" stays; a control input from an argument is one from each of its tensors. */
static leat_status expand_control(maker *m, const char *input)
{
    const item *it = leat_map_get(&m->names, input + 1);
    LEAT_REQUIRE(it, INVALID_ARGUMENT, "input %s is not found", input);
    m->n_flat = 0;
    for (int i = 0; i < (it->node ? 1 : it->n); i++) {
        leat_grow(m->flat, m->n_flat, m->cap_flat);
        const char *name = it->node ? it->node->name : m->defs[it->first + i]->name;
        m->flat[m->n_flat++] = leat_arena_printf(&m->arena, "^%s", name);
    }
    return NULL;
}

static leat_status make_inputs(maker *m, const Leat__NodeDef *from, Leat__NodeDef *d)
{
    char **inputs = NULL;
    size_t n = 0, cap = 0;
    leat_status s = NULL;
    for (size_t i = 0; i < from->n_input && !s; i++) {
        s = from->input[i][0] == '^' ? expand_control(m, from->input[i])
                                     : expand(m, from->input[i]);
        for (int k = 0; k < m->n_flat && !s; k++) {
            leat_grow(inputs, n, cap);
            inputs[n++] = m->flat[k];
        }
    }
    d->input = leat_arena_memdup(&m->arena, inputs, sizeof(*inputs) * n);
    d->n_input = n;
    free(inputs);
    return leat_status_suffix(s, " (node '%s')", from->name);
}

static leat_status make_nodes(maker *m)
{
    const Leat__FunctionDef *def = m->f->def;
    for (size_t i = 0; i < def->n_node_def; i++) {
        const Leat__NodeDef *from = def->node_def[i];
        Leat__NodeDef *d = leat_arena_memdup(&m->arena, from, sizeof(*from));
        d->attr = leat_arena_array(&m->arena, Leat__NodeDef__AttrEntry *, from->n_attr);
        for (size_t k = 0; k < from->n_attr; k++) {
            d->attr[k] = entry(m, from->attr[k]->key, NULL);
            LEAT_TRY(bind(m, from->attr[k]->value, &d->attr[k]->value));
        }
        const leat_op_info *op = leat_op_find(from->op);
        if (!op)
            op = leat_function_op((leat_graph *)m->library, from->op);
        LEAT_REQUIRE(op, NOT_FOUND,
                     "Op type not registered '%s'. Make sure the Op and Kernel are registered",
                     from->op);
        LEAT_TRY(name_item(m, from->name, &(item){.node = d, .op = op}));
        m->defs[m->n_defs++] = d;
    }
    for (size_t i = 0; i < def->n_node_def; i++)
        LEAT_TRY(make_inputs(m, def->node_def[i], m->defs[(size_t)m->n_args + i]));
    return NULL;
}

/* ---- Results ---- */

static leat_status make_results(maker *m, leat_body *b)
{
    const Leat__FunctionDef *def = m->f->def;
    for (int i = 0, cap = 0; i < m->f->info->n_out; i++) {
        const leat_arg_info *arg = &m->f->info->out[i];
        const char *from = NULL;
        for (size_t k = 0; k < def->n_ret; k++)
            if (strcmp(def->ret[k]->key, arg->name) == 0)
                from = def->ret[k]->value;
        LEAT_REQUIRE(from, INVALID_ARGUMENT, "Return %s is not found", arg->name);
        leat_dtype *types;
        int n;
        LEAT_TRY(arg_types(m, arg, &types, &n));
        LEAT_TRY(expand(m, from));
        LEAT_REQUIRE(m->n_flat == n, INVALID_ARGUMENT, "Return %s: %d tensors, want %d", arg->name,
                     m->n_flat, n);
        for (int k = 0; k < n; k++) {
            leat_out x;
            LEAT_TRY(leat_graph_find_out(b->g, m->flat[k], &x));
            leat_dtype t = leat_dtype_base(leat_out_dtype(x));
            LEAT_REQUIRE(t == leat_dtype_base(types[k]), INVALID_ARGUMENT,
                         "Return %s is %s, the signature says %s", arg->name, leat_dtype_name(t),
                         leat_dtype_name(types[k]));
            leat_grow(b->results, b->n_results, cap);
            b->results[b->n_results++] = x;
        }
    }
    return NULL;
}

/* Those with side effects, and those that the function names. */
static leat_status make_to_run(maker *m, leat_body *b)
{
    const Leat__FunctionDef *def = m->f->def;
    b->to_run = leat_new_array(leat_node *, (size_t)b->g->n_nodes + def->n_control_ret + 1);
    for (int i = 0; i < b->g->n_nodes; i++)
        if (b->g->nodes[i]->op->def->flags & LEAT_OP_STATEFUL &&
            leat_node_role(b->g->nodes[i]) != LEAT_ROLE_ARG)
            b->to_run[b->n_to_run++] = b->g->nodes[i];
    for (size_t i = 0; i < def->n_control_ret; i++) {
        leat_node *n = leat_graph_find(b->g, def->control_ret[i]->value);
        LEAT_REQUIRE(n, INVALID_ARGUMENT, "Control return %s is not found",
                     def->control_ret[i]->value);
        b->to_run[b->n_to_run++] = n;
    }
    return NULL;
}

static leat_status make(maker *m, leat_body *b)
{
    LEAT_TRY(make_args(m));
    LEAT_TRY(make_nodes(m));
    LEAT_TRY(leat_nodes_import(b->g, m->defs, (size_t)m->n_defs, ""));
    b->args = leat_new_array(leat_node *, m->n_args + 1);
    for (int i = 0; i < m->n_args; i++)
        b->args[b->n_args++] = leat_graph_find(b->g, m->defs[i]->name);
    LEAT_TRY(make_results(m, b));
    return make_to_run(m, b);
}

void leat_body_free(leat_body *b)
{
    leat_graph_free(b->g);
    free(b->args);
    free(b->results);
    free(b->to_run);
    *b = (leat_body){0};
}

leat_status leat_function_instantiate(leat_graph *library, const leat_node *call,
                                      const leat_func *f, leat_body *out)
{
    maker m = {.library = library, .attrs = f->attrs, .n_attrs = f->n_attrs};
    m.f = leat_function_find(library, f->name);
    LEAT_REQUIRE(m.f, NOT_FOUND, "Function %s is not defined.", f->name);
    leat_arena_init(&m.arena);
    leat_body b = {.g = leat_graph_new()};
    b.g->library = library;
    b.g->call = call;
    b.g->no_call_shapes = !call; /* it is about to be run */
    b.g->call_depth = library->call_depth + 1;
    b.g->call_work = library->call_work ? library->call_work : &library->own_call_work;
    leat_status s = make(&m, &b);
    for (int i = 0; i < m.n_owned; i++)
        leat_proto_free(m.owned[i]);
    free(m.owned);
    free(m.flat);
    leat_map_release(&m.names);
    leat_arena_release(&m.arena);
    if (s) {
        leat_body_free(&b);
        return leat_status_prefix(s, "Function '%s': ", f->name);
    }
    *out = b;
    return NULL;
}
