/* variable_scope.h -- for slots: variables that are named as the scope that they are in. */
#ifndef LEAT_VARIABLE_SCOPE_H
#define LEAT_VARIABLE_SCOPE_H

#include "train/train_int.h"

/* The variable that has the open scope's own name, made if it is not there. */
leat_out leat_scope_variable(leat_graph *g, leat_shape shape,
                             const leat_get_variable_options *options);

#endif
