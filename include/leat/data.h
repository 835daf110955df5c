/* data.h -- data to train on: datasets, idx files, MNIST, CIFAR-10, PTB, Tiny Shakespeare. */
#ifndef LEAT_DATA_H
#define LEAT_DATA_H

#include <leat/io.h>

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
 * The functions that make a dataset of another take that dataset, even on failure. Datasets in
 * graphs, which feed a model without the program, are in leat/pipeline.h. */
typedef struct leat_dataset leat_dataset; /* does not change, and may be used by several threads */
/* One element, or one for each row of the n tensors, which have as many rows. Shares the tensors. */
LEAT_API leat_status leat_dataset_from_tensors(const leat_tensor *const *tensors, int n,
                                               leat_dataset **dataset_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_dataset_from_slices(const leat_tensor *const *tensors, int n,
                                              leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The rows of a sparse tensor of n values: indices (n, rank) and shape (rank) are int64, values (n).
 * An element is a sparse tensor of one dimension less: its indices, values and shape. */
LEAT_API leat_status leat_dataset_from_sparse(const leat_tensor *indices, const leat_tensor *values,
                                              const leat_tensor *shape,
                                              leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The int64 scalars start, start + step ... below stop, or above it if step is negative. */
LEAT_API leat_status leat_dataset_from_range(int64_t start, int64_t stop, int64_t step,
                                             leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The records of TFRecord files, as string scalars. compression is "", "GZIP" or "ZLIB". */
LEAT_API leat_status leat_dataset_from_records(const char *const *paths, int n,
                                               const char *compression,
                                               leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The lines of text files, without their ends. */
LEAT_API leat_status leat_dataset_from_lines(const char *const *paths, int n,
                                             const char *compression,
                                             leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Pieces of record_bytes bytes, between header and footer of each file, which are skipped. */
LEAT_API leat_status leat_dataset_from_fixed(const char *const *paths, int n,
                                             const char *compression, int64_t header_bytes,
                                             int64_t record_bytes, int64_t footer_bytes,
                                             leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Functions of the program that give elements. Each iterator begins anew; its functions are called
 * by one thread at a time. */
typedef struct leat_generator {
    void *arg; /* must outlive the dataset's iterators */
    /* Gives the state of an iterator; NULL: the state is arg. */
    leat_status (*begin)(void *arg, void **state_out);
    /* Writes the n tensors of the next element; OUT_OF_RANGE: there are no more. */
    leat_status (*next)(void *state, leat_tensor **out, int n);
    void (*end)(void *state); /* of an iterator that has begun; NULL: nothing to do */
} leat_generator;
/* Elements of n tensors of these types. The position of such a dataset is a number of elements: to
 * restore it, the generator gives them once more. */
LEAT_API leat_status leat_dataset_from_generator(const leat_generator *g, const leat_dtype *types,
                                                 int n, leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The dataset in a variant scalar, such as an element of leat_dataset_window. */
LEAT_API leat_status leat_dataset_from_variant(const leat_tensor *variant,
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
/* Batches of tensors of different sizes. shapes has one for each tensor of an element, in which -1 is
 * as large as the largest of the batch; NULL: what is known of the elements' shapes. values has
 * scalars to pad with; NULL: zeros and empty strings. */
LEAT_API leat_status leat_dataset_padded_batch(leat_dataset *d, int64_t size,
                                               const leat_shape *shapes,
                                               const leat_tensor *const *values,
                                               bool drop_remainder,
                                               leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The rows of each element, one after the other. */
LEAT_API leat_status leat_dataset_unbatch(leat_dataset *d,
                                          leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Datasets of `size` elements, every stride-th; the next one begins `shift` elements later. An
 * element has one dataset for each tensor of an element of d (leat_dataset_from_variant). */
LEAT_API leat_status leat_dataset_window(leat_dataset *d, int64_t size, int64_t shift,
                                         int64_t stride, bool drop_remainder,
                                         leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Elements index, index + shards, index + 2 * shards ... */
LEAT_API leat_status leat_dataset_shard(leat_dataset *d, int64_t shards, int64_t index,
                                        leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Elements with the tensors of an element of each of the n datasets, until one of them ends. Takes
 * all of them. */
LEAT_API leat_status leat_dataset_zip(leat_dataset *const *datasets, int n,
                                      leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The elements of d, then those of next. Takes both. */
LEAT_API leat_status leat_dataset_concatenate(leat_dataset *d, leat_dataset *next,
                                              leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Keeps the elements when they were all seen: in memory, for one iterator (path NULL or ""), or in
 * files that begin with this path, which later programs use, too. */
LEAT_API leat_status leat_dataset_cache(leat_dataset *d, const char *path,
                                        leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Draws from a buffer of so many elements. The same seed gives the same orders, another one each
 * time the dataset is gone through; 0 is a random seed. */
LEAT_API leat_status leat_dataset_shuffle(leat_dataset *d, int64_t buffer_size, int64_t seed,
                                          leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The same for `count` rounds through d, -1 for ever, without a pause between rounds: elements of
 * the next round come into the buffer before the last ones of a round have left it. */
LEAT_API leat_status leat_dataset_shuffle_and_repeat(leat_dataset *d, int64_t buffer_size,
                                                     int64_t seed, int64_t count,
                                                     leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Keeps n elements ready, which are made on other threads; -1: as many as are useful. */
LEAT_API leat_status leat_dataset_prefetch(leat_dataset *d, int64_t n,
                                           leat_dataset **dataset_out) LEAT_MUST_CHECK;

/* ---- Functions of the program. arg must outlive the dataset's iterators. A function may be called
 * by several threads at once if several iterators are open, or in leat_dataset_parallel_map. ---- */
/* Writes n_out new tensors, or returns an error, which fails the element; OUT_OF_RANGE ends the
 * data. Borrows the n_in tensors of an element. */
typedef leat_status (*leat_dataset_fn)(void *arg, leat_tensor *const *in, int n_in,
                                       leat_tensor **out, int n_out);
/* Each element becomes n_out tensors of these types. */
LEAT_API leat_status leat_dataset_map(leat_dataset *d, leat_dataset_fn fn, void *arg,
                                      const leat_dtype *types, int n_out,
                                      leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The same with up to `calls` calls at a time, by several threads; -1: one for each core. The order
 * of the elements is kept. */
LEAT_API leat_status leat_dataset_parallel_map(leat_dataset *d, int64_t calls, leat_dataset_fn fn,
                                               void *arg, const leat_dtype *types, int n_out,
                                               leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Says whether an element is kept. */
typedef leat_status (*leat_dataset_test_fn)(void *arg, leat_tensor *const *in, int n_in,
                                            bool *yes_out);
LEAT_API leat_status leat_dataset_filter(leat_dataset *d, leat_dataset_test_fn fn, void *arg,
                                         leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Gives a dataset for an element. */
typedef leat_status (*leat_dataset_of_fn)(void *arg, leat_tensor *const *in, int n_in,
                                          leat_dataset **dataset_out);
/* The elements of the datasets that fn gives, one after the other. They have n_out tensors of these
 * types. */
LEAT_API leat_status leat_dataset_flat_map(leat_dataset *d, leat_dataset_of_fn fn, void *arg,
                                           const leat_dtype *types, int n_out,
                                           leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* The same, but `cycle` of these datasets are open at a time, and each gives `block` elements in its
 * turn; parallel: they work ahead on other threads, in the same order. */
LEAT_API leat_status leat_dataset_interleave(leat_dataset *d, leat_dataset_of_fn fn, void *arg,
                                             const leat_dtype *types, int n_out, int64_t cycle,
                                             int64_t block, bool parallel,
                                             leat_dataset **dataset_out) LEAT_MUST_CHECK;
/* Elements are string scalars, which are Examples: each becomes n tensors, one for each feature
 * (leat_example_parse). */
LEAT_API leat_status leat_dataset_parse(leat_dataset *d, const leat_feature_spec *features, int n,
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

/* Where data sets that were downloaded are kept: ~/.cache/leat/NAME, or as LEAT_DATA_CACHE says. NULL
 * if the user has no home. Free with free(). */
LEAT_API char *leat_data_cache_dir(const char *name);

/* Reads an idx file (the format of MNIST), plain or gzipped, into a tensor. A file that is
 * truncated, damaged or of another format gives DATA_LOSS with its name and the reason. */
LEAT_API leat_status leat_idx_read(const char *path, leat_tensor **tensor_out) LEAT_MUST_CHECK;

/* ---- MNIST: 28x28 images of digits, as rows of 784 floats from 0 to 1, and labels, as rows of 10
 * that are 1 at the digit and 0 elsewhere ---- */
typedef struct leat_mnist leat_mnist;
typedef enum leat_mnist_set { LEAT_MNIST_TRAIN, LEAT_MNIST_TEST } leat_mnist_set;

/* Looks for the four files in data_dir (NULL: nowhere), in ../shared/data/mnist from the current
 * directory, and in the cache, ~/.cache/leat/mnist (LEAT_DATA_CACHE=DIR: DIR/mnist); if none has
 * them, downloads them into the cache (LEAT_DATA_URL=URL: from URL/mnist/; LEAT_DATA_URL=none: not
 * at all); and draws digits if that fails. Damaged files are an error. The same seed gives the same
 * batches. */
LEAT_API leat_status leat_mnist_open(const char *data_dir, uint64_t seed,
                                     leat_mnist **mnist_out) LEAT_MUST_CHECK;
LEAT_API void leat_mnist_close(leat_mnist *m); /* of NULL does nothing */
/* One line that says where the images come from; lives as long as m. */
LEAT_API const char *leat_mnist_source(const leat_mnist *m);
LEAT_API bool leat_mnist_is_drawn(const leat_mnist *m); /* by this program: no files were found */
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
/* Shares the pixels (n, 28, 28) and the labels (n) of a set, in the order of the file, as uint8. */
LEAT_API leat_status leat_mnist_bytes(const leat_mnist *m, leat_mnist_set set,
                                      leat_tensor **images_out,
                                      leat_tensor **labels_out) LEAT_MUST_CHECK;

/* ---- CIFAR-10: 32x32 colour images of ten classes. The files are the batches of its binary form
 * (data_batch_1.bin ..., test_batch.bin; also .gz or .xz), found, downloaded or drawn as MNIST's are
 * ---- */
typedef struct leat_cifar10 leat_cifar10;
typedef enum leat_cifar10_set { LEAT_CIFAR10_TRAIN, LEAT_CIFAR10_TEST } leat_cifar10_set;
LEAT_API leat_status leat_cifar10_open(const char *data_dir,
                                       leat_cifar10 **cifar10_out) LEAT_MUST_CHECK;
LEAT_API void leat_cifar10_close(leat_cifar10 *c); /* of NULL does nothing */
LEAT_API const char *leat_cifar10_source(const leat_cifar10 *c); /* as leat_mnist_source */
LEAT_API bool leat_cifar10_is_drawn(const leat_cifar10 *c);      /* as leat_mnist_is_drawn */
LEAT_API int64_t leat_cifar10_count(const leat_cifar10 *c, leat_cifar10_set set);
LEAT_API const char *leat_cifar10_class(int label); /* "airplane" ...; NULL if there is none */
/* Images [begin, end) in the order of the files: uint8 (n, 32, 32, 3) of red, green and blue, and
 * labels, int32 (n). */
LEAT_API leat_status leat_cifar10_rows(const leat_cifar10 *c, leat_cifar10_set set, int64_t begin,
                                       int64_t end, leat_tensor **images_out,
                                       leat_tensor **labels_out) LEAT_MUST_CHECK;

/* ---- PTB: the words of the Penn Treebank, for language models. The files are ptb.train.txt,
 * ptb.valid.txt and ptb.test.txt (also .gz or .xz), found, downloaded or drawn as MNIST's are. The
 * vocabulary is made of the training text as TensorFlow's tutorial makes it: the end of a line is
 * the word "<eos>"; ids are in the order of frequency, and of the alphabet among equals. ---- */
typedef struct leat_ptb leat_ptb;
typedef enum leat_ptb_set { LEAT_PTB_TRAIN, LEAT_PTB_VALID, LEAT_PTB_TEST } leat_ptb_set;
LEAT_API leat_status leat_ptb_open(const char *data_dir, leat_ptb **ptb_out) LEAT_MUST_CHECK;
LEAT_API void leat_ptb_close(leat_ptb *p); /* of NULL does nothing */
LEAT_API const char *leat_ptb_source(const leat_ptb *p); /* as leat_mnist_source */
LEAT_API int leat_ptb_vocabulary(const leat_ptb *p);      /* number of words */
LEAT_API const char *leat_ptb_word(const leat_ptb *p, int id); /* NULL if there is none */
LEAT_API int leat_ptb_id(const leat_ptb *p, const char *word); /* -1 if there is none */
/* Shares the ids of a set's words, int32 (n). Words that the training text lacks are left out. */
LEAT_API leat_status leat_ptb_ids(const leat_ptb *p, leat_ptb_set set,
                                  leat_tensor **ids_out) LEAT_MUST_CHECK;
/* Batches of an epoch: the text is cut into batch_size pieces of equal length, which are gone through
 * num_steps words at a time. 0 if the text is too short. */
LEAT_API int64_t leat_ptb_epoch_size(const leat_ptb *p, leat_ptb_set set, int64_t batch_size,
                                     int64_t num_steps);
/* Batch i: ids, int32 (batch_size, num_steps), and the ids of the words that follow them. */
LEAT_API leat_status leat_ptb_batch(const leat_ptb *p, leat_ptb_set set, int64_t batch_size,
                                    int64_t num_steps, int64_t i, leat_tensor **x_out,
                                    leat_tensor **y_out) LEAT_MUST_CHECK;

/* ---- Tiny Shakespeare: a megabyte of his plays, to learn characters from. The file is input.txt
 * (also .gz or .xz), found, downloaded or drawn as MNIST's are. Gives the bytes, and one line that
 * says where they come from; free both with free(). ---- */
LEAT_API leat_status leat_shakespeare_read(const char *data_dir, char **text_out, size_t *size_out,
                                           char **source_out) LEAT_MUST_CHECK;

#endif
