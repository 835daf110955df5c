/* file.h -- reading files whole or in pieces, and writing files such that they appear complete or
 * not at all.
 *
 * A file X is written under a temporary name ("X.tempstate8f3c..."), made durable (fsync), and only
 * then renamed to X. If the writer is killed, or the disk is full, X stays as it was. Errors name
 * the file and the system's error, with TensorFlow's code for that errno: "/tmp/x; No such file or
 * directory".
 */
#ifndef LEAT_IO_FILE_H
#define LEAT_IO_FILE_H

#include <leat/status.h>
#include <sys/types.h>

leat_code leat_errno_code(int err);
/* "path; No space left on device" for an errno. */
leat_status leat_file_error(const char *path, int err) LEAT_MUST_CHECK;

/* ---- Reading ---- */
/* Gives all bytes, with a NUL appended; free with free(). */
leat_status leat_file_read(const char *path, char **bytes, size_t *n) LEAT_MUST_CHECK;

typedef struct leat_file leat_file; /* open for reading; may be used by several threads */
leat_status leat_file_open(const char *path, leat_file **out) LEAT_MUST_CHECK;
void leat_file_close(leat_file *f); /* of NULL does nothing */
int64_t leat_file_size(const leat_file *f); /* when it was opened */
/* The same now. */
int64_t leat_file_measure(const leat_file *f);
const char *leat_file_path(const leat_file *f);
/* Reads n bytes at offset; DATA_LOSS if there are fewer. */
leat_status leat_file_read_at(leat_file *f, void *bytes, size_t n, int64_t offset) LEAT_MUST_CHECK;
/* Reads as many of n bytes at offset as the system has in its cache, without waiting for a disk.
 * Gives their number: 0 also where the system cannot tell, at the end, and after errors. */
size_t leat_file_read_cached(leat_file *f, void *bytes, size_t n, int64_t offset);

/* ---- Writing ---- */
typedef struct leat_new_file leat_new_file;
/* Starts a file; missing directories of the path are made. */
leat_status leat_new_file_open(const char *path, leat_new_file **out) LEAT_MUST_CHECK;
leat_status leat_new_file_write(leat_new_file *f, const void *bytes, size_t n) LEAT_MUST_CHECK;
int64_t leat_new_file_size(const leat_new_file *f); /* bytes written so far */
/* Makes all bytes durable, still under the temporary name. Nothing can be written after this
 * call. */
leat_status leat_new_file_sync(leat_new_file *f) LEAT_MUST_CHECK;
/* Gives the file its name (after leat_new_file_sync); does not free f. */
leat_status leat_new_file_publish(leat_new_file *f) LEAT_MUST_CHECK;
void leat_new_file_free(leat_new_file *f); /* removes the file if it was not published */
/* Writes and publishes a file with the given bytes; the directory is synced, too. */
leat_status leat_file_write(const char *path, const void *bytes, size_t n) LEAT_MUST_CHECK;

/* ---- Directories and names ---- */
char *leat_path_dir(const char *path); /* "a/b" of "a/b/c", "." of "c"; free with free() */
const char *leat_path_base(const char *path);
/* "a/b" of "a" and "b", "b" of "" and "b"; free with free(). */
char *leat_path_join(const char *dir, const char *name);
/* Makes the directory and its parents; OK if it exists. */
leat_status leat_dir_make(const char *path) LEAT_MUST_CHECK;
leat_status leat_dir_sync(const char *path) LEAT_MUST_CHECK; /* makes renames in it durable */
/* The names of a directory's entries, sorted, without . and ..; free each and the array. */
leat_status leat_dir_list(const char *path, char ***names, size_t *n) LEAT_MUST_CHECK;

#endif
