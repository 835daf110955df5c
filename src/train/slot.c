/* slot.c -- variables that belong to another variable: an optimizer's moments, moving averages. */
#include "train/variable_scope.h"

/* A constant of the variable's shape, which is known when the graph runs. */
static leat_out filled_as(leat_out primary, leat_dtype t, double v)
{
    leat_graph *g = leat_graph_of(primary);
    leat_out value =
        leat_variable_name(primary)[0] ? leat_variable_initialized_value(primary) : primary;
    return leat_fill(leat_shape_of(value), leat_py_number(g, t, v, NULL));
}

leat_out leat_slot_make(leat_out primary, const char *name, leat_dtype t,
                        const leat_initializer *initializer, leat_out initial)
{
    leat_graph *g = leat_graph_of(primary);
    leat_out self = leat_variable_ref(primary), slot;
    leat_shape shape =
        leat_variable_name(primary)[0] ? leat_variable_shape(primary) : leat_out_shape(primary);
    if (!initial.node && !leat_shape_known(&shape))
        initial = filled_as(primary, t, initializer->a);
    if (initial.node)
        shape = leat_out_shape(initial);
    leat_get_variable_options o = {
        .dtype = t,
        .initial_value = initial,
        .not_trainable = true,
        .use_resource = leat_variable_is_resource(primary),
        .any_shape = !leat_shape_known(&shape),
        .regularizer = leat_no_regularizer(),
    };
    if (!self.node) /* the average of a tensor that is not a variable */
        self = primary;
    if (initializer)
        o.initializer = *initializer;
    leat_variable_scope_enter(
        g, NULL, .default_name = leat_arena_printf(&g->arena, "%s/%s", self.node->name, name));
    if (leat_variable_name(primary)[0])
        leat_colocate_enter(g, self);
    slot = leat_scope_variable(g, initial.node ? leat_shape_unknown() : shape, &o);
    if (leat_variable_name(primary)[0])
        leat_colocate_leave(g);
    leat_variable_scope_leave(g);
    return slot;
}
