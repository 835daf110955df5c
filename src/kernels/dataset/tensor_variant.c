/* tensor_variant.c -- see tensor_variant.h. */
#include "kernels/dataset/tensor_variant.h"

static void tensor_ref(void *object)
{
    leat_tensor_ref(object);
}

static void tensor_unref(void *object)
{
    leat_tensor_unref(object);
}

static const leat_variant_type tensor_type = {"tensorflow::Tensor", tensor_ref, tensor_unref};

leat_variant leat_tensor_variant(leat_tensor *t)
{
    return (leat_variant){&tensor_type, t};
}

leat_tensor *leat_tensor_variant_get(const leat_variant *v)
{
    return v->type == &tensor_type ? v->object : NULL;
}
