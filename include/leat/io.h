/* io.h -- files: records (TFRecord), Examples, checkpoints, event files. Formats are TensorFlow's:
 * each can read the other's files.
 *
 * Readers check everything: DATA_LOSS says what is damaged and where. Other errors name the file
 * and have the code that TensorFlow assigns to the system's error.
 */
#ifndef LEAT_IO_H
#define LEAT_IO_H

#include <leat/tensor.h>

/* ---- Which files this process may use ---- */
/* Limits the files that graphs (readers, checkpoints, tables, PrintV2 ...) and the functions of this header may
 * use, in the whole process, to those below some directories: lists with commas. What is below
 * `both` may be read and written, what is below `read_only` may be read; NULL or "": none; both
 * NULL: no limit. Neither ".." nor a symbolic link leads out. Once set, the limit stays: the same
 * lists again are OK, others FAILED_PRECONDITION. NOT_FOUND names a directory that is missing. */
LEAT_API leat_status leat_file_roots_set(const char *both, const char *read_only) LEAT_MUST_CHECK;

/* ---- Records: a sequence of byte strings, each with its length and checksums ---- */
typedef enum leat_record_form {
    LEAT_RECORD_AUTO, /* reading: detected; writing: not compressed */
    LEAT_RECORD_PLAIN,
    LEAT_RECORD_GZIP,
    LEAT_RECORD_ZLIB,
} leat_record_form;

typedef struct leat_record_reader leat_record_reader;
LEAT_API leat_status leat_record_reader_open(const char *path, leat_record_form form,
                                             leat_record_reader **reader_out) LEAT_MUST_CHECK;
/* The next record, borrowed until the next call. OUT_OF_RANGE: there are no more. */
LEAT_API leat_status leat_record_next(leat_record_reader *r, const void **bytes_out,
                                      size_t *size_out) LEAT_MUST_CHECK;
LEAT_API void leat_record_reader_free(leat_record_reader *r); /* of NULL does nothing */

