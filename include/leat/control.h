/* control.h -- conds and loops, built as TensorFlow 1 builds them: Switch and Merge, Enter, Exit,
 * NextIteration and LoopCond. What branches and bodies use from outside is captured by itself.
 *
 *     static void twice(leat_graph *g, void *arg, leat_out *outs)
 *     {
 *         leat_out *x = arg;
 *         outs[0] = leat_mul(*x, leat_scalar_like(*x, 2));
 *     }
 *     leat_cond(leat_less(x, y), twice, same, &x, &result, 1);
 */
#ifndef LEAT_CONTROL_H
#define LEAT_CONTROL_H

#include <leat/ops.h>

/* Builds a branch; fills outs, as many as the call to leat_cond says. An out may be the completion
 * of a node (leat_done); what comes out of the cond for it is a bool. */
typedef void (*leat_branch_fn)(leat_graph *g, void *arg, leat_out *outs);
typedef struct leat_cond_options {
    const char *name; /* "cond" */
} leat_cond_options;
/* Only the branch that pred (a bool scalar) chooses runs; outs are what it gave. Both branches
 * give tensors of the same dtypes. */
#define leat_cond(pred, true_fn, false_fn, arg, outs, n, ...)                                      \
    leat_cond_at(LEAT_AT, pred, true_fn, false_fn, arg, outs, n,                                   \
                 &(leat_cond_options){__VA_ARGS__})
LEAT_API void leat_cond_at(leat_loc at, leat_out pred, leat_branch_fn true_fn,
                           leat_branch_fn false_fn, void *arg, leat_out *outs, int n,
                           const leat_cond_options *options);

/* Branch number `index` (an int32 scalar) of n_branches runs; any other number means the last. */
#define leat_switch_case(index, branches, n_branches, arg, outs, n, ...)                           \
    leat_switch_case_at(LEAT_AT, index, branches, n_branches, arg, outs, n,                        \
                        &(leat_cond_options){__VA_ARGS__})
LEAT_API void leat_switch_case_at(leat_loc at, leat_out index, const leat_branch_fn *branches,
                                  int n_branches, void *arg, leat_out *outs, int n,
                                  const leat_cond_options *options);

/* Gives a bool scalar: whether there is another iteration. */
typedef leat_out (*leat_loop_cond_fn)(leat_graph *g, void *arg, const leat_out *vars);
/* Builds one iteration: from vars to next, each of the same dtype and shape. */
typedef void (*leat_loop_body_fn)(leat_graph *g, void *arg, const leat_out *vars, leat_out *next);
typedef struct leat_while_options {
    int parallel_iterations;     /* at once, where they do not depend on each other; 0: 10 */
    bool no_back_prop;           /* gradients stop at this loop */
    bool swap_memory;            /* what gradients need may be moved off the device */
    leat_out maximum_iterations; /* an integer scalar; node NULL: no limit */
    const leat_shape *shapes;    /* what is known of the vars in every iteration; NULL: theirs */
    const char *name;            /* "while" */
} leat_while_options;
/* while (cond(vars)) vars = body(vars); writes the last vars to outs (n; may be vars itself). */
#define leat_while_loop(cond_fn, body_fn, arg, vars, n, outs, ...)                                 \
    leat_while_loop_at(LEAT_AT, cond_fn, body_fn, arg, vars, n, outs,                              \
                       &(leat_while_options){__VA_ARGS__})
LEAT_API void leat_while_loop_at(leat_loc at, leat_loop_cond_fn cond_fn, leat_loop_body_fn body_fn,
                                 void *arg, const leat_out *vars, int n, leat_out *outs,
                                 const leat_while_options *options);

#endif
