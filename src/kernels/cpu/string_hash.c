/* string_hash.c -- numbers from strings: StringToHashBucket, StringToHashBucketFast,
 * StringToHashBucketStrong, DecodeRaw, DecodePaddedRaw; and Fingerprint, of any rows. */
#include "core/element.h"
#include "core/fingerprint.h"
#include "kernels/cpu/cpu.h"

typedef uint64_t (*hash_fn)(const leat_string *s, const uint64_t key[2]);

static uint64_t plain(const leat_string *s, const uint64_t key[2])
{
    (void)key;
    return leat_hash64(s->data, s->size);
}

static uint64_t fast(const leat_string *s, const uint64_t key[2])
{
    (void)key;
    return leat_fingerprint64(s->data, s->size);
}

static uint64_t strong(const leat_string *s, const uint64_t key[2])
{
    return leat_siphash(key, s->data, s->size);
}

static leat_status bucket(leat_kernel *k, hash_fn hash, const uint64_t key[2])
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    uint64_t n = (uint64_t)leat_node_int(leat_kernel_node(k), "num_buckets");
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    for (int64_t i = 0; i < x->count; i++)
        AT(int64_t, y)[i] = (int64_t)(hash(AT(leat_string, x) + i, key) % n);
    return NULL;
}

static leat_status bucket_run(leat_kernel *k)
{
    return bucket(k, plain, NULL);
}

static leat_status bucket_fast_run(leat_kernel *k)
{
    return bucket(k, fast, NULL);
}

static leat_status strong_init(const leat_node *n, void *state)
{
    int count;
    const int64_t *key = leat_node_ints(n, "key", &count);
    LEAT_REQUIRE(count == 2, INVALID_ARGUMENT, "Key must have 2 elements");
    memcpy(state, key, 2 * sizeof(*key));
    return NULL;
}

static leat_status bucket_strong_run(leat_kernel *k)
{
    return bucket(k, strong, leat_kernel_state(k));
}

/* ---- DecodeRaw, DecodePaddedRaw ---- */

/* Reverses the bytes of each number in n bytes, if they are big-endian. */
static void swap_numbers(char *p, size_t n, size_t size, bool little)
{
    for (size_t i = 0; !little && i + size <= n; i += size)
        for (size_t j = 0; j < size / 2; j++) {
            char c = p[i + j];
            p[i + j] = p[i + size - 1 - j];
            p[i + size - 1 - j] = c;
        }
}

static size_t number_size(leat_dtype t) /* for a complex number, the size of a part */
{
    return t == LEAT_COMPLEX64 ? 4 : t == LEAT_COMPLEX128 ? 8 : leat_element_size(t);
}

static leat_status decode_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_dtype t = leat_kernel_out_dtype(k, 0);
    size_t each = leat_element_size(t), bytes = 0;
    leat_shape shape = x->shape;
    LEAT_REQUIRE(shape.rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "DecodeRaw: too many dimensions");
    for (int64_t i = 0; i < x->count; i++) {
        size_t size = AT(leat_string, x)[i].size;
        bytes = i == 0 ? size : bytes;
        LEAT_REQUIRE(size == bytes, INVALID_ARGUMENT,
                     "DecodeRaw requires input strings to all be the same size, but element %lld "
                     "has size %zu != %zu",
                     (long long)i, bytes, size);
    }
    LEAT_REQUIRE(bytes % each == 0, INVALID_ARGUMENT,
                 "Input to DecodeRaw has length %zu that is not a multiple of %zu, the size of %s",
                 bytes, each, leat_dtype_name(t));
    shape.dim[shape.rank++] = (int64_t)(bytes / each);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    bool little = leat_node_bool(leat_kernel_node(k), "little_endian");
    for (int64_t i = 0; i < x->count && bytes; i++)
        memcpy((char *)y->data + (size_t)i * bytes, AT(leat_string, x)[i].data, bytes);
    swap_numbers(y->data, (size_t)x->count * bytes, number_size(t), little);
    if (t == LEAT_BOOL) /* any byte but 0 is true */
        for (int64_t i = 0; i < y->count; i++)
            AT(uint8_t, y)[i] = AT(uint8_t, y)[i] != 0;
    return NULL;
}

