/* node.c -- looking at nodes: inputs, outputs, attributes. Of no node (NULL) there is nothing to
 * see. */
#include <string.h>

#include "graph/graph_int.h"

leat_graph *leat_node_graph(const leat_node *n)
{
    return n ? n->graph : NULL;
}

int leat_node_index(const leat_node *n)
{
    return n ? n->id : -1;
}

const char *leat_node_name(const leat_node *n)
{
    return n ? n->name : "";
}

const char *leat_node_op(const leat_node *n)
{
    return n ? n->op->def->name : "";
}

const char *leat_node_device(const leat_node *n)
{
    return n ? n->device : "";
}

int leat_node_inputs(const leat_node *n)
{
    return n ? n->n_in : 0;
}

leat_out leat_node_input(const leat_node *n, int i)
{
    if (!n)
        return (leat_out){0};
    return i >= 0 && i < n->n_in ? n->in[i] : (leat_out){n->graph->poison, 0};
}

int leat_node_controls(const leat_node *n)
{
    return n ? n->n_controls : 0;
}

leat_node *leat_node_control(const leat_node *n, int i)
{
    return n && i >= 0 && i < n->n_controls ? n->controls[i] : NULL;
}

int leat_node_outputs(const leat_node *n)
{
    return n ? n->n_out : 0;
}

leat_dtype leat_out_dtype(leat_out x)
{
    return x.node && x.index >= 0 && x.index < x.node->n_out ? x.node->out_types[x.index]
                                                             : LEAT_INVALID;
}

leat_shape leat_out_shape(leat_out x)
{
    return x.node && x.index >= 0 && x.index < x.node->n_out ? x.node->out_shapes[x.index]
                                                             : leat_shape_unknown();
}

leat_out leat_output(leat_out x, int index)
{
    return (leat_out){x.node, index};
}

leat_attr *leat_node_attr(const leat_node *n, const char *name)
{
    for (int i = 0; n && name && i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

static const leat_attr *of_kind(const leat_node *n, const char *name, int kind)
{
    static const leat_attr none = {0};
    const leat_attr *a = leat_node_attr(n, name);
    return a && a->kind == kind ? a : &none;
}

bool leat_node_has(const leat_node *n, const char *attr)
{
    return leat_node_attr(n, attr) != NULL;
}

int64_t leat_node_int(const leat_node *n, const char *attr)
{
    return of_kind(n, attr, LEAT_ARG_INT)->i;
}

bool leat_node_bool(const leat_node *n, const char *attr)
{
    return of_kind(n, attr, LEAT_ARG_BOOL)->i;
}

double leat_node_float(const leat_node *n, const char *attr)
{
    return of_kind(n, attr, LEAT_ARG_FLOAT)->f;
}

leat_dtype leat_node_type(const leat_node *n, const char *attr)
{
    return (leat_dtype)of_kind(n, attr, LEAT_ARG_TYPE)->i;
}

const char *leat_node_string(const leat_node *n, const char *attr)
{
    const char *s = of_kind(n, attr, LEAT_ARG_STRING)->s;
    return s ? s : "";
}

leat_shape leat_node_shape(const leat_node *n, const char *attr)
{
    const leat_shape *s = of_kind(n, attr, LEAT_ARG_SHAPE)->shape;
    return s ? *s : leat_shape_unknown();
}

const leat_tensor *leat_node_tensor(const leat_node *n, const char *attr)
{
    return of_kind(n, attr, LEAT_ARG_TENSOR)->tensor;
}

const char *leat_node_func(const leat_node *n, const char *attr)
{
    const leat_func *f = of_kind(n, attr, LEAT_ARG_FUNC)->func;
    return f ? f->name : "";
}

#define LIST(type, field, kind)                                                                    \
    const leat_attr *a = of_kind(n, attr, kind);                                                   \
    *count = a->n;                                                                                 \
    return a->field

const int64_t *leat_node_ints(const leat_node *n, const char *attr, int *count)
{
    LIST(int64_t, ints, LEAT_ARG_INTS);
}

const leat_dtype *leat_node_types(const leat_node *n, const char *attr, int *count)
{
    LIST(leat_dtype, types, LEAT_ARG_TYPES);
}

const leat_shape *leat_node_shapes(const leat_node *n, const char *attr, int *count)
{
    LIST(leat_shape, shapes, LEAT_ARG_SHAPES);
}

const char *const *leat_node_strings(const leat_node *n, const char *attr, int *count)
{
    LIST(char *, strings, LEAT_ARG_STRINGS);
}

const double *leat_node_floats(const leat_node *n, const char *attr, int *count)
{
    LIST(double, floats, LEAT_ARG_FLOATS);
}
