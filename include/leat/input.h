/* input.h -- the input of a model by queues and threads, as in TensorFlow 1: a producer gives names
 * of files, or rows, in epochs; readers give records of the files; batches of examples are made
 * from them.
 *
 *     leat_out files = leat_string_input_producer(names, .num_epochs = 10);
 *     leat_out reader = leat_fixed_length_reader(g, 3073);
 *     leat_out record = leat_output(leat_reader_read(reader, files), 1);
 *     leat_out image = ..., label = ..., batch[2];
 *     leat_shuffle_batch(LEAT_OUTS(image, label), 128, 50000, 20000, batch, .num_threads = 16);
 *
 * leat_start_queue_runners (leat/coordinator.h) starts the threads that fill the queues. After the
 * last epoch a run that needs more gives OUT_OF_RANGE. A limit of epochs is counted in a local
 * variable, which leat_local_variables_initializer initialises. Each queue has a summary that says
 * how full it is.
 */
#ifndef LEAT_INPUT_H
#define LEAT_INPUT_H

#include <leat/queue.h>

/* ---- Going on where a run was ended or killed ----
 * The position of the graph's input becomes part of the checkpoints of savers that are made
 * afterwards for all variables, those of monitored sessions among them: iterators, readers, the
 * queues that queue runners fill with all their elements, and counters of epochs. A program that
 * restores such a checkpoint gives each sample of an epoch exactly once to the steps that the
 * checkpoint counts, if it is saved between steps: docs/failures.md. */
LEAT_API void leat_save_input(leat_graph *g);

