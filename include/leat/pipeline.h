/* pipeline.h -- datasets in a graph, which feed a model without the program: nodes read, parse,
 * shuffle and batch; functions that are applied to elements are built by callbacks, as those of
 * leat/function.h, and run by the executor.
 *
 *     static void parse(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
 *     {
 *         static const leat_feature_spec features[] = {{"image_raw", LEAT_STRING},
 *                                                      {"label", LEAT_INT64}};
 *         leat_out x[2];
 *         leat_parse_single_example(in[0], features, 2, x);
 *         out[0] = leat_reshape_to(leat_decode_raw(x[0], LEAT_UINT8), leat_shape(784));
 *         out[1] = x[1];
 *     }
 *     static void input(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
 *     {
 *         leat_out d = leat_record_dataset(leat_string_const(body, "train.tfrecords"), "");
 *         d = leat_map_dataset(d, parse, NULL, 2, .parallel_calls = 4);
 *         d = leat_repeat_dataset(leat_shuffle_dataset(d, 10000), -1);
 *         out[0] = leat_prefetch_dataset(leat_batch_dataset(d, 100), 2);
 *     }
 *     leat_out batch[2];
 *     leat_iterator_next(leat_one_shot_iterator(g, input, NULL), batch, 2);
 *     leat_out loss = model(batch[0], batch[1]);
 *
 * A dataset is an output of type variant. Nodes are TensorFlow's: such a graph runs there, too. What
 * the elements are, types and shapes, is known while the graph is built. Datasets without a graph
 * are in leat/data.h.
 */
#ifndef LEAT_PIPELINE_H
#define LEAT_PIPELINE_H

#include <leat/function.h>
#include <leat/input.h>
#include <leat/io.h>

/* ---- Sources ---- */
/* One element, or one for each row of the tensors. */
#define leat_tensor_dataset(xs) leat_tensor_dataset_at(LEAT_AT, xs, false)
#define leat_slice_dataset(xs) leat_tensor_dataset_at(LEAT_AT, xs, true)
LEAT_API leat_out leat_tensor_dataset_at(leat_loc at, leat_outs xs, bool rows);
/* The int64 scalars start, start + step ... below stop, or above it if step is negative. */
#define leat_range_dataset(g, start, stop, step)                                                   \
    leat_range_dataset_at(LEAT_AT, g, start, stop, step)
LEAT_API leat_out leat_range_dataset_at(leat_loc at, leat_graph *g, int64_t start, int64_t stop,
                                        int64_t step);
/* Records of TFRecord files, and lines of text files, as string scalars. files is a string, or a
 * vector of strings; compression is "", "GZIP" or "ZLIB". */
#define leat_record_dataset(files, compression)                                                    \
    leat_file_dataset_at(LEAT_AT, "TFRecordDataset", files, compression)
#define leat_line_dataset(files, compression)                                                      \
    leat_file_dataset_at(LEAT_AT, "TextLineDataset", files, compression)
LEAT_API leat_out leat_file_dataset_at(leat_loc at, const char *op, leat_out files,
                                       const char *compression);
/* Pieces of record_bytes bytes, between header and footer of each file, which are skipped. */
#define leat_fixed_length_dataset(files, header_bytes, record_bytes, footer_bytes)                 \
    leat_fixed_length_dataset_at(LEAT_AT, files, header_bytes, record_bytes, footer_bytes)
LEAT_API leat_out leat_fixed_length_dataset_at(leat_loc at, leat_out files, int64_t header,
                                               int64_t record, int64_t footer);

/* ---- Functions of elements. fn builds the body: its arguments are the tensors of an element, whose
 * shapes it sees as far as they are known, and then those that are captured. ---- */
typedef struct leat_map_options {
    leat_given given;       /* set by the macro */
    int64_t parallel_calls; /* calls at a time, in the order of the input; -1: as many as are useful */
    leat_outs captured;     /* tensors of the graph that the body gets after those of an element */
} leat_map_options;
/* Each element becomes the n_out results of fn. */
#define leat_map_dataset(d, fn, arg, n_out, ...)                                                   \
    leat_map_dataset_at(LEAT_AT, d, fn, arg, n_out,                                                \
                        LEAT_GIVEN_OPTIONS(leat_map_options, __VA_ARGS__))
LEAT_API leat_out leat_map_dataset_at(leat_loc at, leat_out d, leat_function_fn fn, void *arg,
                                      int n_out, const leat_map_options *o);
/* Keeps the elements for which the result of fn, a bool scalar, is true. */
#define leat_filter_dataset(d, fn, arg, ...)                                                       \
    leat_filter_dataset_at(LEAT_AT, d, fn, arg, LEAT_GIVEN_OPTIONS(leat_map_options, __VA_ARGS__))
LEAT_API leat_out leat_filter_dataset_at(leat_loc at, leat_out d, leat_function_fn fn, void *arg,
                                         const leat_map_options *o);
/* The result of fn is a dataset: the elements of these datasets, one dataset after the other, or
 * `block` elements of each of `cycle` datasets by turns. */
#define leat_flat_map_dataset(d, fn, arg, ...)                                                     \
    leat_interleave_dataset_at(LEAT_AT, d, fn, arg, 0, 0,                                          \
                               LEAT_GIVEN_OPTIONS(leat_map_options, __VA_ARGS__))
#define leat_interleave_dataset(d, fn, arg, cycle, block, ...)                                     \
    leat_interleave_dataset_at(LEAT_AT, d, fn, arg, cycle, block,                                  \
                               LEAT_GIVEN_OPTIONS(leat_map_options, __VA_ARGS__))
