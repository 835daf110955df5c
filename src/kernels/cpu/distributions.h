/* distributions.h -- numbers of a distribution from a Philox stream, in groups, bit for bit as
 * TensorFlow makes them. */
#ifndef LEAT_CPU_DISTRIBUTIONS_H
#define LEAT_CPU_DISTRIBUTIONS_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/philox.h"

typedef struct leat_distribution {
    /* Makes `group` numbers. */
    void (*make)(const struct leat_distribution *d, leat_philox *p, void *out);
    int group;   /* numbers made at a time */
    int stride;  /* samples of the stream from one group to the next */
    double ns;   /* estimated cost of a group */
    int64_t low; /* integers are in [low, low + range) */
    uint64_t range;
} leat_distribution;

typedef enum leat_distribution_kind {
    LEAT_UNIFORM,
    LEAT_NORMAL,
    LEAT_TRUNCATED_NORMAL,
    LEAT_UNIFORM_INT
} leat_distribution_kind;

/* NULL for other dtypes than half, bfloat16, float, double; for integers int32, int64. */
leat_distribution leat_distribution_of(leat_distribution_kind kind, leat_dtype t);
/* Fills y from the stream p, on the kernel's threads. */
void leat_distribution_fill(leat_kernel *k, const leat_distribution *d, leat_philox p,
                            leat_tensor *y);
/* Two normal numbers from four random numbers of 32 bits. */
void leat_box_muller_double(const uint32_t x[4], double out[2]);
float leat_uniform_float(uint32_t x);                     /* in [0, 1) */
double leat_uniform_double(uint32_t x0, uint32_t x1); /* in [0, 1) */

#endif
