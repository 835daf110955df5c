/* add.c -- one node is added: its op is found, inputs are matched with the definition, attributes
 * inferred, checked and completed, outputs typed and shaped. Every node of every graph, built,
 * imported or made by a pass, comes through leat_graph_add. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/nearest.h"
#include "graph/function.h"
#include "graph/graph_int.h"

/* The node that is being made. */
typedef struct making {
    leat_graph *g;
    const leat_node_spec *spec;
    const leat_op_info *op;
    leat_attr *attrs; /* one for each attribute of the definition; kind 0: not known yet */
} making;

static leat_dtype input_type(const making *m, int i)
{
    leat_out x = m->spec->in[i];
    return x.node ? x.node->out_types[x.index] : LEAT_INVALID;
}

static leat_status infer_int(making *m, int attr, int64_t v, const char *arg)
{
    leat_attr *a = &m->attrs[attr];
    LEAT_REQUIRE(!a->kind || a->i == v, INVALID_ARGUMENT,
                 "List argument '%s' to '%s' Op with length %lld must match length %lld of the "
                 "other lists",
                 arg, m->op->def->name, (long long)v, (long long)a->i);
    *a = (leat_attr){.name = m->op->attrs[attr].name, .kind = LEAT_ARG_INT, .i = v};
    return NULL;
}

static leat_status infer_type(making *m, int attr, leat_dtype t, const leat_arg_info *arg)
{
    leat_attr *a = &m->attrs[attr];
    LEAT_REQUIRE(!a->kind || a->i == (int64_t)t, INVALID_ARGUMENT,
                 "Input '%s' of '%s' Op has type %s that does not match type %s of attr '%s'",
                 arg->name, m->op->def->name, leat_dtype_name(t), leat_dtype_name((leat_dtype)a->i),
                 m->op->attrs[attr].name);
    *a = (leat_attr){.name = m->op->attrs[attr].name, .kind = LEAT_ARG_TYPE, .i = t};
    return NULL;
}

/* Matches one tensor with an argument, or with one element of a list argument. */
static leat_status match_tensor(making *m, const leat_arg_info *arg, int i)
{
    leat_out x = m->spec->in[i];
    if (!x.node && m->spec->loose)
        return NULL;
    LEAT_REQUIRE(x.node, INVALID_ARGUMENT, "Input '%s' of '%s' Op is %s", arg->name,
                 m->op->def->name, leat_no_tensor(m->g, x).s);
    LEAT_REQUIRE(x.index >= 0 && x.index < x.node->n_out, INVALID_ARGUMENT,
                 "Input '%s' of '%s' Op: node %s has no output %d", arg->name, m->op->def->name,
                 x.node->name, x.index);
    LEAT_REQUIRE(x.node->graph == m->g, INVALID_ARGUMENT,
                 "Input '%s' of '%s' Op: Tensor '%s' must be from the same graph", arg->name,
                 m->op->def->name, x.node->name);
    leat_dtype t = input_type(m, i);
    LEAT_REQUIRE(!arg->is_ref || leat_dtype_is_ref(t), INVALID_ARGUMENT,
                 "Input '%s' of '%s' Op requires l-value input", arg->name, m->op->def->name);
    t = leat_dtype_base(t);
    if (arg->type_attr >= 0)
        return infer_type(m, arg->type_attr, t, arg);
    LEAT_REQUIRE(arg->type == LEAT_INVALID || arg->type == t, INVALID_ARGUMENT,
                 "Input '%s' of '%s' Op has type %s that does not match expected type of %s",
                 arg->name, m->op->def->name, leat_dtype_name(t), leat_dtype_name(arg->type));
    return NULL;
}

/* How many tensors argument a takes. */
static leat_status arg_length(making *m, int a, int left, int *n_out)
{
    const leat_arg_info *arg = &m->op->in[a];
    bool list = arg->number_attr >= 0 || arg->list_attr >= 0;
    if (!list) {
        *n_out = 1;
        return NULL;
    }
    if (m->spec->list_n && m->spec->list_n[a] >= 0) {
        *n_out = m->spec->list_n[a];
    } else if (arg->number_attr >= 0 && m->attrs[arg->number_attr].kind) {
        int64_t n = m->attrs[arg->number_attr].i;
        LEAT_REQUIRE(n >= 0 && n <= left, INVALID_ARGUMENT,
                     "Node '%s' (%s) has %d inputs left for '%s', which wants %lld", m->spec->name,
                     m->op->def->name, left, arg->name, (long long)n);
        *n_out = (int)n;
    } else if (arg->list_attr >= 0 && m->attrs[arg->list_attr].kind) {
        *n_out = m->attrs[arg->list_attr].n;
    } else {
        *n_out = left; /* the last list gets the remaining tensors */
    }
    return NULL;
}

