/* cifar10.h -- the archive that CIFAR-10 is downloaded as. */
#ifndef LEAT_DATA_CIFAR10_H
#define LEAT_DATA_CIFAR10_H

#include "data/files.h"

/* Writes the batches in the gzipped tar archive to dir; other files of the archive are left out. */
leat_status leat_cifar10_unpack(const char *dir, const leat_data_file *f, const char *bytes,
                                size_t n) LEAT_MUST_CHECK;

#endif
