/* window.h -- a dataset of elements that are there already. */
#ifndef LEAT_DATASET_WINDOW_H
#define LEAT_DATASET_WINDOW_H

#include "kernels/dataset/dataset.h"

/* Takes the elements of l, which is empty afterwards. Component c of the elements, or, if c is
 * below 0, all components. types and shapes are those of the whole elements. */
leat_status leat_dataset_of_window(leat_elements *l, int c, int n, const leat_dtype *types,
                                   const leat_shape *shapes, leat_tensor **out) LEAT_MUST_CHECK;

/* For the C interface (api.c). */
typedef struct leat_window_sizes {
    int64_t size, shift, stride;
} leat_window_sizes;
leat_status leat_dataset_windowed(leat_dataset *in, const leat_window_sizes *sizes,
                                  bool drop_remainder, leat_dataset **out) LEAT_MUST_CHECK;

#endif
