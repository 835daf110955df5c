/* initialize.c -- the ops that assign initial values to variables. */
#include <stdlib.h>

#include "core/alloc.h"
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
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_loc outer = leat_at_enter(g, at);
    leat_out init = initializers(g, vars, n);
    leat_at_leave(g, outer);
    return init;
}

leat_out leat_initializer_of_at(leat_loc at, leat_graph *g, const char *collection)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    int n;
    leat_out *vars = leat_collection(g, collection, NULL, &n);
    leat_out init = leat_variables_initializer_at(at, g, vars, n);
    free(vars);
    return init;
}
