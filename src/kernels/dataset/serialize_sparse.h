/* serialize_sparse.h -- sparse tensors as elements of datasets. */
#ifndef LEAT_DATASET_SERIALIZE_SPARSE_H
#define LEAT_DATASET_SERIALIZE_SPARSE_H

#include "kernels/dataset/dataset.h"

/* One tensor of three variants from the indices, values and shape in e. */
leat_status leat_sparse_variants(const leat_element *e, leat_tensor **out) LEAT_MUST_CHECK;

#endif
