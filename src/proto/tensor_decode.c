/* tensor_decode.c -- leat_tensor from TensorProto; see tensor_codec.h. */
#include "proto/tensor_codec.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/checked.h"
#include "core/element.h"
#include "core/variant.h"
#include "proto/wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The shape of a message as text, "[2,?]"; the message may hold shapes that leat_shape cannot. */
static leat_text dims_show(const Leat__TensorShapeProto *p)
{
    leat_text t = {"["};
    size_t n = 1;
    for (size_t i = 0; i < p->n_dim && n < sizeof(t.s) - 32; i++) {
        n += (size_t)snprintf(t.s + n, sizeof(t.s) - n, i ? "," : "");
        if (p->dim[i]->size < 0)
            n += (size_t)snprintf(t.s + n, sizeof(t.s) - n, "?");
        else
            n += (size_t)snprintf(t.s + n, sizeof(t.s) - n, "%lld", (long long)p->dim[i]->size);
    }
    snprintf(t.s + n, sizeof(t.s) - n, "]");
    return t;
}

leat_status leat_shape_from_proto(const Leat__TensorShapeProto *p, leat_shape *out)
{
    leat_shape s = {0};
    int64_t count = 1;
    if (p && p->unknown_rank) {
        LEAT_REQUIRE(p->n_dim == 0, INVALID_ARGUMENT,
                     "An unknown shape must not have any dimensions set.");
        *out = leat_shape_unknown();
        return NULL;
    }
    size_t rank = p ? p->n_dim : 0;
    LEAT_REQUIRE(rank <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "Shape %s has too many dimensions: %zu, at most %d are supported", dims_show(p).s,
                 rank, LEAT_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        int64_t size = s.dim[i] = p->dim[i]->size;
        LEAT_REQUIRE(size >= -1, INVALID_ARGUMENT,
                     "Shape %s has dimensions with values below -1 (where -1 means unknown)",
                     dims_show(p).s);
        if (size == -1)
            count = -1;
        else if (count >= 0)
            LEAT_REQUIRE(leat_mul_ok(count, size, &count), INVALID_ARGUMENT,
                         "Shape %s is too large (more than 2**63 - 1 entries)", dims_show(p).s);
    }
    s.rank = (int)rank;
    *out = s;
    return NULL;
}

/* ---- Numbers ---- */

/* The values of a dtype's own field, in the C struct. */
typedef struct values {
    const void *data;
    size_t n; /* number of elements of the tensor */
    enum { AS_THEY_ARE, FROM_INT32, FROM_INT } kind;
} values;

static values values_of(const Leat__TensorProto *p)
{
    switch ((int)p->dtype) {
    case LEAT_FLOAT:
        return (values){p->float_val, p->n_float_val, AS_THEY_ARE};
    case LEAT_DOUBLE:
        return (values){p->double_val, p->n_double_val, AS_THEY_ARE};
    case LEAT_INT32:
    case LEAT_QINT32:
        return (values){p->int_val, p->n_int_val, AS_THEY_ARE};
    case LEAT_INT64:
        return (values){p->int64_val, p->n_int64_val, AS_THEY_ARE};
    case LEAT_UINT32:
        return (values){p->uint32_val, p->n_uint32_val, AS_THEY_ARE};
    case LEAT_UINT64:
        return (values){p->uint64_val, p->n_uint64_val, AS_THEY_ARE};
    case LEAT_COMPLEX64: /* a real part without its imaginary part is ignored */
        return (values){p->scomplex_val, p->n_scomplex_val / 2, AS_THEY_ARE};
    case LEAT_COMPLEX128:
        return (values){p->dcomplex_val, p->n_dcomplex_val / 2, AS_THEY_ARE};
    case LEAT_HALF:
    case LEAT_BFLOAT16:
        return (values){p->half_val, p->n_half_val, FROM_INT32};
    case LEAT_BOOL:
        return (values){p->bool_val, p->n_bool_val, FROM_INT};
    default: /* the small integers */
        return (values){p->int_val, p->n_int_val, FROM_INT32};
    }
}

/* Repeats the last of n elements up to count elements; if there are none, writes zeros. */
static void repeat_last(char *data, int64_t n, int64_t count, size_t size)
{
    if (n == 0) {
        memset(data, 0, (size_t)count * size);
        return;
    }
    const char *last = data + (size_t)(n - 1) * size;
    char *rest = data + (size_t)n * size;
    size_t want = (size_t)(count - n) * size, have = want < size ? want : size;
    memcpy(rest, last, have);
    for (; have < want; have *= 2) /* doubles the copied part each time */
        memcpy(rest + have, rest, want - have < have ? want - have : have);
}

