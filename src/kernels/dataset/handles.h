/* handles.h -- what the resources of this folder share: handles that keep their resource, handles
 * as strings, and the types and shapes of a resource's elements. */
#ifndef LEAT_DATASET_HANDLES_H
#define LEAT_DATASET_HANDLES_H

#include "kernels/dataset/iteration.h"

/* ---- Resources that only their handles refer to ---- */

/* Sets output i to a handle of r, and output 1, if there is one, to a deleter, which is empty: the
 * resource ends with its last handle. Takes r. */
leat_status leat_anonymous_handle(leat_kernel *k, int i, const char *name,
                                  leat_resource *r) LEAT_MUST_CHECK;
/* The resource behind input i, for handles of this kind and for others. Shares it. */
leat_status leat_anonymous_resource(leat_kernel *k, int i, const leat_resource_type *type,
                                    leat_resource **out) LEAT_MUST_CHECK;
/* Drops what leat_handle_to_string has kept of the resource of input i. */
void leat_anonymous_delete(leat_kernel *k, int i);

typedef struct leat_seed_generator {
    leat_resource base;
    leat_seeds *seeds;
} leat_seed_generator;
extern const leat_resource_type leat_seed_generator_type;

/* ---- Elements ---- */

/* What a node's attributes output_types and output_shapes say. */
typedef struct leat_element_spec {
    int n_types, n_shapes;
    leat_dtype *types;
    leat_shape *shapes;
} leat_element_spec;
leat_element_spec leat_element_spec_of(const leat_node *n);
void leat_element_spec_release(leat_element_spec *e);
/* INVALID_ARGUMENT unless e fits what another node, or a dataset, has. A node's empty lists fit
 * everything. */
leat_status leat_element_spec_fits(const leat_element_spec *e, const leat_node *n) LEAT_MUST_CHECK;
leat_status leat_element_spec_fits_dataset(const leat_element_spec *e,
                                           const leat_dataset *d) LEAT_MUST_CHECK;

/* ---- Handles as strings ---- */

/* Sets output 0 to the handle in input 0 as a string. The resource has to exist. One that only
 * handles refer to is kept from now on, until DestroyResourceOp or the end of the session: the
 * string may outlive its handles. */
leat_status leat_handle_to_string(leat_kernel *k, const leat_resource_type *type) LEAT_MUST_CHECK;
/* The resource of this device that h names; shared. */
leat_status leat_handle_find(leat_kernel *k, const leat_handle *h, const leat_resource_type *type,
                             leat_resource **out) LEAT_MUST_CHECK;
/* Sets output 0 to the handle in the string that is input 0, if the resource is on this device and
 * check (maybe NULL) accepts it. */
leat_status leat_handle_from_string(leat_kernel *k, const leat_resource_type *type,
                                    leat_status (*check)(const leat_node *n,
                                                         const leat_resource *r)) LEAT_MUST_CHECK;

#endif
