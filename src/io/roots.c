/* roots.c -- the directories that this process may read and write: see path.h, rule 2. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

#include <leat/io.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "io/file.h"
#include "io/path.h"

/* AGAIN: most tries of openat2, which may fail with EAGAIN while another process renames. */
enum { MODE = 0666, AGAIN = 100 };

typedef struct root {
    char *name; /* The absolute name; may have symbolic links. */
    char *real; /* The same directory without symbolic links. */
    int fd;     /* Of the directory, with O_PATH. */
    bool write; /* Files below may be written, too. */
} root;

/* roots, n_roots and given are written once, under the lock, before `set` becomes true. After that
 * they are read without the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static root *roots;
static size_t n_roots;
static char *given; /* The lists of leat_file_roots_set, to compare with those of later calls. */
static bool set;    /* Accessed atomically where the lock is not held. */

/* Gives "/cwd/x" for "x", and a copy of an absolute name. */
static char *absolute(const char *name)
{
    if (*name == '/')
        return leat_xstrdup(name);
    leat_strbuf b = {0};
    char *cwd = getcwd(NULL, 0);
    leat_strbuf_printf(&b, "%s/%s", cwd ? cwd : "", name);
    free(cwd);
    return leat_strbuf_take(&b);
}

/* ---- Setting ---- */
static leat_status add(root **v, size_t *n, const char *dir, bool write)
{
    char *real = realpath(dir, NULL);
    int fd = real ? open(real, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        leat_status s = leat_file_error(dir, errno);
        free(real);
        return s;
    }
    char *name = absolute(dir);
    for (size_t len = strlen(name); len > 1 && name[len - 1] == '/';)
        name[--len] = 0;
    *v = leat_xrealloc(*v, (*n + 1) * sizeof **v);
    (*v)[(*n)++] = (root){name, real, fd, write};
    return NULL;
}

static leat_status add_list(root **v, size_t *n, const char *list, bool write)
{
    leat_status s = NULL;
    for (const char *p = list; p && *p && !s;) {
        size_t len = strcspn(p, ",");
        char *dir = leat_xstrndup(p, len);
        if (len)
            s = add(v, n, dir, write);
        free(dir);
        p += len + (p[len] == ',');
    }
    return s;
}

static void free_roots(root *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        close(v[i].fd);
        free(v[i].name);
        free(v[i].real);
    }
    free(v);
}