static leat_status match_list_types(making *m, const leat_arg_info *arg, int first, int n)
{
    leat_attr *a = &m->attrs[arg->list_attr];
    leat_dtype *types = leat_arena_array(&m->g->arena, leat_dtype, n);
    for (int i = 0; i < n; i++)
        types[i] = leat_dtype_base(input_type(m, first + i));
    LEAT_REQUIRE(!a->kind || (a->n == n &&
                              (n == 0 || memcmp(a->types, types, sizeof(*types) * (size_t)n) == 0)),
                 INVALID_ARGUMENT, "Inputs '%s' of '%s' Op do not match attr '%s'", arg->name,
                 m->op->def->name, m->op->attrs[arg->list_attr].name);
    *a = (leat_attr){
        .name = m->op->attrs[arg->list_attr].name, .kind = LEAT_ARG_TYPES, .n = n, .types = types};
    return NULL;
}

static leat_status match_inputs(making *m)
{
    int at = 0;
    for (int a = 0; a < m->op->n_in; a++) {
        const leat_arg_info *arg = &m->op->in[a];
        int n;
        LEAT_TRY(arg_length(m, a, m->spec->n_in - at, &n));
        LEAT_REQUIRE(at + n <= m->spec->n_in, INVALID_ARGUMENT,
                     "'%s' Op needs input '%s': %d inputs were given", m->op->def->name, arg->name,
                     m->spec->n_in);
        if (arg->number_attr >= 0)
            LEAT_TRY(infer_int(m, arg->number_attr, n, arg->name));
        for (int i = 0; i < n; i++)
            LEAT_TRY(match_tensor(m, arg, at + i));
        if (arg->list_attr >= 0)
            LEAT_TRY(match_list_types(m, arg, at, n));
        at += n;
    }
    LEAT_REQUIRE(at == m->spec->n_in, INVALID_ARGUMENT, "'%s' Op takes %d inputs, got %d",
                 m->op->def->name, at, m->spec->n_in);
    return NULL;
}

/* An int is accepted as a bool or float; an empty list is accepted as a list of any kind. */
static leat_status convert(leat_attr *a, int kind, const making *m)
{
    if (a->kind == kind)
        return NULL;
    LEAT_REQUIRE(
        a->kind != LEAT_ARG_PLACEHOLDER, INVALID_ARGUMENT,
        "AttrValue of attr '%s' of Op %s is a placeholder, '%s': only functions have these",
        a->name, m->op->def->name, a->s);
    bool list = a->kind == LEAT_ARG_INTS || a->kind == LEAT_ARG_TYPES ||
                a->kind == LEAT_ARG_STRINGS || a->kind == LEAT_ARG_SHAPES ||
                a->kind == LEAT_ARG_FLOATS || a->kind == LEAT_ARG_BOOLS ||
                a->kind == LEAT_ARG_TENSORS || a->kind == LEAT_ARG_FUNCS;
    bool want_list = kind == LEAT_ARG_INTS || kind == LEAT_ARG_TYPES || kind == LEAT_ARG_STRINGS ||
                     kind == LEAT_ARG_SHAPES || kind == LEAT_ARG_FLOATS || kind == LEAT_ARG_BOOLS ||
                     kind == LEAT_ARG_TENSORS || kind == LEAT_ARG_FUNCS;
    LEAT_REQUIRE(list && want_list && a->n == 0, INVALID_ARGUMENT,
                 "AttrValue of attr '%s' of Op %s has the wrong kind", a->name, m->op->def->name);
    a->kind = kind;
    return NULL;
}

