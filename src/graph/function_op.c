/* function_op.c -- a function's signature as an op, so that its name can be used like any other;
 * and the gradient of a call. */
#include <string.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "graph/function.h"
#include "graph/gradients_int.h"
#include "graph/graphdef.h"

static const struct {
    const char *text;
    int kind;
} kinds[] = {
    {"string", LEAT_ARG_STRING},
    {"int", LEAT_ARG_INT},
    {"float", LEAT_ARG_FLOAT},
    {"bool", LEAT_ARG_BOOL},
    {"type", LEAT_ARG_TYPE},
    {"shape", LEAT_ARG_SHAPE},
    {"tensor", LEAT_ARG_TENSOR},
    {"func", LEAT_ARG_FUNC},
    {"list(string)", LEAT_ARG_STRINGS},
    {"list(int)", LEAT_ARG_INTS},
    {"list(float)", LEAT_ARG_FLOATS},
    {"list(bool)", LEAT_ARG_BOOLS},
    {"list(type)", LEAT_ARG_TYPES},
    {"list(shape)", LEAT_ARG_SHAPES},
    {"list(tensor)", LEAT_ARG_TENSORS},
    {"list(func)", LEAT_ARG_FUNCS},
};

static void allowed(leat_arena *a, const Leat__AttrValue *v, leat_attr_info *info)
{
    const Leat__AttrValue__ListValue *l =
        v && v->value_case == LEAT__ATTR_VALUE__VALUE_LIST ? v->list : NULL;
    if (!l)
        return;
    info->types = l->n_type ? 0 : info->types;
    for (size_t i = 0; i < l->n_type; i++)
        if ((unsigned)l->type[i] < 64)
            info->types |= UINT64_C(1) << l->type[i];
    info->strings = leat_arena_array(a, const char *, l->n_s);
    for (size_t i = 0; i < l->n_s; i++)
        info->strings[info->n_strings++] =
            leat_arena_strndup(a, (const char *)l->s[i].data, l->s[i].len);
}

static leat_status make_attr(leat_arena *a, const Leat__OpDef__AttrDef *d, leat_attr_info *info)
{
    info->name = leat_arena_strdup(a, d->name);
    info->types = LEAT_TYPES_ANY;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(d->type, kinds[i].text) == 0)
            info->kind = kinds[i].kind;
    LEAT_REQUIRE(info->kind && d->name[0], INVALID_ARGUMENT, "attr '%s' is of no known type: '%s'",
                 d->name, d->type);
    info->has_min = d->has_minimum;
    info->min = d->minimum;
    allowed(a, d->allowed_values, info);
    if (!d->default_value || !d->default_value->value_case)
        return NULL;
    leat_attr v = {0};
    LEAT_TRY(leat_attr_from_proto(a, info->name, d->default_value, &v));
    info->fallback = leat_arena_memdup(a, &v, sizeof(v));
    return NULL;
}

static leat_status find_attr(const leat_op_info *op, const char *name, int kind, bool input,
                             int *out)
{
    *out = -1;
    if (!name[0])
        return NULL;
    *out = leat_op_attr_index(op, name);
    LEAT_REQUIRE(*out >= 0 && op->attrs[*out].kind == kind, INVALID_ARGUMENT,
                 "an argument refers to attr '%s', which is not there or of another type", name);
    op->attrs[*out].inferred |= input;
    return NULL;
}

static leat_status make_args(leat_arena *a, leat_op_info *op, Leat__OpDef__ArgDef *const *defs,
                             size_t n, bool input, leat_arg_info **args_out, int *n_out)
{
    leat_arg_info *args = leat_arena_array(a, leat_arg_info, n);
    for (size_t i = 0; i < n; i++) {
        const Leat__OpDef__ArgDef *d = defs[i];
        LEAT_REQUIRE(d->name[0], INVALID_ARGUMENT, "an argument has no name");
        for (size_t j = 0; j < i; j++)
            LEAT_REQUIRE(strcmp(defs[j]->name, d->name) != 0, INVALID_ARGUMENT,
                         "Duplicated arg name: '%s'", d->name);
        args[i].name = leat_arena_strdup(a, d->name);
        args[i].type = (leat_dtype)d->type;
        args[i].is_ref = d->is_ref;
        LEAT_TRY(find_attr(op, d->type_attr, LEAT_ARG_TYPE, input, &args[i].type_attr));
        LEAT_TRY(find_attr(op, d->number_attr, LEAT_ARG_INT, input, &args[i].number_attr));
        LEAT_TRY(find_attr(op, d->type_list_attr, LEAT_ARG_TYPES, input, &args[i].list_attr));
        int ways = (d->type != 0) + (args[i].type_attr >= 0) + (args[i].list_attr >= 0);
        LEAT_REQUIRE(ways == 1 && (args[i].list_attr < 0 || args[i].number_attr < 0),
                     INVALID_ARGUMENT, "argument '%s' must have exactly one type", d->name);
        LEAT_REQUIRE(!d->type || leat_dtype_size(leat_dtype_base(args[i].type)), INVALID_ARGUMENT,
                     "argument '%s' is of no known dtype: %d", d->name, (int)d->type);
    }
    *args_out = args;
    *n_out = (int)n;
    return NULL;
}

