/* tensor_array.h -- an array of tensors that lives for one step, behind the handle that owns it.
 *
 * 1. Each place is written once (an array of gradients: added up) and, unless it is kept, read
 *    once. What is read afterwards, or was cleared by a read, is an error.
 * 2. A place of which only the shape is known holds zeros, which are made when it is read.
 * 3. The arrays that collect gradients belong to the array that they are of, one for each call of
 *    gradients that asks for one.
 */
#ifndef LEAT_CPU_TENSOR_ARRAY_H
#define LEAT_CPU_TENSOR_ARRAY_H

#include <pthread.h>

#include "kernels/cpu/cpu.h"

typedef struct leat_array_item {
    leat_tensor *tensor; /* owned; NULL: zeros, or nothing */
    leat_shape shape;    /* once written */
    bool written, read, cleared;
} leat_array_item;

typedef struct leat_tensor_array {
    leat_resource base;
    char *name;   /* this and the next four never change */
    char *source; /* of gradients: the call that they belong to */
    leat_dtype dtype;
    bool is_grad, clear_after_read, identical_shapes;
    pthread_mutex_t lock; /* guards all below; an array's is taken before those of its gradients */
    leat_array_item *items;
    int64_t n, cap, marked; /* marked: the size after a Split, -1 if there was none */
    leat_shape element;     /* what is known of every item's shape */
    bool dynamic, closed, summed;
    struct leat_tensor_array **grads;
    int n_grads, cap_grads;
} leat_tensor_array;

/* The array behind input 0; borrowed. */
leat_status leat_tensor_array_of(leat_kernel *k, leat_tensor_array **out) LEAT_MUST_CHECK;
/* The array must be of dtype t. `writes` chooses the words. */
leat_status leat_tensor_array_dtype(const leat_tensor_array *a, leat_dtype t,
                                    bool writes) LEAT_MUST_CHECK;
/* With the lock held. Write shares x; read shares the item. */
leat_status leat_tensor_array_open(const leat_tensor_array *a) LEAT_MUST_CHECK;
leat_status leat_tensor_array_write(leat_tensor_array *a, int64_t i,
                                    leat_tensor *x) LEAT_MUST_CHECK;
leat_status leat_tensor_array_read(leat_tensor_array *a, int64_t i,
                                   leat_tensor **out) LEAT_MUST_CHECK;

#endif
