/* tensor_variant.h -- variants that hold a tensor: the parts of sparse and ragged tensors that are
 * elements of datasets. */
#ifndef LEAT_DATASET_TENSOR_VARIANT_H
#define LEAT_DATASET_TENSOR_VARIANT_H

#include <leat/tensor.h>

leat_variant leat_tensor_variant(leat_tensor *t);            /* takes t */
leat_tensor *leat_tensor_variant_get(const leat_variant *v); /* borrowed; NULL: it holds none */

#endif
