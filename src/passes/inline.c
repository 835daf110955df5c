/* inline.c -- calls of functions become the functions' bodies. First of the passes: none of the
 * others, and no kernel, knows of functions. */
#include "graph/function.h"
#include "passes/pass.h"

leat_status leat_pass_inline(leat_compile *c)
{
    c->graph->library = c->source; /* its lock is taken for every function that is looked up */
    return leat_functions_inline(c->graph);
}
