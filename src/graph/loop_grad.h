/* loop_grad.h -- what leat_gradients asks of loops. Each does nothing where there are none. */
#ifndef LEAT_LOOP_GRAD_H
#define LEAT_LOOP_GRAD_H

#include "graph/gradients_int.h"

/* Finds the loops between ys and xs, and begins their gradient loops. */
leat_status leat_loops_find(leat_backprop *b) LEAT_MUST_CHECK;
/* Before the first node's turn: exits that nobody uses. */
leat_status leat_loops_begin(leat_backprop *b) LEAT_MUST_CHECK;
/* What is built from here to leave belongs to the gradient loop of n's loop; `before`: what came
 * to n is being summed (an Exit's is outside its loop). */
void leat_loops_enter(leat_backprop *b, leat_node *n, bool before);
void leat_loops_leave(leat_backprop *b, leat_node *n, bool before);
/* No gradient with respect to the initial value of a loop variable from inside that loop. */
leat_status leat_loops_check(leat_backprop *b, leat_node *n) LEAT_MUST_CHECK;
/* All that will come to x.node has come. */
void leat_loops_ready(leat_backprop *b, leat_out x);
leat_status leat_loops_end(leat_backprop *b) LEAT_MUST_CHECK;
bool leat_is_loop_switch(const leat_node *n);

#endif
