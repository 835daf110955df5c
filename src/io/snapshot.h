/* snapshot.h -- the files of snapshots of datasets, as TensorFlow 1.15 writes and reads them.
 *
 *     DIR/snapshot.metadata              which run is the snapshot, and whether it is complete
 *     DIR/RUN_ID/00000000.snapshot ...   the elements
 *
 * Both kinds of files consist of records: the length of a message in 8 bytes, and the message.
 * There are no checksums. Files of elements may be compressed as a whole (gzip).
 */
#ifndef LEAT_IO_SNAPSHOT_H
#define LEAT_IO_SNAPSHOT_H

#include <leat/io.h>
#include <leat/tensor.h>

typedef struct leat_snapshot_metadata {
    char graph_hash[64], run_id[64];
    int64_t created_us; /* since 1970 */
    bool finalized;     /* the run has written all elements */
} leat_snapshot_metadata;
/* NOT_FOUND if the directory has no such file. */
leat_status leat_snapshot_metadata_read(const char *dir,
                                        leat_snapshot_metadata *out) LEAT_MUST_CHECK;
/* Replaces the file; missing directories are made. */
leat_status leat_snapshot_metadata_write(const char *dir,
                                         const leat_snapshot_metadata *m) LEAT_MUST_CHECK;

typedef struct leat_snapshot_writer leat_snapshot_writer;
leat_status leat_snapshot_writer_open(const char *path, bool gzip,
                                      leat_snapshot_writer **out) LEAT_MUST_CHECK;
leat_status leat_snapshot_write(leat_snapshot_writer *w, leat_tensor *const *tensors,
                                int n) LEAT_MUST_CHECK;
/* The error of a write that could not be made before. Frees w also on failure; of NULL does
 * nothing. */
leat_status leat_snapshot_writer_close(leat_snapshot_writer *w) LEAT_MUST_CHECK;

typedef struct leat_snapshot_reader leat_snapshot_reader;
leat_status leat_snapshot_reader_open(const char *path, bool gzip,
                                      leat_snapshot_reader **out) LEAT_MUST_CHECK;
/* Reads from memory, which is borrowed, instead of a file; for tests. */
leat_status leat_snapshot_reader_over(const void *bytes, size_t size, bool gzip,
                                      leat_snapshot_reader **out) LEAT_MUST_CHECK;
/* Gives the n tensors of the next element. OUT_OF_RANGE at the end of the file; DATA_LOSS, with the
 * record's offset, if it is cut off or damaged, or has other than n tensors. */
leat_status leat_snapshot_next(leat_snapshot_reader *r, leat_tensor **out, int n) LEAT_MUST_CHECK;
/* Skips an element. */
leat_status leat_snapshot_skip(leat_snapshot_reader *r) LEAT_MUST_CHECK;
void leat_snapshot_reader_free(leat_snapshot_reader *r); /* of NULL does nothing */

#endif
