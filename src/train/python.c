/* python.c -- operators and converted numbers as TensorFlow's Python client makes them. "x * 2"
 * becomes a scope "mul" with the constant "mul/y" and the node "mul", so that graphs of both
 * clients can be compared. */
#include "train/train_int.h"

leat_out leat_py_number(leat_graph *g, leat_dtype t, double v, const char *name)
{
    return leat_full_named_at(LEAT_AT, g, t, leat_shape(), v, name);
}

leat_out leat_py(const char *op, const char *name, leat_out x, leat_out y)
{
    return LEAT_OP2(op, x, y, leat_name(name));
}

static leat_out with_number(const char *op, const char *name, leat_out x, double v, bool left)
{
    leat_graph *g = leat_graph_of(x);
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    if (!leat_out_ok(x) || !t)
        return (leat_out){g->poison, 0};
    leat_name_scope_enter(g, name);
    leat_out c = leat_py_number(g, t, v, left ? "x" : "y");
    leat_out y = LEAT_OP2(op, left ? c : x, left ? x : c, leat_name(leat_name_scope(g)));
    leat_name_scope_leave(g);
    return y;
}

leat_out leat_py_right(const char *op, const char *name, leat_out x, double y)
{
    return with_number(op, name, x, y, false);
}

leat_out leat_py_left(const char *op, const char *name, double x, leat_out y)
{
    return with_number(op, name, y, x, true);
}
