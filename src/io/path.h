/* path.h -- opens, makes, renames and removes files by name. All code that works on files for
 * graphs uses only these functions, so that two rules hold everywhere:
 *
 * 1. A path is a name in the host's file system, or such a name after "file://". Every other scheme
 *    ("gs://bucket/x") is an error, UNIMPLEMENTED, that names the scheme.
 * 2. If the process has roots (leat_file_roots_set in leat/io.h), a path must lie below one of
 *    them, and a path to be written below one that may be written to. Linux checks this while it
 *    resolves the path (openat2 with RESOLVE_BENEATH), so neither ".." nor a symbolic link leads
 *    out of a root, even if another process changes a directory at the same time. Any other path is
 *    an error, PERMISSION_DENIED, that names the path and the roots.
 *
 * Errors are those of leat_file_error: "/tmp/x; No such file or directory".
 */
#ifndef LEAT_IO_PATH_H
#define LEAT_IO_PATH_H

#include <leat/status.h>
#include <stdbool.h>
#include <stddef.h>

/* flags are open's; O_CLOEXEC is added. A new file has mode 0666, less the umask. */
leat_status leat_path_open(const char *path, int flags, int *fd_out) LEAT_MUST_CHECK;
/* False also for a path that lies below no root. True also where the system cannot tell, because
 * descriptors or memory are exhausted or the disk fails: opening the file then gives the error. */
bool leat_path_exists(const char *path);
/* Makes one directory, whose parent must exist. OK if a file or directory of that name exists. */
leat_status leat_path_make_dir(const char *path) LEAT_MUST_CHECK;
leat_status leat_path_rename(const char *from, const char *to) LEAT_MUST_CHECK;
/* Makes a hard link. */
leat_status leat_path_link(const char *from, const char *to) LEAT_MUST_CHECK;
/* remove: a file; remove_dir: an empty directory. */
leat_status leat_path_remove(const char *path) LEAT_MUST_CHECK;
leat_status leat_path_remove_dir(const char *path) LEAT_MUST_CHECK;
/* Gives the paths that match a pattern, sorted; free them with leat_paths_free. In a pattern, *, ?
 * and [...] mean what they mean in a shell and do not match a slash; a character after \ stands for
 * itself. A directory that cannot be read has no matches. */
leat_status leat_path_match(const char *pattern, char ***paths_out, size_t *n_out) LEAT_MUST_CHECK;
void leat_paths_free(char **paths, size_t n);

bool leat_path_absolute(const char *path); /* True if path begins with a slash or a scheme. */
/* *name_out: where the name in the host's file system begins in path, which is after "file://" and
 * "file://localhost". */
leat_status leat_path_name(const char *path, const char **name_out) LEAT_MUST_CHECK;

/* ---- Roots (roots.c) ---- */
/* Opens `name` below the root that it lies in, or with open() if the process has no roots. Gives a
 * descriptor, or returns -1 and sets *status_out. Errors name the file by path. */
int leat_roots_open(const char *path, const char *name, int flags, leat_status *status_out);
/* Gives, in *dir_out, a descriptor of the directory that `name` is in, which may be written to;
 * *base_out is the last part of the name. If the process has no roots, they are AT_FDCWD, which is
 * not to be closed, and the whole name. */
leat_status leat_roots_parent(const char *path, const char *name, int *dir_out,
                              const char **base_out) LEAT_MUST_CHECK;

#endif
