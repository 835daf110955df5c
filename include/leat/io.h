/* io.h -- files: records (TFRecord), checkpoints, event files. They are TensorFlow's, both ways.
 *
 * Readers take nothing in a file for granted: DATA_LOSS says what is broken and where. Other errors
 * have the code that TensorFlow gives to the system's error, and name the file.
 */
#ifndef LEAT_IO_H
#define LEAT_IO_H

#include <leat/tensor.h>

/* ---- Records: strings of bytes in a row, each with its length and checksums ---- */
typedef enum leat_record_form {
    LEAT_RECORD_AUTO, /* reading: found out; writing: plain */
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

typedef struct leat_record_writer leat_record_writer; /* one thread at a time */
/* A new file; one that is there is written over. */
LEAT_API leat_status leat_record_writer_open(const char *path, leat_record_form form,
                                             leat_record_writer **writer_out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_record_write(leat_record_writer *w, const void *bytes,
                                       size_t size) LEAT_MUST_CHECK;
/* What was written is in the file. After an error (a full disk) the file ends with a whole record,
 * and what is missing is tried again at the next call. */
LEAT_API leat_status leat_record_flush(leat_record_writer *w) LEAT_MUST_CHECK;
/* Flushes and frees. Of NULL does nothing. */
LEAT_API leat_status leat_record_writer_close(leat_record_writer *w) LEAT_MUST_CHECK;

#endif
