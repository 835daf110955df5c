/* loop_grad.h -- gradients of loops.
 *
 * The gradient of a loop is a loop with the same number of iterations, which it runs backwards. A
 * counter is added to the forward loop; the gradient loop counts it down. Values of an iteration
 * that the gradient needs are pushed on a stack by the forward loop and popped by the gradient
 * loop; control edges keep pushes, and pops, in the order of iterations.
 */
#ifndef LEAT_LOOP_GRAD_H
#define LEAT_LOOP_GRAD_H

#include "graph/control_ctx.h"
#include "graph/gradients_int.h"

/* A forward loop and its gradient loop. */
typedef struct leat_loop_grad {
    leat_backprop *b;
    /* State of the loop around this one, if that has a gradient, too. */
    struct leat_loop_grad *outer;
    leat_control_ctx *forward, *backward;
    leat_out forward_index, grad_index; /* NextIterations of the counters */
    leat_node *forward_sync,
        *grad_sync;    /* run in every iteration, after pushes and pops in conds */
    leat_map history;  /* value of the forward loop -> the leat_out that pops it */
    leat_map switches; /* name of a loop's Switch -> Merge node of its gradient */
    leat_out *unused_exits, *deferred_exits;
    int n_unused, n_deferred;
    int pending_exits; /* exits whose gradients are not known yet */
    struct leat_loop_grad *next;
} leat_loop_grad;

/* ---- Called by leat_gradients; each does nothing if there are no loops ---- */

/* Finds the loops between ys and xs, and starts their gradient loops. */
leat_status leat_loops_find(leat_backprop *b) LEAT_MUST_CHECK;
/* Called before the first node is differentiated: handles exits that are not used. */
void leat_loops_begin(leat_backprop *b);
/* Nodes that are built from here until leave belong to the gradient loop of n's loop; with
 * `before`, gradients of n's outputs are being summed (for an Exit, outside its loop). Gives the
 * argument for leave. */
leat_control_ctx *leat_loops_enter(leat_backprop *b, leat_node *n, bool before);
void leat_loops_leave(leat_backprop *b, leat_control_ctx *was);
/* True for the initial value of a loop variable if the gradient is computed inside that loop: it
 * has none there. */
leat_status leat_loops_check(leat_backprop *b, leat_node *n) LEAT_MUST_CHECK;
/* Called when all gradients of x.node are known. */
void leat_loops_ready(leat_backprop *b, leat_out x);
/* Called at the end: adds missing back edges to variables of gradient loops. */
void leat_loops_end(leat_backprop *b);
void leat_loops_free(leat_backprop *b);
/* The state of the loop around n, if it has a gradient in this call. */
leat_loop_grad *leat_loops_of(leat_backprop *b, const leat_node *n);

/* ---- loop_history.c ---- */

leat_loop_grad *leat_loop_grad_new(leat_backprop *b, leat_control_ctx *forward,
                                   leat_loop_grad *outer);
/* Adds a stack to the forward loop that keeps value for every iteration. Gives its handle. */
leat_out leat_loop_push(leat_loop_grad *l, leat_out value);
/* The pop in the gradient loop that gives the pushed value. */
leat_out leat_loop_pop(leat_loop_grad *l, leat_out stack, leat_out value);
/* a node that runs after all pops of an iteration. */
leat_node *leat_loop_grad_sync(leat_loop_grad *l);
/* The tensor that represents a value of the forward loop in the gradient loop. */
leat_out leat_loop_real_value(leat_loop_grad *l, leat_out value);
static inline leat_control_ctx *leat_loop_grad_forward(const leat_loop_grad *l)
{
    return l->forward;
}

/* ---- loop_accumulate.c: the gradient of a constant Enter, summed over the iterations ---- */
leat_grad_value leat_loop_accumulate(leat_loop_grad *l, leat_node *enter, leat_grad_value grad);

/* A loop variable: makes Enter and Merge; leat_loop_next adds the back edge. */
leat_out leat_loop_merge(leat_out first, const char *name);
void leat_loop_next(leat_out merge, leat_out next);

#endif
