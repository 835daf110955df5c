/* dir.c -- directories, parts of paths, and status codes of the system's error numbers. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "io/file.h"
#include "io/path.h"

/* TensorFlow's codes for errors of the file system. */
leat_code leat_errno_code(int err)
{
    switch (err) {
    case 0:
        return LEAT_OK;
    case EINVAL:
    case ENAMETOOLONG:
    case ESPIPE:
        return LEAT_INVALID_ARGUMENT;
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return LEAT_NOT_FOUND;
    case EEXIST:
        return LEAT_ALREADY_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS:
        return LEAT_PERMISSION_DENIED;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EBADF:
    case EBUSY:
    case EPIPE:
    case ETXTBSY:
        return LEAT_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EMLINK:
    case ENOBUFS:
    case ENOMEM:
        return LEAT_RESOURCE_EXHAUSTED;
    case EFBIG:
    case EOVERFLOW:
        return LEAT_OUT_OF_RANGE;
    case ENOSYS:
    case ENOTSUP:
    case EXDEV:
        return LEAT_UNIMPLEMENTED;
    case EAGAIN:
    case EINTR:
    case ENOLCK:
        return LEAT_UNAVAILABLE;
    case EDEADLK:
    case ESTALE:
        return LEAT_ABORTED;
    default:
        return LEAT_UNKNOWN;
    }
}

const char *leat_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *leat_path_dir(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = path;
    if (!slash)
        return leat_xstrdup(".");
    leat_status_free(leat_path_name(path, &name)); /* the slashes of "file://" stay */
    while (slash > name && slash[-1] == '/')
        slash--;
    return leat_xstrndup(path, (size_t)(slash - path) + (slash == name));
}

char *leat_path_join(const char *dir, const char *name)
{
    leat_strbuf b = {0};
    size_t n = strlen(dir);
    leat_strbuf_printf(&b, "%s%s%s", dir, n && dir[n - 1] != '/' ? "/" : "", name);
    return leat_strbuf_take(&b);
}

leat_status leat_dir_make(const char *path)
{
    /* A file at this path is reported by the call that needs a directory there. */
    leat_status s = *path ? leat_path_make_dir(path) : NULL;
    if (leat_status_code(s) != LEAT_NOT_FOUND)
        return s;
    char *above = leat_path_dir(path);
    if (strcmp(above, path) != 0) {
        leat_status_free(s);
        s = leat_dir_make(above);
        if (!s)
            s = leat_path_make_dir(path);
    }
    free(above);
    return s;
}

leat_status leat_dir_sync(const char *path)
{
    int fd;
    LEAT_TRY(leat_path_open(path, O_RDONLY | O_DIRECTORY, &fd));
    /* EINVAL: the file system cannot sync directories. */
    int err = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    close(fd);
    return err ? leat_file_error(path, err) : NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

leat_status leat_dir_list(const char *path, char ***names, size_t *n)
{
    int fd;
    LEAT_TRY(leat_path_open(path, O_RDONLY | O_DIRECTORY, &fd));
    DIR *d = fdopendir(fd);
    if (!d) {
        leat_status s = leat_file_error(path, errno);
        close(fd);
        return s;
    }
    char **v = NULL;
    size_t count = 0, cap = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        leat_grow(v, count, cap);
        v[count++] = leat_xstrdup(e->d_name);
    }
    closedir(d);
    if (count)
        qsort(v, count, sizeof(*v), by_name);
    *names = v;
    *n = count;
    return NULL;
}
