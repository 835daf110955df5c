/* resource_variable.h -- for the shape functions of ops on variables behind handles. */
#ifndef LEAT_RESOURCE_VARIABLE_H
#define LEAT_RESOURCE_VARIABLE_H

#include <leat/extend.h>

/* The shape of the variable behind input 0; its dtype must be that of the attribute "dtype". */
leat_status leat_infer_variable(leat_infer *c, leat_shape *out) LEAT_MUST_CHECK;

#endif
