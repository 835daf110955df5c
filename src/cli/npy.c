/* npy.c -- NumPy's .npy files: "\x93NUMPY", a version, and a header that is a Python dictionary
 * with the keys descr, fortran_order and shape; then the elements. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The contents of the header. */
typedef struct npy {
    char kind; /* f i u b c S U */
    int size;  /* bytes of an element; characters of U */
    bool swap, fortran;
    leat_shape shape;
} npy;

static const struct {
    char kind;
    int size;
    leat_dtype t;
} types[] = {
    {'f', 2, LEAT_HALF},      {'f', 4, LEAT_FLOAT},       {'f', 8, LEAT_DOUBLE},
    {'i', 1, LEAT_INT8},      {'i', 2, LEAT_INT16},       {'i', 4, LEAT_INT32},
    {'i', 8, LEAT_INT64},     {'u', 1, LEAT_UINT8},       {'u', 2, LEAT_UINT16},
    {'u', 4, LEAT_UINT32},    {'u', 8, LEAT_UINT64},      {'b', 1, LEAT_BOOL},
    {'c', 8, LEAT_COMPLEX64}, {'c', 16, LEAT_COMPLEX128},
};
enum { N_TYPES = sizeof(types) / sizeof(*types) };

/* ---- Reading ---- */

/* The text after 'key': in the header, or NULL. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof(quoted), "'%s'", key);
    const char *p = strstr(header, quoted);
    p = p ? strchr(p + strlen(quoted), ':') : NULL;
    return p ? p + 1 + strspn(p + 1, " ") : NULL;
}

static leat_status parse_descr(const char *path, const char *p, npy *h)
{
    char order = 0;
    int used = 0;
    LEAT_REQUIRE(p && sscanf(p, "'%c%c%d'%n", &order, &h->kind, &h->size, &used) == 3 && used > 0 &&
                     strchr("<>|=", order) && h->size >= 0 && h->size < 1 << 24,
                 DATA_LOSS, "%s: its header has no dtype that can be read", path);
    h->swap = order == '>';
    return NULL;
}

static leat_status parse_shape(const char *path, const char *p, npy *h)
{
    LEAT_REQUIRE(p && *p == '(', DATA_LOSS, "%s: its header has no shape", path);
    h->shape = leat_shape();
    for (p++; *p && *p != ')'; p += strspn(p, ", L")) {
        char *end;
        long long d = strtoll(p, &end, 10);
        LEAT_REQUIRE(end != p && d >= 0 && h->shape.rank < LEAT_MAX_RANK, DATA_LOSS,
                     "%s: its header has a bad shape", path);
        h->shape.dim[h->shape.rank++] = d;
        p = end;
    }
    LEAT_REQUIRE(leat_shape_count(&h->shape) >= 0, DATA_LOSS, "%s: its shape %s is too large", path,
                 leat_shape_show(&h->shape).s);
    return NULL;
}

/* Gives the offset of the elements. */
static leat_status parse_header(const char *path, char *bytes, size_t n, npy *h, size_t *begin_out)
{
    LEAT_REQUIRE(n >= 10 && memcmp(bytes, "\x93NUMPY", 6) == 0, DATA_LOSS, "%s is not a .npy file",
                 path);
    const unsigned char *b = (const unsigned char *)bytes;
    size_t at = b[6] == 1 ? 10 : 12;
    LEAT_REQUIRE(n >= at && b[6] >= 1 && b[6] <= 3, DATA_LOSS, "%s: .npy version %d", path, b[6]);
    size_t len = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1)
        len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    LEAT_REQUIRE(len > 0 && len <= n - at, DATA_LOSS, "%s is cut in its header", path);
    bytes[at + len - 1] = 0; /* replaces the line end */
    const char *header = bytes + at, *fortran = value_of(header, "fortran_order");
    LEAT_TRY(parse_descr(path, value_of(header, "descr"), h));
    LEAT_TRY(parse_shape(path, value_of(header, "shape"), h));
    h->fortran = fortran && strncmp(fortran, "True", 4) == 0;
    *begin_out = at + len;
    return NULL;
}

/* Element `to` in C's order is element `from` in Fortran's. */
static int64_t fortran_index(const leat_shape *s, int64_t to)
{
    int64_t from = 0, stride = 1, at[LEAT_MAX_RANK];
    for (int i = s->rank - 1; i >= 0; i--) {
        at[i] = to % s->dim[i];
        to /= s->dim[i];
    }
    for (int i = 0; i < s->rank; i++) {
        from += at[i] * stride;
        stride *= s->dim[i];
    }
    return from;
}

static int put_utf8(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(0xf0 << (4 - n) | c);
    return n;
}

/* Strings have a fixed size, padded with NULs; characters of U have 4 bytes each. */
static leat_status put_string(const npy *h, const char *from, leat_string *to)
{
    if (h->kind == 'S') {
        size_t n = (size_t)h->size;
        while (n > 0 && !from[n - 1])
            n--;
        LEAT_REQUIRE(leat_string_set(to, from, n), RESOURCE_EXHAUSTED, "no memory for a string");
        return NULL;
    }
    char *utf8 = malloc((size_t)h->size * 4 + 1);
    LEAT_REQUIRE(utf8, RESOURCE_EXHAUSTED, "no memory for a string");
    size_t n = 0, end = 0;
    for (int i = 0; i < h->size; i++) {
        const unsigned char *b = (const unsigned char *)from + 4 * (size_t)i;
        uint32_t c = h->swap
                         ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
                         : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
        n += (size_t)put_utf8(c > 0x10ffff ? 0xfffd : c, utf8 + n);
        end = c ? n : end;
    }
    bool ok = leat_string_set(to, utf8, end);
    free(utf8);
    LEAT_REQUIRE(ok, RESOURCE_EXHAUSTED, "no memory for a string");
    return NULL;
}

