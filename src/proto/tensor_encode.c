/* tensor_encode.c -- TensorProto from leat_tensor; see tensor_codec.h. */
#include "proto/tensor_codec.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/variant.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

Leat__TensorShapeProto *leat_shape_to_proto(const leat_shape *s)
{
    Leat__TensorShapeProto *p = leat_new(Leat__TensorShapeProto);
    leat__tensor_shape_proto__init(p);
    p->unknown_rank = s->rank < 0;
    if (s->rank > 0) {
        p->dim = leat_new_array(Leat__TensorShapeProto__Dim *, s->rank);
        p->n_dim = (size_t)s->rank;
    }
    for (int i = 0; i < s->rank; i++) {
        p->dim[i] = leat_new(Leat__TensorShapeProto__Dim);
        leat__tensor_shape_proto__dim__init(p->dim[i]);
        p->dim[i]->size = s->dim[i];
    }
    return p;
}

/* Makes no copy for n = 0: protobuf-c does not free an empty field. *out is a pointer to data. */
static leat_status copy(const void *data, size_t n, void *out)
{
    void *bytes = n ? malloc(n) : NULL;
    LEAT_REQUIRE(bytes || !n, RESOURCE_EXHAUSTED,
                 "no memory for a tensor of %zu bytes in a message", n);
    if (n)
        memcpy(bytes, data, n);
    memcpy(out, &bytes, sizeof(bytes));
    return NULL;
}

/* Small integers, and the bits of half, widened. */
static leat_status widened(const leat_tensor *t, int32_t **out)
{
    int32_t *v;
    LEAT_TRY(leat_try_array(t->count, &v));
    for (int64_t i = 0; i < t->count; i++)
        switch ((int)t->dtype) {
        case LEAT_INT8:
        case LEAT_QINT8:
            v[i] = ((const int8_t *)t->data)[i];
            break;
        case LEAT_UINT8:
        case LEAT_QUINT8:
            v[i] = ((const uint8_t *)t->data)[i];
            break;
        case LEAT_INT16:
        case LEAT_QINT16:
            v[i] = ((const int16_t *)t->data)[i];
            break;
        default: /* uint16, quint16, half, bfloat16 */
            v[i] = ((const uint16_t *)t->data)[i];
        }
    *out = v;
    return NULL;
}

static leat_status strings_to_field(const leat_tensor *t, Leat__TensorProto *p)
{
    const leat_string *s = t->data;
    LEAT_TRY(leat_try_array(t->count, &p->string_val));
    for (int64_t i = 0; i < t->count; i++) {
        p->n_string_val = (size_t)i + 1;
        LEAT_TRY(copy(s[i].data, s[i].size, &p->string_val[i].data));
        p->string_val[i].len = s[i].size;
    }
    return NULL;
}

leat_status leat_tensor_to_field(const leat_tensor *t, Leat__TensorProto *p)
{
    size_t n = (size_t)t->count, bytes = leat_tensor_bytes(t);
    switch ((int)t->dtype) {
    case LEAT_STRING:
        return strings_to_field(t, p);
    case LEAT_FLOAT:
        LEAT_TRY(copy(t->data, bytes, &p->float_val));
        p->n_float_val = n;
        break;
    case LEAT_DOUBLE:
        LEAT_TRY(copy(t->data, bytes, &p->double_val));
        p->n_double_val = n;
        break;
    case LEAT_INT32:
    case LEAT_QINT32:
        LEAT_TRY(copy(t->data, bytes, &p->int_val));
        p->n_int_val = n;
        break;
    case LEAT_INT64:
        LEAT_TRY(copy(t->data, bytes, &p->int64_val));
        p->n_int64_val = n;
        break;
    case LEAT_UINT32:
        LEAT_TRY(copy(t->data, bytes, &p->uint32_val));
        p->n_uint32_val = n;
        break;
    case LEAT_UINT64:
        LEAT_TRY(copy(t->data, bytes, &p->uint64_val));
        p->n_uint64_val = n;
        break;
    case LEAT_COMPLEX64:
        LEAT_TRY(copy(t->data, bytes, &p->scomplex_val));
        p->n_scomplex_val = 2 * n;
        break;
    case LEAT_COMPLEX128:
        LEAT_TRY(copy(t->data, bytes, &p->dcomplex_val));
        p->n_dcomplex_val = 2 * n;
        break;
    case LEAT_BOOL:
        LEAT_TRY(leat_try_array(t->count, &p->bool_val));
        p->n_bool_val = n;
        for (size_t i = 0; i < n; i++)
            p->bool_val[i] = ((const bool *)t->data)[i];
        break;
    case LEAT_HALF:
    case LEAT_BFLOAT16:
        LEAT_TRY(widened(t, &p->half_val));
        p->n_half_val = n;
        break;
    default:
        LEAT_TRY(widened(t, &p->int_val));
        p->n_int_val = n;
    }
    return NULL;
}

