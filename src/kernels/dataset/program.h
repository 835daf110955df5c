/* program.h -- functions of the program, which datasets of the C interface call where datasets of
 * graphs call functions of the graph. */
#ifndef LEAT_DATASET_PROGRAM_H
#define LEAT_DATASET_PROGRAM_H

#include "kernels/dataset/dataset.h"

/* A copy of `fn`, with a copy of the types. */
leat_program_fn *leat_program_new(const leat_program_fn *fn);
void leat_program_free(leat_program_fn *fn); /* of NULL does nothing */
/* Calls the function in this thread. Checks what it gives. */
leat_status leat_program_call(const leat_program_fn *fn, const leat_element *in,
                              leat_element *out) LEAT_MUST_CHECK;
/* A dataset over `in` whose function is fn, and whose elements are what fn says, unless fn is a
 * test. Takes fn, also on failure. */
leat_status leat_program_over(const leat_dataset_kind *kind, const char *op, const char *name,
                              leat_dataset *in, leat_program_fn *fn,
                              leat_dataset **out) LEAT_MUST_CHECK;
/* The elements that the program's generator gives. Copies g. */
leat_status leat_dataset_generated(const leat_generator *g, const leat_dtype *types, int n,
                                   leat_dataset **out) LEAT_MUST_CHECK;

#endif
