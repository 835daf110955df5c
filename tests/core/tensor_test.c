/* tensor_test.c -- tensors, views, buffers. */
#include <leat/tensor.h>

#include "core/buffer.h"
#include "test.h"

static void zeros(void)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(2, 3), &t));
    CHECK_INT(leat_tensor_count(t), 6);
    CHECK_INT(leat_tensor_bytes(t), 24);
    CHECK_NEAR(leat_tensor_at(t, 5), 0, 0);
    CHECK(isnan(leat_tensor_at(t, 6)));
    CHECK(leat_tensor_mutable(t) != NULL);
    leat_tensor *shared = leat_tensor_ref(t);
    CHECK(leat_tensor_mutable(t) == NULL);
    leat_tensor_unref(shared);
    CHECK(leat_tensor_mutable(t) != NULL);
    leat_tensor_unref(t);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"zeros", zeros});
}