typedef struct leat_record_writer leat_record_writer; /* to be used by one thread at a time */
/* Makes a new file; an existing file is overwritten. */
LEAT_API leat_status leat_record_writer_open(const char *path, leat_record_form form,
                                             leat_record_writer **writer_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_record_write(leat_record_writer *w, const void *bytes,
                                       size_t size) LEAT_MUST_CHECK;
/* After this call, everything written is in the file. After an error (a full disk) the file ends
 * with a whole record, and the next call tries to write the rest again. */
LEAT_API leat_status leat_record_flush(leat_record_writer *w) LEAT_MUST_CHECK;
/* Flushes and frees. Of NULL does nothing. */
LEAT_API leat_status leat_record_writer_close(leat_record_writer *w) LEAT_MUST_CHECK;

/* ---- Examples: tensorflow.Example, features by name, and tensorflow.SequenceExample, which also
 * has lists of features. A feature is a list of byte strings, of floats or of int64s.
 *
 *     leat_example *e = leat_example_new();
 *     LEAT_TRY(leat_example_add_bytes(e, "image", pixels, 784));
 *     LEAT_TRY(leat_example_add_ints(e, "label", &label, 1));
 *     LEAT_TRY(leat_example_encode(e, &bytes, &size));      -- a record for leat_record_write
 * ---- */
typedef struct leat_example leat_example;
LEAT_API leat_example *leat_example_new(void);
LEAT_API void leat_example_free(leat_example *e); /* of NULL does nothing */
/* Each adds values to the feature `key`, which is made if it is not there. INVALID_ARGUMENT if the
 * feature has values of another kind. */
LEAT_API leat_status leat_example_add_bytes(leat_example *e, const char *key, const void *bytes,
                                            size_t size) LEAT_MUST_CHECK; /* one value */
LEAT_API leat_status leat_example_add_floats(leat_example *e, const char *key, const float *v,
                                             int64_t n) LEAT_MUST_CHECK;
LEAT_API leat_status leat_example_add_ints(leat_example *e, const char *key, const int64_t *v,
                                           int64_t n) LEAT_MUST_CHECK;
/* Adds an empty feature to the end of the list `key`, which is made if it is not there. */
LEAT_API leat_status leat_example_list_next(leat_example *e, const char *key) LEAT_MUST_CHECK;
/* Each adds values to the last feature of the list. FAILED_PRECONDITION if the list has none. */
LEAT_API leat_status leat_example_list_add_bytes(leat_example *e, const char *key,
                                                 const void *bytes, size_t size) LEAT_MUST_CHECK;
LEAT_API leat_status leat_example_list_add_floats(leat_example *e, const char *key, const float *v,
                                                  int64_t n) LEAT_MUST_CHECK;
LEAT_API leat_status leat_example_list_add_ints(leat_example *e, const char *key, const int64_t *v,
                                                int64_t n) LEAT_MUST_CHECK;
/* Gives the bytes of an Example or, if there are lists, of a SequenceExample, with keys in
 * ascending order; free with free(). */
LEAT_API leat_status leat_example_encode(const leat_example *e, void **bytes_out,
                                         size_t *size_out) LEAT_MUST_CHECK;
/* DATA_LOSS: the bytes are neither an Example nor a SequenceExample. */
LEAT_API leat_status leat_example_decode(const void *bytes, size_t size,
                                         leat_example **example_out) LEAT_MUST_CHECK;
/* Gives the values of a feature as a vector of strings, floats or int64s; one without values and
 * kind is a vector of no floats. NOT_FOUND names the key. */
LEAT_API leat_status leat_example_feature(const leat_example *e, const char *key,
                                          leat_tensor **tensor_out) LEAT_MUST_CHECK;
LEAT_API int64_t leat_example_list_size(const leat_example *e, const char *key); /* -1: no list */
/* The same for feature i of a list; OUT_OF_RANGE if the list is shorter. */
LEAT_API leat_status leat_example_list_feature(const leat_example *e, const char *key, int64_t i,
                                               leat_tensor **tensor_out) LEAT_MUST_CHECK;

/* A feature that is wanted as a tensor. */
typedef struct leat_feature_spec {
    const char *key;
    leat_dtype dtype; /* float, int64 or string */
    /* A first dimension of -1 has as many rows as the feature has values for. */
    leat_shape shape;
    /* The tensor where an Example lacks the feature; NULL: that is an error, or, if the first
     * dimension is -1, a tensor without rows. */
    const leat_tensor *value;
} leat_feature_spec;
/* Gives a tensor for each of the n features of the serialized Example. INVALID_ARGUMENT names the
 * feature that is missing, of another type, or of another size. */
LEAT_API leat_status leat_example_parse(const void *bytes, size_t size,
                                        const leat_feature_spec *features, int n,
                                        leat_tensor **tensors_out) LEAT_MUST_CHECK;

/* ---- Checkpoints: the tensors at a prefix ("train/model.ckpt-1200") ---- */
typedef struct leat_checkpoint leat_checkpoint;
/* Opens a checkpoint of version 2 (PREFIX.index and data files) or 1 (a file, or a pattern of
 * files), or the newest one of a directory. */
LEAT_API leat_status leat_checkpoint_open(const char *prefix,
                                          leat_checkpoint **checkpoint_out) LEAT_MUST_CHECK;
LEAT_API const char *leat_checkpoint_path(const leat_checkpoint *c); /* its prefix */
LEAT_API void leat_checkpoint_free(leat_checkpoint *c); /* of NULL does nothing */
typedef struct leat_checkpoint_entry {
    const char *name;
    leat_dtype dtype;
    leat_shape shape;
    int slices; /* number of slices it was saved in; 0: in one piece */
} leat_checkpoint_entry;
LEAT_API int leat_checkpoint_count(const leat_checkpoint *c);
LEAT_API const leat_checkpoint_entry *leat_checkpoint_at(const leat_checkpoint *c, int i);
/* NULL if there is no tensor of this name. */
LEAT_API const leat_checkpoint_entry *leat_checkpoint_find(const leat_checkpoint *c,
                                                           const char *name);
/* Gives a tensor. NOT_FOUND: "Key x not found in checkpoint". */
LEAT_API leat_status leat_checkpoint_read(leat_checkpoint *c, const char *name,
                                          leat_tensor **tensor_out) LEAT_MUST_CHECK;
LEAT_API bool leat_checkpoint_exists(const char *prefix);
/* The newest checkpoint that the file "checkpoint" in dir names, or that lies there if that file is
 * damaged; NULL if there is none. Free with
 * free(). */
LEAT_API char *leat_latest_checkpoint(const char *dir);

/* ---- Event files ---- */
typedef enum leat_event_kind {
    LEAT_EVENT_OTHER,
    LEAT_EVENT_VERSION, /* text: "brain.Event:2" */
    LEAT_EVENT_GRAPH,   /* bytes: a GraphDef */
    LEAT_EVENT_META_GRAPH,
    LEAT_EVENT_SUMMARY,  /* values */
    LEAT_EVENT_LOG,      /* text */
    LEAT_EVENT_SESSION,  /* text: "START", "STOP", "CHECKPOINT path" */
    LEAT_EVENT_METADATA, /* text: a tag; bytes: a RunMetadata */
} leat_event_kind;
typedef enum leat_summary_kind {
    LEAT_SUMMARY_NONE,
    LEAT_SUMMARY_SCALAR,
    LEAT_SUMMARY_HISTOGRAM,
    LEAT_SUMMARY_IMAGE,
    LEAT_SUMMARY_AUDIO,
    LEAT_SUMMARY_TENSOR,
} leat_summary_kind;
typedef struct leat_summary_value {
    const char *tag;
    leat_summary_kind kind;
    float scalar;
    double min, max, num, sum; /* of a histogram */
    /* Its buckets: counts[i] values are below limits[i] and not below limits[i - 1]. */
    const double *limits, *counts;
    int n_buckets;
    int height, width, channels; /* of an image; a sound has channels, too */
    double sample_rate;          /* of a sound, in Hz */
    int64_t frames;              /* of a sound; 0: not known */
    const leat_tensor *tensor;   /* of a tensor, borrowed; text is a tensor of strings */
    const char *plugin;          /* the plugin that shows it, "text"; "" if it is not named */
} leat_summary_value;
typedef struct leat_event_record {
    double wall_time; /* seconds since 1970 */
    int64_t step;
    leat_event_kind kind;
    const char *text;
    const void *bytes;
    size_t size;
    const leat_summary_value *values;
    int n_values;
} leat_event_record;
typedef struct leat_event_reader leat_event_reader;
LEAT_API leat_status leat_event_reader_open(const char *path,
                                            leat_event_reader **reader_out) LEAT_MUST_CHECK;
/* The next event, borrowed until the next call. OUT_OF_RANGE: there are no more. */
LEAT_API leat_status leat_event_next(leat_event_reader *r,
                                     const leat_event_record **event_out) LEAT_MUST_CHECK;
LEAT_API void leat_event_reader_free(leat_event_reader *r); /* of NULL does nothing */

#endif
