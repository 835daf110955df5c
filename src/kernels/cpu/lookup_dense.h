/* lookup_dense.h -- internals of dense hash tables, for lookup.c: open addressing in two matrices
 * of keys and values. Buckets and hashes are TensorFlow's, since checkpoints hold the matrices as
 * they are. The caller holds the table's lock. */
#ifndef LEAT_CPU_LOOKUP_DENSE_H
#define LEAT_CPU_LOOKUP_DENSE_H

#include "kernels/cpu/cpu.h"

typedef struct leat_dense leat_dense;

/* Makes a table from a node's attributes and the keys that mean "empty" and "deleted", which it
 * shares. */
leat_status leat_dense_new(const leat_node *n, const leat_tensor *empty, const leat_tensor *deleted,
                           leat_dense **out) LEAT_MUST_CHECK;
void leat_dense_free(leat_dense *d); /* NULL does nothing */
int64_t leat_dense_size(const leat_dense *d);
/* The kernels of the ops; the caller has checked the dtypes. */
leat_status leat_dense_find(leat_kernel *k, const leat_dense *d) LEAT_MUST_CHECK;
leat_status leat_dense_insert(leat_kernel *k, leat_dense *d) LEAT_MUST_CHECK;
leat_status leat_dense_remove(leat_kernel *k, leat_dense *d) LEAT_MUST_CHECK;
leat_status leat_dense_import(leat_kernel *k, leat_dense *d) LEAT_MUST_CHECK;
leat_status leat_dense_export(leat_kernel *k, const leat_dense *d) LEAT_MUST_CHECK;

#endif
