/* sources.h -- what sources share with other kinds. */
#ifndef LEAT_DATASET_SOURCES_H
#define LEAT_DATASET_SOURCES_H

#include "kernels/dataset/dataset.h"

/* Row i of a tensor, sharing its memory, without dimension 0. */
leat_status leat_tensor_row(const leat_tensor *t, int64_t i, leat_tensor **out) LEAT_MUST_CHECK;
/* Row i of each tensor of e. */
leat_status leat_element_row(const leat_element *e, int64_t i, leat_element *out) LEAT_MUST_CHECK;
/* Number i of TensorFlow's generator with these seeds. */
uint32_t leat_data_random(int64_t seed, int64_t seed2, int64_t i);
/* Numbers 4 i to 4 i + 3 of that sequence. */
void leat_data_random_four(int64_t seed, int64_t seed2, int64_t i, uint32_t four[4]);
/* Two seeds of 0 are replaced by random ones. */
void leat_data_random_seeds(int64_t *seed, int64_t *seed2);

/* ---- Datasets for the C interface (api.c) ---- */
leat_status leat_dataset_of_tensors(const leat_tensor *const *t, int n, bool rows,
                                    leat_dataset **out) LEAT_MUST_CHECK;
leat_status leat_dataset_of_range(int64_t start, int64_t stop, int64_t step,
                                  leat_dataset **out) LEAT_MUST_CHECK;
/* The rows of a sparse tensor (sparse.c). */
leat_status leat_dataset_of_sparse(const leat_tensor *indices, const leat_tensor *values,
                                   const leat_tensor *shape, leat_dataset **out) LEAT_MUST_CHECK;

#endif
