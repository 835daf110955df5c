/* walk.h -- how one or two operands lie under the elements of a result: the struct `walk` of
 * common.cl. */
#ifndef LEAT_OPENCL_WALK_H
#define LEAT_OPENCL_WALK_H

#include "kernels/cpu/move.h"
#include "kernels/opencl/opencl.h"

enum { LEAT_CL_RANK = 8 };
typedef struct leat_cl_walk {
    int32_t rank;
    int32_t dim[LEAT_CL_RANK], a[LEAT_CL_RANK], b[LEAT_CL_RANK];
} leat_cl_walk;

/* Adds a dimension inside the present ones; dimensions that can be one are merged. A size of 1 adds
 * nothing. UNIMPLEMENTED if there are too many dimensions. */
leat_status leat_cl_walk_dim(leat_cl_walk *w, int64_t dim, int64_t a, int64_t b) LEAT_MUST_CHECK;
/* The walk of two operands that broadcast against each other, and the result's shape; at least one
 * dimension. INVALID_ARGUMENT: "Incompatible shapes: [2] vs. [3]". */
leat_status leat_cl_broadcast(const leat_shape *a, const leat_shape *b, leat_cl_walk *w,
                              leat_shape *out) LEAT_MUST_CHECK;
/* The strides of a shape's dimensions, row by row. */
void leat_cl_strides(const leat_shape *s, int64_t *stride);

/* move.c: elements of `size` bytes from one place to another: each element of the walk is read at
 * its stride b and written at its stride a, counted from both addresses. Without elements nothing
 * is done. */
leat_status leat_cl_move(leat_opencl *d, const leat_cl_walk *w, size_t size, void *to,
                         const void *from) LEAT_MUST_CHECK;
/* The kind's function: the same for the views of kernels/cpu/move.h. */
leat_status leat_cl_move_views(leat_device *device, const leat_move *m, size_t size, void *to,
                               const void *from) LEAT_MUST_CHECK;
/* Sets n elements of `size` bytes to the bytes of *value; NULL: to zero. */
leat_status leat_cl_fill(leat_opencl *d, void *to, int64_t n, size_t size,
                         const void *value) LEAT_MUST_CHECK;

/* cwise.c: z = x + y, n elements of type float. z may be x or y. */
leat_status leat_cl_add(leat_opencl *d, const void *x, const void *y, void *z,
                        int64_t n) LEAT_MUST_CHECK;
/* The kind's function: to += from. */
leat_status leat_cl_add_to(leat_device *device, void *to, const void *from,
                           int64_t n) LEAT_MUST_CHECK;
/* z = the function "Op_type" of cwise.cl, of n elements of x and, unless it is NULL, y, which lie
 * under them as the walk says. */
leat_status leat_cl_cwise(leat_opencl *d, const char *function, const leat_cl_walk *w,
                          const void *x, const void *y, const void *z, int64_t n) LEAT_MUST_CHECK;
/* The name of an element-wise op of so many floats, whose expression is in expressions.cl, as a
 * string that lives for ever; NULL: there is none. *same_out: the operands have one shape. */
const char *leat_cl_expression(const char *op, int operands, bool *same_out);

#endif
