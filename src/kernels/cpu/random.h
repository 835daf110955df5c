/* random.h -- the streams of random numbers that nodes draw from. */
#ifndef LEAT_CPU_RANDOM_H
#define LEAT_CPU_RANDOM_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/philox.h"

/* The state of a kernel that draws random numbers; freed by leat_random_release. */
enum { LEAT_RANDOM_STATE = sizeof(void *) };
void leat_random_release(void *state);
/* The stream at its current position; the next call gets it n samples later. */
leat_status leat_random_reserve(leat_kernel *k, uint64_t n, leat_philox *out) LEAT_MUST_CHECK;
/* The stream of two seeds, which are scrambled first, so that weak seeds do no harm. */
leat_philox leat_random_seeded(const leat_tensor *seed);
uint64_t leat_random_by_chance(void); /* from the system */

#endif
