/* digits.h -- digits drawn by the program, where no MNIST can be had. */
#ifndef LEAT_DATA_DIGITS_H
#define LEAT_DATA_DIGITS_H

#include <leat/tensor.h>

/* n images (n, 28, 28) and labels (n), uint8, as MNIST has them. The same seed draws the same. */
leat_status leat_digits_draw(uint64_t seed, int64_t n, leat_tensor **images_out,
                             leat_tensor **labels_out) LEAT_MUST_CHECK;

#endif
