/* scalar.c -- small tensors in one call, and elements of any number type as a double. */
#include <math.h>
#include <string.h>

#include "core/buffer.h"

static leat_tensor *scalar(leat_dtype t, const void *value)
{
    leat_shape shape = leat_shape();
    leat_tensor *x = NULL;
    leat_status s = leat_tensor_alloc(NULL, t, &shape, &x);
    if (s) {
        leat_status_free(s);
        return NULL;
    }
    memcpy(x->data, value, leat_dtype_size(t));
    return x;
}

leat_tensor *leat_scalar_float(float v)
{
    return scalar(LEAT_FLOAT, &v);
}

leat_tensor *leat_scalar_int32(int32_t v)
{
    return scalar(LEAT_INT32, &v);
}

leat_tensor *leat_scalar_int64(int64_t v)
{
    return scalar(LEAT_INT64, &v);
}

leat_status leat_tensor_of_string(const char *data, size_t size, leat_tensor **out)
{
    leat_tensor *x;
    LEAT_TRY(leat_tensor_alloc(NULL, LEAT_STRING, &(leat_shape){0}, &x));
    if (!leat_string_set(x->data, data, size)) {
        leat_tensor_unref(x);
        return leat_error(RESOURCE_EXHAUSTED, "no memory for a string of %zu bytes", size);
    }
    *out = x;
    return NULL;
}

leat_status leat_tensor_of_bytes(const void *data, size_t size, leat_tensor **out)
{
    char *at = NULL;
    if (size > LEAT_SHORT_STRING)
        return leat_tensor_of_string(data, size, out);
    LEAT_TRY(leat_strings_new(&(leat_shape){0}, leat_strings_room(size), out, &at));
    leat_strings_put((*out)->data, at, data, size);
    return NULL;
}

leat_tensor *leat_scalar_string(const char *data, size_t size)
{
    leat_tensor *x = NULL;
    leat_status_free(leat_tensor_of_string(data, size, &x));
    return x;
}

double leat_tensor_at(const leat_tensor *t, int64_t i)
{
    if (!t || !leat_tensor_usable(t, __func__) || i < 0 || i >= t->count)
        return NAN;
    const void *p = (const char *)t->data + (size_t)i * leat_dtype_size(t->dtype);
    switch (t->dtype) {
    case LEAT_FLOAT:
        return *(const float *)p;
    case LEAT_DOUBLE:
        return *(const double *)p;
    case LEAT_INT32:
    case LEAT_QINT32:
        return *(const int32_t *)p;
    case LEAT_UINT8:
    case LEAT_QUINT8:
        return *(const uint8_t *)p;
    case LEAT_INT16:
    case LEAT_QINT16:
        return *(const int16_t *)p;
    case LEAT_INT8:
    case LEAT_QINT8:
        return *(const int8_t *)p;
    case LEAT_INT64:
        return (double)*(const int64_t *)p;
    /* a byte read from a file may be neither 0 nor 1, which would be undefined as a C bool. */
    case LEAT_BOOL:
        return *(const uint8_t *)p != 0;
    case LEAT_UINT16:
    case LEAT_QUINT16:
        return *(const uint16_t *)p;
    case LEAT_UINT32:
        return *(const uint32_t *)p;
    case LEAT_UINT64:
        return (double)*(const uint64_t *)p;
    case LEAT_HALF:
        return (double)leat_half_to_float(*(const leat_half *)p);
    case LEAT_BFLOAT16:
        return (double)leat_bfloat16_to_float(*(const leat_bfloat16 *)p);
    case LEAT_COMPLEX64:
        return (double)((const leat_complex64 *)p)->re;
    case LEAT_COMPLEX128:
        return ((const leat_complex128 *)p)->re;
    default:
        return NAN;
    }
}

void leat_tensor_set_at(leat_tensor *t, int64_t i, double v)
{
    if (!leat_tensor_usable(t, __func__) || i < 0 || i >= t->count)
        return;
    void *p = (char *)t->data + (size_t)i * leat_dtype_size(t->dtype);
    switch (t->dtype) {
#define CASE(name, ctype)                                                                          \
    case LEAT_##name:                                                                              \
        *(ctype *)p = (ctype)v;                                                                    \
        break;
        CASE(FLOAT, float)
        CASE(DOUBLE, double)
        CASE(INT8, int8_t)
        CASE(INT16, int16_t)
        CASE(INT32, int32_t)
        CASE(INT64, int64_t)
        CASE(UINT8, uint8_t)
        CASE(UINT16, uint16_t)
        CASE(UINT32, uint32_t)
        CASE(UINT64, uint64_t)
        CASE(BOOL, bool)
#undef CASE
    case LEAT_HALF:
        *(leat_half *)p = leat_half_from_float((float)v);
        break;
    case LEAT_BFLOAT16:
        *(leat_bfloat16 *)p = leat_bfloat16_from_float((float)v);
        break;
    case LEAT_COMPLEX64:
        *(leat_complex64 *)p = (leat_complex64){(float)v, 0};
        break;
    case LEAT_COMPLEX128:
        *(leat_complex128 *)p = (leat_complex128){v, 0};
        break;
    default:
        break;
    }
}
