/* tensor_list.h -- a list of tensors in a variant.
 *
 * 1. A list that several variants hold never changes: kernels that write use leat_list_take, which
 *    copies the list (not the tensors) unless this kernel is its last user.
 * 2. An item may be missing (NULL): it reads as zeros, where its shape is known.
 */
#ifndef LEAT_CPU_TENSOR_LIST_H
#define LEAT_CPU_TENSOR_LIST_H

#include "kernels/dataset/optional.h"
#include "kernels/cpu/cpu.h"

typedef struct leat_list {
    atomic_int refs;
    leat_dtype dtype;
    leat_shape element; /* what is known of every item's shape */
    int64_t max;        /* items it may have, or -1 */
    leat_tensor **v;    /* owned */
    int64_t n, cap;
} leat_list;

leat_list *leat_list_new(leat_dtype t, const leat_shape *element);
void leat_list_free(leat_list *l); /* drops a reference */
leat_status leat_list_resize(leat_list *l, int64_t n) LEAT_MUST_CHECK;
void leat_list_push(leat_list *l, leat_tensor *t); /* takes t */
/* The list in element 0 of input i; borrowed. The node's element_dtype, if it has one, is checked.
 */
leat_status leat_list_input(leat_kernel *k, int i, const leat_list **out) LEAT_MUST_CHECK;
/* The same list, or a copy, that may be written to; free with leat_list_free. */
leat_status leat_list_take(leat_kernel *k, int i, leat_list **out) LEAT_MUST_CHECK;
/* Output i is a scalar that holds l; takes l. */
leat_status leat_list_give(leat_kernel *k, int i, leat_list *l) LEAT_MUST_CHECK;
/* Input i as a shape: -1 for any, or a vector with -1 for unknown dims. */
leat_status leat_list_shape(leat_kernel *k, int i, leat_shape *out) LEAT_MUST_CHECK;
/* The merged shape of items from the list and input i. */
leat_status leat_list_element(leat_kernel *k, const leat_list *l, int i,
                              leat_shape *out) LEAT_MUST_CHECK;
/* Merges *s with another shape; the error is that of TensorFlow's lists. */
leat_status leat_list_merge(leat_shape *s, const leat_shape *other) LEAT_MUST_CHECK;
/* Merges *s with the shapes of the items that are set. */
leat_status leat_list_known(const leat_list *l, leat_shape *s) LEAT_MUST_CHECK;
extern const leat_variant_type leat_list_type;

/* variant.c: a variant of zeros for v, which is a number, a list or an optional, and for the
 * variants in it; empty ones stay empty. */
leat_status leat_variant_zeros(leat_variant v, leat_variant *out) LEAT_MUST_CHECK;

#endif