/* ---- Readers: each gives a handle ---- */
#define leat_text_line_reader(g, ...) LEAT_OP0(g, "TextLineReaderV2", ##__VA_ARGS__)
#define leat_whole_file_reader(g, ...) LEAT_OP0(g, "WholeFileReaderV2", ##__VA_ARGS__)
#define leat_tf_record_reader(g, ...) LEAT_OP0(g, "TFRecordReaderV2", ##__VA_ARGS__)
#define leat_fixed_length_reader(g, record_bytes_, ...)                                            \
    LEAT_OP0(g, "FixedLengthRecordReaderV2", leat_attr_int("record_bytes", record_bytes_),         \
             ##__VA_ARGS__)
/* The key of the next record; leat_output(x, 1) is the record. Names of files come from the
 * queue. */
#define leat_reader_read(reader, queue, ...) LEAT_OP2("ReaderReadV2", reader, queue, ##__VA_ARGS__)

/* ---- Producers: queues of rows, which a queue runner fills epoch by epoch ---- */
typedef struct leat_producer_options {
    leat_given given;        /* set by the macro */
    int64_t num_epochs;      /* default: no limit */
    bool shuffle;            /* the order of each epoch; default: true */
    int64_t seed;            /* of the order; default: from the graph's seed, or random */
    int64_t capacity;        /* of the queue; default: 32 */
    const char *shared_name; /* of the queue */
    const char *name;        /* "input_producer" */
} leat_producer_options;
/* kind: "input_producer", "string_input_producer", "range_input_producer". */
LEAT_API leat_out leat_producer_at(leat_loc at, const char *kind, leat_out x,
                                   const leat_producer_options *o);
/* A queue of the rows of x, whose shape but for the number of rows must be known. */
#define leat_input_producer(x, ...)                                                                \
    leat_producer_at(LEAT_AT, "input_producer", x,                                                 \
                     LEAT_GIVEN_OPTIONS(leat_producer_options, __VA_ARGS__))
/* The same for a vector of strings, mostly names of files; a run fails if it is empty. */
#define leat_string_input_producer(x, ...)                                                         \
    leat_producer_at(LEAT_AT, "string_input_producer", x,                                          \
                     LEAT_GIVEN_OPTIONS(leat_producer_options, __VA_ARGS__))
/* A queue of the integers below limit, an int32 scalar. */
#define leat_range_input_producer(limit, ...)                                                      \
    leat_producer_at(LEAT_AT, "range_input_producer", limit,                                       \
                     LEAT_GIVEN_OPTIONS(leat_producer_options, __VA_ARGS__))

/* Some tensors: LEAT_OUTS(image, label). */
typedef struct leat_outs {
    const leat_out *v;
    int n;
} leat_outs;
#define LEAT_OUTS(...) LEAT_LIST(leat_outs, leat_out, __VA_ARGS__)

/* Writes a row of each tensor to outs, the same row of all; all have the same number of rows. */
#define leat_slice_input_producer(xs, outs, ...)                                                   \
    leat_slice_input_producer_at(LEAT_AT, xs, outs,                                                \
                                 LEAT_GIVEN_OPTIONS(leat_producer_options, __VA_ARGS__))
LEAT_API void leat_slice_input_producer_at(leat_loc at, leat_outs xs, leat_out *outs,
                                           const leat_producer_options *o);

/* ---- Batches: examples go through a queue, which a queue runner fills by several threads ---- */
typedef struct leat_batch_options {
    leat_given given;  /* set by the macro */
    int num_threads;   /* that enqueue; default: 1. Not for the _join forms */
    int64_t capacity;  /* of the queue; default: 32. Not for the shuffle_ forms */
    int64_t seed;      /* of the shuffle_ forms */
    bool enqueue_many; /* each row of the tensors is an example */
    bool dynamic_pad;  /* dimensions that are not known are padded. Not for the shuffle_ forms */
    bool allow_smaller_final_batch;
    /* Examples are enqueued only where this is true: a bool scalar, or, with enqueue_many, a vector
     * with an element for each row. Default: all are. */
    leat_out keep_input;
    const leat_shape *shapes; /* of an example's tensors, if they cannot be inferred */
    const char *shared_name;  /* of the queue */
    const char *name;         /* "batch" ... */
} leat_batch_options;
/* kind: "batch", "batch_join", "shuffle_batch", "shuffle_batch_join". */
LEAT_API void leat_batch_at(leat_loc at, const char *kind, const leat_outs *lists, int n_lists,
                            int batch_size, int64_t capacity, int64_t min_after_dequeue,
                            leat_out *outs, const leat_batch_options *o);
/* Writes batches to outs, one for each tensor of an example. */
#define leat_batch(xs, batch_size, outs, ...)                                                      \
    leat_batch_at(LEAT_AT, "batch", LEAT_ARRAY(leat_outs, xs), 1, batch_size, 0, 0, outs,          \
                  LEAT_GIVEN_OPTIONS(leat_batch_options, __VA_ARGS__))
/* A random example is taken, once more than min_after_dequeue are in the queue. */
#define leat_shuffle_batch(xs, batch_size, capacity, min_after_dequeue, outs, ...)                 \
    leat_batch_at(LEAT_AT, "shuffle_batch", LEAT_ARRAY(leat_outs, xs), 1, batch_size, capacity,    \
                  min_after_dequeue, outs, LEAT_GIVEN_OPTIONS(leat_batch_options, __VA_ARGS__))
/* The same for several sources of examples, each with a thread of its own. */
#define leat_batch_join(lists, n_lists, batch_size, outs, ...)                                     \
    leat_batch_at(LEAT_AT, "batch_join", lists, n_lists, batch_size, 0, 0, outs,                   \
                  LEAT_GIVEN_OPTIONS(leat_batch_options, __VA_ARGS__))
#define leat_shuffle_batch_join(lists, n_lists, batch_size, capacity, min_after_dequeue, outs,     \
                                ...)                                                               \
    leat_batch_at(LEAT_AT, "shuffle_batch_join", lists, n_lists, batch_size, capacity,             \
                  min_after_dequeue, outs, LEAT_GIVEN_OPTIONS(leat_batch_options, __VA_ARGS__))

#endif
