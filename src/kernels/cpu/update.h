/* update.h -- shared by the kernels that write to variables: p[i] = p[i] op u[i] for every dtype;
 * runtime/variable_lock.h finds and locks them. */
#ifndef LEAT_CPU_UPDATE_H
#define LEAT_CPU_UPDATE_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/level_rows.h"
#include "runtime/variable_lock.h"

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

#endif
