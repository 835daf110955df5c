/* cwise_tree.h -- runs a tree of element-wise ops: for _FusedCwise (fused_cwise.c) and for the
 * fused training ops (training.c), which apply its result block by block. */
#ifndef LEAT_KERNELS_CPU_CWISE_TREE_H
#define LEAT_KERNELS_CPU_CWISE_TREE_H

#include "kernels/cpu/rows.h"

enum { LEAT_CWISE_BLOCK = 512 }; /* limit of elements that are computed at a time */

typedef struct leat_cwise_tree {
    struct leat_cwise_step *steps;
    int n, n_args;
    double unit_ns; /* estimated cost of an element */
} leat_cwise_tree;

/* From the attributes num_args, ops, operands and names; see ops/fused_cwise.c. */
leat_status leat_cwise_init(leat_cwise_tree *t, const leat_node *n) LEAT_MUST_CHECK;
void leat_cwise_release(leat_cwise_tree *t);

/* Whether the tree's value has the shape s and can be computed block by block: each step has an
 * operand of that shape, and the other operand has it, too, or is a single element where the op
 * allows that. in: the arguments. */
bool leat_cwise_fits(const leat_cwise_tree *t, const leat_entry *in, const leat_shape *s);
/* Computes elements [at, at + n) of the value; n is at most LEAT_CWISE_BLOCK. */
void leat_cwise_block(const leat_cwise_tree *t, const leat_entry *in, int64_t at, int64_t n,
                      void *y);
/* Computes the value if it cannot be computed in blocks: one step after another, like the single
 * ops, each with memory of its own. Errors are those of the ops. */
leat_status leat_cwise_whole(leat_kernel *k, const leat_cwise_tree *t, const leat_entry *in,
                             leat_tensor **out) LEAT_MUST_CHECK;

#endif
