/* cwise_tree.h -- a tree of element-wise ops as kernels run it: of _FusedCwise (fused_cwise.c), and
 * of the fused training ops (training.c), which apply what it gives block by block. */
#ifndef LEAT_KERNELS_CPU_CWISE_TREE_H
#define LEAT_KERNELS_CPU_CWISE_TREE_H

#include "kernels/cpu/rows.h"

enum { LEAT_CWISE_BLOCK = 512 }; /* elements that are computed at a time, at most */

typedef struct leat_cwise_tree {
    struct leat_cwise_step *steps;
    int n, n_args;
    double unit_ns; /* of an element */
} leat_cwise_tree;

/* From the attributes num_args, ops, operands and names; see ops/fused_cwise.c. */
leat_status leat_cwise_init(leat_cwise_tree *t, const leat_node *n) LEAT_MUST_CHECK;
void leat_cwise_release(leat_cwise_tree *t);

/* Whether the tree gives a value of shape s, and can do so block by block: each step has an operand
 * of that shape, and the other one has it, too, or is a single element where the op allows that.
 * in: the arguments. */
bool leat_cwise_fits(const leat_cwise_tree *t, const leat_entry *in, const leat_shape *s);
/* Elements [at, at + n) of the value, n no more than a block. */
void leat_cwise_block(const leat_cwise_tree *t, const leat_entry *in, int64_t at, int64_t n,
                      void *y);
/* The value where blocks do not fit: one step after the other, as their ops would, in memory of
 * its own. Errors are those of the ops. */
leat_status leat_cwise_whole(leat_kernel *k, const leat_cwise_tree *t, const leat_entry *in,
                             leat_tensor **out) LEAT_MUST_CHECK;

#endif
