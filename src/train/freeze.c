/* freeze.c -- a graph in which variables are constants: what some outputs need, with its functions
 * expanded, and each variable replaced by the value that it has in a session. */
#include <leat/saved_model.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/buffer.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "proto/wire.h"

typedef struct freezing {
    leat_graph *source;
    leat_session *session;
    leat_graph *copy;     /* what the outputs need of the source, without calls of functions */
    bool *needed;         /* by id in copy */
    leat_tensor **values; /* of variables, by id in copy */
} freezing;

/* ---- What outputs need ---- */
static bool *what_is_needed(const leat_graph *g, leat_node *const *outputs, int n)
{
    bool *needed = leat_new_array(bool, g->n_nodes + 1);
    leat_node **stack = leat_new_array(leat_node *, g->n_nodes + 1);
    int depth = 0;
    for (int i = 0; i < n; i++)
        if (!needed[outputs[i]->id]) {
            needed[outputs[i]->id] = true;
            stack[depth++] = outputs[i];
        }
    while (depth) {
        const leat_node *x = stack[--depth];
        for (int i = 0; i < x->n_in + x->n_controls; i++) {
            leat_node *from = i < x->n_in ? x->in[i].node : x->controls[i - x->n_in];
            if (!needed[from->id]) {
                needed[from->id] = true;
                stack[depth++] = from;
            }
        }
    }
    free(stack);
    return needed;
}

/* Copies what is needed of the source, and expands its functions. */
static leat_status copy_needed(freezing *f, const leat_out *outputs, int n)
{
    leat_node **nodes = leat_new_array(leat_node *, n + 1);
    for (int i = 0; i < n; i++)
        nodes[i] = outputs[i].node;
    bool *needed = what_is_needed(f->source, nodes, n);
    Leat__GraphDef *p = NULL;
    leat_status s = leat_graph_to_proto(f->source, &p);
    if (!s) {
        size_t kept = 0;
        for (size_t i = 0; i < p->n_node; i++)
            if (needed[i])
                p->node[kept++] = p->node[i];
            else
                leat_proto_free(p->node[i]);
        p->n_node = kept;
        s = leat_graph_from_proto(f->copy, p, "");
        leat_proto_free(p);
    }
    for (int i = 0; i < n && !s; i++)
        (nodes[i] = leat_graph_find(f->copy, outputs[i].node->name))->wanted = true;
    if (!s)
        s = leat_functions_inline(f->copy, LEAT_INLINE_ALL, false);
    if (!s)
        f->needed = what_is_needed(f->copy, nodes, n);
    free(needed);
    free(nodes);
    return s;
}

/* ---- Variables ---- */
static bool is_handle(const leat_node *n)
{
    return leat_node_is(n, "VarHandleOp");
}

static bool is_variable(const leat_node *n)
{
    return is_handle(n) || leat_node_is(n, "VariableV2") || leat_node_is(n, "Variable");
}

/* The variable whose handle x is, through ops that pass it on; NULL if it is none. */
static const leat_node *variable_of(leat_out x)
{
    while (leat_out_dtype(x) == LEAT_RESOURCE) {
        if (is_handle(x.node))
            return x.node;
        if (!leat_node_has(x.node, "T") || !x.node->n_in)
            return NULL;
        x = x.node->in[x.index < x.node->n_in && leat_node_is(x.node, "IdentityN") ? x.index : 0];
    }
    return NULL;
}

/* A tensor of the source that is the value of a variable of the copy. */
static leat_status value_of(freezing *f, const leat_node *v, leat_out *out)
{
    leat_node *n = leat_graph_find(f->source, v->name);
    LEAT_REQUIRE(n, UNIMPLEMENTED, "the variable \"%s\" is made inside of a function", v->name);
    *out = (leat_out){n, 0};
    if (is_handle(n))
        *out = leat_op(f->source, "ReadVariableOp", leat_in(*out),
                       leat_attr_type("dtype", leat_node_type(n, "dtype")));
    return leat_graph_status(f->source);
}

