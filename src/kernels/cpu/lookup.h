/* lookup.h -- internals of tables, for lookup_file.c. */
#ifndef LEAT_CPU_LOOKUP_H
#define LEAT_CPU_LOOKUP_H

#include "kernels/any/resource_op.h"

/* The table behind input 0, which must be one that is filled once, and its dtypes. Shares it:
 * leat_resource_unref. */
leat_status leat_lookup_find(leat_kernel *k, leat_dtype *key, leat_dtype *value,
                             leat_resource **out) LEAT_MUST_CHECK;
/* Fills the table from vectors of the same number of keys and values. If it is filled already, it
 * is unchanged. */
leat_status leat_lookup_fill(leat_resource *r, const leat_tensor *keys,
                             const leat_tensor *values) LEAT_MUST_CHECK;

/* lookup_file.c: the lines of a file, of which there are at least `lines`; -1: all. An empty line is
 * INVALID_ARGUMENT. */
leat_status leat_vocabulary_read(const char *path, int64_t lines,
                                 leat_tensor **tokens_out) LEAT_MUST_CHECK;

#endif
