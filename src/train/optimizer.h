/* optimizer.h -- an optimizer: a table of functions, hyperparameters, slots.
 *
 * To add an optimizer, add one file with a struct that begins with leat_optimizer and a table, and
 * its options to train.h. An optimizer that wraps another one (synchronous replicas) sets compute
 * and apply.
 */
#ifndef LEAT_OPTIMIZER_H
#define LEAT_OPTIMIZER_H

#include <leat/train.h>
#include "graph/given.h"
#include "train/train_int.h"

typedef struct leat_optimizer_ops {
    const char *constructor; /* "leat_adam", for messages */
    /* Makes the slots of these variables if they do not exist. Optional. */
    void (*create_slots)(leat_optimizer *opt, const leat_out *vars, int n);
    /* Adds the op that updates a variable by its gradient. */
    leat_out (*dense)(leat_optimizer *opt, leat_out var, leat_out grad);
    /* The same for a gradient of rows at indices. */
    leat_out (*sparse)(leat_optimizer *opt, leat_out var, leat_out rows, leat_out indices);
    bool
        /* Sparse accepts repeated indices; if not set, rows of the same index are summed first. */
        takes_repeated;
    /* Adds nodes that run after all updates; gives the op that completes the whole update.
     * Optional. */
    leat_out (*finish)(leat_optimizer *opt, leat_graph *g, leat_out *updates, int n,
                       const char *name);
    /* For an optimizer that wraps another. Optional. */
    leat_var_grad *(*compute)(leat_optimizer *opt, leat_out loss, int *n_out,
                              const leat_minimize_options *o);
    leat_out (*apply)(leat_optimizer *opt, const leat_var_grad *grads, int n,
                      const leat_minimize_options *o);
    /* Frees what the struct has beyond leat_optimizer. Optional. */
    void (*free)(leat_optimizer *opt);
} leat_optimizer_ops;

/* A hyperparameter, an input of the update ops: a constant, made in the update's scope, or a
 * tensor. */
typedef struct leat_hyper {
    const char *name;
    double value;
    leat_out given; /* the user's tensor; NULL node: value is used */
    leat_out made;
} leat_hyper;

enum { LEAT_MAX_HYPERS = 4 };
struct leat_optimizer {
    leat_object object;
    const leat_optimizer_ops *ops;
    const char *name;
    bool use_locking;
    leat_status mistake;               /* a required hyperparameter that is missing, or NULL */
    leat_loc at;                       /* where the optimizer was made */
    leat_hyper hyper[LEAT_MAX_HYPERS]; /* entries without a name are not used */
    struct leat_slot {
        const char *slot;
        leat_node *var; /* VariableV2 or VarHandleOp */
        leat_out value;
    } * slots;
    int n_slots, cap_slots;
};

/* Makes an optimizer of `size` bytes, whose first member is a leat_optimizer. */
void *leat_optimizer_new(size_t size, const leat_optimizer_ops *ops, const leat_given *given,
                         const char *name, const char *default_name, bool use_locking);
/* Sets hyperparameter i to its value, or to its default if it was not given. */
void leat_optimizer_default(leat_optimizer *opt, int i, const leat_given *given, const char *name,
                            double value, double fallback);
/* Sets hyperparameter i, which has no default, to its value or, if that has a node, to the tensor.
 * If neither was given, the first use of the optimizer is a mistake. */
void leat_optimizer_require(leat_optimizer *opt, int i, const leat_given *given, const char *name,
                            double value, leat_out tensor);
/* The slot of a variable; made with this initial value if it does not exist. */
leat_out leat_optimizer_make_slot(leat_optimizer *opt, leat_out var, const char *slot,
                                  const leat_initializer *initializer);
/* A variable of the optimizer itself, on the device of `with`; the same one for all calls. */
leat_out leat_optimizer_make_own(leat_optimizer *opt, leat_out with, const char *name,
                                 double value);
/* Hyperparameter i as a tensor of dtype t. */
leat_out leat_optimizer_hyper(leat_optimizer *opt, int i, leat_dtype t);
/* The update op of var: "ApplyX", or "ResourceApplyX" for a resource variable. in[] are the inputs
 * after var; values of variables are replaced by references or handles where the op takes those. */
leat_out leat_optimizer_update(leat_optimizer *opt, const char *op, leat_out var,
                               const leat_out *in, int n, leat_arg extra);

#endif
