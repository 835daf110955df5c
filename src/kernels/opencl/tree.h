/* tree.h -- trees of element-wise ops of floats, as OpenCL C. */
#ifndef LEAT_OPENCL_TREE_H
#define LEAT_OPENCL_TREE_H

#include "kernels/opencl/opencl.h"

/* One op of a tree. An operand below n_args is an argument, others are results of earlier steps; b
 * is -1 for ops of one operand. */
typedef struct leat_cl_step {
    const char *op;   /* lives for ever */
    const char *name; /* of the node that it comes from */
    int a, b;
    bool same; /* the operands have one shape, without broadcasting */
} leat_cl_step;

typedef struct leat_cl_tree {
    leat_cl_step *steps;
    int n, n_args;
} leat_cl_tree;
/* From the attributes num_args, ops, operands and names (ops/fused_cwise.c); freed with
 * leat_cl_tree_release, also after an error. */
leat_status leat_cl_tree_init(leat_cl_tree *t, const leat_node *n) LEAT_MUST_CHECK;
void leat_cl_tree_release(leat_cl_tree *t);

/* The function "tree" of its arguments, its result and the number of elements, where bit k of the
 * option ONES says that argument k is one element for all. Trees that compute the same have the
 * same text, which lives for ever. NULL: the tree has too many arguments, or the process has
 * compiled more different trees than it keeps. */
const leat_cl_text *leat_cl_tree_text(const leat_cl_tree *t);

#endif
