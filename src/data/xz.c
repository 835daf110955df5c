/* xz.c -- see xz.h. The struct and the numbers are those of liblzma's binary interface, which do
 * not change; so no header of liblzma is needed to build. */
#include "data/xz.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/library.h"
#include "io/file.h"

typedef struct lzma_stream { /* lzma_stream of liblzma 5 */
    const uint8_t *next_in;
    size_t avail_in;
    uint64_t total_in;
    uint8_t *next_out;
    size_t avail_out;
    uint64_t total_out;
    const void *allocator;
    void *internal;
    void *reserved[4];
    uint64_t seek_pos, reserved_int2;
    size_t reserved_int[2];
    int reserved_enum[2];
} lzma_stream;

enum {
    ACTION_FINISH = 3,
    LZMA_OK = 0,
    LZMA_STREAM_END = 1,
    LZMA_MEM_ERROR = 5,
    MOST_MEMORY = 256 << 20
};

static struct {
    int (*decoder)(lzma_stream *s, uint64_t memory, uint32_t flags);
    int (*code)(lzma_stream *s, int action);
    void (*end)(lzma_stream *s);
} lzma;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static leat_status failure;

static void load(void)
{
    const leat_library_function functions[] = {
        {"lzma_stream_decoder", &lzma.decoder}, {"lzma_code", &lzma.code}, {"lzma_end", &lzma.end}};
    void *library;
    failure = leat_library_load("liblzma.so.5", functions, 3, &library);
}

static leat_status decode(lzma_stream *x, const char *path, size_t most, leat_strbuf *to)
{
    uint8_t piece[1 << 14];
    const size_t begin = to->n;
    int code = LZMA_OK;
    while (code == LZMA_OK) {
        x->next_out = piece;
        x->avail_out = sizeof(piece);
        code = lzma.code(x, ACTION_FINISH);
        const size_t got = sizeof(piece) - x->avail_out;
        LEAT_REQUIRE(to->n - begin + got <= most, DATA_LOSS,
                     "%s has more than the %zu bytes that it should have", path, most);
        leat_strbuf_add(to, piece, got);
    }
    LEAT_REQUIRE(code != LZMA_MEM_ERROR, RESOURCE_EXHAUSTED, "%s: liblzma has no memory", path);
    LEAT_REQUIRE(code == LZMA_STREAM_END, DATA_LOSS,
                 "%s is damaged: liblzma's error %d after %llu bytes", path, code,
                 (unsigned long long)x->total_in);
    LEAT_REQUIRE(x->avail_in == 0, DATA_LOSS, "%s has %zu bytes after its end", path, x->avail_in);
    return leat_strbuf_check(to);
}

leat_status leat_xz_read(const char *path, size_t most, leat_strbuf *to)
{
    char *bytes;
    size_t n;
    pthread_once(&once, load);
    LEAT_REQUIRE(!failure, NOT_FOUND,
                 "%s needs liblzma, which cannot be loaded (%s): install the Debian package "
                 "liblzma5, or decompress the file",
                 path, leat_status_message(failure));
    LEAT_TRY(leat_file_read(path, &bytes, &n));
    lzma_stream x = {.next_in = (const uint8_t *)bytes, .avail_in = n};
    leat_status s = NULL;
    if (lzma.decoder(&x, MOST_MEMORY, 0) != LZMA_OK)
        s = leat_error(RESOURCE_EXHAUSTED, "%s: liblzma has no memory", path);
    if (!s)
        s = decode(&x, path, most, to);
    lzma.end(&x);
    free(bytes);
    return s;
}