static void put_number(const npy *h, const char *from, char *to)
{
    int part = h->kind == 'c' ? h->size / 2 : h->size;
    for (int i = 0; i < h->size; i++)
        to[i] = h->swap ? from[i / part * part + part - 1 - i % part] : from[i];
    if (h->kind == 'b')
        to[0] = from[0] != 0;
}

static leat_dtype dtype_of(const npy *h)
{
    if (h->kind == 'S' || h->kind == 'U')
        return LEAT_STRING;
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].kind == h->kind && types[i].size == h->size)
            return types[i].t;
    return LEAT_INVALID;
}

static leat_status parse(const char *path, char *bytes, size_t n, leat_tensor **tensor_out)
{
    npy h = {0};
    size_t begin = 0;
    LEAT_TRY(parse_header(path, bytes, n, &h, &begin));
    leat_dtype t = dtype_of(&h);
    LEAT_REQUIRE(t, UNIMPLEMENTED, "%s: elements of dtype '%c%d' are not known", path, h.kind,
                 h.size);
    int64_t count = leat_shape_count(&h.shape);
    size_t size = (size_t)h.size * (h.kind == 'U' ? 4 : 1);
    LEAT_REQUIRE(size == 0 || (size_t)count <= (n - begin) / size, DATA_LOSS,
                 "%s is cut: %s elements of %zu bytes do not fit into %zu", path,
                 leat_shape_show(&h.shape).s, size, n - begin);
    leat_tensor *x;
    LEAT_TRY(leat_tensor_new(t, h.shape, &x));
    char *to = leat_tensor_mutable(x);
    leat_status s = NULL;
    for (int64_t i = 0; i < count && !s; i++) {
        const char *from =
            bytes + begin + size * (size_t)(h.fortran ? fortran_index(&h.shape, i) : i);
        if (t == LEAT_STRING)
            s = put_string(&h, from, (leat_string *)to + i);
        else
            put_number(&h, from, to + size * (size_t)i);
    }
    if (s) {
        leat_tensor_unref(x);
        return s;
    }
    *tensor_out = x;
    return NULL;
}

leat_status cli_npy_read(const char *path, leat_tensor **tensor_out)
{
    char *bytes;
    size_t n;
    LEAT_TRY(cli_read_file(path, &bytes, &n));
    leat_status s = parse(path, bytes, n, tensor_out);
    free(bytes);
    return s;
}

/* ---- Writing ---- */

static void make_header(const leat_tensor *t, const char *descr, char *header, size_t n)
{
    leat_shape s = leat_tensor_shape(t);
    int at = snprintf(header, n, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < s.rank; i++)
        at += snprintf(header + at, n - (size_t)at, "%lld%s", (long long)s.dim[i],
                       s.rank == 1      ? ","
                       : i + 1 < s.rank ? ", "
                                        : "");
    at += snprintf(header + at, n - (size_t)at, "), }");
    while ((10 + at + 1) % 64) /* elements start at a multiple of 64 */
        header[at++] = ' ';
    header[at++] = '\n';
    header[at] = 0;
}

static size_t longest(const leat_tensor *t)
{
    const leat_string *s = leat_tensor_data(t);
    size_t n = 1;
    for (int64_t i = 0; i < leat_tensor_count(t); i++)
        n = s[i].size > n ? s[i].size : n;
    return n;
}

static void write_elements(FILE *f, const leat_tensor *t, size_t width)
{
    const leat_string *s = leat_tensor_data(t);
    for (int64_t i = 0; i < leat_tensor_count(t); i++) {
        if (leat_tensor_dtype(t) == LEAT_STRING) {
            fwrite(s[i].size ? s[i].data : "", 1, s[i].size, f);
            for (size_t k = s[i].size; k < width; k++)
                fputc(0, f);
        } else { /* bfloat16 */
            float v = (float)leat_tensor_at(t, i);
            fwrite(&v, sizeof(v), 1, f);
        }
    }
}

leat_status cli_npy_write(const char *path, const leat_tensor *t)
{
    leat_dtype dtype = leat_tensor_dtype(t);
    char descr[32] = "", header[1024];
    size_t width = 0;
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].t == dtype)
            snprintf(descr, sizeof(descr), "%c%c%d", types[i].size == 1 ? '|' : '<', types[i].kind,
                     types[i].size);
    bool plain = descr[0];
    if (dtype == LEAT_STRING)
        snprintf(descr, sizeof(descr), "|S%zu", width = longest(t));
    else if (dtype == LEAT_BFLOAT16)
        snprintf(descr, sizeof(descr), "<f4");
    LEAT_REQUIRE(descr[0], UNIMPLEMENTED, "%s: NumPy has no dtype for %s", path,
                 leat_dtype_name(dtype));
    make_header(t, descr, header, sizeof(header));
    FILE *f = fopen(path, "wb");
    LEAT_REQUIRE(f, NOT_FOUND, "%s: %s", path, strerror(errno));
    size_t n = strlen(header);
    fwrite("\x93NUMPY\1", 1, 7, f);
    fputc(0, f);
    fputc((int)(n & 0xff), f);
    fputc((int)(n >> 8), f);
    fwrite(header, 1, n, f);
    if (plain)
        fwrite(leat_tensor_data(t), 1, leat_tensor_bytes(t), f);
    else
        write_elements(f, t, width);
    bool bad = ferror(f);
    bad |= fclose(f) != 0;
    LEAT_REQUIRE(!bad, DATA_LOSS, "%s: %s", path, strerror(errno));
    return NULL;
}
