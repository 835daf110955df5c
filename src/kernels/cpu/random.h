/* random.h -- the streams of random numbers that nodes draw from. */
#ifndef LEAT_CPU_RANDOM_H
#define LEAT_CPU_RANDOM_H

#include <stdatomic.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/philox.h"
#include "runtime/resource.h"

/* The state of a kernel that draws random numbers; freed by leat_random_release. */
enum { LEAT_RANDOM_STATE = sizeof(void *) };
void leat_random_release(void *state);
typedef leat_status leat_random_make_fn(void *node, leat_resource **out);
/* The resource that the kernel's node has in its session, whatever the runs fetch: made by
 * make(node) for the first run and found by the node's name and seeds, as its generator is; in a
 * function of a dataset it is the kernel's alone. Borrowed from *slot, which is part of the
 * kernel's state: its release gives up the reference. */
leat_status leat_random_resource(leat_kernel *k, _Atomic(leat_resource *) *slot,
                                 const char *container, const leat_resource_type *type,
                                 leat_random_make_fn *make, leat_resource **out) LEAT_MUST_CHECK;
/* The stream at its current position; the next call gets it n samples later. */
leat_status leat_random_reserve(leat_kernel *k, uint64_t n, leat_philox *out) LEAT_MUST_CHECK;
/* The stream of two seeds, which are scrambled first, so that weak seeds do no harm. */
leat_philox leat_random_seeded(const leat_tensor *seed);
/* Output 0, of the shape that input 0 has as its elements. */
leat_status leat_random_output(leat_kernel *k, leat_tensor **y) LEAT_MUST_CHECK;
uint64_t leat_random_by_chance(void); /* from the system */

#endif