static void numbers_from_field(leat_tensor *t, const Leat__TensorProto *p)
{
    values v = values_of(p);
    size_t size = leat_dtype_size(t->dtype);
    int64_t n = (uint64_t)t->count < v.n ? t->count : (int64_t)v.n;
    if (v.kind == AS_THEY_ARE && n > 0)
        memcpy(t->data, v.data, (size_t)n * size);
    for (int64_t i = 0; v.kind == FROM_INT32 && i < n; i++) {
        int32_t x = ((const int32_t *)v.data)[i];
        if (size == 1)
            ((uint8_t *)t->data)[i] = (uint8_t)x;
        else
            ((uint16_t *)t->data)[i] = (uint16_t)x;
    }
    for (int64_t i = 0; v.kind == FROM_INT && i < n; i++)
        ((bool *)t->data)[i] = ((const protobuf_c_boolean *)v.data)[i] != 0;
    repeat_last(t->data, n, t->count, size);
}

static void numbers_from_content(leat_tensor *t, const ProtobufCBinaryData *b)
{
    memcpy(t->data, b->data, b->len);
    if (t->dtype == LEAT_BOOL) /* any other byte than 0 and 1 is not a valid C bool */
        for (int64_t i = 0; i < t->count; i++)
            ((uint8_t *)t->data)[i] = b->data[i] != 0;
}

/* ---- Strings, handles and variants ---- */

static leat_status handle_from_proto(const Leat__ResourceHandleProto *p, leat_handle **out)
{
    leat_handle *h =
        leat_handle_new(p->device, p->container, p->name, p->maybe_type_name, p->hash_code);
    h->dtypes = leat_new_array(leat_dtype, p->n_dtypes_and_shapes);
    h->shapes = leat_new_array(leat_shape, p->n_dtypes_and_shapes);
    h->n_dtypes = (int)p->n_dtypes_and_shapes;
    for (size_t i = 0; i < p->n_dtypes_and_shapes; i++) {
        h->dtypes[i] = (leat_dtype)p->dtypes_and_shapes[i]->dtype;
        leat_status s = leat_shape_from_proto(p->dtypes_and_shapes[i]->shape, &h->shapes[i]);
        if (s) {
            leat_handle_unref(h);
            return s;
        }
    }
    *out = h;
    return NULL;
}

/* Only empty variants, numbers and positions of iterators have an encoding; *v is empty. */
static leat_status variant_from_proto(const Leat__VariantTensorDataProto *p, leat_variant *v)
{
    if (leat_variant_decode(p->type_name, p->metadata.data, p->metadata.len, v))
        return NULL;
    LEAT_REQUIRE(!*p->type_name && p->metadata.len == 0 && p->n_tensors == 0, UNIMPLEMENTED,
                 "Could not decode variant with type_name: \"%s\"", p->type_name);
    return NULL;
}

static leat_status string_set(leat_string *s, const void *data, size_t n)
{
    LEAT_REQUIRE(leat_string_set(s, data, n), RESOURCE_EXHAUSTED,
                 "OOM when copying a string of %zu bytes", n);
    return NULL;
}

/* Element i of t from its bytes: those of a string, or an encoded message. */
static leat_status element_from_bytes(leat_tensor *t, int64_t i, const void *bytes, size_t n)
{
    leat_status s;
    if (t->dtype == LEAT_STRING)
        return string_set((leat_string *)t->data + i, bytes, n);
    if (t->dtype == LEAT_RESOURCE) {
        Leat__ResourceHandleProto *p = NULL;
        LEAT_TRY(LEAT_UNPACK(resource_handle_proto, bytes, n, &p));
        s = handle_from_proto(p, (leat_handle **)t->data + i);
        leat_proto_free(p);
        return s;
    }
    Leat__VariantTensorDataProto *p = NULL;
    LEAT_TRY(LEAT_UNPACK(variant_tensor_data_proto, bytes, n, &p));
    s = variant_from_proto(p, (leat_variant *)t->data + i);
    leat_proto_free(p);
    return s;
}

