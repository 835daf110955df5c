/* function.c -- the library of functions of a graph. */
#include "graph/graph_int.h"

const leat_op_info *leat_function_op(leat_graph *g, const char *name)
{
    return NULL;
}

void leat_functions_free(leat_graph *g) {}
