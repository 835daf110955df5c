/* record.h -- internal functions of records; for event files and kernels. */
#ifndef LEAT_IO_RECORD_H
#define LEAT_IO_RECORD_H

#include <leat/io.h>

/* As leat_record_writer_open, but ALREADY_EXISTS if the file is there. */
leat_status leat_record_writer_create(const char *path, leat_record_form form,
                                      leat_record_writer **out) LEAT_MUST_CHECK;
const char *leat_record_writer_path(const leat_record_writer *w);
/* Reads from memory, which is borrowed, instead of a file; for tests. */
leat_record_reader *leat_record_reader_over(const void *bytes, size_t n, leat_record_form form);
/* Whether leat_record_next gives a record without waiting for the file: it is in memory. */
bool leat_record_ready(leat_record_reader *r);
const char *leat_record_path(const leat_record_reader *r); /* NULL if it reads from memory */
/* Where the next record begins in the uncompressed data. */
uint64_t leat_record_offset(const leat_record_reader *r);

#endif
