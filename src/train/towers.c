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

/* The gradients of variable i, one of each tower. */
static void of_variable(leat_var_grad *const *towers, int n_towers, int i, leat_grad_value *out)
{
    for (int t = 0; t < n_towers; t++)
        out[t] = towers[t][i].grad;
}

/* Whether variable i can be part of a joined vector of the dtype. */
static bool can_join(const leat_grad_value *v, int n, leat_out var, leat_dtype t)
{
    const leat_shape s = leat_variable_shape(var);
    for (int i = 0; i < n; i++)
        if (v[i].indices.node || leat_dtype_base(leat_out_dtype(v[i].value)) != t)
            return false;
    return leat_shape_known(&s);
}

/* The gradients of the n variables `which` of a tower, as one vector on their device. */
static leat_out joined(const leat_var_grad *tower, const int *which, int n)
{
    leat_graph *g = leat_graph_of(tower[which[0]].grad.value);
    leat_out *flat = leat_new_array(leat_out, n), y = {0};
    leat_device_enter(g, tower[which[0]].grad.value.node->device);
    for (int i = 0; i < n; i++)
        flat[i] = leat_reshape_to(tower[which[i]].grad.value, leat_shape(-1));
    y = leat_concat(flat, n, leat_scalar(g, LEAT_INT32, 0));
    leat_device_leave(g);
    free(flat);
    return y;
}

/* Averages the n variables `which` by one reduction. */
static void average_joined(leat_var_grad *const *towers, int n_towers, const int *which, int n,
                           leat_var_grad *out)
{
    leat_graph *g = leat_graph_of(towers[0][which[0]].var);
    leat_out *sums = leat_new_array(leat_out, n_towers);
    int64_t *sizes = leat_new_array(int64_t, n);
    for (int t = 0; t < n_towers; t++)
        sums[t] = joined(towers[t], which, n);
    for (int i = 0; i < n; i++) {
        const leat_shape s = leat_variable_shape(towers[0][which[i]].var);
        sizes[i] = leat_shape_count(&s);
    }
    leat_out mean = scaled(leat_add_n(sums, n_towers), 1.0 / n_towers);
    leat_out parts = leat_split_v(mean, leat_int_vector_at(LEAT_AT, g, LEAT_INT64, sizes, n),
                                  leat_scalar(g, LEAT_INT32, 0), n);
    for (int i = 0; i < n; i++)
        out[which[i]].grad.value =
            leat_reshape_to(leat_output(parts, i), leat_variable_shape(towers[0][which[i]].var));
    free(sizes);
    free(sums);
}

/* Joins the gradients of each dtype; those that cannot be joined are averaged alone. */
static void average_fused(leat_graph *g, leat_var_grad *const *towers, int n_towers, int n_vars,
                          leat_var_grad *out)
{
    leat_grad_value *v = leat_new_array(leat_grad_value, n_towers + 1);
    int *which = leat_new_array(int, n_vars + 1);
    for (int first = 0; first < n_vars; first++) {
        if (!towers[0][first].grad.value.node || out[first].grad.value.node)
            continue;
        const leat_dtype t = leat_dtype_base(leat_out_dtype(towers[0][first].grad.value));
        int n = 0;
        for (int i = first; i < n_vars; i++) {
            of_variable(towers, n_towers, i, v);
            if (v[0].value.node && can_join(v, n_towers, towers[0][i].var, t))
                which[n++] = i;
        }
        leat_name_scope_enter(g, "average_gradients");
        if (n > 1 && which[0] == first) {
            average_joined(towers, n_towers, which, n, out);
        } else {
            of_variable(towers, n_towers, first, v);
            out[first].grad = average(v, n_towers);
        }
        leat_name_scope_leave(g);
    }
    free(which);
    free(v);
}

/* An error unless all towers have a gradient of each variable, or none has. */
static leat_status check_towers(leat_var_grad *const *towers, int n_towers, int n_vars)
{
    for (int i = 0; i < n_vars; i++) {
        int k = 0;
        for (int t = 0; t < n_towers; t++)
            k += towers[t][i].grad.value.node != NULL;
        LEAT_REQUIRE(k == 0 || k == n_towers, INVALID_ARGUMENT,
                     "%d of %d towers have a gradient of %s; all must", k, n_towers,
                     leat_variable_name(towers[0][i].var));
    }
    return NULL;
}

leat_var_grad *leat_average_gradients_at(leat_loc at, leat_var_grad *const *towers, int n_towers,
                                         int n_vars, const leat_average_options *o)
{
    leat_var_grad *out = leat_new_array(leat_var_grad, n_vars + 1);
    leat_grad_value *v = leat_new_array(leat_grad_value, n_towers + 1);
    leat_graph *g = NULL;
    for (int i = 0; i < n_vars; i++) {
        out[i].var = towers[0][i].var;
        if (!g && out[i].var.node)
            g = leat_graph_of(out[i].var);
    }
    leat_loc outer = g ? leat_at_enter(g, at) : at;
    leat_status s = g ? check_towers(towers, n_towers, n_vars) : NULL;
    if (s)
        leat_graph_fail(g, at, s);
    else if (g && o->fused && n_towers > 0)
        average_fused(g, towers, n_towers, n_vars, out);
    for (int i = 0; g && !s && !o->fused && i < n_vars; i++) {
        of_variable(towers, n_towers, i, v);
        if (n_towers > 0 && v[0].value.node)
            leat_with_name(g, "average_gradients") out[i].grad = average(v, n_towers);
    }
    if (g)
        leat_at_leave(g, outer);
    free(v);
    return out;
}
