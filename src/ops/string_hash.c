/* string_hash.c -- numbers from strings: StringToHashBucket, StringToHashBucketFast,
 * StringToHashBucketStrong, DecodeRaw, DecodePaddedRaw; and Fingerprint, of any rows. */
#include "core/element.h"
#include "ops/infer_util.h"

static leat_status decode_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0), more = leat_shape(-1);
    leat_infer_out(c, 0, leat_shape_concat(&s, &more, 0));
    return NULL;
}

static leat_status decode_padded_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0), more = leat_shape(-1);
    int64_t bytes,
        size = (int64_t)leat_element_size(leat_node_type(leat_infer_node(c), "out_type"));
    if (leat_infer_int(c, 1, &bytes)) {
        LEAT_REQUIRE(bytes >= 0, INVALID_ARGUMENT,
                     "Dimension size, given by scalar input 1 must be non-negative but is %lld",
                     (long long)bytes);
        LEAT_REQUIRE(bytes % size == 0, INVALID_ARGUMENT,
                     "Dimension size must be evenly divisible by %lld but is %lld", (long long)size,
                     (long long)bytes);
        more.dim[0] = bytes / size;
    }
    leat_infer_out(c, 0, leat_shape_concat(&s, &more, 0));
    return NULL;
}

static leat_status fingerprint_shape(leat_infer *c)
{
    leat_shape x, unused;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &x));
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    const leat_tensor *method = leat_infer_value(c, 1);
    const leat_string *m = method ? method->data : NULL;
    LEAT_REQUIRE(!m || (m->size == 10 && memcmp(m->data, "farmhash64", 10) == 0), INVALID_ARGUMENT,
                 "Unsupported method: %.*s", m->size > 100 ? 100 : (int)m->size,
                 m->data ? m->data : "");
    leat_infer_out(c, 0, leat_shape(x.rank > 0 ? x.dim[0] : -1, m ? 8 : -1));
    return NULL;
}

#define BUCKET(name_, input_, attrs_)                                                              \
    {                                                                                              \
        .name = name_, .inputs = input_, .outputs = "output: int64", .attrs = attrs_,              \
        .shape = leat_shape_unchanged, .grad = leat_grad_missing                                   \
    }

const leat_op_def leat_ops_string_hash[] = {
    BUCKET("StringToHashBucket", "string_tensor: string", "num_buckets: int >= 1"),
    BUCKET("StringToHashBucketFast", "input: string", "num_buckets: int >= 1"),
    BUCKET("StringToHashBucketStrong", "input: string", "num_buckets: int >= 1; key: list(int)"),
    {.name = "DecodeRaw",
     .inputs = "bytes: string",
     .outputs = "output: out_type",
     .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
              "complex64, complex128, bool}; little_endian: bool = true",
     .shape = decode_shape,
     .grad = leat_grad_none},
    {.name = "DecodePaddedRaw",
     .inputs = "input_bytes: string, fixed_length: int32",
     .outputs = "output: out_type",
     .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64}; "
              "little_endian: bool = true",
     .shape = decode_padded_shape,
     .grad = leat_grad_none},
    {.name = "Fingerprint",
     .inputs = "data: T, method: string",
     .outputs = "fingerprint: uint8",
     .attrs = "T: type",
     .shape = fingerprint_shape,
     .grad = leat_grad_missing},
    {0},
};
