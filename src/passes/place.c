/* place.c -- decides on which device each node runs. */
#include "passes/pass.h"
#include "runtime/device.h"

leat_status leat_pass_place(leat_compile *c)
{
    for (int i = 0; i < c->graph->n_nodes; i++)
        c->graph->nodes[i]->device = c->devices[0]->name;
    return NULL;
}
