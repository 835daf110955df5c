/* variable_lock.h -- shared by the kernels of all devices that write to variables: finding the
 * variable, checking its dtype, and locking. */
#ifndef LEAT_VARIABLE_LOCK_H
#define LEAT_VARIABLE_LOCK_H

#include "runtime/kernel_int.h"

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
