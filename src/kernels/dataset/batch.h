/* batch.h -- batches, for other kinds. */
#ifndef LEAT_DATASET_BATCH_H
#define LEAT_DATASET_BATCH_H

#include "kernels/dataset/dataset.h"

/* One element of the n > 0 elements of l, which have the same shapes. Strings of tensors that only
 * l holds are moved: l is to be cleared afterwards. */
leat_status leat_batch_elements(leat_elements *l, leat_element *out) LEAT_MUST_CHECK;
leat_status leat_dataset_batched(leat_dataset *in, const char *op, const char *name, int64_t size,
                                 bool drop_remainder, leat_dataset **out) LEAT_MUST_CHECK;
/* The same, as MapAndBatch does it: an element that fails counts as one of its batch, and the whole
 * batch fails with the error of the first such element. */
leat_status leat_dataset_batched_failing(leat_dataset *in, const char *op, const char *name,
                                         int64_t size, bool drop_remainder,
                                         leat_dataset **out) LEAT_MUST_CHECK;
/* shapes: one for each tensor of an element, NULL: those that are known of the elements; values:
 * scalars that pad, NULL: zeros and empty strings. */
leat_status leat_dataset_padded(leat_dataset *in, int64_t size, const leat_shape *shapes,
                                const leat_tensor *const *values, bool drop_remainder,
                                leat_dataset **out) LEAT_MUST_CHECK;
leat_status leat_dataset_unbatched(leat_dataset *in, leat_dataset **out) LEAT_MUST_CHECK;

#endif
