/* file.c -- ReadFile, WriteFile, MatchingFiles. They wait for disks, and so run in threads of their
 * own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/file.h"
#include "io/path.h"
#include "kernels/cpu/cpu.h"

/* A file name, which the system takes as a string that ends with a NUL. */
static leat_status path_of(const leat_string *s, const char **out)
{
    *out = s->data ? s->data : "";
    LEAT_REQUIRE(strlen(*out) == s->size, INVALID_ARGUMENT,
                 "The file name \"%s...\" has a NUL in it", *out);
    return NULL;
}

static leat_status scalar_path(leat_kernel *k, const char **out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Input filename tensor must be scalar, but had shape: %s",
                 leat_shape_show(&t->shape).s);
    return path_of(t->data, out);
}

static leat_status read_file(leat_kernel *k)
{
    const char *path = NULL;
    char *bytes;
    size_t n;
    leat_tensor *y;
    const leat_shape scalar = {0};
    LEAT_TRY(scalar_path(k, &path));
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    LEAT_TRY(leat_file_read(path, &bytes, &n));
    leat_string *s = y->data;
    free(s->data);
    if (n == 0)
        free(bytes);
    *s = (leat_string){n ? bytes : NULL, n};
    return NULL;
}

static leat_status write_file(leat_kernel *k)
{
    const char *path = NULL;
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_TRY(scalar_path(k, &path));
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Contents tensor must be scalar, but had shape: %s", leat_shape_show(&t->shape).s);
    const leat_string *s = t->data;
    return leat_file_write(path, s->data, s->size);
}

/* ---- MatchingFiles ---- */

/* A directory that the process may not use has no matches; this is the error that says so. */
static leat_status check_allowed(const char *pattern)
{
    size_t n = strcspn(pattern, "*?[\\");
    while (n && pattern[n - 1] != '/')
        n--;
    char *dir = n ? strndup(pattern, n) : strdup(".");
    LEAT_REQUIRE(dir, RESOURCE_EXHAUSTED, "No memory for a pattern");
    int fd = -1;
    leat_status s = leat_path_open(dir, O_PATH | O_DIRECTORY, &fd);
    free(dir);
    if (!s)
        close(fd);
    if (leat_status_code(s) == LEAT_PERMISSION_DENIED)
        return s;
    leat_status_free(s);
    return NULL;
}

typedef struct found {
    char **v;
    size_t n;
} found;

static leat_status match(const leat_string *pattern, found *all)
{
    const char *text = NULL;
    found f = {0};
    LEAT_TRY(path_of(pattern, &text));
    LEAT_TRY(leat_path_match(text, &f.v, &f.n));
    if (!f.n) {
        free(f.v);
        return check_allowed(text);
    }
    char **v = realloc(all->v, sizeof(*v) * (all->n + f.n));
    if (!v) {
        leat_paths_free(f.v, f.n);
        return leat_error(RESOURCE_EXHAUSTED, "No memory for %zu file names", all->n + f.n);
    }
    memcpy(v + all->n, f.v, sizeof(*v) * f.n);
    free(f.v);
    *all = (found){v, all->n + f.n};
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static leat_status match_all(leat_kernel *k, found *all)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT,
                 "Input patterns tensor must be scalar or vector, but had shape: %s",
                 leat_shape_show(&t->shape).s);
    for (int64_t i = 0; i < t->count; i++)
        LEAT_TRY(match(AT(leat_string, t) + i, all));
    if (all->n)
        qsort(all->v, all->n, sizeof(*all->v), by_name);
    leat_tensor *y;
    const leat_shape shape = leat_shape((int64_t)all->n);
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    for (size_t i = 0; i < all->n; i++)
        LEAT_REQUIRE(leat_string_set(AT(leat_string, y) + i, all->v[i], strlen(all->v[i])),
                     RESOURCE_EXHAUSTED, "No memory for a file name");
    return NULL;
}

static leat_status matching_files(leat_kernel *k)
{
    found all = {0};
    leat_status s = match_all(k, &all);
    leat_paths_free(all.v, all.n);
    return s;
}

const leat_kernel_def leat_cpu_file[] = {
    {.op = "ReadFile", .run = read_file, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "WriteFile", .run = write_file, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "MatchingFiles", .run = matching_files, .flags = LEAT_KERNEL_BLOCKS},
    {0},
};
