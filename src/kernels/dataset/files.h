/* files.h -- datasets of files, for the C interface (api.c). */
#ifndef LEAT_DATASET_FILES_H
#define LEAT_DATASET_FILES_H

#include "kernels/dataset/dataset.h"

/* op is TFRecordDataset, TextLineDataset or FixedLengthRecordDatasetV2; compression is "", "GZIP"
 * or "ZLIB". The sizes are for records of fixed length. */
typedef struct leat_file_sizes {
    int64_t header, record, footer;
} leat_file_sizes;
leat_status leat_dataset_of_files(const char *op, const char *const *paths, int n,
                                  const char *compression, leat_file_sizes sizes,
                                  leat_dataset **out) LEAT_MUST_CHECK;

#endif