static leat_status allowed_type(const leat_attr_info *info, leat_dtype t, const making *m)
{
    LEAT_REQUIRE(leat_dtype_size(leat_dtype_base(t)) > 0, INVALID_ARGUMENT,
                 "Value for attr '%s' of %d is not a dtype", info->name, (int)t);
    LEAT_REQUIRE(info->types == LEAT_TYPES_ANY || leat_types_has(info->types, leat_dtype_base(t)),
                 INVALID_ARGUMENT,
                 "Value for attr '%s' of %s is not in the list of allowed values of Op %s",
                 info->name, leat_dtype_name(t), m->op->def->name);
    return NULL;
}

static leat_status check_attr(const making *m, const leat_attr_info *info, const leat_attr *a)
{
    if (a->kind == LEAT_ARG_TYPE)
        LEAT_TRY(allowed_type(info, (leat_dtype)a->i, m));
    for (int i = 0; a->kind == LEAT_ARG_TYPES && i < a->n; i++)
        LEAT_TRY(allowed_type(info, a->types[i], m));
    if (info->has_min) {
        int64_t v = a->kind == LEAT_ARG_INT ? a->i : a->n;
        LEAT_REQUIRE(v >= info->min, INVALID_ARGUMENT,
                     "%s for attr '%s' of %lld must be at least minimum %lld",
                     a->kind == LEAT_ARG_INT ? "Value" : "Length", info->name, (long long)v,
                     (long long)info->min);
    }
    if (a->kind == LEAT_ARG_STRING && info->n_strings) {
        for (int i = 0; i < info->n_strings; i++)
            if (strcmp(info->strings[i], a->s) == 0)
                return NULL;
        return leat_error(INVALID_ARGUMENT,
                          "Value for attr '%s' of \"%s\" is not in the list of allowed values of "
                          "Op %s",
                          info->name, a->s, m->op->def->name);
    }
    return NULL;
}

static leat_status complete_attrs(making *m)
{
    for (int i = 0; i < m->op->n_attrs; i++) {
        const leat_attr_info *info = &m->op->attrs[i];
        leat_attr *a = &m->attrs[i];
        if (!a->kind && info->fallback)
            *a = *info->fallback;
        LEAT_REQUIRE(a->kind, INVALID_ARGUMENT, "NodeDef missing attr '%s' from Op<name=%s>",
                     info->name, m->op->def->name);
        LEAT_TRY(convert(a, info->kind, m));
        LEAT_TRY(check_attr(m, info, a));
    }
    return NULL;
}

static leat_status take_given(making *m)
{
    for (int i = 0; i < m->spec->n_attrs; i++) {
        const leat_attr *a = &m->spec->attrs[i];
        int at = leat_op_attr_index(m->op, a->name);
        leat_nearest near = leat_nearest_to(a->name);
        for (int k = 0; at < 0 && k < m->op->n_attrs; k++)
            leat_nearest_see(&near, m->op->attrs[k].name);
        LEAT_REQUIRE(at >= 0 || a->name[0] == '_', INVALID_ARGUMENT,
                     "NodeDef mentions attr '%s' not in Op<name=%s>%s", a->name, m->op->def->name,
                     leat_nearest_show(&near).s);
        if (at >= 0) {
            m->attrs[at] = *a;
            LEAT_TRY(convert(&m->attrs[at], m->op->attrs[at].kind, m));
        }
    }
    return NULL;
}

static int64_t output_length(const making *m, const leat_arg_info *arg)
{
    if (arg->number_attr >= 0)
        return m->attrs[arg->number_attr].i;
    return arg->list_attr >= 0 ? m->attrs[arg->list_attr].n : 1;
}

static leat_status type_outputs(const making *m, leat_node *n)
{
    int64_t total = 0;
    for (int a = 0; a < m->op->n_out; a++) {
        int64_t n = output_length(m, &m->op->out[a]);
        LEAT_REQUIRE(n >= 0 && n <= 1 << 20, INVALID_ARGUMENT, "'%s' Op would have %lld outputs",
                     m->op->def->name, (long long)n);
        total += n;
    }
    const size_t bytes = (sizeof(leat_shape) + sizeof(leat_dtype)) * (size_t)total;
    n->out_shapes = leat_arena_try(&m->g->arena, bytes);
    LEAT_REQUIRE(n->out_shapes, RESOURCE_EXHAUSTED,
                 "Node '%s' ('%s' Op): no memory for %zu bytes, of %lld outputs",
                 m->spec->name ? m->spec->name : "", m->op->def->name, bytes, (long long)total);
    n->out_types = (leat_dtype *)(n->out_shapes + total);
    for (int a = 0; a < m->op->n_out; a++) {
        const leat_arg_info *arg = &m->op->out[a];
        for (int i = 0, k = output_length(m, arg); i < k; i++) {
            leat_dtype t = arg->type_attr >= 0   ? (leat_dtype)m->attrs[arg->type_attr].i
                           : arg->list_attr >= 0 ? m->attrs[arg->list_attr].types[i]
                                                 : arg->type;
            n->out_types[n->n_out] = arg->is_ref ? (leat_dtype)(leat_dtype_base(t) + LEAT_REF) : t;
            n->out_shapes[n->n_out++] = leat_shape_unknown();
        }
    }
    return NULL;
}

