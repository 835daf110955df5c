/* tensor_array.h -- an array of tensors that lives for one step, behind the handle that owns it.
 *
 * 1. Each item is written once (in an array of gradients: any number of times, which are added up)
 *    and, if clear_after_read is set, read once. Reading an item that a read has cleared is an
 *    error.
 * 2. An item of which only the shape is known is zeros, which are made when it is read.
 * 3. An array owns the arrays that collect its gradients, one for each call of leat_gradients that
 * uses it.
 */
#ifndef LEAT_CPU_TENSOR_ARRAY_H
#define LEAT_CPU_TENSOR_ARRAY_H

#include <pthread.h>

#include "kernels/cpu/move.h"

typedef struct leat_array_item {
    leat_tensor *tensor; /* owned; NULL: zeros, or not written */
    leat_shape shape;    /* once written */
    bool written, read, cleared;
} leat_array_item;

typedef struct leat_tensor_array {
    leat_resource base;
    char *name;   /* the fields before lock never change */
    char *source; /* in an array of gradients: the call of leat_gradients that it belongs to */
    leat_dtype dtype;
    bool is_grad, clear_after_read, identical_shapes;
    /* Guards the following fields; taken before the locks of the arrays of gradients. */
    pthread_mutex_t lock;
    leat_array_item *items;
    int64_t n, cap, marked; /* marked: the size set by a Split, -1 if there was none */
    leat_shape element;     /* what is known of every item's shape */
    bool dynamic, closed, summed;
    struct leat_tensor_array **grads;
    int n_grads, cap_grads;
} leat_tensor_array;

/* The array behind input 0; borrowed. */
leat_status leat_tensor_array_of(leat_kernel *k, leat_tensor_array **out) LEAT_MUST_CHECK;
/* Checks that the array is of dtype t. `writes` selects the error message. */
leat_status leat_tensor_array_dtype(const leat_tensor_array *a, leat_dtype t,
                                    bool writes) LEAT_MUST_CHECK;
/* The lock is held. Write shares x; read shares the item. Items are in the memory where the kernel
 * has its values: the host's, or that of a device, which adds and clears them itself. */
leat_status leat_tensor_array_open(const leat_tensor_array *a) LEAT_MUST_CHECK;
leat_status leat_tensor_array_write(leat_kernel *k, leat_tensor_array *a, int64_t i,
                                    leat_tensor *x) LEAT_MUST_CHECK;
leat_status leat_tensor_array_read(leat_kernel *k, leat_tensor_array *a, int64_t i,
                                   leat_tensor **out) LEAT_MUST_CHECK;

#endif
