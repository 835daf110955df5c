/* variable.c -- making variables, as references (VariableV2) and as resources (VarHandleOp), and
 * finding a variable's nodes from any of its outputs.
 *
 * Nothing is recorded outside the graph: a variable is identified by the names of its nodes, so
 * that imported graphs work like those that are built here.
 */
#include "train/train_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"

/* ---- From any output to the nodes ---- */

static bool is_variable(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_VARIABLE || leat_node_role(n) == LEAT_ROLE_HANDLE;
}

static leat_node *named(const leat_node *self, const char *suffix)
{
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s%s", self->name, suffix);
    leat_node *n = leat_graph_find(self->graph, leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return n && n->n_in && n->in[0].node == self ? n : NULL;
}

/* The assignment of the initial value: the last one of those that read it from a checkpoint, if
 * there are some. */
static leat_node *initial_assignment(const leat_node *self)
{
    char suffix[48] = "/CheckpointAssign";
    leat_node *n = named(self, suffix), *last = n ? n : named(self, "/Assign");
    for (int i = 1; n; i++) {
        snprintf(suffix, sizeof(suffix), "/CheckpointAssign_%d", i);
        n = named(self, suffix);
        last = n ? n : last;
    }
    return last;
}

bool leat_variable_find(leat_out v, leat_variable_nodes *out)
{
    leat_node *n = leat_out_ok(v) ? v.node : NULL;
    bool reads = n && n->n_in && n->in[0].node && is_variable(n->in[0].node) &&
                 (leat_is_identity(n) || leat_node_role(n) == LEAT_ROLE_READ);
    if (reads)
        n = n->in[0].node;
    if (!n || !is_variable(n))
        return false;
    *out = (leat_variable_nodes){.self = n, .resource = leat_node_role(n) == LEAT_ROLE_HANDLE};
    out->init = initial_assignment(n);
    out->read = named(n, out->resource ? "/Read/ReadVariableOp" : "/read");
    return true;
}

leat_out leat_variable_ref(leat_out v)
{
    leat_variable_nodes n;
    if (v.node && !leat_out_ok(v))
        return v;
    return leat_variable_find(v, &n) ? (leat_out){n.self, 0} : (leat_out){0};
}

leat_out leat_variable_value(leat_out v)
{
    leat_variable_nodes n;
    if (v.node && !leat_out_ok(v))
        return v;
    if (!leat_variable_find(v, &n))
        return (leat_out){0};
    if (n.read)
        return (leat_out){n.read, 0};
    leat_out self = {n.self, 0};
    return n.resource ? LEAT_OP1("ReadVariableOp", self,
                                 leat_attr_type("dtype", leat_node_type(n.self, "dtype")))
                      : leat_identity(self);
}

leat_out leat_variable_initializer(leat_out v)
{
    leat_variable_nodes n;
    if (v.node && !leat_out_ok(v))
        return v;
    return leat_variable_find(v, &n) && n.init ? (leat_out){n.init, -1} : (leat_out){0};
}

leat_out leat_variable_initial_value(leat_out v)
{
    leat_variable_nodes n;
    if (v.node && !leat_out_ok(v))
        return v;
    return leat_variable_find(v, &n) && n.init ? n.init->in[1] : (leat_out){0};
}

const char *leat_variable_name(leat_out v)
{
    leat_variable_nodes n;
    return leat_variable_find(v, &n) ? n.self->name : "";
}

bool leat_variable_is_resource(leat_out v)
{
    leat_variable_nodes n;
    return leat_variable_find(v, &n) && n.resource;
}

leat_dtype leat_variable_dtype(leat_out v)
{
    leat_variable_nodes n;
    return leat_variable_find(v, &n) ? leat_node_type(n.self, "dtype") : LEAT_INVALID;
}

leat_shape leat_variable_shape(leat_out v)
{
    leat_variable_nodes n;
    return leat_variable_find(v, &n) ? leat_node_shape(n.self, "shape") : leat_shape_unknown();
}

/* ---- Making a variable ---- */

/* Colocates the nodes from `first` on with a variable that does not exist yet, and removes devices
 * that they got from open device scopes. */
static void colocate_nodes(leat_graph *g, int first, const char *name, bool keep_device)
{
    char *text = leat_arena_printf(&g->arena, "loc:@%s", name);
    const char *strings[1] = {text};
    int size = (int)strlen(text);
    leat_attr a = {.name = "_class", .kind = LEAT_ARG_STRINGS, .n = 1};
    a.strings = strings;
    a.sizes = &size;
    for (int i = first; i < g->n_nodes; i++) {
        if (leat_node_attr(g->nodes[i], "_class"))
            continue;
        leat_node_set_attr(g->nodes[i], &a);
        if (!keep_device)
            g->nodes[i]->device = "";
    }
}

/* The initial value as a tensor, which may be built here, in a scope of its own. */
static leat_out first_value(leat_graph *g, const leat_variable_spec *spec, const char *name)
{
    if (spec->initial.node)
        return spec->initial;
    bool scoped = spec->initializer || spec->options.use_resource;
    if (!scoped)
        return leat_py_number(g, spec->dtype, spec->scalar, "initial_value");
    int first = g->n_nodes;
    leat_name_scope_enter(g, "Initializer");
    leat_out x = spec->initializer
                     ? spec->initializer->make(g, spec->dtype, spec->shape, spec->initializer)
                     : leat_py_number(g, spec->dtype, spec->scalar, "initial_value");
    leat_name_scope_leave(g);
    colocate_nodes(g, first, name, false);
    return x;
}

static leat_out make_ref(leat_graph *g, const leat_variable_spec *spec, const char *name,
                         leat_out initial, leat_shape shape)
{
    const char *scope = leat_name_scope(g);
    bool any = spec->options.any_shape;
    leat_dtype t = leat_dtype_base(leat_out_dtype(initial));
    int first = g->n_nodes;
    leat_out self = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", t),
                             leat_attr_shape("shape", shape), leat_name(scope));
    if (spec->initializer)
        colocate_nodes(g, first, name, true);
    leat_assign(self, leat_guard_initial_value(g, name, initial),
                leat_attr_bool("validate_shape", !any), leat_name("Assign"));
    leat_out value = {0};
    leat_with_colocate(g, self) value = leat_identity(self, leat_name("read"));
    return value;
}

