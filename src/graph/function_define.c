/* function_define.c -- functions from C: a body is built in a graph of its own and written down as
 * a FunctionDef. */
#include <leat/function.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/object.h"
#include "core/strbuf.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "proto/wire.h"

static int length_of(const leat_node *n, const leat_arg_info *arg)
{
    int at = arg->number_attr >= 0 ? arg->number_attr : arg->list_attr;
    if (at < 0)
        return 1;
    const leat_attr *a = &n->attrs[at];
    return arg->number_attr >= 0 ? (int)a->i : a->n;
}

/* "x" for an argument, "node:out:1" for an output, "^node". */
static char *input_text(leat_out x)
{
    leat_strbuf b = {0};
    int i = x.index;
    if (i < 0) {
        leat_strbuf_printf(&b, "^%s", x.node->name);
    } else if (leat_node_role(x.node) == LEAT_ROLE_ARG) {
        leat_strbuf_puts(&b, x.node->name);
    } else {
        const leat_arg_info *arg = x.node->op->out;
        for (; i >= length_of(x.node, arg); arg++)
            i -= length_of(x.node, arg);
        leat_strbuf_printf(&b, "%s:%s:%d", x.node->name, arg->name, i);
    }
    return leat_strbuf_take(&b);
}

static leat_status node_def(const leat_node *n, Leat__NodeDef **out)
{
    LEAT_TRY(leat_node_to_proto(n, out));
    for (int i = 0; i < n->n_in; i++) { /* control inputs are spelled alike */
        free((*out)->input[i]);
        (*out)->input[i] = input_text(n->in[i]);
    }
    return NULL;
}

static Leat__OpDef__ArgDef *arg_def(const char *name, leat_dtype t)
{
    Leat__OpDef__ArgDef *a = leat_xmalloc(sizeof(*a));
    leat__op_def__arg_def__init(a);
    a->name = leat_xstrdup(name);
    a->type = (Leat__DataType)t;
    return a;
}

/* Nodes that run in every call, for readers that drop others. */
static void add_control_ret(Leat__FunctionDef *def, const leat_node *n)
{
    Leat__FunctionDef__ControlRetEntry *e = leat_xmalloc(sizeof(*e));
    leat__function_def__control_ret_entry__init(e);
    e->key = leat_xstrdup(n->name);
    e->value = leat_xstrdup(n->name);
    def->control_ret[def->n_control_ret++] = e;
    def->signature->control_output[def->signature->n_control_output++] = leat_xstrdup(n->name);
    def->signature->is_stateful = true;
}

static leat_status add_nodes(Leat__FunctionDef *def, const leat_graph *body)
{
    size_t most = (size_t)body->n_nodes + 1;
    def->node_def = leat_new_array(Leat__NodeDef *, most);
    def->control_ret = leat_new_array(Leat__FunctionDef__ControlRetEntry *, most);
    def->signature->control_output = leat_new_array(char *, most);
    for (int i = 0; i < body->n_nodes; i++) {
        const leat_node *n = body->nodes[i];
        if (leat_node_role(n) == LEAT_ROLE_ARG)
            continue;
        LEAT_TRY(node_def(n, &def->node_def[def->n_node_def]));
        def->n_node_def++;
        if (n->op->def->flags & LEAT_OP_STATEFUL)
            add_control_ret(def, n);
    }
    return NULL;
}

static void add_results(Leat__FunctionDef *def, const leat_out *out, int n)
{
    def->signature->output_arg = leat_new_array(Leat__OpDef__ArgDef *, n + 1);
    def->ret = leat_new_array(Leat__FunctionDef__RetEntry *, n + 1);
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "out_%d", i);
        def->signature->output_arg[def->signature->n_output_arg++] =
            arg_def(name, leat_dtype_base(leat_out_dtype(out[i])));
        Leat__FunctionDef__RetEntry *e = leat_xmalloc(sizeof(*e));
        leat__function_def__ret_entry__init(e);
        e->key = leat_xstrdup(name);
        e->value = input_text(out[i]);
        def->ret[def->n_ret++] = e;
    }
}

