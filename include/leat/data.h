/* data.h -- data to train on: idx files, MNIST. */
#ifndef LEAT_DATA_H
#define LEAT_DATA_H

#include <leat/tensor.h>

/* Reads an idx file (the format of MNIST), plain or gzipped, into a tensor. A file that is
 * truncated, damaged or of another format gives DATA_LOSS with its name and the reason. */
LEAT_API leat_status leat_idx_read(const char *path, leat_tensor **tensor_out) LEAT_MUST_CHECK;

/* ---- MNIST: 28x28 images of digits, as rows of 784 floats from 0 to 1, and labels, as rows of 10
 * that are 1 at the digit and 0 elsewhere ---- */
typedef struct leat_mnist leat_mnist;
typedef enum leat_mnist_set { LEAT_MNIST_TRAIN, LEAT_MNIST_TEST } leat_mnist_set;

/* Looks for the four files in data_dir (NULL: nowhere), then in ../shared/data/mnist from the
 * current directory; if neither has them, draws digits. Damaged files are an error. The same
 * seed gives the same batches. */
LEAT_API leat_status leat_mnist_open(const char *data_dir, uint64_t seed,
                                     leat_mnist **mnist_out) LEAT_MUST_CHECK;
LEAT_API void leat_mnist_close(leat_mnist *m); /* of NULL does nothing */
/* One line that says where the images come from; lives as long as m. */
LEAT_API const char *leat_mnist_source(const leat_mnist *m);
LEAT_API int64_t leat_mnist_count(const leat_mnist *m, leat_mnist_set set);
/* The next n examples, (n, 784) and (n, 10), of a set that is shuffled anew for each epoch. Gives
 * both tensors; free with leat_tensor_unref. */
LEAT_API leat_status leat_mnist_next_batch(leat_mnist *m, leat_mnist_set set, int64_t n,
                                           leat_tensor **images_out,
                                           leat_tensor **labels_out) LEAT_MUST_CHECK;
/* Examples [begin, end) in the order of the file. */
LEAT_API leat_status leat_mnist_rows(const leat_mnist *m, leat_mnist_set set, int64_t begin,
                                     int64_t end, leat_tensor **images_out,
                                     leat_tensor **labels_out) LEAT_MUST_CHECK;

#endif
