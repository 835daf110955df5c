/* idx.c -- idx files: two zero bytes, a type, a rank, the dims and the elements, big-endian. zlib
 * reads them gzipped or plain. */
#include <leat/data.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/arg.h"
#include "core/buffer.h"
#include "core/checked.h"

typedef struct idx {
    gzFile file;
    const char *path;
} idx;

/* Exactly n bytes. */
static leat_status read_bytes(const idx *f, void *to, int64_t n)
{
    int64_t done = 0;
    while (done < n) {
        int64_t left = n - done;
        int got = gzread(f->file, (char *)to + done, left > 1 << 20 ? 1 << 20 : (unsigned)left);
        int code = Z_OK;
        const char *why = gzerror(f->file, &code);
        LEAT_REQUIRE(got >= 0 && code != Z_DATA_ERROR && code != Z_BUF_ERROR, DATA_LOSS,
                     "%s is damaged: %s", f->path, code == Z_ERRNO ? strerror(errno) : why);
        LEAT_REQUIRE(got > 0, DATA_LOSS, "%s is cut: %lld bytes more were expected", f->path,
                     (long long)(n - done));
        done += got;
    }
    return NULL;
}

/* The checksum is at the end of a gzip file: zlib checks it when it reads past the data. */
static leat_status check_end(const idx *f)
{
    char byte;
    int got = gzread(f->file, &byte, 1), code = Z_OK;
    const char *why = gzerror(f->file, &code);
    LEAT_REQUIRE(got >= 0 && (code == Z_OK || code == Z_STREAM_END), DATA_LOSS, "%s is damaged: %s",
                 f->path, why);
    LEAT_REQUIRE(got == 0, DATA_LOSS, "%s has more bytes than its header says", f->path);
    return NULL;
}

static leat_dtype dtype_of(unsigned char code)
{
    switch (code) {
    case 0x08:
        return LEAT_UINT8;
    case 0x09:
        return LEAT_INT8;
    case 0x0B:
        return LEAT_INT16;
    case 0x0C:
        return LEAT_INT32;
    case 0x0D:
        return LEAT_FLOAT;
    case 0x0E:
        return LEAT_DOUBLE;
    default:
        return LEAT_INVALID;
    }
}

static leat_status read_header(const idx *f, leat_dtype *t, leat_shape *shape)
{
    unsigned char head[4], dim[4];
    leat_status s = read_bytes(f, head, 4);
    *t = s ? LEAT_INVALID : dtype_of(head[2]);
    if (s)
        return s;
    LEAT_REQUIRE(head[0] == 0 && head[1] == 0 && *t && head[3] >= 1 && head[3] <= LEAT_MAX_RANK,
                 DATA_LOSS, "%s is not an idx file: it begins with %02x %02x %02x %02x", f->path,
                 head[0], head[1], head[2], head[3]);
    *shape = (leat_shape){.rank = head[3]};
    for (int i = 0; i < shape->rank; i++) {
        LEAT_TRY(read_bytes(f, dim, 4));
        shape->dim[i] =
            (int64_t)dim[0] << 24 | (int64_t)dim[1] << 16 | (int64_t)dim[2] << 8 | dim[3];
    }
    /* The memory for a damaged header is limited: no such file has more elements. */
    int64_t count = leat_shape_count(shape);
    LEAT_REQUIRE(count >= 0 && count <= INT64_C(1) << 32, DATA_LOSS,
                 "%s: its header says %s elements", f->path, leat_shape_show(shape).s);
    return NULL;
}

static void swap_bytes(void *data, int64_t count, size_t size)
{
    unsigned char *p = data;
    for (int64_t i = 0; size > 1 && i < count; i++, p += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char c = p[a];
            p[a] = p[b];
            p[b] = c;
        }
}

static leat_status read_tensor(const idx *f, leat_tensor **tensor_out)
{
    leat_dtype t;
    leat_shape shape;
    leat_tensor *x;
    LEAT_TRY(read_header(f, &t, &shape));
    LEAT_TRY(leat_tensor_alloc(NULL, t, &shape, &x));
    leat_status s = read_bytes(f, x->data, x->count * (int64_t)leat_dtype_size(t));
    if (!s)
        s = check_end(f);
    if (s) {
        leat_tensor_unref(x);
        return s;
    }
    swap_bytes(x->data, x->count, leat_dtype_size(t));
    *tensor_out = x;
    return NULL;
}

leat_status leat_idx_read(const char *path, leat_tensor **tensor_out)
{
    LEAT_CHECK_ARG(path);
    errno = 0;
    idx f = {gzopen(path, "rb"), path};
    LEAT_REQUIRE(f.file, NOT_FOUND, "%s: %s", path, errno ? strerror(errno) : "cannot be opened");
    gzbuffer(f.file, 1 << 17);
    leat_status s = read_tensor(&f, tensor_out);
    gzclose(f.file);
    return s;
}
