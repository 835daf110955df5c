/* half.h -- many halves and bfloat16s at a time, to and from float. */
#ifndef LEAT_CORE_HALF_H
#define LEAT_CORE_HALF_H

#include <leat/tensor.h>

void leat_halves_to_floats(const leat_half *x, float *y, int64_t n);
void leat_halves_from_floats(const float *x, leat_half *y, int64_t n);
void leat_bfloat16s_to_floats(const leat_bfloat16 *x, float *y, int64_t n);
void leat_bfloat16s_from_floats(const float *x, leat_bfloat16 *y, int64_t n);

#endif
