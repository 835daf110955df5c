/* digits.h -- digits drawn by the program, for use where MNIST's files are not found. */
#ifndef LEAT_DATA_DIGITS_H
#define LEAT_DATA_DIGITS_H

#include <leat/tensor.h>

/* Gives n images (n, 28, 28) and labels (n), uint8, as in MNIST. The same seed gives the same
 * images. */
leat_status leat_digits_draw(uint64_t seed, int64_t n, leat_tensor **images_out,
                             leat_tensor **labels_out) LEAT_MUST_CHECK;

#endif
