/* where.h -- the user's file and line in the errors of runs. */
#ifndef LEAT_WHERE_H
#define LEAT_WHERE_H

#include <leat/graph.h>

/* Adds the name of n to the message, as TensorFlow does: "[[{{node h/MatMul}}]]". Takes s, gives
 * the result. */
leat_status leat_status_of_node(leat_status s, const leat_node *n) LEAT_MUST_CHECK;
/* Adds to the message the file and line that made the node named in it, if g or the function of g
 * that has the node was built in this process. Takes s, which may be OK, and gives the result. */
leat_status leat_status_where(leat_status s, const leat_graph *g) LEAT_MUST_CHECK;

#endif
