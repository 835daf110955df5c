/* towers.c -- averages the gradients of several replicas of a model in one process. */
#include <stdlib.h>

#include "core/alloc.h"
#include "train/optimizer.h"

static leat_out scaled(leat_out x, double by)
{
    return leat_py_right("Mul", "mul", x, by);
}

/* The rows of all towers, concatenated; rows with the same index are added when they are used. */
static leat_grad_value average_rows(const leat_grad_value *v, int n)
{
    leat_graph *g = leat_graph_of(v[0].value);
    leat_out *values = leat_new_array(leat_out, n), *indices = leat_new_array(leat_out, n);
    for (int i = 0; i < n; i++) {
        values[i] = v[i].value;
        indices[i] = v[i].indices;
    }
    leat_out axis = leat_scalar(g, LEAT_INT32, 0);
    leat_grad_value y = {.value = scaled(leat_concat(values, n, axis), 1.0 / n),
                         .indices = leat_concat(indices, n, axis),
                         .dense_shape = v[0].dense_shape};
    free(values);
    free(indices);
    return y;
}

static leat_grad_value average(const leat_grad_value *v, int n)
{
    bool rows = true;
    for (int i = 0; i < n; i++)
        rows &= v[i].indices.node != NULL;
    if (rows)
        return average_rows(v, n);
    leat_out *dense = leat_new_array(leat_out, n);
    for (int i = 0; i < n; i++)
        dense[i] = leat_grad_dense(v[i]);
    leat_grad_value y = {.value = scaled(leat_add_n(dense, n), 1.0 / n)};
    free(dense);
    return y;
}

leat_var_grad *leat_average_gradients_at(leat_loc at, leat_var_grad *const *towers, int n_towers,
                                         int n_vars)
{
    leat_var_grad *out = leat_new_array(leat_var_grad, n_vars + 1);
    leat_grad_value *v = leat_new_array(leat_grad_value, n_towers + 1);
    leat_graph *g = NULL;
    for (int i = 0; i < n_vars && !g; i++)
        g = towers[0][i].var.node ? leat_graph_of(towers[0][i].var) : NULL;
    leat_loc outer = g ? leat_at_enter(g, at) : at;
    for (int i = 0; g && i < n_vars; i++) {
        int k = 0;
        for (int t = 0; t < n_towers; t++)
            if (towers[t][i].grad.value.node)
                v[k++] = towers[t][i].grad;
        out[i].var = towers[0][i].var;
        if (k == n_towers)
            leat_with_name(g, "average_gradients") out[i].grad = average(v, k);
        else if (k > 0)
            leat_graph_fail(g, at,
                            leat_error(INVALID_ARGUMENT,
                                       "%d of %d towers have a gradient of %s; all must", k,
                                       n_towers, leat_variable_name(towers[0][i].var)));
    }
    if (g)
        leat_at_leave(g, outer);
    free(v);
    return out;
}
