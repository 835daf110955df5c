/* initialize.c -- the ops that give variables their first values, and those that tell which have
 * none yet. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "train/train_int.h"

leat_out *leat_global_variables(const leat_graph *g, int *count_out)
{
    return leat_collection(g, LEAT_GLOBAL_VARIABLES, NULL, count_out);
}

leat_out *leat_trainable_variables(const leat_graph *g, int *count_out)
{
    return leat_collection(g, LEAT_TRAINABLE_VARIABLES, NULL, count_out);
}

static leat_out initializers(leat_graph *g, const leat_out *vars, int n)
{
    leat_out *ops = leat_new_array(leat_out, n + 1);
    for (int i = 0; i < n; i++) {
        ops[i] = leat_variable_initializer(vars[i]);
        if (!ops[i].node && vars[i].node)
            leat_graph_fail(g, (leat_loc){0},
                            leat_error(INVALID_ARGUMENT, "%s is not a variable with an initializer",
                                       vars[i].node->name));
    }
    leat_out init = leat_group_at(LEAT_AT, g, ops, n, "init");
    free(ops);
    return init;
}

leat_out leat_variables_initializer_at(leat_loc at, leat_graph *g, const leat_out *vars, int n)
{
    leat_loc outer = leat_at_enter(g, at);
    leat_out init = initializers(g, vars, n);
    g->at_override = outer;
    return init;
}

leat_out leat_initializer_of_at(leat_loc at, leat_graph *g, const char *collection)
{
    int n;
    leat_out *vars = leat_collection(g, collection, NULL, &n);
    leat_out init = leat_variables_initializer_at(at, g, vars, n);
    free(vars);
    return init;
}

/* ---- Which have no value ---- */

static leat_out names_of(leat_graph *g, const leat_out *vars, int n)
{
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_new(LEAT_STRING, leat_shape(n), &t);
    for (int i = 0; !s && i < n; i++) {
        const char *name = leat_variable_name(vars[i]);
        leat_string_set((leat_string *)t->data + i, name, strlen(name));
    }
    if (s)
        return leat_graph_fail(g, (leat_loc){0}, s);
    leat_out names = leat_const(g, t);
    leat_tensor_unref(t);
    return names;
}

static leat_out uninitialized(leat_graph *g, const leat_out *vars, int n)
{
    if (n == 0)
        return names_of(g, vars, 0);
    leat_out *is = leat_new_array(leat_out, n), names = {0};
    for (int i = 0; i < n; i++)
        is[i] = leat_is_variable_initialized(vars[i]);
    leat_with_device(g, "/cpu:0")
    {
        leat_out not = leat_logical_not(leat_pack(is, n, 0, leat_name("stack")));
        names = names_of(g, vars, n);
        leat_with_name(g, "boolean_mask")
        {
            leat_out at = leat_squeeze(leat_where(not ),
                                       leat_attr_ints("squeeze_dims", (const int64_t[]){1}, 1));
            names = leat_gather(names, at, leat_py_number(g, LEAT_INT32, 0, "GatherV2/axis"));
        }
    }
    free(is);
    return names;
}

leat_out leat_report_uninitialized_variables(leat_graph *g)
{
    int n_global, n_local;
    leat_out *global = leat_collection(g, LEAT_GLOBAL_VARIABLES, NULL, &n_global);
    leat_out *local = leat_collection(g, LEAT_LOCAL_VARIABLES, NULL, &n_local);
    leat_out *all = leat_new_array(leat_out, n_global + n_local + 1), names = {0};
    memcpy(all, global, sizeof(*all) * (size_t)n_global);
    memcpy(all + n_global, local, sizeof(*all) * (size_t)n_local);
    leat_with_name(g, "report_uninitialized_variables") names =
        uninitialized(g, all, n_global + n_local);
    free(global);
    free(local);
    free(all);
    return names;
}
