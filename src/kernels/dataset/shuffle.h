/* shuffle.h -- shuffled datasets, for the C interface (api.c). */
#ifndef LEAT_DATASET_SHUFFLE_H
#define LEAT_DATASET_SHUFFLE_H

#include "kernels/dataset/dataset.h"

/* Two seeds of 0: random ones. reshuffle: each iterator at one place gets other seeds. count:
 * rounds through the input, whose elements are mixed at the seams; -1: for ever. */
leat_status leat_dataset_shuffled(leat_dataset *in, int64_t buffer_size, int64_t seed,
                                  int64_t seed2, bool reshuffle, int64_t count,
                                  leat_dataset **out) LEAT_MUST_CHECK;
/* Shuffles another dataset as a Shuffle does. */
leat_status leat_dataset_shuffled_like(const leat_dataset *like, leat_dataset *in,
                                       leat_dataset **out) LEAT_MUST_CHECK;

#endif
