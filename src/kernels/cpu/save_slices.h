/* save_slices.h -- checkpoints of the first format, for RestoreV2, which reads both. */
#ifndef LEAT_CPU_SAVE_SLICES_H
#define LEAT_CPU_SAVE_SLICES_H

#include "runtime/kernel_int.h"

/* Inputs: a pattern, names and specs; an output for each name. */
leat_status leat_restore_slices(leat_kernel *k) LEAT_MUST_CHECK;

#endif
