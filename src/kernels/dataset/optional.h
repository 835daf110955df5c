/* optional.h -- a variant that holds tensors, or nothing; and how a kernel gives a variant. */
#ifndef LEAT_ANY_OPTIONAL_H
#define LEAT_ANY_OPTIONAL_H

#include "kernels/cpu/cpu.h"

typedef struct leat_optional {
    atomic_int refs;
    int n;
    leat_tensor **v; /* NULL: none */
} leat_optional;
leat_optional *leat_optional_new(int n); /* for n tensors, which the caller fills in */
extern const leat_variant_type leat_optional_type;

/* Output i is a scalar that holds v; takes v. */
leat_status leat_variant_give(leat_kernel *k, int i, leat_variant v) LEAT_MUST_CHECK;

#endif
