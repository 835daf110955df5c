/* partition.c -- cuts a placed graph into one graph a device. */
#include <stdlib.h>

#include "core/alloc.h"
#include "passes/pass.h"

leat_status leat_pass_partition(leat_compile *c, leat_graph ***parts_out)
{
    *parts_out = leat_new_array(leat_graph *, c->n_devices + 1);
    (*parts_out)[0] = c->graph;
    c->graph = NULL;
    return NULL;
}