static bool next_length(const ProtobufCBinaryData *b, size_t *at, size_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 35 && *at < b->len; shift += 7) {
        uint8_t byte = b->data[(*at)++];
        *out |= (size_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads all lengths as varints, then all bytes. */
static leat_status elements_from_content(leat_tensor *t, const ProtobufCBinaryData *b)
{
    size_t lengths = 0, total = 0, at = 0, n;
    for (int64_t i = 0; i < t->count; i++, total += n)
        LEAT_REQUIRE(next_length(b, &lengths, &n) && n <= b->len - total, INVALID_ARGUMENT,
                     "tensor_content has %zu bytes, element %lld of %lld is not in them", b->len,
                     (long long)i, (long long)t->count);
    LEAT_REQUIRE(total == b->len - lengths, INVALID_ARGUMENT,
                 "tensor_content has %zu bytes of elements, their lengths add up to %zu",
                 b->len - lengths, total);
    const uint8_t *bytes = b->data + lengths;
    for (int64_t i = 0; i < t->count && next_length(b, &at, &n); i++, bytes += n)
        LEAT_TRY(element_from_bytes(t, i, bytes, n));
    return NULL;
}

static leat_status strings_from_field(leat_tensor *t, const Leat__TensorProto *p)
{
    leat_string *s = t->data;
    int64_t n = (uint64_t)t->count < p->n_string_val ? t->count : (int64_t)p->n_string_val, rest;
    for (int64_t i = 0; i < n; i++)
        LEAT_TRY(string_set(&s[i], p->string_val[i].data, p->string_val[i].len));
    if (n == 0 || s[n - 1].size == 0)
        return NULL; /* the rest is empty, too */
    int64_t memory = leat_cpu_allocator()->limit ? (int64_t)leat_cpu_allocator()->limit
                                                 : sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    LEAT_REQUIRE(leat_mul_ok(t->count - n, (int64_t)s[n - 1].size, &rest) && rest <= memory,
                 RESOURCE_EXHAUSTED, "OOM when repeating a string of %zu bytes %lld times",
                 s[n - 1].size, (long long)(t->count - n));
    for (int64_t i = n; i < t->count; i++)
        LEAT_TRY(string_set(&s[i], s[n - 1].data, s[n - 1].size));
    return NULL;
}

static leat_status handles_from_field(leat_tensor *t, const Leat__TensorProto *p)
{
    leat_handle **h = t->data;
    size_t n = p->n_resource_handle_val;
    for (int64_t i = 0; n > 0 && i < t->count; i++)
        if ((uint64_t)i < n) {
            LEAT_TRY(handle_from_proto(p->resource_handle_val[i], &h[i]));
        } else {
            leat_handle_ref(h[n - 1]);
            h[i] = h[n - 1];
        }
    return NULL;
}

/* Missing elements of these dtypes are not repeated: they stay empty, unlike missing numbers. */
static leat_status variants_from_field(leat_tensor *t, const Leat__TensorProto *p)
{
    for (int64_t i = 0; i < t->count && (uint64_t)i < p->n_variant_val; i++)
        LEAT_TRY(variant_from_proto(p->variant_val[i], (leat_variant *)t->data + i));
    return NULL;
}

/* ---- Tensors ---- */

static leat_status fill(leat_tensor *t, const Leat__TensorProto *p)
{
    const ProtobufCBinaryData *content = &p->tensor_content;
    if (t->count == 0)
        return NULL;
    if (content->len > 0 && leat_dtype_managed(t->dtype))
        return elements_from_content(t, content);
    if (t->dtype == LEAT_STRING)
        return strings_from_field(t, p);
    if (t->dtype == LEAT_RESOURCE)
        return handles_from_field(t, p);
    if (t->dtype == LEAT_VARIANT)
        return variants_from_field(t, p);
    if (content->len > 0)
        numbers_from_content(t, content);
    else
        numbers_from_field(t, p);
    return NULL;
}

/* Checks that the content can be right before memory for the tensor is allocated. */
static leat_status check_content(const Leat__TensorProto *p, const leat_shape *shape)
{
    leat_dtype t = (leat_dtype)p->dtype;
    uint64_t len = p->tensor_content.len;
    int64_t count = leat_shape_count(shape), want;
    bool managed = leat_dtype_managed(t); /* each element has at least one byte, for its length */
    if (len == 0 || count == 0)
        return NULL;
    if (!leat_mul_ok(count, managed ? 1 : (int64_t)leat_dtype_size(t), &want))
        want = INT64_MAX;
    LEAT_REQUIRE((uint64_t)want == len || (managed && (uint64_t)want < len), INVALID_ARGUMENT,
                 "tensor_content has %llu bytes, %lld elements of type %s need %s%lld",
                 (unsigned long long)len, (long long)count, leat_dtype_name(t),
                 managed ? "at least " : "", (long long)want);
    return NULL;
}

static leat_status decode(const Leat__TensorProto *p, leat_tensor **out)
{
    leat_shape shape;
    leat_tensor *t;
    LEAT_REQUIRE(leat_dtype_size((leat_dtype)p->dtype) > 0 &&
                     !leat_dtype_is_ref((leat_dtype)p->dtype),
                 INVALID_ARGUMENT, "a tensor cannot have dtype %s (%d)",
                 leat_dtype_name((leat_dtype)p->dtype), (int)p->dtype);
    LEAT_TRY(leat_shape_from_proto(p->tensor_shape, &shape));
    LEAT_REQUIRE(leat_shape_known(&shape), INVALID_ARGUMENT, "Shape %s is not fully defined",
                 leat_shape_show(&shape).s);
    LEAT_TRY(check_content(p, &shape));
    LEAT_TRY(leat_tensor_alloc(NULL, (leat_dtype)p->dtype, &shape, &t));
    leat_status s = fill(t, p);
    if (s) {
        leat_tensor_unref(t);
        return s;
    }
    *out = t;
    return NULL;
}

leat_status leat_tensor_from_proto(const Leat__TensorProto *p, leat_tensor **out)
{
    return leat_status_prefix(decode(p, out), "Cannot parse tensor from proto: ");
}