static leat_status decode_padded_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *length = leat_kernel_in(k, 1);
    leat_dtype t = leat_kernel_out_dtype(k, 0);
    size_t each = leat_element_size(t);
    leat_shape shape = x->shape;
    LEAT_REQUIRE(length->shape.rank == 0, INVALID_ARGUMENT, "k must be scalar, got shape %s",
                 leat_shape_show(&length->shape).s);
    int32_t bytes = AT(int32_t, length)[0];
    LEAT_REQUIRE(bytes % (int32_t)each == 0, INVALID_ARGUMENT,
                 "fixed_length (%d) must be a multiple of the size of out_type (%zu)", bytes, each);
    LEAT_REQUIRE(bytes > 0, INVALID_ARGUMENT, "fixed_length (%d) must be greater than zero.",
                 bytes);
    LEAT_REQUIRE(shape.rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "too many dimensions");
    shape.dim[shape.rank++] = bytes / (int32_t)each;
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    bool little = leat_node_bool(leat_kernel_node(k), "little_endian");
    memset(y->data, 0, (size_t)y->count * each);
    for (int64_t i = 0; i < x->count; i++) {
        const leat_string *s = AT(leat_string, x) + i;
        size_t n = s->size < (size_t)bytes ? s->size : (size_t)bytes, whole = n - n % each;
        char *to = (char *)y->data + (size_t)i * (size_t)bytes;
        if (n)
            memcpy(to, s->data, n);
        swap_numbers(to, n > whole ? whole + each : whole, each, little);
    }
    return NULL;
}

/* ---- Fingerprint ---- */

static void put_little(uint64_t v, uint8_t *to)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

/* For several strings: the fingerprint of their fingerprints, which are written to scratch. */
static uint64_t fingerprint_of(const leat_tensor *x, int64_t from, int64_t n, uint8_t *scratch)
{
    if (x->dtype != LEAT_STRING) {
        size_t size = leat_element_size(x->dtype);
        return leat_fingerprint64((char *)x->data + (size_t)from * size, (size_t)n * size);
    }
    const leat_string *s = AT(leat_string, x) + from;
    if (n == 1)
        return leat_fingerprint64(s->data, s->size);
    for (int64_t i = 0; i < n; i++)
        put_little(leat_fingerprint64(s[i].data, s[i].size), scratch + 8 * i);
    return leat_fingerprint64(scratch, 8 * (size_t)n);
}

static leat_status fingerprint_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *method = leat_kernel_in(k, 1);
    LEAT_REQUIRE(method->shape.rank == 0, INVALID_ARGUMENT,
                 "`method` should be a scalar string: %s", leat_shape_show(&method->shape).s);
    const leat_string *m = AT(leat_string, method);
    LEAT_REQUIRE(m->size == 10 && memcmp(m->data, "farmhash64", 10) == 0, INVALID_ARGUMENT,
                 "Unsupported fingerprint method: %.*s", m->size > 100 ? 100 : (int)m->size,
                 m->data ? m->data : "");
    LEAT_REQUIRE(x->shape.rank > 0, INVALID_ARGUMENT,
                 "`data` should have at least one dimension: %s", leat_shape_show(&x->shape).s);
    int64_t rows = x->shape.dim[0], each = rows ? x->count / rows : 0;
    leat_tensor *y, *scratch;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {rows, 8}}, &y));
    LEAT_TRY(leat_kernel_temp(k, LEAT_UINT8, &(leat_shape){.rank = 2, .dim = {each, 8}}, &scratch));
    for (int64_t i = 0; i < rows; i++)
        put_little(fingerprint_of(x, i * each, each, scratch->data), AT(uint8_t, y) + 8 * i);
    return NULL;
}

#define PLAIN (~(LEAT_T(RESOURCE) | LEAT_T(VARIANT)))

const leat_kernel_def leat_cpu_string_hash[] = {
    {.op = "StringToHashBucket", .run = bucket_run},
    {.op = "StringToHashBucketFast", .run = bucket_fast_run},
    {.op = "StringToHashBucketStrong",
     .run = bucket_strong_run,
     .init = strong_init,
     .state_size = 2 * sizeof(uint64_t)},
    {.op = "DecodeRaw", .run = decode_run},
    {.op = "DecodePaddedRaw", .run = decode_padded_run},
    {.op = "Fingerprint", .where = {{"T", PLAIN}}, .run = fingerprint_run},
    {0},
};
