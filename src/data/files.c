/* files.c -- see files.h. */
#include "data/files.h"

#include <leat/data.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/md5.h"
#include "data/download.h"
#include "data/xz.h"
#include "io/file.h"
#include "io/path.h"

enum { CONNECT_S = 10, STALLED_S = 20 };

/* ---- Finding ---- */

static char *joined(const char *dir, const char *name, const char *ending)
{
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s/%s%s", dir, name, ending);
    return leat_strbuf_take(&b);
}

leat_status leat_data_path(const char *dir, const char *name, char **out)
{
    static const char *const endings[] = {".gz", ".xz", ""};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        char *path = joined(dir, name, endings[i]);
        int fd;
        leat_status s = leat_path_open(path, O_RDONLY, &fd);
        if (!s) {
            close(fd);
            *out = path;
            return NULL;
        }
        free(path);
        if (leat_status_code(s) != LEAT_NOT_FOUND)
            return s;
        leat_status_free(s);
    }
    return leat_error(NOT_FOUND, "%s/%s; No such file or directory", dir, name);
}

/* True also if the file cannot be opened for another reason, which reading it will tell. */
static bool is_there(const char *dir, const char *name)
{
    char *path = NULL;
    leat_status s = leat_data_path(dir, name, &path);
    const bool there = leat_status_code(s) != LEAT_NOT_FOUND;
    leat_status_free(s);
    free(path);
    return there;
}

static bool has_files(const leat_data_set *set, const char *dir)
{
    for (int i = 0; i < set->n; i++)
        if (!is_there(dir, set->files[i].name))
            return false;
    return true;
}

char *leat_data_cache_dir(const char *name)
{
    const char *own = getenv("LEAT_DATA_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    if (own && *own)
        return joined(own, name, "");
    if ((!xdg || *xdg != '/') && (!home || !*home))
        return NULL;
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s%s/leat/%s", xdg && *xdg == '/' ? xdg : home,
                       xdg && *xdg == '/' ? "" : "/.cache", name);
    return leat_strbuf_take(&b);
}

/* ---- Downloading ---- */

static leat_status check_sum(const leat_data_file *f, const char *url, const leat_strbuf *b)
{
    uint8_t digest[16];
    char text[33];
    leat_md5(b->s, b->n, digest);
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    LEAT_REQUIRE(strcmp(text, f->md5) == 0, DATA_LOSS,
                 "%s has another checksum than the one that is published, %s: its %zu bytes have "
                 "%s. Nothing was kept of it",
                 url, f->md5, b->n, text);
    return NULL;
}

static leat_status download_file(const leat_data_set *set, const leat_data_file *f, const char *dir,
                                 const char *url)
{
    leat_strbuf b = {.checked = true};
    const leat_download_limits limits = {f->size, CONNECT_S, STALLED_S, set->title};
    LEAT_LOG(WARNING, "downloading %s (%.1f MB) to %s", url, (double)f->size / 1e6, dir);
    leat_status s = leat_download(url, &limits, &b);
    if (!s)
        s = leat_strbuf_check(&b);
    if (!s)
        s = check_sum(f, url, &b);
    if (!s && set->unpack) {
        s = set->unpack(dir, f, b.s, b.n);
    } else if (!s) {
        char *path = joined(dir, f->remote, "");
        s = leat_file_write(path, b.s, b.n);
        free(path);
    }
    leat_strbuf_release(&b);
    return s;
}

static leat_status download(const leat_data_set *set, const char *dir)
{
    const char *mirror = getenv("LEAT_DATA_URL");
    LEAT_TRY(leat_dir_make(dir));
    for (int i = 0; i < set->n; i++) {
        const leat_data_file *f = &set->files[i];
        if (is_there(dir,
                     f->name)) /* by an earlier try, or with another file of the same archive */
            continue;
        leat_strbuf url = {0};
        if (mirror && *mirror)
            leat_strbuf_printf(&url, "%s/%s/%s", mirror, set->name, f->remote);
        else
            leat_strbuf_printf(&url, "%s/%s", set->url, f->remote);
        leat_status s = download_file(set, f, dir, leat_strbuf_text(&url));
        leat_strbuf_release(&url);
        LEAT_TRY(s);
    }
    return NULL;
}

/* What is known when nothing was found: why there is no download. Takes s. */
static char *reason(const leat_data_set *set, const char *data_dir, leat_status s)
{
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "no %s%s%s", set->title, data_dir ? " in " : " found",
                       data_dir ? data_dir : "");
    if (s)
        leat_strbuf_printf(&b, " (%s)", leat_status_message(s));
    leat_status_free(s);
    return leat_strbuf_take(&b);
}

leat_status leat_data_find(const leat_data_set *set, const char *data_dir, char **dir_out,
                           char **why_out)
{
    const char *const mirror = getenv("LEAT_DATA_URL");
    char *shared = joined("../shared/data", set->name, ""), *cache = leat_data_cache_dir(set->name);
    const char *const dirs[] = {data_dir, shared, cache};
    const char *found = NULL;
    leat_status s = NULL;
    for (int i = 0; i < 3 && !found; i++)
        if (dirs[i] && has_files(set, dirs[i]))
            found = dirs[i];
    if (!found && cache && !(mirror && strcmp(mirror, "none") == 0)) {
        s = download(set, cache);
        if (!s && has_files(set, cache))
            found = cache;
    }
    *dir_out = found ? leat_xstrdup(found) : NULL;
    *why_out = found ? NULL : reason(set, data_dir, s);
    free(shared);
    free(cache);
    return NULL;
}

/* ---- Reading ---- */

/* gzip or plain: zlib reads both. */
static leat_status read_gz(const char *path, size_t most, leat_strbuf *to)
{
    int fd;
    LEAT_TRY(leat_path_open(path, O_RDONLY, &fd));
    gzFile f = gzdopen(fd, "rb");
    if (!f) {
        close(fd);
        return leat_error(RESOURCE_EXHAUSTED, "%s: zlib has no memory", path);
    }
    gzbuffer(f, 1 << 17);
    char piece[1 << 14];
    const size_t begin = to->n;
    leat_status s = NULL;
    int got;
    while (!s && (got = gzread(f, piece, sizeof(piece))) > 0) {
        if (to->n - begin + (size_t)got > most)
            s = leat_error(DATA_LOSS, "%s has more than the %zu bytes that it should have", path,
                           most);
        else
            leat_strbuf_add(to, piece, (size_t)got);
    }
    int code = Z_OK;
    const char *why = gzerror(f, &code);
    if (!s && code != Z_OK && code != Z_STREAM_END)
        s = leat_error(DATA_LOSS, "%s is damaged: %s", path,
                       code == Z_ERRNO ? strerror(errno) : why);
    gzclose(f);
    return s ? s : leat_strbuf_check(to);
}

leat_status leat_data_read(const char *dir, const char *name, size_t most, leat_strbuf *to)
{
    char *path;
    LEAT_TRY(leat_data_path(dir, name, &path));
    const size_t n = strlen(path);
    leat_status s = n > 3 && strcmp(path + n - 3, ".xz") == 0 ? leat_xz_read(path, most, to)
                                                              : read_gz(path, most, to);
    free(path);
    return s;
}