static leat_out make_resource(leat_graph *g, const char *name, leat_out initial, leat_shape shape)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(initial));
    int first = g->n_nodes;
    leat_out self =
        LEAT_OP0(g, "VarHandleOp", leat_attr_type("dtype", t), leat_attr_shape("shape", shape),
                 leat_attr_string("shared_name", name), leat_name(leat_name_scope(g)));
    colocate_nodes(g, first, name, true);
    if (!leat_out_ok(self))
        return self;
    leat_out value = {0};
    leat_with_name(g, "IsInitialized") LEAT_OP1("VarIsInitializedOp", self);
    leat_with_device(g, self.node->device)
    {
        leat_colocate_only_enter(g, (leat_out){0});
        leat_with_name(g, "Assign")
            LEAT_OP2("AssignVariableOp", self, leat_guard_initial_value(g, name, initial),
                     leat_name(leat_name_scope(g)), leat_on(self.node->device));
        leat_colocate_leave(g);
        leat_with_name(g, "Read") value =
            LEAT_OP1("ReadVariableOp", self, leat_attr_type("dtype", t));
    }
    return value;
}

static void collect(leat_graph *g, const leat_variable_options *o, leat_out value)
{
    static const char *const global[] = {LEAT_GLOBAL_VARIABLES, NULL};
    leat_out self = leat_variable_ref(value);
    bool trainable = !o->not_trainable;
    for (const char *const *c = o->collections ? o->collections : global; *c; c++) {
        leat_collect(g, *c, self);
        trainable &= strcmp(*c, LEAT_TRAINABLE_VARIABLES) != 0;
    }
    if (trainable)
        leat_collect(g, LEAT_TRAINABLE_VARIABLES, self);
}

leat_out leat_variable_make(leat_graph *g, const leat_variable_spec *spec)
{
    if (g->status || (spec->initial.node && !leat_out_ok(spec->initial)))
        return (leat_out){g->poison, 0};
    leat_control_clear_enter(g);
    leat_name_scope_enter(g, spec->name && spec->name[0] ? spec->name : "Variable");
    const char *scope = leat_name_scope(g);
    const char *name = leat_arena_strndup(&g->arena, scope, strlen(scope) - (scope[0] != 0));
    leat_out initial = first_value(g, spec, name), value;
    leat_shape shape = leat_out_shape(initial);
    if (!g->status && !spec->options.any_shape && !leat_shape_known(&shape))
        leat_graph_fail(g, (leat_loc){0},
                        leat_error(INVALID_ARGUMENT,
                                   "initial_value must have a shape specified: %s of shape %s "
                                   "for variable %s",
                                   initial.node ? initial.node->name : "nothing",
                                   leat_shape_show(&shape).s, name));
    if (spec->options.any_shape)
        shape = leat_shape_unknown();
    value = spec->options.use_resource ? make_resource(g, name, initial, shape)
                                       : make_ref(g, spec, name, initial, shape);
    leat_name_scope_leave(g);
    leat_control_leave(g);
    collect(g, &spec->options, value);
    return value;
}

leat_out leat_variable_at(leat_loc at, leat_graph *g, const char *name, leat_out initial_value,
                          const leat_variable_options *options)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_loc outer = leat_at_enter(g, at);
    if (!initial_value.node)
        initial_value = leat_graph_fail(
            g, at, leat_error(INVALID_ARGUMENT, "initial_value must be specified."));
    leat_out v = leat_variable_make(
        g, &(leat_variable_spec){.name = name, .initial = initial_value, .options = *options});
    leat_at_leave(g, outer);
    return v;
}