leat_status leat_file_roots_set(const char *both, const char *read_only)
{
    if (!both && !read_only)
        return NULL;
    leat_strbuf lists = {0};
    leat_strbuf_printf(&lists, "%s;%s", both ? both : "", read_only ? read_only : "");
    leat_status s = NULL;
    pthread_mutex_lock(&lock);
    if (set) {
        if (strcmp(given, leat_strbuf_text(&lists)) != 0)
            s = leat_error(FAILED_PRECONDITION,
                           "The directories of this process are set already, to \"%s\" (to be read "
                           "and written; to be read), and cannot become \"%s\"",
                           given, leat_strbuf_text(&lists));
        leat_strbuf_release(&lists);
    } else {
        root *v = NULL;
        size_t n = 0;
        s = add_list(&v, &n, both, true);
        if (!s)
            s = add_list(&v, &n, read_only, false);
        if (s) {
            free_roots(v, n);
            leat_strbuf_release(&lists);
        } else {
            roots = v;
            n_roots = n;
            given = leat_strbuf_take(&lists);
            __atomic_store_n(&set, true, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* ---- Finding ---- */
/* Returns the rest of `name` below `dir`, "." for `dir` itself, NULL if name is not below dir. */
static const char *below(const char *dir, const char *name)
{
    size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
    if (strncmp(dir, name, n) != 0 || (name[n] && name[n] != '/'))
        return NULL;
    while (name[n] == '/')
        n++;
    return name[n] ? name + n : ".";
}

/* Returns the first root that `name` lies below and that allows the access, or NULL. */
static const root *find(const char *name, bool write, const char **rest_out)
{
    for (size_t i = 0; i < n_roots; i++) {
        if (write && !roots[i].write)
            continue;
        *rest_out = below(roots[i].name, name);
        if (!*rest_out)
            *rest_out = below(roots[i].real, name);
        if (*rest_out)
            return &roots[i];
    }
    return NULL;
}

static leat_status outside(const char *path, bool write)
{
    leat_strbuf b = {0};
    for (size_t i = 0; i < n_roots; i++)
        if (roots[i].write || !write)
            leat_strbuf_printf(&b, "%s%s", b.n ? ", " : "", roots[i].name);
    leat_status s = leat_error(PERMISSION_DENIED, "%s; this process may %s files only below %s",
                               path, write ? "write" : "read", b.n ? b.s : "no directory at all");
    leat_strbuf_release(&b);
    return s;
}

/* ---- Opening ---- */
/* For Linux without openat2: opens the path part by part, and follows no symbolic link at all. */
static int open_parts(int dir, const char *rest, int flags)
{
    int at = dir;
    for (const char *p = rest; at >= 0;) {
        size_t n = strcspn(p, "/");
        char *part = leat_xstrndup(p, n);
        const char *next = p + n + strspn(p + n, "/");
        bool last = !*next;
        int fd = -1;
        if (strcmp(part, "..") == 0)
            errno = EXDEV;
        else if (last)
            fd = openat(at, part, flags | O_NOFOLLOW, MODE);
        else
            fd = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        int why = errno;
        if (fd < 0 && why == ENOTDIR && fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(st.st_mode))
            why = ELOOP;
        if (at != dir)
            close(at);
        free(part);
        errno = why;
        if (last)
            return fd;
        at = fd;
        p = next;
    }
    return -1;
}

static int open_beneath(int dir, const char *rest, int flags)
{
#ifdef RESOLVE_BENEATH
    struct open_how how = {.flags = (unsigned)flags,
                           .mode = flags & O_CREAT ? MODE : 0,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd;
    int tries = 0;
    do
        fd = syscall(SYS_openat2, dir, rest, &how, sizeof how);
    while (fd < 0 && (errno == EAGAIN || errno == EINTR) && ++tries < AGAIN);
    /* Containers' filters of system calls fail calls that they do not know with EPERM. */
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return (int)fd;
#endif
    return open_parts(dir, rest, flags);
}

/* full is the absolute name. Errors name the file by path. */
static int open_in_root(const char *path, const char *full, int flags, bool write,
                        leat_status *status_out)
{
    const char *rest;
    const root *r = find(full, write, &rest);
    int fd = r ? open_beneath(r->fd, rest, flags | O_CLOEXEC) : -1;
    /* EXDEV and ELOOP mean that a ".." or a symbolic link on the way leads out of the root. */
    if (fd < 0)
        *status_out = !r || errno == EXDEV || errno == ELOOP ? outside(path, write)
                                                             : leat_file_error(path, errno);
    return fd;
}

int leat_roots_open(const char *path, const char *name, int flags, leat_status *status_out)
{
    if (!__atomic_load_n(&set, __ATOMIC_ACQUIRE)) {
        int fd = open(name, flags | O_CLOEXEC, MODE);
        if (fd < 0)
            *status_out = leat_file_error(path, errno);
        return fd;
    }
    bool write = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    char *full = absolute(name);
    int fd = open_in_root(path, full, flags, write, status_out);
    free(full);
    return fd;
}

leat_status leat_roots_parent(const char *path, const char *name, int *dir_out,
                              const char **base_out)
{
    if (!__atomic_load_n(&set, __ATOMIC_ACQUIRE)) {
        *dir_out = AT_FDCWD;
        *base_out = name;
        return NULL;
    }
    const char *rest, *base = leat_path_base(name);
    char *full = absolute(name), *above = leat_path_dir(full);
    leat_status s = NULL;
    /* The name of a root itself, or one that ends in a slash, "." or "..", is not the name of an
     * entry in a directory below a root. */
    bool named = *base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0;
    int dir = -1;
    if (named && find(full, true, &rest))
        dir = open_in_root(path, above, O_PATH | O_DIRECTORY, true, &s);
    else
        s = outside(path, true);
    free(full);
    free(above);
    if (dir >= 0) {
        *dir_out = dir;
        *base_out = base;
    }
    return s;
}
