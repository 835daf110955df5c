/* functional.h -- shared by the kernels that call functions of the graph. */
#ifndef LEAT_CPU_FUNCTIONAL_H
#define LEAT_CPU_FUNCTIONAL_H

#include "kernels/cpu/cpu.h"
#include "runtime/callable.h"

/* A value as a condition: a scalar is true if it is not 0 or empty, another tensor if it has
 * elements. */
leat_status leat_truth(const leat_tensor *t, bool *out) LEAT_MUST_CHECK;

#endif
