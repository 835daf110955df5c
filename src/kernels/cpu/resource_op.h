/* resource_op.h -- ops that make what outlives a step (queues, accumulators) and give a handle of
 * it: a resource handle, or, in the ops of old, a reference to a string vector [container, name].
 * A handle made in this process points at what it stands for; one that came over the wire is
 * looked up by its name. */
#ifndef LEAT_CPU_RESOURCE_OP_H
#define LEAT_CPU_RESOURCE_OP_H

#include "kernels/cpu/cpu.h"

/* The state of such a kernel: what it gives, found or made on the first run. */
typedef struct leat_resource_op {
    _Atomic(leat_tensor *) handle;
    _Atomic(leat_variable *) ref;
} leat_resource_op;
void leat_resource_op_release(void *state);

typedef struct leat_resource_maker {
    const leat_resource_type *type;
    /* Made with this name, from the attributes of k's node, and its inputs if it has some. */
    leat_status (*make)(leat_kernel *k, const char *name, leat_resource **out);
    /* Another node has made r: is it what n asks for? */
    leat_status (*check)(const leat_node *n, const leat_resource *r);
} leat_resource_maker;
/* Output 0 becomes a handle. Attributes container and shared_name say what it is called; the
 * node's name stands in for the latter. */
leat_status leat_resource_op_run(leat_kernel *k, const leat_resource_maker *m) LEAT_MUST_CHECK;

/* What is behind input i, of either kind. Shares it: leat_resource_unref. */
leat_status leat_kernel_resource(leat_kernel *k, int i, const leat_resource_type *type,
                                 leat_resource **out) LEAT_MUST_CHECK;

/* INVALID_ARGUMENT unless the dtypes of the node's inputs, but the handle in front of them, and of
 * its outputs are these: "Signature mismatch, have: ..." */
leat_status leat_kernel_signature(leat_kernel *k, const leat_dtype *in, int n_in,
                                  const leat_dtype *out, int n_out) LEAT_MUST_CHECK;

#endif
