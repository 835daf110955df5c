/* path.c -- the file system by name: see path.h. */
#define _GNU_SOURCE
#include "io/path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "io/file.h"

/* Returns the length of the scheme of "scheme://...", 0 if the path has none. */
static size_t scheme(const char *path)
{
    size_t n = 0;
    while (isalnum((unsigned char)path[n]) || (n && strchr("+-.", path[n]) && path[n]))
        n++;
    return isalpha((unsigned char)*path) && strncmp(path + n, "://", 3) == 0 ? n : 0;
}

leat_status leat_path_name(const char *path, const char **name_out)
{
    size_t n = scheme(path);
    const char *name = path;
    if (n) {
        LEAT_REQUIRE(n == 4 && strncmp(path, "file", 4) == 0, UNIMPLEMENTED,
                     "File system scheme '%.*s' not implemented (file: '%s')", (int)n, path, path);
        name = path + n + strlen("://");
        size_t host = strcspn(name, "/");
        LEAT_REQUIRE(!host || (host == 9 && strncmp(name, "localhost", 9) == 0), INVALID_ARGUMENT,
                     "%s; a file of host \"%.*s\" cannot be used here: write file:///path", path,
                     (int)host, name);
        name += host;
    }
    *name_out = name;
    return NULL;
}

bool leat_path_absolute(const char *path)
{
    return *path == '/' || scheme(path);
}

leat_status leat_path_open(const char *path, int flags, int *fd_out)
{
    const char *name;
    leat_status s = NULL;
    LEAT_TRY(leat_path_name(path, &name));
    int fd = leat_roots_open(path, name, flags, &s);
    if (fd >= 0)
        *fd_out = fd;
    return s;
}

/* OK if there is a file or directory of this path, else why it cannot be opened. */
static leat_code look_for(const char *path)
{
    int fd = -1;
    leat_status s = leat_path_open(path, O_PATH, &fd);
    const leat_code code = leat_status_code(s);
    if (!s)
        close(fd);
    leat_status_free(s);
    return code;
}

bool leat_path_exists(const char *path)
{
    const leat_code code = look_for(path);
    return code == LEAT_OK || code == LEAT_RESOURCE_EXHAUSTED || code == LEAT_UNKNOWN;
}

/* ---- Changes of directories ---- */
/* An entry of a directory, for system calls such as unlinkat. */
typedef struct place {
    int dir;
    const char *base;
} place;

static leat_status find(const char *path, place *out)
{
    const char *name;
    LEAT_TRY(leat_path_name(path, &name));
    return leat_roots_parent(path, name, &out->dir, &out->base);
}

/* Closes p->dir, and returns the status of a system call on path that returned rc and set errno. */
static leat_status leave(const char *path, const place *p, int rc)
{
    leat_status s = rc ? leat_file_error(path, errno) : NULL;
    if (p->dir != AT_FDCWD)
        close(p->dir);
    return s;
}

leat_status leat_path_make_dir(const char *path)
{
    place p;
    if (look_for(path) == LEAT_OK)
        return NULL;
    LEAT_TRY(find(path, &p));
    int rc = mkdirat(p.dir, p.base, 0777);
    return leave(path, &p, rc && errno == EEXIST ? 0 : rc);
}

leat_status leat_path_remove(const char *path)
{
    place p;
    LEAT_TRY(find(path, &p));
    return leave(path, &p, unlinkat(p.dir, p.base, 0));
}

leat_status leat_path_remove_dir(const char *path)
{
    place p;
    LEAT_TRY(find(path, &p));
    return leave(path, &p, unlinkat(p.dir, p.base, AT_REMOVEDIR));
}

static leat_status two_names(const char *from, const char *to, bool link)
{
    place a, b;
    LEAT_TRY(find(from, &a));
    leat_status s = find(to, &b);
    if (s) {
        leat_status_free(leave(from, &a, 0));
        return s;
    }
    int rc =
        link ? linkat(a.dir, a.base, b.dir, b.base, 0) : renameat(a.dir, a.base, b.dir, b.base);
    s = leave(link ? to : from, &a, rc);
    leat_status_free(leave(to, &b, 0));
    return s;
}

leat_status leat_path_rename(const char *from, const char *to)
{
    return two_names(from, to, false);
}

leat_status leat_path_link(const char *from, const char *to)
{
    return two_names(from, to, true);
}

/* ---- Patterns ---- */
typedef struct matches {
    char **v;
    size_t n, cap;
} matches;

/* Adds the paths below `dir` that match the pattern `rest`. dir ends with a slash or is empty. */
static void match_below(const char *dir, const char *rest, matches *m)
{
    size_t n = strcspn(rest, "/"), slashes = strspn(rest + n, "/");
    char *part = leat_xstrndup(rest, n);
    leat_strbuf b = {0};
    if (!strpbrk(part, "*?[\\")) {
        leat_strbuf_printf(&b, "%s%.*s", dir, (int)(n + slashes), rest);
        if (rest[n + slashes]) {
            match_below(leat_strbuf_text(&b), rest + n + slashes, m);
        } else if (leat_path_exists(leat_strbuf_text(&b))) {
            leat_grow(m->v, m->n, m->cap);
            m->v[m->n++] = leat_strbuf_take(&b);
        }
    } else {
        char **names = NULL;
        size_t count = 0;
        leat_status_free(leat_dir_list(*dir ? dir : ".", &names, &count));
        for (size_t i = 0; i < count; i++)
            if (fnmatch(part, names[i], 0) == 0) {
                leat_strbuf_clear(&b);
                leat_strbuf_printf(&b, "%s%s%.*s", dir, names[i], (int)slashes, rest + n);
                if (rest[n + slashes]) {
                    match_below(leat_strbuf_text(&b), rest + n + slashes, m);
                } else {
                    leat_grow(m->v, m->n, m->cap);
                    m->v[m->n++] = leat_xstrdup(leat_strbuf_text(&b));
                }
            }
        leat_paths_free(names, count);
    }
    leat_strbuf_release(&b);
    free(part);
}

leat_status leat_path_match(const char *pattern, char ***paths_out, size_t *n_out)
{
    const char *name;
    LEAT_TRY(leat_path_name(pattern, &name));
    matches m = {0};
    size_t before = (size_t)(name - pattern) + strspn(name, "/");
    char *dir = leat_xstrndup(pattern, before);
    match_below(dir, pattern + before, &m);
    free(dir);
    *paths_out = m.v;
    *n_out = m.n;
    return NULL;
}

void leat_paths_free(char **paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
}
