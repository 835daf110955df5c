/* Any bytes as a TensorProto: an error, or a tensor that is written, both ways, and read alike. */
#include "core/buffer.h"
#include "core/element.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

static bool same_element(const leat_tensor *a, const leat_tensor *b, int64_t i)
{
    if (a->dtype == LEAT_STRING) {
        const leat_string *x = (leat_string *)a->data + i, *y = (leat_string *)b->data + i;
        return x->size == y->size && (!x->size || memcmp(x->data, y->data, x->size) == 0);
    }
    if (a->dtype == LEAT_RESOURCE) {
        const leat_handle *x = ((leat_handle **)a->data)[i], *y = ((leat_handle **)b->data)[i];
        return strcmp(x ? x->name : "", y ? y->name : "") == 0;
    }
    return true;
}

static bool same(const leat_tensor *a, const leat_tensor *b)
{
    if (a->dtype != b->dtype || !leat_shape_equal(&a->shape, &b->shape))
        return false;
    if (!leat_dtype_managed(a->dtype))
        return memcmp(a->data, b->data, leat_tensor_bytes(a)) == 0;
    for (int64_t i = 0; i < a->count; i++)
        if (!same_element(a, b, i))
            return false;
    return true;
}

static void check(const leat_tensor *t, leat_tensor_form form)
{
    Leat__TensorProto *p = NULL;
    leat_tensor *again = NULL;
    leat_status s = leat_tensor_to_proto(t, form, &p);
    if (!s)
        s = leat_tensor_from_proto(p, &again);
    /* The two tensors and the message together may be more memory than is allowed here. */
    if (s ? leat_status_code(s) != LEAT_RESOURCE_EXHAUSTED : !same(t, again))
        abort();
    leat_status_free(s);
    leat_proto_free(p);
    leat_tensor_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    Leat__TensorProto *p = NULL;
    leat_tensor *t = NULL;
    leat_cpu_allocator()->limit = 1 << 20; /* a fill of a terabyte is no mistake, but takes long */
    leat_status s = LEAT_UNPACK(tensor_proto, data, n, &p);
    if (!s)
        s = leat_tensor_from_proto(p, &t);
    if (!s) {
        check(t, LEAT_TENSOR_CONTENT);
        check(t, LEAT_TENSOR_CONSTANT);
    }
    leat_status_free(s);
    leat_tensor_unref(t);
    leat_proto_free(p);
    return 0;
}