LEAT_API leat_out leat_interleave_dataset_at(leat_loc at, leat_out d, leat_function_fn fn,
                                             void *arg, int64_t cycle, int64_t block,
                                             const leat_map_options *o);

/* ---- Which elements, and in which order. A count below 0 is for ever, or all elements. ---- */
#define leat_repeat_dataset(d, count) leat_counted_dataset_at(LEAT_AT, "RepeatDataset", d, count)
#define leat_take_dataset(d, count) leat_counted_dataset_at(LEAT_AT, "TakeDataset", d, count)
#define leat_skip_dataset(d, count) leat_counted_dataset_at(LEAT_AT, "SkipDataset", d, count)
/* Keeps n elements ready; -1: as many as are useful. */
#define leat_prefetch_dataset(d, n) leat_counted_dataset_at(LEAT_AT, "PrefetchDataset", d, n)
LEAT_API leat_out leat_counted_dataset_at(leat_loc at, const char *op, leat_out d, int64_t count);
/* Every shards-th element, from element `index` on. */
#define leat_shard_dataset(d, shards, index) leat_shard_dataset_at(LEAT_AT, d, shards, index)
LEAT_API leat_out leat_shard_dataset_at(leat_loc at, leat_out d, int64_t shards, int64_t index);
typedef struct leat_shuffle_options {
    leat_given given; /* set by the macro */
    int64_t seed;     /* default: from the graph's seed, or random */
    bool same_order;  /* each time the dataset is gone through; default: another one each time */
} leat_shuffle_options;
/* Draws from a buffer of so many elements. */
#define leat_shuffle_dataset(d, buffer_size, ...)                                                  \
    leat_shuffle_dataset_at(LEAT_AT, d, buffer_size,                                               \
                            LEAT_GIVEN_OPTIONS(leat_shuffle_options, __VA_ARGS__))
LEAT_API leat_out leat_shuffle_dataset_at(leat_loc at, leat_out d, int64_t buffer_size,
                                          const leat_shuffle_options *o);
typedef struct leat_batching_options {
    bool drop_remainder; /* of the elements, if they fill no batch */
    /* One for each tensor of an element: the shape to which it is padded, in which -1 is as large as
     * the largest of the batch. NULL: tensors are not padded, and have the same shape. */
    const leat_shape *padded_shapes;
} leat_batching_options;
#define leat_batch_dataset(d, size, ...)                                                           \
    leat_batch_dataset_at(LEAT_AT, d, size, LEAT_OPTIONS(leat_batching_options, __VA_ARGS__))
LEAT_API leat_out leat_batch_dataset_at(leat_loc at, leat_out d, int64_t size,
                                        const leat_batching_options *o);
/* Keeps the elements when they were all seen: in memory (path ""), or in files that begin with the
 * path. */
#define leat_cache_dataset(d, path) leat_cache_dataset_at(LEAT_AT, d, path)
LEAT_API leat_out leat_cache_dataset_at(leat_loc at, leat_out d, const char *path);
/* Elements with the tensors of an element of each dataset, until one ends. */
#define leat_zip_dataset(ds) leat_zip_dataset_at(LEAT_AT, ds)
LEAT_API leat_out leat_zip_dataset_at(leat_loc at, leat_outs ds);
/* The elements of d, then those of next. */
#define leat_concatenate_dataset(d, next) leat_concatenate_dataset_at(LEAT_AT, d, next)
LEAT_API leat_out leat_concatenate_dataset_at(leat_loc at, leat_out d, leat_out next);

/* ---- Iterators ---- */
/* An iterator over the dataset that fn builds, as its only result, in a body of its own. It begins
 * with the first run that wants an element; at the end of the data runs give OUT_OF_RANGE. */
#define leat_one_shot_iterator(g, fn, arg) leat_one_shot_iterator_at(LEAT_AT, g, fn, arg)
LEAT_API leat_out leat_one_shot_iterator_at(leat_loc at, leat_graph *g, leat_function_fn fn,
                                            void *arg);
/* An iterator over d, which begins, and begins anew, when *initializer_out is run. */
#define leat_initializable_iterator(d, initializer_out)                                            \
    leat_initializable_iterator_at(LEAT_AT, d, initializer_out)
LEAT_API leat_out leat_initializable_iterator_at(leat_loc at, leat_out d,
                                                 leat_out *initializer_out);
/* Writes the n tensors of the next element to outs; each run has an element of its own. */
#define leat_iterator_next(iterator, outs, n) leat_iterator_next_at(LEAT_AT, iterator, outs, n)
LEAT_API void leat_iterator_next_at(leat_loc at, leat_out iterator, leat_out *outs, int n);

/* ---- Examples ---- */
/* Writes a tensor for each of the n features of the Example in a string scalar. A feature whose
 * first dimension is -1 has no default. */
#define leat_parse_single_example(serialized, features, n, outs)                                   \
    leat_parse_single_example_at(LEAT_AT, serialized, features, n, outs)
LEAT_API void leat_parse_single_example_at(leat_loc at, leat_out serialized,
                                           const leat_feature_spec *features, int n,
                                           leat_out *outs);
/* The bytes of strings as numbers of this type, in one more dimension. */
#define leat_decode_raw(x, dtype, ...)                                                             \
    LEAT_OP1("DecodeRaw", x, leat_attr_type("out_type", dtype), ##__VA_ARGS__)

#endif
