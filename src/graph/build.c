/* build.c -- leat_op_at: the function behind every constructor. Sorts its arguments into a node
 * spec; a mistake is recorded in the graph. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "graph/graph_int.h"

typedef struct call {
    leat_node_spec spec;
    leat_out *in;
    int n_in, cap_in;
    int *list_n;
    int n_args; /* input arguments seen */
    leat_node **controls;
    int n_controls, cap_controls;
    leat_attr *attrs;
    int n_attrs, cap_attrs;
    bool poisoned; /* an input is the result of an earlier mistake */
} call;

static void add_in(call *c, leat_out x)
{
    c->poisoned |= x.node && x.node == x.node->graph->poison;
    leat_grow(c->in, c->n_in, c->cap_in);
    c->in[c->n_in++] = x;
}

static void add_attr(call *c, const leat_arg *arg)
{
    leat_attr a = {.name = arg->name, .kind = arg->kind};
    switch (arg->kind) {
    case LEAT_ARG_INT:
    case LEAT_ARG_BOOL:
    case LEAT_ARG_TYPE:
        a.i = arg->i;
        break;
    case LEAT_ARG_FLOAT:
        a.f = (float)arg->f; /* attributes hold floats */
        break;
    case LEAT_ARG_STRING:
        a.s = arg->p;
        a.n = (int)strlen(arg->p);
        break;
    case LEAT_ARG_SHAPE:
        a.shape = &arg->shape;
        break;
    case LEAT_ARG_TENSOR:
        a.tensor = (leat_tensor *)arg->p;
        break;
    default: /* for lists, every pointer of the union is at the same offset */
        a.n = (int)arg->i;
        a.ints = arg->p;
        break;
    }
    leat_grow(c->attrs, c->n_attrs, c->cap_attrs);
    c->attrs[c->n_attrs++] = a;
}

static leat_func *func_arg(leat_graph *g, const leat_arg *arg)
{
    leat_func *f = leat_arena_new(&g->arena, leat_func);
    f->name = leat_arena_strdup(&g->arena, arg->p);
    return f;
}

static void take(leat_graph *g, call *c, const leat_arg *arg, int most_args)
{
    switch (arg->kind) {
    case LEAT_ARG_IN:
        if (c->n_args < most_args)
            c->list_n[c->n_args++] = 1;
        add_in(c, arg->out);
        break;
    case LEAT_ARG_INS:
        if (c->n_args < most_args)
            c->list_n[c->n_args++] = (int)arg->i;
        for (int i = 0; i < arg->i; i++)
            add_in(c, ((const leat_out *)arg->p)[i]);
        break;
    case LEAT_ARG_CONTROL:
        if (arg->out.node && arg->out.node == g->poison) {
            c->poisoned = true;
        } else if (arg->out.node) {
            leat_grow(c->controls, c->n_controls, c->cap_controls);
            c->controls[c->n_controls++] = arg->out.node;
        }
        break;
    case LEAT_ARG_NAME:
        c->spec.name = arg->p;
        break;
    case LEAT_ARG_DEVICE:
        c->spec.device = arg->p;
        break;
    case LEAT_ARG_SKIP:
        break;
    case LEAT_ARG_FUNC: {
        leat_grow(c->attrs, c->n_attrs, c->cap_attrs);
        c->attrs[c->n_attrs++] =
            (leat_attr){.name = arg->name, .kind = LEAT_ARG_FUNC, .func = func_arg(g, arg)};
        break;
    }
    default:
        add_attr(c, arg);
    }
}

/* "MatMul 'h/MatMul' of x [100,784] float, w [785,100] float: " */
static leat_status explain(leat_status s, const call *c, const char *op)
{
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s", op);
    if (c->spec.name && c->spec.name[0])
        leat_strbuf_printf(&b, " '%s'", c->spec.name);
    for (int i = 0; i < c->n_in && i < 8; i++) {
        leat_shape shape = leat_out_shape(c->in[i]);
        leat_strbuf_printf(&b, "%s%s %s %s", i ? ", " : " of ",
                           c->in[i].node ? c->in[i].node->name : "nothing",
                           leat_dtype_name(leat_out_dtype(c->in[i])), leat_shape_show(&shape).s);
    }
    s = leat_status_prefix(s, "%s: ", leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}

leat_out leat_op_at(leat_loc at, leat_graph *g, const char *op, const leat_arg *args)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    if (g->status)
        return (leat_out){g->poison, 0};
    if (!op)
        return leat_graph_fail(g, at, leat_error(INVALID_ARGUMENT, "The name of the op is NULL"));
    const leat_op_info *info = leat_op_find(op);
    if (!info)
        info = leat_function_op(g, op);
    int most = info ? info->n_in : 0;
    call c = {.list_n = leat_new_array(int, most + 1)};
    for (const leat_arg *a = args; a->kind; a++)
        take(g, &c, a, most);
    c.spec.op = op;
    c.spec.in = c.in;
    c.spec.n_in = c.n_in;
    c.spec.list_n = c.n_args == most ? c.list_n : NULL;
    c.spec.controls = c.controls;
    c.spec.n_controls = c.n_controls;
    c.spec.attrs = c.attrs;
    c.spec.n_attrs = c.n_attrs;
    c.spec.at = at;
    leat_out result = {g->poison, 0};
    leat_node *n;
    if (!c.poisoned) {
        leat_status s = leat_graph_add(g, &c.spec, &n);
        if (s)
            leat_graph_fail(g, at, explain(s, &c, op));
        else
            result = (leat_out){n, n->n_out ? 0 : -1};
    }
    free(c.in);
    free(c.list_n);
    free(c.controls);
    free(c.attrs);
    return result;
}
