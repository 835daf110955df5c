/* list.c -- every file of this folder that has kernels, a line each in list.inc. */
#include "kernels/dataset/list.h"

#define X(file) extern const leat_kernel_def leat_data_kernels_##file[];
#include "kernels/dataset/list.inc"
#undef X

const leat_kernel_def *const leat_dataset_kernel_lists[] = {
#define X(file) leat_data_kernels_##file,
#include "kernels/dataset/list.inc"
#undef X
    NULL,
};
