/* path.h -- the file system by name. All code that works on files for graphs uses these functions,
 * and no other way to open, make, rename or remove a file, so that two rules hold everywhere:
 *
 * 1. A path is a name in the host's file system, or such a name after "file://". Every other scheme
 *    ("gs://bucket/x") is an error, UNIMPLEMENTED, that names the scheme.
 * 2. If the process was given roots (leat_file_roots_set in leat/io.h), a path must lie below one
 * of them; to be written, below one that may be written to. The kernel checks this while it
 * resolves the path (openat2 with RESOLVE_BENEATH), so neither ".." nor a symbolic link leads out
 * of a root, even if somebody changes a directory at the same time. PERMISSION_DENIED names path
 * and roots.
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
bool leat_path_exists(const char *path); /* and may be read by this process's rules */
/* One directory, whose parent exists. OK if something of that name is there. */
leat_status leat_path_make_dir(const char *path) LEAT_MUST_CHECK;
leat_status leat_path_rename(const char *from, const char *to) LEAT_MUST_CHECK;
leat_status leat_path_link(const char *from, const char *to) LEAT_MUST_CHECK; /* a hard link */
leat_status leat_path_remove(const char *path) LEAT_MUST_CHECK;               /* a file */
leat_status leat_path_remove_dir(const char *path) LEAT_MUST_CHECK;           /* an empty one */
/* The paths that match a pattern (*, ?, [...], \ before a character that stands for itself; none of
 * them matches a slash), sorted. Free each and the array. A directory that cannot be read has no
 * matches. */
leat_status leat_path_match(const char *pattern, char ***paths_out, size_t *n_out) LEAT_MUST_CHECK;
void leat_paths_free(char **paths, size_t n);

bool leat_path_absolute(const char *path); /* begins with a slash, or with a scheme */
/* Where the host's name begins in a path: after "file://" and "localhost". */
leat_status leat_path_name(const char *path, const char **name_out) LEAT_MUST_CHECK;

/* ---- Roots (roots.c) ---- */
/* Opens below the root that `name` lies in, or plainly if there are no roots. Gives a descriptor;
 * -1: *status_out says why. path is for messages. */
int leat_roots_open(const char *path, const char *name, int flags, leat_status *status_out);
/* The directory that `name` is in, as a descriptor to be closed, with the last part of the name in
 * *base_out. AT_FDCWD, and the whole name, if there are no roots. */
leat_status leat_roots_parent(const char *path, const char *name, int *dir_out,
                              const char **base_out) LEAT_MUST_CHECK;

#endif
