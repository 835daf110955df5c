/* variable_scope.h -- for slots: variables that are named as the scope that they are in; and what
 * variables that are cut into slices need of those that are not. */
#ifndef LEAT_VARIABLE_SCOPE_H
#define LEAT_VARIABLE_SCOPE_H

#include "train/train_int.h"

/* The variable that has the open scope's own name, made if it is not there. */
leat_out leat_scope_variable(leat_graph *g, leat_shape shape,
                             const leat_get_variable_options *options);

/* What leat_get_variable looks for or makes: defaults have been filled in. */
typedef struct leat_variable_wish {
    const char *name; /* with the scope's */
    leat_reuse reuse;
    leat_variable_spec spec; /* without the name */
    leat_regularizer regularizer;
} leat_variable_wish;
leat_status leat_get_single(leat_graph *g, const leat_variable_wish *w,
                            leat_out *out) LEAT_MUST_CHECK;
bool leat_single_exists(leat_graph *g, const char *name);
/* In slices (partitioned.c). */
leat_status leat_get_partitioned(leat_graph *g, const leat_variable_wish *w,
                                 const leat_partitioner *p, leat_out *out) LEAT_MUST_CHECK;

#endif
