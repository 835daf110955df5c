/* cache.h -- cached datasets, for the C interface (api.c). */
#ifndef LEAT_DATASET_CACHE_H
#define LEAT_DATASET_CACHE_H

#include "kernels/dataset/dataset.h"

/* path is that of the file, "" for a cache in memory. */
leat_status leat_dataset_cached(leat_dataset *in, const char *path,
                                leat_dataset **out) LEAT_MUST_CHECK;

#endif
