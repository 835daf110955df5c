/* list.h -- the kernels of this folder, for CPU devices. */
#ifndef LEAT_DATASET_LIST_H
#define LEAT_DATASET_LIST_H

#include "runtime/kernel_int.h"

/* A NULL-ended list of arrays, each ended by a kernel without an op. */
extern const leat_kernel_def *const leat_dataset_kernel_lists[];

#endif
