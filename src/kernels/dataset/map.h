/* map.h -- what kinds that call a function for each element share. */
#ifndef LEAT_DATASET_MAP_H
#define LEAT_DATASET_MAP_H

#include "kernels/dataset/dataset.h"

/* Reads function f with other_arguments, which are the inputs from 1 on; checks that its results
 * are the dataset's elements. */
leat_status leat_map_make(leat_kernel *k, leat_dataset *d) LEAT_MUST_CHECK;
/* ---- For the C interface (api_functions.c) ---- */
/* Takes fn, also on failure. */
leat_status leat_dataset_mapped(leat_dataset *in, leat_program_fn *fn,
                                leat_dataset **out) LEAT_MUST_CHECK;
leat_status leat_dataset_filtered(leat_dataset *in, leat_program_fn *fn,
                                  leat_dataset **out) LEAT_MUST_CHECK;

/* What a failed call means: the end after OUT_OF_RANGE, unless the dataset has to keep the number
 * of its input's elements; else a failure. */
leat_next leat_map_failed(leat_pull *p, bool keeps_count);

#endif
