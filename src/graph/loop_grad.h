/* loop_grad.h -- gradients of loops.
 *
 * The gradient of a loop is a loop that runs as many iterations backwards. A counter is added to
 * the forward loop; the gradient loop counts it down. What the gradient needs of an iteration is
 * pushed on a stack going forward and popped going backward; control edges keep pushes, and pops,
 * in the order of iterations.
 */
#ifndef LEAT_LOOP_GRAD_H
#define LEAT_LOOP_GRAD_H

#include "graph/control_ctx.h"
#include "graph/gradients_int.h"

/* A forward loop and its gradient loop. */
typedef struct leat_loop_grad {
    leat_backprop *b;
    struct leat_loop_grad *outer; /* of the loop around, if that has gradients, too */
    leat_control_ctx *forward, *backward;
    leat_out forward_index, grad_index; /* NextIterations of the counters */
    leat_node *forward_sync,
        *grad_sync;    /* run in every iteration, after pushes and pops in conds */
    leat_map history;  /* value of the forward loop -> leat_out that popped it */
    leat_map switches; /* name of a loop's Switch -> Merge node of its gradient */
    leat_out *unused_exits, *deferred_exits;
    int n_unused, n_deferred;
    int pending_exits; /* exits whose gradients have not come yet */
    struct leat_loop_grad *next;
} leat_loop_grad;

/* ---- What leat_gradients asks; each does nothing where there are no loops ---- */

/* Finds the loops between ys and xs, and begins their gradient loops. */
leat_status leat_loops_find(leat_backprop *b) LEAT_MUST_CHECK;
/* Before the first node's turn: exits that nobody uses. */
void leat_loops_begin(leat_backprop *b);
/* What is built from here to leave belongs to the gradient loop of n's loop; `before`: what came
 * to n is being summed (an Exit's is outside its loop). Gives what leave wants. */
leat_control_ctx *leat_loops_enter(leat_backprop *b, leat_node *n, bool before);
void leat_loops_leave(leat_backprop *b, leat_control_ctx *was);
/* No gradient with respect to the initial value of a loop variable from inside that loop. */
leat_status leat_loops_check(leat_backprop *b, leat_node *n) LEAT_MUST_CHECK;
/* All that will come to x.node has come. */
void leat_loops_ready(leat_backprop *b, leat_out x);
/* Afterwards: gradients that do not depend on the iteration before get their back edges. */
void leat_loops_end(leat_backprop *b);
void leat_loops_free(leat_backprop *b);
/* The state of the loop around n, if it has gradients here. */
leat_loop_grad *leat_loops_of(leat_backprop *b, const leat_node *n);

/* ---- loop_history.c ---- */

leat_loop_grad *leat_loop_grad_new(leat_backprop *b, leat_control_ctx *forward,
                                   leat_loop_grad *outer);
/* Adds a stack to the forward loop that keeps value for every iteration. Gives its handle. */
leat_out leat_loop_push(leat_loop_grad *l, leat_out value);
/* The value that was pushed, in the gradient loop. */
leat_out leat_loop_pop(leat_loop_grad *l, leat_out stack, leat_out value);
leat_node *leat_loop_grad_sync(leat_loop_grad *l); /* runs after all pops of an iteration */
/* What stands for a value of the forward loop in the gradient loop. */
leat_out leat_loop_real_value(leat_loop_grad *l, leat_out value);
static inline leat_control_ctx *leat_loop_grad_forward(const leat_loop_grad *l)
{
    return l->forward;
}

/* ---- loop_accumulate.c: what comes to a constant Enter, summed over the iterations ---- */
leat_grad_value leat_loop_accumulate(leat_loop_grad *l, leat_node *enter, leat_grad_value grad);

/* A value that goes round: Enter and Merge are made here; leat_loop_next adds the back edge. */
leat_out leat_loop_merge(leat_out first, const char *name);
void leat_loop_next(leat_out merge, leat_out next);

#endif
