/* update.h -- shared by the kernels that write to variables: finding the variable and checking its
 * dtype, locking, and p[i] = p[i] op u[i] for every dtype. */
#ifndef LEAT_CPU_UPDATE_H
#define LEAT_CPU_UPDATE_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/level_rows.h"

typedef enum leat_update_op {
    LEAT_UPDATE_ASSIGN,
    LEAT_UPDATE_ADD,
    LEAT_UPDATE_SUB,
    LEAT_UPDATE_MUL,
    LEAT_UPDATE_DIV,
    LEAT_UPDATE_MIN,
    LEAT_UPDATE_MAX
} leat_update_op;

/* p[i] = p[i] op u[i * step] for i below n; step is 0 (one u for all) or 1. Returns false, with p
 * partly updated, if an integer is divided by zero. */
typedef bool (*leat_update_fn)(void *p, const void *u, int64_t n, int step);
/* NULL if there is none for this dtype. Not for LEAT_UPDATE_ASSIGN. */
leat_update_fn leat_update_of(leat_dtype t, leat_update_op op);

/* Rows of p at the positions in the last dimension of indices become p op u, in order; p may be
 * written to. All positions are checked first: "indices[0] = [9] does not index into shape [4]". */
leat_status leat_scatter_nd(leat_tensor *p, const leat_tensor *indices, const leat_tensor *u,
                            leat_update_op op) LEAT_MUST_CHECK;

/* training.c: the rule of AssignAdd and AssignSub, if the value is a tree of element-wise ops. */
extern const leat_apply_rule leat_rule_assign_add, leat_rule_assign_sub;

/* The variable behind input i, which must be of dtype t. */
leat_status leat_kernel_variable_of(leat_kernel *k, int i, leat_dtype t,
                                    leat_variable **out) LEAT_MUST_CHECK;

/* Up to four variables that one kernel writes to: those behind inputs 0 to n-1. They are locked in
 * the order of their addresses, each once, so that kernels with common variables cannot
 * deadlock. */
typedef struct leat_locked {
    leat_variable *var[4];
    leat_tensor *value[4]; /* may be written to */
    int n;
} leat_locked;
/* On failure nothing is locked. Inputs from number `seen` on may share the buffer of a variable,
 * and change while the kernel writes; with seen == k->n_in no input may. */
leat_status leat_kernel_lock(leat_kernel *k, int n, leat_dtype t, int seen,
                             leat_locked *out) LEAT_MUST_CHECK;
void leat_kernel_unlock(leat_locked *l);
/* Whether an AssignAdd or AssignSub with a value of shape u may update a variable (a reference or a
 * handle). */
leat_status leat_update_check(const leat_shape *variable, const leat_shape *u,
                              bool ref) LEAT_MUST_CHECK;

/* The position of element `flat` in a tensor, in TensorFlow's form: "", "[2]", "[1,0]". */
leat_text leat_index_show(const leat_shape *s, int64_t flat);

#endif
