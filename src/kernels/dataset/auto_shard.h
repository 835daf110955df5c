/* auto_shard.h -- what iterators below an AutoShard are opened for; for dataset.c. */
#ifndef LEAT_DATASET_AUTO_SHARD_H
#define LEAT_DATASET_AUTO_SHARD_H

#include "kernels/dataset/dataset.h"

bool leat_is_auto_shard(const leat_dataset *d);
/* What takes the place of `input`, which an iterator of `parent` opens below the AutoShard d;
 * borrowed. */
leat_dataset *leat_auto_shard_instead(const leat_dataset *d, const leat_dataset *parent,
                                      leat_dataset *input);

#endif
