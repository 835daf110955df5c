/* where.h -- the user's file and line in the errors of runs. */
#ifndef LEAT_WHERE_H
#define LEAT_WHERE_H

#include <leat/graph.h>

/* Names n in the message, as TensorFlow does: "[[{{node h/MatMul}}]]". Takes s and gives it back.
 */
leat_status leat_status_of_node(leat_status s, const leat_node *n) LEAT_MUST_CHECK;
/* Adds the file and line that made the node which the message names, if g, or a function of g, was
 * built in this process. Takes s and gives it back; OK stays OK. */
leat_status leat_status_where(leat_status s, const leat_graph *g) LEAT_MUST_CHECK;

#endif
