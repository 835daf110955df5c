/* global_step.c -- the variable that counts updates. */
#include <leat/train.h>

#include <stdlib.h>

#include "train/train_int.h"

static leat_status check(leat_out v, int n)
{
    LEAT_REQUIRE(n <= 1, INVALID_ARGUMENT, "Multiple tensors in global_step collection.");
    leat_shape s = leat_variable_shape(v);
    leat_dtype t = leat_variable_dtype(v);
    LEAT_REQUIRE(t == LEAT_INT32 || t == LEAT_INT64, INVALID_ARGUMENT,
                 "Existing \"global_step\" does not have integer type: %s", leat_dtype_name(t));
    LEAT_REQUIRE(s.rank == 0 || s.rank < 0, INVALID_ARGUMENT,
                 "Existing \"global_step\" is not scalar: %s", leat_shape_show(&s).s);
    return NULL;
}

/* An imported graph may have no collections, but a node of that name. */
static leat_out find(leat_graph *g, int *n_out)
{
    leat_out *v = leat_collection(g, LEAT_GLOBAL_STEP, NULL, n_out), found = {0};
    leat_node *n = leat_graph_find(g, "global_step");
    if (*n_out > 0)
        found = v[0];
    else if (n && leat_variable_ref((leat_out){n, 0}).node)
        found = (leat_out){n, 0};
    free(v);
    return found;
}

leat_out leat_global_step_at(leat_loc at, leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    int n;
    leat_out found = find(g, &n);
    if (g->status)
        return (leat_out){g->poison, 0};
    if (found.node) {
        leat_status s = check(found, n);
        return s ? leat_graph_fail(g, at, s) : leat_variable_value(found);
    }
    static const char *const collections[] = {LEAT_GLOBAL_VARIABLES, LEAT_GLOBAL_STEP, NULL};
    leat_initializer zeros = leat_zeros_initializer();
    leat_variable_spec spec = {.name = "global_step",
                               .initializer = &zeros,
                               .dtype = LEAT_INT64,
                               .shape = leat_shape(),
                               .options = {.not_trainable = true, .collections = collections}};
    leat_loc outer = leat_at_enter(g, at);
    leat_name_scope_enter(g, NULL);
    leat_out v = leat_variable_make(g, &spec);
    leat_name_scope_leave(g);
    leat_at_leave(g, outer);
    return v;
}
