/* slice_table.h -- checkpoints of the first format (V1): tables whose values are the tensors
 * themselves, as messages. The entry "" lists the slices of all tensors. */
#ifndef LEAT_IO_SLICE_TABLE_H
#define LEAT_IO_SLICE_TABLE_H

#include "io/slice.h"
#include "io/table.h"

/* ---- Reading: one file, or all that a pattern with * and ? names ---- */
typedef struct leat_slice_reader leat_slice_reader;
leat_status leat_slice_reader_open(const char *pattern, leat_slice_reader **out) LEAT_MUST_CHECK;
/* The same from the bytes of one file, which are taken even on failure; for tests. */
leat_status leat_slice_reader_parse(char *bytes, size_t n, leat_slice_reader **out) LEAT_MUST_CHECK;
void leat_slice_reader_free(leat_slice_reader *r); /* of NULL does nothing */
bool leat_slice_reader_has(const leat_slice_reader *r, const char *name, size_t n,
                           leat_dtype *dtype, leat_shape *shape);
/* Gives a part of a tensor of the checkpoint. */
leat_status leat_slice_reader_read(const leat_slice_reader *r, const char *name, size_t n,
                                   const leat_slice *slice, leat_tensor **out) LEAT_MUST_CHECK;
/* The name of tensor i; NULL when there are no more. */
const char *leat_slice_reader_name(const leat_slice_reader *r, size_t i);

/* ---- Writing: {0} is an empty writer ---- */
typedef struct leat_slice_writer {
    Leat__SavedTensorSlices *meta;
    struct leat_slice_record {
        leat_strbuf key, value;
    } * records;
    size_t n, cap;
} leat_slice_writer;
leat_status leat_slice_writer_add(leat_slice_writer *w, const char *name, size_t n,
                                  const leat_shape *whole, const leat_slice *slice,
                                  const leat_tensor *t) LEAT_MUST_CHECK;
/* Writes the file, which appears complete or not at all. */
leat_status leat_slice_writer_finish(leat_slice_writer *w, const char *path) LEAT_MUST_CHECK;
void leat_slice_writer_release(leat_slice_writer *w);

#endif
