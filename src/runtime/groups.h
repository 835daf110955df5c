/* groups.h -- tensors that a plan receives from another process in one message: those of _Recv
 * nodes of one sending process and one wave (see passes/partition.c). */
#ifndef LEAT_GROUPS_H
#define LEAT_GROUPS_H

#include "graph/graph_int.h"
#include "runtime/rendezvous.h"

/* Gives an array of the groups of a plan, whose graphs are those of this process's devices. */
leat_rendezvous_group **leat_groups_new(const leat_graph *const *graphs, int n_graphs, int *n_out);
void leat_groups_free(leat_rendezvous_group **groups, int n);

#endif
