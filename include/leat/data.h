/* data.h -- data to train on: datasets, idx files, MNIST. */
#ifndef LEAT_DATA_H
#define LEAT_DATA_H

#include <leat/tensor.h>

/* ---- Datasets: sequences of elements, each of which is one tensor or several ----
 *
 *     leat_dataset *d, *batches;
 *     LEAT_TRY(leat_dataset_from_slices((const leat_tensor *[]){images, labels}, 2, &d));
 *     LEAT_TRY(leat_dataset_shuffle(d, 1000, 0, &d));     -- takes d, gives another
 *     LEAT_TRY(leat_dataset_batch(d, 32, false, &d));
 *     LEAT_TRY(leat_dataset_prefetch(d, 2, &d));
 *     leat_data_iterator *it;
 *     LEAT_TRY(leat_data_iterator_open(d, &it));
 *     leat_tensor *x[2];
 *     while (!(s = leat_data_iterator_next(it, x, 2))) { ... leat_tensor_unref(x[0]) ... }
 *     -- s is OUT_OF_RANGE at the end
 *
 * The functions that make a dataset of another take that dataset, even on failure. In graphs,
 * datasets are ops, as in TensorFlow: leat_op(g, "MapDataset", ...) with functions of the graph. */
typedef struct leat_dataset leat_dataset; /* does not change, and may be used by several threads */
/* One element, or one for each row of the n tensors, which have as many rows. Shares the tensors. */
LEAT_API leat_status leat_dataset_from_tensors(const leat_tensor *const *tensors, int n,
                                               leat_dataset **dataset_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_dataset_from_slices(const leat_tensor *const *tensors, int n,
                                              leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The int64 scalars start, start + step ... below stop, or above it if step is negative. */
LEAT_API leat_status leat_dataset_from_range(int64_t start, int64_t stop, int64_t step,
                                             leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The records of TFRecord files, as string scalars. compression is "", "GZIP" or "ZLIB". */
LEAT_API leat_status leat_dataset_from_records(const char *const *paths, int n,
                                               const char *compression,
                                               leat_dataset **dataset_out) LEAT_MUST_CHECK;
LEAT_API void leat_dataset_free(leat_dataset *d); /* of NULL does nothing */

/* Below 0 is for ever, or all elements. */
LEAT_API leat_status leat_dataset_repeat(leat_dataset *d, int64_t count,
                                         leat_dataset **dataset_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_dataset_take(leat_dataset *d, int64_t count,
                                       leat_dataset **dataset_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_dataset_skip(leat_dataset *d, int64_t count,
                                       leat_dataset **dataset_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_dataset_batch(leat_dataset *d, int64_t size, bool drop_remainder,
                                        leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Draws from a buffer of so many elements. The same seed gives the same orders, another one each
 * time the dataset is gone through; 0 is a random seed. */
LEAT_API leat_status leat_dataset_shuffle(leat_dataset *d, int64_t buffer_size, int64_t seed,
                                          leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Keeps n elements ready, which are made on other threads; -1: as many as are useful. */
LEAT_API leat_status leat_dataset_prefetch(leat_dataset *d, int64_t n,
                                           leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Writes n_out new tensors, or returns an error, which fails the element; OUT_OF_RANGE ends the
 * data. Borrows the n_in tensors of an element. It may be called by several threads at once if
 * several iterators are open. */
typedef leat_status (*leat_dataset_fn)(void *arg, leat_tensor *const *in, int n_in,
                                       leat_tensor **out, int n_out);
/* Each element becomes n_out tensors of these types. arg must outlive the dataset's iterators. */
LEAT_API leat_status leat_dataset_map(leat_dataset *d, leat_dataset_fn fn, void *arg,
                                      const leat_dtype *types, int n_out,
                                      leat_dataset **dataset_out) LEAT_MUST_CHECK;

typedef struct leat_data_iterator leat_data_iterator; /* may be used by several threads */
/* Shares d. */
LEAT_API leat_status leat_data_iterator_open(leat_dataset *d,
                                             leat_data_iterator **iterator_out) LEAT_MUST_CHECK;
/* Gives the n tensors of the next element, which must have as many. OUT_OF_RANGE: there are no
 * more. */
LEAT_API leat_status leat_data_iterator_next(leat_data_iterator *it, leat_tensor **tensors_out,
                                             int n) LEAT_MUST_CHECK;
/* The position, as bytes to be freed with free(). */
LEAT_API leat_status leat_data_iterator_save(leat_data_iterator *it, void **bytes_out,
                                             size_t *size_out) LEAT_MUST_CHECK;
/* Goes to a position that an iterator of the same dataset has saved, maybe in another process. After
 * an error the iterator is where it was. */
LEAT_API leat_status leat_data_iterator_restore(leat_data_iterator *it, const void *bytes,
                                                size_t size) LEAT_MUST_CHECK;
/* Ends what is under way, and frees the iterator. Of NULL does nothing. */
LEAT_API void leat_data_iterator_close(leat_data_iterator *it);

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
 * both tensors; free with leat_tensor_unref. After two batches of one size a thread prepares the
 * next one ahead. */
LEAT_API leat_status leat_mnist_next_batch(leat_mnist *m, leat_mnist_set set, int64_t n,
                                           leat_tensor **images_out,
                                           leat_tensor **labels_out) LEAT_MUST_CHECK;
/* Examples [begin, end) in the order of the file. */
LEAT_API leat_status leat_mnist_rows(const leat_mnist *m, leat_mnist_set set, int64_t begin,
                                     int64_t end, leat_tensor **images_out,
                                     leat_tensor **labels_out) LEAT_MUST_CHECK;

#endif