static leat_status write_down(const leat_graph *body, const char *name, const leat_out *in,
                              int n_in, const leat_out *out, int n_out, Leat__FunctionDef **def_out)
{
    Leat__FunctionDef *def = leat_xmalloc(sizeof(*def));
    leat__function_def__init(def);
    def->signature = leat_xmalloc(sizeof(*def->signature));
    leat__op_def__init(def->signature);
    def->signature->name = leat_xstrdup(name);
    def->signature->input_arg = leat_new_array(Leat__OpDef__ArgDef *, n_in + 1);
    for (int i = 0; i < n_in; i++)
        def->signature->input_arg[def->signature->n_input_arg++] =
            arg_def(in[i].node->name, leat_out_dtype(in[i]));
    leat_status s = add_nodes(def, body);
    if (s) {
        leat_proto_free(def);
        return s;
    }
    add_results(def, out, n_out);
    *def_out = def;
    return NULL;
}

static leat_status check_results(const leat_graph *body, const leat_out *out, int n)
{
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(out[i].node && out[i].index >= 0 && out[i].index < out[i].node->n_out,
                     INVALID_ARGUMENT, "result %d is not a tensor", i);
        LEAT_REQUIRE(out[i].node->graph == body, INVALID_ARGUMENT,
                     "result %d, '%s', is not of the body: pass it as an argument", i,
                     out[i].node->name);
    }
    return NULL;
}

leat_status leat_function_of_graph(leat_graph *g, const char *name, const leat_out *results, int n)
{
    Leat__FunctionDef *def;
    LEAT_TRY(write_down(g, name, NULL, 0, results, n, &def));
    return leat_function_add(g, def);
}

static void keep_lines(leat_graph *g, const char *name, const leat_graph *body)
{
    leat_function *f = (leat_function *)leat_function_find(g, name);
    f->lines = leat_arena_alloc(&g->arena, sizeof(*f->lines) * (size_t)(body->n_nodes + 1));
    f->n_lines = body->n_nodes;
    for (int i = 0; i < body->n_nodes; i++) {
        f->lines[i].node = leat_arena_strdup(&g->arena, body->nodes[i]->name);
        f->lines[i].at = body->nodes[i]->at;
    }
}

static leat_status define(leat_graph *g, const char *name, leat_function_fn fn, void *arg,
                          const leat_dtype *types, leat_out *in, int n_in, leat_out *out, int n_out)
{
    LEAT_REQUIRE(leat_name_valid(name) && !strchr(name, '/'), INVALID_ARGUMENT,
                 "not a valid name of a function");
    leat_graph *body = leat_graph_new(), *library = g;
    while (library->library) /* a function that is defined in the body of another one */
        library = (leat_graph *)library->library;
    body->library = g;
    for (int i = 0; i < n_in; i++) {
        char text[32];
        snprintf(text, sizeof(text), "arg_%d", i);
        in[i] = leat_op(body, "_Arg", leat_attr_type("T", types[i]), leat_attr_int("index", i),
                        leat_name(text));
    }
    fn(body, arg, in, out);
    leat_status s = leat_graph_status(body);
    if (!s)
        s = check_results(body, out, n_out);
    Leat__FunctionDef *def = NULL;
    if (!s)
        s = write_down(body, name, in, n_in, out, n_out, &def);
    if (!s)
        s = leat_function_add(library, def);
    if (!s)
        keep_lines(library, name, body);
    leat_graph_free(body);
    return s;
}

void leat_function_define_at(leat_loc at, leat_graph *g, const char *name, leat_function_fn fn,
                             void *arg, int n_out, const leat_dtype *in_types, int n_in)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    if (g->status)
        return;
    leat_out *in = leat_new_array(leat_out, n_in + n_out + 1);
    leat_status s = define(g, name, fn, arg, in_types, in, n_in, in + n_in, n_out);
    free(in);
    leat_graph_fail(g, at, leat_status_prefix(s, "Function '%s': ", name));
}

void leat_call_at(leat_loc at, leat_graph *g, const char *name, const leat_out *in, int n_in,
                  leat_out *outs, int n_out)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    leat_arg *args = leat_new_array(leat_arg, n_in + 1);
    for (int i = 0; i < n_in; i++)
        args[i] = leat_in(in[i]);
    leat_out y = leat_op_at(at, g, name, args);
    free(args);
    for (int i = 0; i < n_out; i++)
        outs[i] = (leat_out){y.node, y.node == g->poison ? 0 : i};
    if (y.node != g->poison && y.node->n_out != n_out)
        leat_graph_fail(g, at,
                        leat_error(INVALID_ARGUMENT, "Function '%s' has %d results, not %d", name,
                                   y.node->n_out, n_out));
}
