/* variable_scope.h -- for slots, whose names are those of the scope that they are in; and for
 * variables that are partitioned into slices. */
#ifndef LEAT_VARIABLE_SCOPE_H
#define LEAT_VARIABLE_SCOPE_H

#include "train/train_int.h"

/* The variable whose name is that of the open scope, made if it does not exist. */
leat_out leat_scope_variable(leat_graph *g, leat_shape shape,
                             const leat_get_variable_options *options);

/* A variable to be found or made by leat_get_variable, with defaults filled in. */
typedef struct leat_variable_wish {
    const char *name; /* full name, with the scope's */
    leat_reuse reuse;
    leat_variable_spec spec; /* its name is not set */
    leat_regularizer regularizer;
} leat_variable_wish;
leat_status leat_get_single(leat_graph *g, const leat_variable_wish *w,
                            leat_out *out) LEAT_MUST_CHECK;
bool leat_single_exists(leat_graph *g, const char *name);
/* Makes the variable in slices (partitioned.c). */
leat_status leat_get_partitioned(leat_graph *g, const leat_variable_wish *w,
                                 const leat_partitioner *p, leat_out *out) LEAT_MUST_CHECK;

#endif