static leat_status fetch_values(freezing *f)
{
    leat_fetch *fetches = leat_new_array(leat_fetch, f->copy->n_nodes + 1);
    int n = 0;
    leat_status s = NULL;
    f->values = leat_new_array(leat_tensor *, f->copy->n_nodes + 1);
    for (int i = 0; i < f->copy->n_nodes && !s; i++)
        if (f->needed[i] && is_variable(f->copy->nodes[i])) {
            s = value_of(f, f->copy->nodes[i], &fetches[n].x);
            fetches[n++].value = &f->values[i];
        }
    if (!s && n)
        s = leat_session_run(f->session, LEAT_NO_FEED, (leat_fetches){fetches, n}, LEAT_NO_TARGET);
    free(fetches);
    return s;
}

/* ---- The new graph ---- */
static leat_attr type_attr(const char *name, leat_dtype t)
{
    return (leat_attr){.name = name, .kind = LEAT_ARG_TYPE, .i = t};
}

/* A node with the name, device and control inputs of n, with other inputs and attributes. */
static leat_status add_node(Leat__GraphDef *p, const leat_node *n, const leat_op_info *op, int n_in,
                            leat_attr *attrs, int n_attrs)
{
    leat_node x = *n;
    x.op = op;
    x.n_in = n_in;
    x.attrs = attrs;
    x.n_attrs = n_attrs;
    LEAT_TRY(leat_node_to_proto(&x, &p->node[p->n_node]));
    p->n_node++;
    return NULL;
}

static leat_status add_const(Leat__GraphDef *p, const leat_node *n, leat_tensor *value)
{
    leat_attr attrs[] = {type_attr("dtype", leat_tensor_dtype(value)),
                         {.name = "value", .kind = LEAT_ARG_TENSOR, .tensor = value}};
    return add_node(p, n, leat_op_find("Const"), 0, attrs, 2);
}

/* ResourceGather becomes GatherV2, which has the axis as a third input. */
static leat_status add_gather(Leat__GraphDef *p, const leat_node *n, const leat_node *variable)
{
    char *axis = leat_xmalloc(strlen(n->name) + 16);
    strcat(strcpy(axis, n->name), "/axis");
    leat_attr attrs[] = {
        type_attr("Tparams", leat_node_type(variable, "dtype")),
        type_attr("Tindices", leat_node_type(n, "Tindices")),
        type_attr("Taxis", LEAT_INT32),
        {.name = "batch_dims", .kind = LEAT_ARG_INT, .i = leat_node_int(n, "batch_dims")}};
    leat_node constant = *n;
    constant.name = axis;
    constant.n_controls = 0;
    leat_tensor *zero = NULL;
    leat_status s = leat_tensor_new(LEAT_INT32, leat_shape(), &zero);
    if (!s) {
        leat_tensor_set_at(zero, 0, (double)leat_node_int(n, "batch_dims"));
        s = add_const(p, &constant, zero);
    }
    if (!s)
        s = add_node(p, n, leat_op_find("GatherV2"), 2, attrs, 4);
    if (!s) {
        /* The axis goes between the two inputs and the control inputs. */
        Leat__NodeDef *d = p->node[p->n_node - 1];
        d->input = leat_xrealloc(d->input, sizeof(*d->input) * (d->n_input + 1));
        memmove(d->input + 3, d->input + 2, sizeof(*d->input) * (d->n_input++ - 2));
        d->input[2] = axis;
        axis = NULL;
    }
    leat_tensor_unref(zero);
    free(axis);
    return s;
}

