/* files.h -- datasets of files, for the C interface (api.c). */
#ifndef LEAT_DATASET_FILES_H
#define LEAT_DATASET_FILES_H

#include "kernels/dataset/dataset.h"

/* compression is "", "GZIP" or "ZLIB". */
leat_status leat_dataset_of_records(const char *const *paths, int n, const char *compression,
                                    leat_dataset **out) LEAT_MUST_CHECK;

#endif
