/* report.c -- the op that gives the names of variables without a value: all names, masked by
 * IsVariableInitialized, in the nodes that TensorFlow's boolean_mask consists of. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "train/train_int.h"

leat_out leat_string_vector(leat_graph *g, const char *const *v, int n)
{
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_new(LEAT_STRING, leat_shape(n), &t);
    if (s)
        return leat_graph_fail(g, (leat_loc){0}, s);
    for (int i = 0; i < n && !s; i++)
        if (!leat_string_set((leat_string *)t->data + i, v[i], strlen(v[i])))
            s = leat_error(RESOURCE_EXHAUSTED, "no memory for the name %s", v[i]);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

static leat_out names_of(leat_graph *g, const leat_out *vars, int n)
{
    const char **names = leat_new_array(const char *, n + 1);
    for (int i = 0; i < n; i++)
        names[i] = leat_variable_name(vars[i]);
    leat_out c = leat_string_vector(g, names, n);
    free(names);
    return c;
}

static leat_out vector1(leat_graph *g, int64_t v, const char *name)
{
    return leat_int_vector_named(LEAT_AT, g, LEAT_INT32, &v, 1, name);
}

/* A part of a shape, x[begin:end]; a mask of 1 means that the side is open. */
static leat_out part(leat_graph *g, int64_t of, int64_t begin, int64_t end, int begin_mask,
                     int end_mask)
{
    leat_out x = vector1(g, of, "Shape"), y = {0};
    leat_with_name(g, "strided_slice")
    {
        leat_out from = vector1(g, begin, "stack"), to = vector1(g, end, "stack_1");
        y = leat_strided_slice(x, from, to, vector1(g, 1, "stack_2"),
                               leat_attr_int("begin_mask", begin_mask),
                               leat_attr_int("end_mask", end_mask), leat_name(leat_name_scope(g)));
    }
    return y;
}

/* [prod(shape of the mask)] followed by the other dimensions: the masked dimensions as one. */
static leat_out masked_shape(leat_graph *g, int n)
{
    leat_out masked = part(g, n, 0, 1, 0, 0), shape = {0};
    leat_out count = leat_prod(masked, vector1(g, 0, "Prod/reduction_indices"));
    leat_out before = part(g, n, 0, 0, 1, 0), after = part(g, n, 1, 0, 0, 1);
    leat_with_name(g, "concat")
    {
        leat_out whole[3] = {before, leat_pack(&count, 1, 0, leat_name("values_1")), after};
        leat_out axis = leat_py_number(g, LEAT_INT32, 0, "axis");
        shape = leat_op(g, "ConcatV2", leat_ins(whole, 3), leat_in(axis),
                        leat_name(leat_name_scope(g)));
    }
    return shape;
}

/* Those of n strings where the mask is true. */
static leat_out boolean_mask(leat_graph *g, leat_out x, leat_out mask, int n)
{
    leat_out y = {0}, flat = {0};
    leat_with_name(g, "boolean_mask")
    {
        x = leat_reshape(x, masked_shape(g, n));
        leat_with_name(g, "Reshape_1") flat =
            leat_reshape(mask, vector1(g, -1, "shape"), leat_name(leat_name_scope(g)));
        leat_out at =
            leat_squeeze(leat_where(flat), leat_attr_ints("squeeze_dims", (const int64_t[]){1}, 1));
        y = leat_gather(x, at, leat_py_number(g, LEAT_INT32, 0, "GatherV2/axis"));
    }
    return y;
}

static leat_out uninitialized(leat_graph *g, const leat_out *vars, int n)
{
    leat_out *is = leat_new_array(leat_out, n + 1), names = {0};
    for (int i = 0; i < n; i++)
        is[i] = leat_is_variable_initialized(vars[i]);
    leat_with_device(g, "/cpu:0")
    {
        if (n == 0) {
            names = names_of(g, vars, 0);
        } else {
            leat_out not = leat_logical_not(leat_pack(is, n, 0, leat_name("stack")));
            names = boolean_mask(g, names_of(g, vars, n), not, n);
        }
    }
    free(is);
    return names;
}

leat_out leat_report_uninitialized_of_at(leat_loc at, leat_graph *g, const leat_out *vars, int n)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_out names = {0};
    leat_loc outer = leat_at_enter(g, at);
    leat_with_name(g, "report_uninitialized_variables") names = uninitialized(g, vars, n);
    leat_at_leave(g, outer);
    return names;
}

leat_out leat_report_uninitialized_variables_at(leat_loc at, leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    int n_global, n_local;
    leat_out *global = leat_collection(g, LEAT_GLOBAL_VARIABLES, NULL, &n_global);
    leat_out *local = leat_collection(g, LEAT_LOCAL_VARIABLES, NULL, &n_local);
    leat_out *all = leat_new_array(leat_out, n_global + n_local + 1);
    memcpy(all, global, sizeof(*all) * (size_t)n_global);
    memcpy(all + n_global, local, sizeof(*all) * (size_t)n_local);
    leat_out names = leat_report_uninitialized_of_at(at, g, all, n_global + n_local);
    free(global);
    free(local);
    free(all);
    return names;
}
