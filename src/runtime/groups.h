/* groups.h -- tensors that a plan receives from another task in one message: those of _Recv nodes
 * of one sending task and one wave (see passes/partition.c). */
#ifndef LEAT_GROUPS_H
#define LEAT_GROUPS_H

#include "graph/graph_int.h"
#include "runtime/rendezvous.h"

/* Adds the groups of one graph to an array of n. */
void leat_groups_add(const leat_graph *g, leat_rendezvous_group ***groups, int *n);
void leat_groups_free(leat_rendezvous_group **groups, int n);

#endif
