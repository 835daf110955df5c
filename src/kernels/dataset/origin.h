/* origin.h -- the node that made a dataset, and the tensors that the node was given. From them come
 * a graph that makes the dataset again, elsewhere, and a fingerprint, by which equal datasets of
 * different graphs are known. */
#ifndef LEAT_DATASET_ORIGIN_H
#define LEAT_DATASET_ORIGIN_H

#include "kernels/dataset/dataset.h"

typedef struct leat_origin leat_origin; /* immutable */

/* That of what the kernel makes. */
leat_origin *leat_origin_new(leat_kernel *k);
void leat_origin_free(leat_origin *o); /* of NULL does nothing */

/* Gives a graph with a node for each dataset from d down, a Const for each of their other inputs,
 * a _Retval of d, and the functions. The graph depends on nothing but the kinds, attributes and
 * inputs of the datasets. UNIMPLEMENTED if a dataset was not made by a node. */
leat_status leat_dataset_graph(leat_dataset *d, leat_graph **out) LEAT_MUST_CHECK;
/* FAILED_PRECONDITION if a function of such a graph has an op with state other than those listed:
 * what it gives elsewhere would differ. */
leat_status leat_dataset_graph_check(const leat_graph *g, const char *const *listed,
                                     int n) LEAT_MUST_CHECK;
/* A hash of the graph in which names of nodes and functions do not matter. */
leat_status leat_dataset_fingerprint(leat_dataset *d, uint64_t *out) LEAT_MUST_CHECK;

#endif
