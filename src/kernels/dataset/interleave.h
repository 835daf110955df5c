/* interleave.h -- datasets that a function of the program gives, one for each element, for the C
 * interface (api_functions.c). */
#ifndef LEAT_DATASET_INTERLEAVE_H
#define LEAT_DATASET_INTERLEAVE_H

#include "kernels/dataset/dataset.h"

/* `cycle` datasets are open at a time, and each gives `block` elements in its turn. ahead: they
 * work ahead. Takes fn, also on failure. */
leat_status leat_dataset_interleaved(leat_dataset *in, leat_program_fn *fn, int64_t cycle,
                                     int64_t block, bool ahead, leat_dataset **out) LEAT_MUST_CHECK;

#endif
