/* cache.c -- what is kept on disk for the next process: compiled programs, and tile sizes that were
 * found by trying. A file for each, in the folder that LEAT_OPENCL_CACHE names (empty: nothing is
 * kept), else leat/opencl in XDG_CACHE_HOME, else in ~/.cache.
 *
 * A file's name contains a hash of all that its contents depend on, among them the names and
 * versions of the device and its driver. The file begins with a hash of its contents, so one that
 * was cut off or changed is not used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "kernels/opencl/opencl.h"

typedef struct head {
    char magic[8];
    uint64_t hash, size; /* of what follows */
} head;
static const char magic[8] = "leatcl1";

/* The file's path, or "" if nothing is kept; it is cut off if it is too long, and then not found.
 */
static void path_of(const leat_opencl *d, const char *kind, uint64_t key, char *out, size_t size)
{
    const char *folder = getenv("LEAT_OPENCL_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    const uint64_t driver = leat_hash(d->listed->driver, strlen(d->listed->driver), 1);
    char base[512];
    if (folder)
        snprintf(base, sizeof base, "%s", folder);
    else if (cache && *cache)
        snprintf(base, sizeof base, "%s/leat/opencl", cache);
    else
        snprintf(base, sizeof base, "%s%s", home ? home : "",
                 home && *home ? "/.cache/leat/opencl" : "");
    if (*base)
        snprintf(out, size, "%s/%s-%016llx-%016llx", base, kind, (unsigned long long)driver,
                 (unsigned long long)key);
    else
        *out = 0;
}

bool leat_cl_cache_read(const leat_opencl *d, const char *kind, uint64_t key, char **bytes_out,
                        size_t *n_out)
{
    char path[640], *bytes;
    size_t n;
    path_of(d, kind, key, path, sizeof path);
    if (!*path)
        return false;
    leat_status s = leat_file_read(path, &bytes, &n);
    if (s) {
        leat_status_free(s);
        return false;
    }
    head h = {{0}, 0, 0};
    if (n >= sizeof h)
        memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.size != n - sizeof h ||
        h.hash != leat_hash(bytes + sizeof h, n - sizeof h, key)) {
        free(bytes);
        return false;
    }
    memmove(bytes, bytes + sizeof h, h.size);
    *bytes_out = bytes;
    *n_out = h.size;
    return true;
}

void leat_cl_cache_write(const leat_opencl *d, const char *kind, uint64_t key, const void *bytes,
                         size_t n)
{
    char path[640];
    leat_new_file *f = NULL;
    head h = {.hash = leat_hash(bytes, n, key), .size = n};
    memcpy(h.magic, magic, sizeof magic);
    path_of(d, kind, key, path, sizeof path);
    if (!*path)
        return;
    leat_status s = leat_new_file_open(path, &f);
    if (!s)
        s = leat_new_file_write(f, &h, sizeof h);
    if (!s)
        s = leat_new_file_write(f, bytes, n);
    if (!s)
        s = leat_new_file_sync(f);
    if (!s)
        s = leat_new_file_publish(f);
    if (f)
        leat_new_file_free(f);
    leat_status_free(s);
}
