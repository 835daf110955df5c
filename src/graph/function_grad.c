/* function_grad.c -- the gradient of a function, as a body: the function's own body with gradients
 * added, or a call of the function that the library says is its gradient. */
#include <stdlib.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "graph/function.h"
#include "graph/gradients_int.h"

static leat_out new_arg(leat_graph *g, leat_dtype t, int index)
{
    return leat_op(g, "_Arg", leat_attr_type("T", t), leat_attr_int("index", index),
                   leat_name("dy"));
}

static leat_out zeros(leat_out x)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    if (t == LEAT_RESOURCE)
        return leat_zeros_of_shape(LEAT_OP1("VariableShape", x), LEAT_FLOAT);
    return leat_zeros_like(x);
}

/* ys and their gradients, of those that have any. */
static int trainable(leat_body *b, leat_out *ys, leat_out *dys)
{
    int n = 0;
    for (int i = 0; i < b->n_results; i++) {
        leat_dtype t = leat_dtype_base(leat_out_dtype(b->results[i]));
        leat_out dy = new_arg(b->g, t, b->n_args + i);
        if (!leat_out_ok(dy))
            return 0;
        b->args[b->n_args + i] = dy.node;
        if (!leat_dtype_trainable(t) || t == LEAT_RESOURCE)
            continue;
        ys[n] = b->results[i];
        dys[n++] = dy;
    }
    return n;
}

static leat_status differentiate(leat_body *b)
{
    int n_x = b->n_args;
    leat_out *room = leat_new_array(leat_out, n_x + 2 * b->n_results + 1);
    leat_out *xs = room, *ys = room + n_x, *dys = ys + b->n_results;
    leat_grad_value *dxs = leat_new_array(leat_grad_value, n_x + 1);
    b->args = leat_xrealloc(b->args, sizeof(*b->args) * (size_t)(n_x + b->n_results + 1));
    for (int i = 0; i < n_x; i++)
        xs[i] = (leat_out){b->args[i], 0};
    int n_y = trainable(b, ys, dys);
    leat_status s = NULL;
    if (n_y)
        s = leat_gradients(ys, n_y, xs, n_x, dxs, .grad_ys = dys);
    b->n_args = n_x + b->n_results;
    free(b->results);
    b->results = leat_new_array(leat_out, n_x + 1);
    b->n_results = n_x;
    for (int i = 0; i < n_x && !s; i++)
        b->results[i] = leat_grad_some(dxs[i]) ? leat_grad_dense(dxs[i]) : zeros(xs[i]);
    free(room);
    free(dxs);
    b->n_to_run = 0; /* side effects were had when the function itself was called */
    return s ? s : leat_graph_status(b->g);
}

leat_status leat_function_instantiate_grad(leat_graph *library, const leat_node *call,
                                           const leat_func *f, leat_body *out)
{
    const leat_function *found = leat_function_find(library, f->name);
    LEAT_REQUIRE(found, NOT_FOUND, "Function %s is not defined.", f->name);
    if (found->gradient) {
        leat_func gradient = {found->gradient, f->attrs, f->n_attrs};
        return leat_function_instantiate(library, call, &gradient, out);
    }
    leat_body b;
    LEAT_TRY(leat_function_instantiate(library, call, f, &b));
    leat_status s = differentiate(&b);
    if (s) {
        leat_body_free(&b);
        return leat_status_prefix(s, "Gradient of function '%s': ", f->name);
    }
    *out = b;
    return NULL;
}
