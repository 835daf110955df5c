/* stats.h -- statistics of iterators, which those below a SetStatsAggregator report to its
 * aggregator. Their names are TensorFlow's: "PrefetchDataset/_5::buffer_size", where 5 is the
 * number of the dataset in the graph that TensorFlow would write of it. */
#ifndef LEAT_DATASET_STATS_H
#define LEAT_DATASET_STATS_H

#include "kernels/dataset/dataset.h"

/* An aggregator, and the tag that the names of what is reported begin with. Counted. */
leat_stats *leat_stats_ref(leat_stats *s); /* of NULL gives NULL */
void leat_stats_unref(leat_stats *s);      /* of NULL does nothing */

/* Both do nothing if s is NULL. Threads may call them at the same time. */
void leat_stats_add(leat_stats *s, const char *name, double value); /* to a histogram */
void leat_stats_set(leat_stats *s, const char *name, float value);  /* a scalar */

/* The same for statistics of one dataset. */
void leat_stats_add_of(leat_stats *s, const leat_dataset *d, const char *what, double value);
void leat_stats_set_of(leat_stats *s, const leat_dataset *d, const char *what, float value);
/* How long a call of d's function 0 took, which is reported as "ParallelMap::f::execution_time". */
void leat_stats_called(leat_stats *s, const leat_dataset *d, int64_t ns);

#endif
