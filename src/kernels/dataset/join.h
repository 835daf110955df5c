/* join.h -- datasets that join others, for the C interface (api.c). */
#ifndef LEAT_DATASET_JOIN_H
#define LEAT_DATASET_JOIN_H

#include "kernels/dataset/dataset.h"

leat_status leat_dataset_zipped(leat_dataset *const *in, int n, leat_dataset **out) LEAT_MUST_CHECK;
leat_status leat_dataset_concatenated(leat_dataset *const in[2],
                                      leat_dataset **out) LEAT_MUST_CHECK;

#endif
