/* candidate.h -- the distributions that candidate samplers draw classes from: a learned one, which
 * counts the true classes that it is shown, and a fixed one with a weight for each class. */
#ifndef LEAT_CPU_CANDIDATE_H
#define LEAT_CPU_CANDIDATE_H

#include "kernels/cpu/philox.h"
#include "kernels/cpu/random.h"

/* Numbers in [0, n), all equally likely; n is not 0. */
uint32_t leat_uniform_below(leat_philox_single *s, uint32_t n);
uint64_t leat_uniform_below_64(leat_philox_single *s, uint64_t n);

/* ---- Learned: every class has the weight 1 at first, and one more for each time it was true ----
 */
typedef struct leat_learned {
    leat_resource base;
    pthread_mutex_t lock; /* guards what follows; held while a batch is drawn */
    int64_t range;        /* number of classes */
    int32_t total;        /* of all weights */
    int32_t *added;       /* a Fenwick tree of what was added to the classes' weights; 1 to range */
} leat_learned;
extern const leat_resource_type leat_learned_type;
/* The maker of leat_random_resource; its node has the attribute range_max. */
leat_status leat_learned_make(void *node, leat_resource **out) LEAT_MUST_CHECK;
int64_t leat_learned_draw(const leat_learned *l, leat_philox_single *s);
int32_t leat_learned_weight(const leat_learned *l, int64_t value);
void leat_learned_add(leat_learned *l, int64_t value); /* does nothing once total is INT32_MAX */

/* ---- Fixed ---- */
typedef struct leat_fixed {
    int64_t range;  /* number of classes */
    int64_t likely; /* number of classes that can be drawn */
    float total, *weight;
    /* Walker's method of aliases: class i of a uniform draw stands for itself with probability
     * chance[i], else for other[i]. */
    float *chance;
    int32_t *other;
} leat_fixed;
/* From the attributes of a FixedUnigramCandidateSampler; freed by leat_fixed_free. */
leat_status leat_fixed_make(const leat_node *n, leat_fixed **out) LEAT_MUST_CHECK;
/* Class i has the weight counts[i] to the power of `power`; counts are not negative. */
leat_status leat_fixed_of_counts(const int64_t *counts, int64_t n, float power,
                                 leat_fixed **out) LEAT_MUST_CHECK;
void leat_fixed_free(leat_fixed *f);
int64_t leat_fixed_draw(const leat_fixed *f, leat_philox_single *s);

#endif
