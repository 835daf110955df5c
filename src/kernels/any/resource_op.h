/* resource_op.h -- ops that make a resource which outlives a step (a queue, an accumulator) and
 * give a handle of it: a resource handle or, in the ops' first versions, a reference to a string
 * vector [container, name]. A handle that was made in this process points to the resource; one that
 * came over the wire is looked up by its name. */
#ifndef LEAT_ANY_RESOURCE_OP_H
#define LEAT_ANY_RESOURCE_OP_H

#include "kernels/cpu/cpu.h"

/* The state of such a kernel: the handle, found or made on the first run. */
typedef struct leat_resource_op {
    _Atomic(leat_tensor *) handle;
    _Atomic(leat_variable *) ref;
} leat_resource_op;
void leat_resource_op_release(void *state);

typedef struct leat_resource_maker {
    const leat_resource_type *type;
    /* Makes a resource of this name from the attributes of k's node, and its inputs if it has
     * some. */
    leat_status (*make)(leat_kernel *k, const char *name, leat_resource **out);
    /* Checks that r, which another node has made, fits n's attributes. */
    leat_status (*check)(const leat_node *n, const leat_resource *r);
    /* Handles do not hold the resource, which may hold functions: a node of such a function would
     * otherwise hold itself by its handle, and neither would be freed. */
    bool by_name;
} leat_resource_maker;
/* Sets output 0 to a handle. The resource's name is given by the attributes container and
 * shared_name; if the latter is empty, by the node's name. */
leat_status leat_resource_op_run(leat_kernel *k, const leat_resource_maker *m) LEAT_MUST_CHECK;

/* Sets output 0 to a resource handle, by container and shared_name as above, of a resource in the
 * device's own resources that another op makes later. The state is a leat_resource_op. */
leat_status leat_resource_handle_run(leat_kernel *k,
                                     const leat_resource_type *type) LEAT_MUST_CHECK;

/* Where the resource that k's node names by container and shared_name, else by its own name, is
 * kept. The strings are borrowed from the node. */
typedef struct leat_resource_place {
    leat_resources *where;
    const char *container, *name;
} leat_resource_place;
leat_status leat_resource_place_of(leat_kernel *k, leat_resource_place *out) LEAT_MUST_CHECK;

/* The resource behind input i, for handles of both kinds. Shares it: leat_resource_unref. */
leat_status leat_kernel_resource(leat_kernel *k, int i, const leat_resource_type *type,
                                 leat_resource **out) LEAT_MUST_CHECK;

/* INVALID_ARGUMENT unless the dtypes of the node's inputs after the handle, and of its outputs, are
 * these: "Signature mismatch, have: ..." */
leat_status leat_kernel_signature(leat_kernel *k, const leat_dtype *in, int n_in,
                                  const leat_dtype *out, int n_out) LEAT_MUST_CHECK;

#endif
