/* parse_number.h -- numbers from text, for StringToNumber and DecodeCSV. */
#ifndef LEAT_CPU_PARSE_NUMBER_H
#define LEAT_CPU_PARSE_NUMBER_H

#include "kernels/cpu/cpu.h"

/* Sets element i of y, a float, double, int32 or int64. The text ends with a NUL after `size`
 * bytes. False if it is no number, or one that does not fit. Spaces around the number are allowed,
 * as in TensorFlow. */
bool leat_parse_number(const char *text, size_t size, leat_tensor *y, int64_t i);

#endif
