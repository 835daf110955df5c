/* files.c -- reads whole files, and GraphDefs in binary or text form. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

leat_status cli_read_file(const char *path, char **bytes_out, size_t *size_out)
{
    FILE *f = fopen(path, "rb");
    LEAT_REQUIRE(f, NOT_FOUND, "%s: %s", path, strerror(errno));
    char *bytes = NULL;
    size_t n = 0, cap = 0, got;
    do {
        if (cap - n < 1 << 16) {
            cap = cap ? cap * 2 : 1 << 17;
            char *grown = realloc(bytes, cap + 1);
            if (!grown) {
                free(bytes);
                fclose(f);
                return leat_error(RESOURCE_EXHAUSTED, "%s: no memory for %zu bytes", path, cap);
            }
            bytes = grown;
        }
        got = fread(bytes + n, 1, cap - n, f);
        n += got;
    } while (got > 0);
    bool bad = ferror(f);
    fclose(f);
    if (bad) {
        free(bytes);
        return leat_error(DATA_LOSS, "%s: %s", path, strerror(errno ? errno : EIO));
    }
    bytes[n] = 0;
    *bytes_out = bytes;
    *size_out = n;
    return NULL;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Text has no control characters but tabs and line ends. */
static bool is_text(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && i < 4096; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < ' ' && c != '\n' && c != '\r' && c != '\t')
            return false;
    }
    return n > 0;
}

leat_status cli_read_graph(const char *path, leat_graph *g, size_t *size_out)
{
    char *bytes;
    size_t n;
    LEAT_TRY(cli_read_file(path, &bytes, &n));
    bool text = ends_with(path, ".pbtxt") || ends_with(path, ".txt") ||
                (!ends_with(path, ".pb") && is_text(bytes, n));
    leat_status s =
        text ? leat_graph_from_text(g, bytes, "") : leat_graph_from_binary(g, bytes, n, "");
    free(bytes);
    if (s)
        return leat_status_prefix(s, "%s: ", path);
    *size_out = n;
    return NULL;
}