leat_status leat_function_make_op(leat_graph *g, leat_function *f)
{
    leat_arena *a = &g->arena;
    const Leat__OpDef *s = f->def->signature;
    LEAT_REQUIRE(s->n_attr < 10000 && s->n_input_arg < 100000 && s->n_output_arg < 100000,
                 INVALID_ARGUMENT, "too many arguments or attributes");
    f->op_def = (leat_op_def){.name = f->name,
                              .shape = leat_call_shape,
                              .grad = leat_call_grad,
                              .flags = s->is_stateful ? LEAT_OP_STATEFUL : 0};
    f->info = leat_arena_new(a, leat_op_info);
    f->info->def = &f->op_def;
    f->info->attrs = leat_arena_array(a, leat_attr_info, s->n_attr);
    for (size_t i = 0; i < s->n_attr; i++)
        LEAT_TRY(make_attr(a, s->attr[i], &f->info->attrs[f->info->n_attrs++]));
    LEAT_TRY(
        make_args(a, f->info, s->input_arg, s->n_input_arg, true, &f->info->in, &f->info->n_in));
    return make_args(a, f->info, s->output_arg, s->n_output_arg, false, &f->info->out,
                     &f->info->n_out);
}

/* ---- Shapes ---- */

enum {
    MOST_DEPTH = 16,     /* bodies inside bodies that are looked into */
    MOST_WORK = 1 << 20, /* nodes that are made for it, in all of a graph */
};

leat_status leat_arg_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c), *call = n->graph->call;
    int64_t i = leat_node_int(n, "index");
    if (!call || i >= call->n_in || !call->in[i].node)
        return NULL;
    leat_out x = call->in[i];
    leat_infer_out(c, 0, leat_out_shape(x));
    const leat_handle_info *h = x.node->out_handles ? x.node->out_handles[x.index] : NULL;
    if (h)
        leat_infer_out_handle(c, 0, h->dtype, h->shape);
    return NULL;
}

/* g is a body that was made for a call of this function, or is inside of one. */
static bool is_within(const leat_graph *g, const char *function)
{
    for (; g && g->call; g = g->call->graph)
        if (strcmp(leat_called_function(g->call).name, function) == 0)
            return true;
    return false;
}

/* What is wrong with the function is said when it is to be run. */
leat_status leat_call_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    leat_graph *g = n->graph;
    int64_t *work = g->call_work ? g->call_work : &g->own_call_work;
    leat_func f = leat_called_function(n);
    const leat_function *found = leat_function_find(g, f.name);
    if (!found || g->no_call_shapes || g->call_depth >= MOST_DEPTH || *work > MOST_WORK ||
        is_within(g, f.name))
        return NULL;
    *work += (int64_t)found->def->n_node_def + n->n_in + 1;
    leat_body b;
    leat_status s = leat_function_instantiate(g, n, &f, &b);
    leat_status_free(s);
    if (s)
        return NULL;
    for (int i = 0; i < b.n_results && i < n->n_out; i++) {
        leat_out y = b.results[i];
        leat_infer_out(c, i, leat_out_shape(y));
        const leat_handle_info *h = y.node->out_handles ? y.node->out_handles[y.index] : NULL;
        if (h)
            leat_infer_out_handle(c, i, h->dtype, h->shape);
    }
    leat_body_free(&b);
    return NULL;
}

/* ---- Gradient ---- */

leat_func leat_called_function(const leat_node *n)
{
    const leat_attr *f = leat_node_attr(n, "f");
    if (f && f->kind == LEAT_ARG_FUNC && leat_op_find(n->op->def->name))
        return *f->func;
    return (leat_func){n->op->def->name, n->attrs, n->n_attrs};
}

/* SymbolicGradient(inputs, dL/d(outputs)): made into nodes when the graph is run. */
leat_status leat_call_grad(leat_grad *c)
{
    leat_node *n = c->node;
    leat_graph *g = c->b->g;
    leat_out *in = leat_arena_array(&c->b->scratch, leat_out, n->n_in + n->n_out + 1);
    leat_dtype *types = leat_arena_array(&c->b->scratch, leat_dtype, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = n->in[i];
        leat_dtype t = leat_dtype_base(leat_out_dtype(n->in[i]));
        types[i] = t == LEAT_RESOURCE ? LEAT_FLOAT : t;
    }
    for (int i = 0; i < n->n_out; i++)
        in[n->n_in + i] = leat_grad_out(c, i);
    if (g->status)
        return NULL;
    leat_func f = leat_called_function(n);
    const leat_attr attrs[2] = {
        {.name = "Tout", .kind = LEAT_ARG_TYPES, .n = n->n_in, .types = types},
        {.name = "f", .kind = LEAT_ARG_FUNC, .func = &f}};
    leat_node_spec spec = {.op = "SymbolicGradient",
                           .in = in,
                           .n_in = n->n_in + n->n_out,
                           .attrs = attrs,
                           .n_attrs = 2};
    leat_node *dx;
    LEAT_TRY(leat_graph_add(g, &spec, &dx));
    for (int i = 0; i < n->n_in; i++)
        if (leat_dtype_trainable(leat_out_dtype(n->in[i])))
            LEAT_TRY(leat_grad_in(c, i, (leat_out){dx, i}));
    return NULL;
}
