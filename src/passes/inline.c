/* inline.c -- calls of functions are replaced by the functions' bodies, where that can be done. It
 * is the first pass: the others do not look into functions. */
#include "graph/function.h"
#include "passes/pass.h"

/* If all devices are of this process, the devices that a body names exist when it is called at run
 * time. Otherwise functions are inlined whatever their attributes say, since a body may use devices
 * of several processes. */
static bool one_process(const leat_compile *c)
{
    for (int i = 0; i < c->n_devices; i++)
        if (c->devices[i].process != 0)
            return false;
    return true;
}

leat_status leat_pass_inline(leat_compile *c)
{
    /* The library's lock is taken for every function that is looked up. */
    c->graph->library = c->source;
    bool in_function = c->source && c->source->call_depth > 0;
    return leat_functions_inline(c->graph, one_process(c), in_function);
}