/* A node that hands on a variable's handle hands on the variable's value instead. */
static leat_status add_passing(Leat__GraphDef *p, leat_node *n)
{
    const leat_attr *t = leat_node_attr(n, "T");
    leat_attr changed = *t;
    leat_dtype *types = NULL;
    if (t->kind == LEAT_ARG_TYPES) {
        types = leat_new_array(leat_dtype, t->n + 1);
        for (int i = 0; i < t->n; i++) {
            const leat_node *v = variable_of(n->in[i]);
            types[i] = v ? leat_node_type(v, "dtype") : t->types[i];
        }
        changed.types = types;
    } else {
        changed.i = leat_node_type(variable_of(n->in[0]), "dtype");
    }
    leat_attr *attrs = leat_new_array(leat_attr, n->n_attrs + 1);
    for (int i = 0; i < n->n_attrs; i++)
        attrs[i] = &n->attrs[i] == t ? changed : n->attrs[i];
    leat_status s = add_node(p, n, n->op, n->n_in, attrs, n->n_attrs);
    free(attrs);
    free(types);
    return s;
}

static leat_status add_frozen(const freezing *f, Leat__GraphDef *p, leat_node *n)
{
    if (is_variable(n))
        return add_const(p, n, f->values[n->id]);
    const leat_node *v = NULL;
    for (int i = 0; i < n->n_in && !v; i++)
        v = variable_of(n->in[i]);
    if (!v)
        return add_node(p, n, n->op, n->n_in, n->attrs, n->n_attrs);
    if (leat_node_is(n, "ReadVariableOp")) {
        leat_attr t = type_attr("T", leat_node_type(v, "dtype"));
        return add_node(p, n, leat_op_find("Identity"), 1, &t, 1);
    }
    if (leat_node_is(n, "ResourceGather"))
        return add_gather(p, n, v);
    LEAT_REQUIRE(leat_node_has(n, "T"), FAILED_PRECONDITION,
                 "\"%s\" (%s) needs the variable \"%s\" itself, not only its value", n->name,
                 n->op->def->name, v->name);
    return add_passing(p, n);
}

static leat_status build(const freezing *f, leat_graph *frozen)
{
    Leat__GraphDef *p = leat_xmalloc(sizeof(*p));
    leat__graph_def__init(p);
    p->node = leat_new_array(Leat__NodeDef *, 2 * f->copy->n_nodes + 1);
    p->versions = leat_xmalloc(sizeof(*p->versions));
    leat__version_def__init(p->versions);
    p->versions->producer = f->copy->producer;
    leat_status s = NULL;
    for (int i = 0; i < f->copy->n_nodes && !s; i++)
        if (f->needed[i])
            s = add_frozen(f, p, f->copy->nodes[i]);
    /* Functions that could not be expanded are called by the new graph, too. */
    if (!s && leat_graph_names_functions(f->copy))
        s = leat_functions_export(f->copy, &p->library);
    if (!s)
        s = leat_graph_from_proto(frozen, p, "");
    leat_proto_free(p);
    return s;
}

leat_status leat_freeze(leat_graph *g, leat_session *s, const leat_out *outputs, int n,
                        leat_graph **frozen_out)
{
    LEAT_CHECK(GRAPH, g);
    LEAT_CHECK(SESSION, s);
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "a frozen graph needs outputs");
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(outputs[i].node && outputs[i].node->graph == g, INVALID_ARGUMENT,
                     "output %d is not of this graph", i);
    LEAT_TRY(leat_graph_status(g));
    freezing f = {.source = g, .session = s, .copy = leat_graph_new()};
    leat_graph *frozen = leat_graph_new();
    leat_status status = copy_needed(&f, outputs, n);
    if (!status)
        status = fetch_values(&f);
    if (!status)
        status = build(&f, frozen);
    for (int i = 0; f.values && i < f.copy->n_nodes; i++)
        leat_tensor_unref(f.values[i]);
    free(f.values);
    free(f.needed);
    leat_graph_free(f.copy);
    if (status)
        leat_graph_free(frozen);
    else
        *frozen_out = frozen;
    return leat_status_prefix(status, "The graph cannot be frozen: ");
}