static Leat__ResourceHandleProto *handle_to_proto(const leat_handle *h)
{
    Leat__ResourceHandleProto *p = leat_new(Leat__ResourceHandleProto);
    leat__resource_handle_proto__init(p);
    if (!h)
        return p;
    p->device = leat_xstrdup(h->device);
    p->container = leat_xstrdup(h->container);
    p->name = leat_xstrdup(h->name);
    p->maybe_type_name = leat_xstrdup(h->type_name);
    p->hash_code = h->hash_code;
    p->n_dtypes_and_shapes = (size_t)h->n_dtypes;
    p->dtypes_and_shapes = leat_new_array(Leat__ResourceHandleProto__DtypeAndShape *, h->n_dtypes);
    for (int i = 0; i < h->n_dtypes; i++) {
        Leat__ResourceHandleProto__DtypeAndShape *d =
            leat_new(Leat__ResourceHandleProto__DtypeAndShape);
        leat__resource_handle_proto__dtype_and_shape__init(d);
        d->dtype = (Leat__DataType)h->dtypes[i];
        d->shape = leat_shape_to_proto(&h->shapes[i]);
        p->dtypes_and_shapes[i] = d;
    }
    return p;
}

static void handles_to_field(const leat_tensor *t, Leat__TensorProto *p)
{
    p->n_resource_handle_val = (size_t)t->count;
    p->resource_handle_val = leat_new_array(Leat__ResourceHandleProto *, t->count);
    for (int64_t i = 0; i < t->count; i++)
        p->resource_handle_val[i] = handle_to_proto(((leat_handle *const *)t->data)[i]);
}

static leat_status variants_to_field(const leat_tensor *t, Leat__TensorProto *p)
{
    const leat_variant *v = t->data;
    size_t size = 0;
    for (int64_t i = 0; i < t->count; i++)
        LEAT_REQUIRE(!v[i].type || leat_variant_encode(&v[i], &size), UNIMPLEMENTED,
                     "Could not encode variant of type \"%s\"", v[i].type->name);
    p->n_variant_val = (size_t)t->count;
    p->variant_val = leat_new_array(Leat__VariantTensorDataProto *, t->count);
    for (int64_t i = 0; i < t->count; i++) {
        p->variant_val[i] = leat_new(Leat__VariantTensorDataProto);
        leat__variant_tensor_data_proto__init(p->variant_val[i]);
        const void *bytes = leat_variant_encode(&v[i], &size);
        if (bytes) {
            p->variant_val[i]->type_name = leat_xstrdup(v[i].type->name);
            p->variant_val[i]->metadata.data = leat_xmalloc(size);
            p->variant_val[i]->metadata.len = size;
            memcpy(p->variant_val[i]->metadata.data, bytes, size);
        }
    }
    return NULL;
}

/* Whether tf.constant writes the tensor in the dtype's own field. */
static bool constant_by_field(const leat_tensor *t)
{
    switch ((int)t->dtype) {
    case LEAT_HALF:
    case LEAT_BFLOAT16:
    case LEAT_UINT16:
    case LEAT_BOOL:
    case LEAT_COMPLEX64:
    case LEAT_COMPLEX128:
        return true;
    default:
        return t->count < 2;
    }
}

static leat_status encode(const leat_tensor *t, leat_tensor_form form, Leat__TensorProto *p)
{
    p->dtype = (Leat__DataType)t->dtype;
    p->tensor_shape = leat_shape_to_proto(&t->shape);
    if (t->count == 0)
        return NULL;
    if (t->dtype == LEAT_RESOURCE) {
        handles_to_field(t, p);
    } else if (t->dtype == LEAT_VARIANT) {
        return variants_to_field(t, p);
    } else if (t->dtype == LEAT_STRING || (form == LEAT_TENSOR_CONSTANT && constant_by_field(t))) {
        return leat_tensor_to_field(t, p);
    } else {
        size_t n = leat_tensor_bytes(t);
        LEAT_REQUIRE(n <= LEAT_PROTO_MAX_SIZE, INVALID_ARGUMENT,
                     "Cannot create a tensor proto whose content is larger than 2GB.");
        LEAT_TRY(copy(t->data, n, &p->tensor_content.data));
        p->tensor_content.len = n;
    }
    return NULL;
}

leat_status leat_tensor_to_proto(const leat_tensor *t, leat_tensor_form form,
                                 Leat__TensorProto **out)
{
    Leat__TensorProto *p = leat_new(Leat__TensorProto);
    leat__tensor_proto__init(p);
    leat_status s = encode(t, form, p);
    if (s) {
        leat_proto_free(p);
        return s;
    }
    *out = p;
    return NULL;
}
