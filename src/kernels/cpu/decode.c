/* decode.c -- DecodeCompressed, ParseTensor, SerializeTensor. */
#include <stdlib.h>

#include "core/strbuf.h"
#include "io/stream.h"
#include "kernels/cpu/example.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

/* ---- DecodeCompressed ---- */

static leat_status inflate_one(const leat_string *x, leat_record_form form, leat_string *y)
{
    enum { MOST = INT32_MAX }; /* bytes, as in TensorFlow */
    leat_stream *stream;
    leat_strbuf b = {0};
    LEAT_TRY(leat_stream_over(x->data, x->size, form, &stream));
    leat_status s = leat_stream_read(stream, MOST, &b);
    leat_stream_close(stream);
    if (!s && b.n) {
        free(y->data);
        y->size = b.n;
        y->data = leat_strbuf_take(&b);
    } else if (!s) {
        leat_string_set(y, "", 0);
    }
    leat_strbuf_release(&b);
    return s;
}

static leat_status decode_compressed(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const char *type = leat_node_string(leat_kernel_node(k), "compression_type");
    const bool zlib = strcmp(type, "ZLIB") == 0, gzip = strcmp(type, "GZIP") == 0;
    LEAT_REQUIRE(!*type || zlib || gzip, INVALID_ARGUMENT,
                 "Only ZLIB, GZIP or NONE are supported compressions");
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    if (!*type)
        return leat_elements_copy(LEAT_STRING, y->data, x->data, x->count);
    for (int64_t i = 0; i < x->count; i++) {
        LEAT_TRY(leat_kernel_check(k));
        LEAT_TRY(inflate_one(AT(leat_string, x) + i, zlib ? LEAT_RECORD_ZLIB : LEAT_RECORD_GZIP,
                             AT(leat_string, y) + i));
    }
    return NULL;
}

/* ---- ParseTensor, SerializeTensor ---- */

static leat_status parse_tensor(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const leat_dtype want = leat_node_type(leat_kernel_node(k), "out_type");
    LEAT_REQUIRE(x->shape.rank == 0, INVALID_ARGUMENT,
                 "Expected `serialized` to be a scalar, got shape: %s",
                 leat_shape_show(&x->shape).s);
    const leat_string *bytes = x->data;
    Leat__TensorProto *p = NULL;
    leat_tensor *y = NULL;
    leat_status s = LEAT_UNPACK(tensor_proto, bytes->data, bytes->size, &p);
    if (s && leat_status_code(s) != LEAT_RESOURCE_EXHAUSTED) {
        leat_status_free(s);
        s = leat_example_malformed("Could not parse `serialized` as TensorProto", bytes->data,
                                   bytes->size);
    }
    if (!s)
        s = leat_tensor_from_proto(p, &y);
    leat_proto_free(p);
    LEAT_TRY(s);
    if (y->dtype == want) {
        leat_kernel_set(k, 0, y);
        return NULL;
    }
    s = leat_error(INVALID_ARGUMENT, "Type mismatch between parsed tensor (%s) and dtype (%s)",
                   leat_dtype_name(y->dtype), leat_dtype_name(want));
    leat_tensor_unref(y);
    return s;
}

static leat_status serialize_tensor(leat_kernel *k)
{
    Leat__TensorProto *p;
    leat_tensor *y = NULL;
    leat_strbuf b = {.checked = true};
    LEAT_TRY(leat_tensor_to_proto(leat_kernel_in(k, 0), LEAT_TENSOR_CONTENT, &p));
    leat_status s = leat_proto_pack(p, &b);
    leat_proto_free(p);
    if (!s)
        s = leat_tensor_of_string(b.s, b.n, &y);
    if (!s)
        leat_kernel_set(k, 0, y);
    leat_strbuf_release(&b);
    return s;
}

const leat_kernel_def leat_cpu_decode[] = {
    {.op = "DecodeCompressed", .run = decode_compressed, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "ParseTensor", .run = parse_tensor},
    {.op = "SerializeTensor", .run = serialize_tensor},
    {0},
};
