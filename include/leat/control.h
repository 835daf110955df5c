/* control.h -- conds and loops, built as TensorFlow 1 builds them: Switch and Merge, Enter, Exit,
 * NextIteration and LoopCond. Tensors from outside that branches and bodies use are captured
 * automatically.
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

/* Builds a branch and writes as many outs as the call to leat_cond says. An out may be the
 * completion of a node (leat_done); the corresponding output of the cond is a bool. */
typedef void (*leat_branch_fn)(leat_graph *g, void *arg, leat_out *outs);
typedef struct leat_cond_options {
    const char *name; /* "cond" */
} leat_cond_options;
/* Only the branch that pred (a bool scalar) chooses runs; outs get its results. Both branches must
 * give tensors of the same dtypes. */
#define leat_cond(pred, true_fn, false_fn, arg, outs, n, ...)                                      \
    leat_cond_at(LEAT_AT, pred, true_fn, false_fn, arg, outs, n,                                   \
                 LEAT_OPTIONS(leat_cond_options, __VA_ARGS__))
LEAT_API void leat_cond_at(leat_loc at, leat_out pred, leat_branch_fn true_fn,
                           leat_branch_fn false_fn, void *arg, leat_out *outs, int n,
                           const leat_cond_options *options);

/* Runs branch number `index` (an int32 scalar) of n_branches; any other number runs the last. */
#define leat_switch_case(index, branches, n_branches, arg, outs, n, ...)                           \
    leat_switch_case_at(LEAT_AT, index, branches, n_branches, arg, outs, n,                        \
                        LEAT_OPTIONS(leat_cond_options, __VA_ARGS__))
LEAT_API void leat_switch_case_at(leat_loc at, leat_out index, const leat_branch_fn *branches,
                                  int n_branches, void *arg, leat_out *outs, int n,
                                  const leat_cond_options *options);

/* Builds the condition: a bool scalar that is true if there is another iteration. */
typedef leat_out (*leat_loop_cond_fn)(leat_graph *g, void *arg, const leat_out *vars);
/* Builds one iteration, which computes next from vars; each has the dtype and shape of its var. */
typedef void (*leat_loop_body_fn)(leat_graph *g, void *arg, const leat_out *vars, leat_out *next);
typedef struct leat_while_options {
    leat_given given; /* set by the macro */
    /* How many may run at the same time where they do not depend on each other; default 10. */
    int parallel_iterations;
    bool no_back_prop;           /* gradients stop at this loop */
    bool swap_memory;            /* tensors that gradients need may be moved off the device */
    leat_out maximum_iterations; /* an integer scalar; node NULL: no limit */
    /* The vars' shapes as far as they hold in every iteration; NULL: the shapes of vars. */
    const leat_shape *shapes;
    const char *name;            /* "while" */
} leat_while_options;
/* while (cond(vars)) vars = body(vars); writes the final vars to outs (n of them; outs may be
 * vars). */
#define leat_while_loop(cond_fn, body_fn, arg, vars, n, outs, ...)                                 \
    leat_while_loop_at(LEAT_AT, cond_fn, body_fn, arg, vars, n, outs,                              \
                       LEAT_GIVEN_OPTIONS(leat_while_options, __VA_ARGS__))
LEAT_API void leat_while_loop_at(leat_loc at, leat_loop_cond_fn cond_fn, leat_loop_body_fn body_fn,
                                 void *arg, const leat_out *vars, int n, leat_out *outs,
                                 const leat_while_options *options);

#endif
