/* inline.c -- calls of functions are replaced by the functions' bodies, where that can be done. It
 * is the first pass: the others do not look into functions. */
#include "graph/function.h"
#include "passes/pass.h"

/* A TensorFlow task runs the body of a function that is called on that task's own device, whatever
 * devices the nodes ask for. Where such a task takes part, functions are inlined if they can be. */
static bool all_leat(const leat_compile *c)
{
    for (int i = 0; i < c->n_devices; i++)
        if (c->devices[i].process != 0 && !c->devices[i].together)
            return false;
    return true;
}

leat_status leat_pass_inline(leat_compile *c)
{
    /* The library's lock is taken for every function that is looked up. */
    c->graph->library = c->source;
    bool in_function = c->source && c->source->call_depth > 0;
    leat_inlining which = c->calls_stay ? LEAT_INLINE_NONE
                          : all_leat(c) ? LEAT_INLINE_AS_ASKED
                                        : LEAT_INLINE_ALL;
    return leat_functions_inline(c->graph, which, in_function);
}
