/* strings_test.c -- tensors of strings in one fixed buffer: leat_strings_new and leat_strings_put.
 */
#include "core/buffer.h"
#include "test.h"

static void values(void)
{
    leat_tensor *t, *copy;
    char *at = NULL;
    const leat_shape s = leat_shape(2, 2);
    CHECK_OK(leat_strings_new(
        &s, leat_strings_room(3) + leat_strings_room(0) + leat_strings_room(1), &t, &at));
    leat_string *x = leat_tensor_mutable(t);
    CHECK(!x); /* A fixed buffer is not written to by its owner. */
    x = t->data;
    const char *begin = at;
    at = leat_strings_put(&x[0], at, "abc", 3);
    at = leat_strings_put(&x[1], at, "", 0);
    at = leat_strings_put(&x[2], at, "z", 1);
    CHECK_INT(at - begin, 6);
    CHECK(x[0].size == 3 && strcmp(x[0].data, "abc") == 0);
    CHECK(x[1].size == 0 && x[3].size == 0 && !x[3].data);
    CHECK_STR(x[2].data, "z");
    CHECK(!leat_tensor_sole(t) && leat_tensor_unshared(t));
    CHECK_OK(leat_tensor_clone(NULL, t, &copy));
    leat_tensor_unref(t);
    CHECK_STR(((const leat_string *)leat_tensor_data(copy))[0].data, "abc");
    leat_tensor_unref(copy);
}

static void limits(void)
{
    leat_tensor *t = NULL;
    char *at = NULL;
    const leat_shape none = leat_shape(0), two = leat_shape(2), huge = leat_shape(INT64_MAX);
    CHECK_OK(leat_strings_new(&none, 0, &t, &at));
    CHECK_INT(leat_tensor_count(t), 0);
    leat_tensor_unref(t);
    CHECK_ERROR(leat_strings_new(&two, SIZE_MAX - 8, &t, &at), RESOURCE_EXHAUSTED,
                "OOM when allocating tensor with shape[2] and type string, of ");
    CHECK_ERROR(leat_strings_new(&two, SIZE_MAX / 2, &t, &at), RESOURCE_EXHAUSTED,
                "OOM when allocating tensor with shape[2] and type string, of ");
    leat_status s = leat_strings_new(&huge, 0, &t, &at);
    CHECK(s);
    leat_status_free(s);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"values", values}, {"limits", limits});
}
