/* ahead_kinds.h -- datasets that work ahead, for the C interface (api.c). */
#ifndef LEAT_DATASET_AHEAD_KINDS_H
#define LEAT_DATASET_AHEAD_KINDS_H

#include "kernels/dataset/dataset.h"

leat_status leat_dataset_prefetched(leat_dataset *in, const char *name, int64_t n,
                                    leat_dataset **out) LEAT_MUST_CHECK;
/* n calls of fn at a time; LEAT_AUTOTUNE: one for each thread. Takes fn, also on failure. */
leat_status leat_dataset_mapped_ahead(leat_dataset *in, leat_program_fn *fn, int64_t n,
                                      leat_dataset **out) LEAT_MUST_CHECK;
/* Makes the iterator of such a dataset work before it is first pulled. */
void leat_prefetch_start(leat_iterator *it);

#endif
