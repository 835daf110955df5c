/* optimizer.h -- what an optimizer is: a table of functions, its numbers, its slots.
 *
 * A new one is one file: options in train.h, a struct that begins with leat_optimizer, a table.
 * An optimizer that wraps another one (synchronous replicas) sets compute and apply.
 */
#ifndef LEAT_OPTIMIZER_H
#define LEAT_OPTIMIZER_H

#include <leat/train.h>
#include "train/train_int.h"

typedef struct leat_optimizer_ops {
    /* Makes the slots of these variables, once for each. Optional. */
    void (*create_slots)(leat_optimizer *opt, const leat_out *vars, int n);
    /* Adds the op that updates a variable by its gradient. */
    leat_out (*dense)(leat_optimizer *opt, leat_out var, leat_out grad);
    /* The same for rows at indices. */
    leat_out (*sparse)(leat_optimizer *opt, leat_out var, leat_out rows, leat_out indices);
    bool
        takes_repeated; /* sparse may be given an index more than once: they are not summed first */
    /* Adds what comes after all updates; gives the op that is the whole. Optional. */
    leat_out (*finish)(leat_optimizer *opt, leat_graph *g, leat_out *updates, int n,
                       const char *name);
    /* For wrappers. Optional. */
    leat_var_grad *(*compute)(leat_optimizer *opt, leat_out loss, int *n_out,
                              const leat_minimize_options *o);
    leat_out (*apply)(leat_optimizer *opt, const leat_var_grad *grads, int n,
                      const leat_minimize_options *o);
    void (*free)(leat_optimizer *opt); /* what it has beyond leat_optimizer. Optional. */
} leat_optimizer_ops;

/* A number that the update ops take: a constant, made in the update's scope, or a tensor. */
typedef struct leat_hyper {
    const char *name;
    double value;
    leat_out given; /* by the user; NULL node: value */
    leat_out made;
} leat_hyper;

enum { LEAT_MAX_HYPERS = 4 };
struct leat_optimizer {
    const leat_optimizer_ops *ops;
    const char *name;
    bool use_locking;
    leat_hyper hyper[LEAT_MAX_HYPERS]; /* those without a name are not there */
    struct leat_slot {
        const char *slot;
        leat_node *var; /* VariableV2 or VarHandleOp */
        leat_out value;
    } * slots;
    int n_slots, cap_slots;
};

/* A new one of `size` bytes, which begins with leat_optimizer. */
void *leat_optimizer_new(size_t size, const leat_optimizer_ops *ops, const char *name,
                         const char *default_name, bool use_locking);
/* The slot of a variable; made with this first value where it is missing. */
leat_out leat_optimizer_make_slot(leat_optimizer *opt, leat_out var, const char *slot,
                                  const leat_initializer *initializer);
/* A variable of the optimizer itself, beside `with`; the same one for all calls. */
leat_out leat_optimizer_make_own(leat_optimizer *opt, leat_out with, const char *name,
                                 double value);
/* Hyper i as a tensor of t. */
leat_out leat_optimizer_hyper(leat_optimizer *opt, int i, leat_dtype t);
/* The update op on var: "ApplyX", or "ResourceApplyX" behind a handle. in[] follow var; those that
 * are values of variables and that the op takes as such are given as references or handles. */
leat_out leat_optimizer_update(leat_optimizer *opt, const char *op, leat_out var,
                               const leat_out *in, int n, leat_arg extra);

#endif