/* Attributes in the order of the definition, then those that begin with "_". */
static void copy_attrs(const making *m, leat_node *n)
{
    leat_arena *arena = &m->g->arena;
    n->attrs = leat_arena_array(arena, leat_attr, m->op->n_attrs + m->spec->n_attrs);
    for (int i = 0; i < m->op->n_attrs; i++)
        n->attrs[n->n_attrs++] = leat_attr_copy_of(arena, m->op, i, &m->attrs[i]);
    for (int i = 0; i < m->spec->n_attrs; i++)
        if (leat_op_attr_index(m->op, m->spec->attrs[i].name) < 0)
            n->attrs[n->n_attrs++] = leat_attr_copy(arena, &m->spec->attrs[i]);
}

/* A name that ends with "/" is the name of a scope: the node gets that name, without the slash and
 * not made unique. */
static leat_status name_of_scope(const making *m, leat_node *n, size_t len)
{
    n->name = leat_arena_strndup(&m->g->arena, m->spec->name, len - 1);
    LEAT_REQUIRE(leat_name_valid(n->name), INVALID_ARGUMENT, "'%s' is not a valid node name",
                 n->name);
    LEAT_REQUIRE(!leat_map_get(&m->g->by_name, n->name), INVALID_ARGUMENT,
                 "Duplicate node name in graph: '%s'", n->name);
    leat_name_use(m->g, n->name);
    return NULL;
}

static leat_status name_node(const making *m, leat_node *n)
{
    const leat_node_spec *s = m->spec;
    size_t len = s->name ? strlen(s->name) : 0;
    if (!s->exact_name && len && s->name[len - 1] == '/')
        return name_of_scope(m, n, len);
    if (!s->exact_name) {
        const char *base = len ? s->name : m->op->def->name;
        LEAT_REQUIRE(leat_name_valid(base), INVALID_ARGUMENT, "'%s' is not a valid node name",
                     base);
        n->name = leat_unique_name(m->g, base);
        return NULL;
    }
    LEAT_REQUIRE(s->name && leat_name_valid(s->name), INVALID_ARGUMENT,
                 "Node '%s': Node name contains invalid characters", s->name ? s->name : "");
    LEAT_REQUIRE(!leat_map_get(&m->g->by_name, s->name), INVALID_ARGUMENT,
                 "Node name '%s' already exists in the Graph", s->name);
    n->name = leat_arena_strdup(&m->g->arena, s->name);
    leat_name_use(m->g, n->name);
    return NULL;
}

static leat_status fill_node(making *m, leat_node *n)
{
    const leat_node_spec *s = m->spec;
    leat_arena *arena = &m->g->arena;
    LEAT_TRY(type_outputs(m, n));
    n->in = leat_arena_memdup(arena, s->in, sizeof(*s->in) * (size_t)s->n_in);
    n->n_in = s->n_in;
    leat_control_adder controls = leat_control_adder_of(n);
    for (int i = 0; i < s->n_controls; i++)
        leat_control_adder_add(&controls, s->controls[i]);
    n->device = leat_graph_device(m->g, s->device);
    LEAT_TRY(name_node(m, n));
    copy_attrs(m, n);
    if (s->exact_name)
        return leat_node_infer(n);
    leat_control_ctx *ctx;
    leat_loc outer = m->g->at_override;
    m->g->at_override = n->at; /* nodes that capture inputs get n's file and line */
    leat_status bad = leat_ctx_take_inputs(m->g, m->op->def->name, n->name, n->in, n->n_in, &ctx);
    if (!bad)
        bad = leat_scopes_apply(m->g, n);
    if (!bad)
        bad = leat_node_infer(n);
    if (!bad)
        bad = leat_ctx_take_controls(ctx, n);
    m->g->at_override = outer;
    return bad;
}

static void insert(leat_graph *g, leat_node *n)
{
    pthread_mutex_lock(&g->lock);
    n->id = g->n_nodes;
    leat_grow(g->nodes, g->n_nodes, g->cap_nodes);
    g->nodes[g->n_nodes++] = n;
    leat_map_put(&g->by_name, n->name, n);
    pthread_mutex_unlock(&g->lock);
}

static leat_status no_such_op(const leat_graph *g, const char *op)
{
    leat_nearest near = leat_nearest_to(op);
    for (int i = 0; i < leat_op_count(); i++)
        leat_nearest_see(&near, leat_op_at_index(i)->def->name);
    for (int i = 0; i < g->n_functions; i++)
        leat_nearest_see(&near, g->function_list[i]->name);
    return leat_error(NOT_FOUND,
                      "Op type not registered '%s'%s. Make sure the Op and Kernel are registered",
                      op, leat_nearest_show(&near).s);
}

leat_status leat_graph_add(leat_graph *g, const leat_node_spec *spec, leat_node **out)
{
    making m = {.g = g, .spec = spec, .op = leat_op_find(spec->op)};
    if (!m.op)
        m.op = leat_function_op(g, spec->op);
    if (!m.op)
        return no_such_op(g, spec->op);
    m.attrs = leat_new_array(leat_attr, m.op->n_attrs + 1);
    leat_node *n = leat_arena_new(&g->arena, leat_node);
    n->graph = g;
    n->op = m.op;
    n->at = g->at_override.file ? g->at_override : spec->at;
    leat_status s = take_given(&m);
    if (!s)
        s = match_inputs(&m);
    if (!s)
        s = complete_attrs(&m);
    if (!s)
        s = fill_node(&m, n);
    free(m.attrs);
    if (s) {
        for (int i = 0; i < n->n_attrs; i++)
            leat_attr_release(&n->attrs[i]);
        return s;
    }
    insert(g, n);
    *out = n;
    return NULL;
}

static void push_control(leat_node *n, leat_node *before)
{
    if (n->n_controls == n->cap_controls) {
        int cap = n->cap_controls ? 2 * n->cap_controls : 2;
        leat_node **c = leat_arena_array(&n->graph->arena, leat_node *, cap);
        if (n->n_controls)
            memcpy(c, n->controls, sizeof(*c) * (size_t)n->n_controls);
        n->controls = c;
        n->cap_controls = cap;
    }
    n->controls[n->n_controls++] = before;
}

void leat_node_add_control(leat_node *n, leat_node *before)
{
    for (int i = 0; i < n->n_controls; i++)
        if (n->controls[i] == before)
            return;
    push_control(n, before);
}

leat_control_adder leat_control_adder_of(leat_node *n)
{
    leat_control_adder a = {n, ++n->graph->last_mark};
    for (int i = 0; i < n->n_controls; i++)
        n->controls[i]->mark = a.mark;
    return a;
}

void leat_control_adder_add(leat_control_adder *a, leat_node *before)
{
    if (before->mark == a->mark)
        return;
    before->mark = a->mark;
    push_control(a->to, before);
}

leat_status leat_node_set_input(leat_node *n, int i, leat_out x)
{
    LEAT_REQUIRE(i >= 0 && i < n->n_in, INVALID_ARGUMENT, "Node %s has no input %d", n->name, i);
    LEAT_REQUIRE(x.node && x.index >= 0 && x.index < x.node->n_out, INVALID_ARGUMENT,
                 "Node %s has no output %d", x.node ? x.node->name : "(none)", x.index);
    if (n->in[i].node) {
        leat_dtype old = leat_dtype_base(n->in[i].node->out_types[n->in[i].index]);
        leat_dtype t = leat_dtype_base(x.node->out_types[x.index]);
        LEAT_REQUIRE(old == t, INVALID_ARGUMENT, "Input %d of node %s is %s, cannot become %s", i,
                     n->name, leat_dtype_name(old), leat_dtype_name(t));
    }
    n->in[i] = x;
    return NULL;
}
