/* example_test.c -- Examples and SequenceExamples, encoded and decoded. The bytes to compare with
 * are those of TensorFlow's SerializeToString(deterministic=True). */
#include <leat/leat.h>

#include "test.h"

static const float floats[] = {1, -2.5f};
static const int64_t ints[] = {1, -2, INT64_C(1) << 40};

static leat_example *small(void)
{
    leat_example *e = leat_example_new();
    CHECK_OK(leat_example_add_floats(e, "f", floats, 1));
    CHECK_OK(leat_example_add_floats(e, "f", floats + 1, 1));
    CHECK_OK(leat_example_add_bytes(e, "b", "hi", 2));
    CHECK_OK(leat_example_add_bytes(e, "b", "", 0));
    CHECK_OK(leat_example_add_ints(e, "i", ints, 3));
    return e;
}

static void check_bytes(const leat_example *e, const char *want, size_t n)
{
    void *bytes = NULL;
    size_t size = 0;
    CHECK_OK(leat_example_encode(e, &bytes, &size));
    CHECK_INT(size, n);
    CHECK(size == n && memcmp(bytes, want, n) == 0);
    free(bytes);
}

static void check_text(leat_status s, leat_tensor **t, const char *want)
{
    CHECK_OK(s);
    char *text = *t ? leat_tensor_text(*t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(*t);
    *t = NULL;
}

static void encodes(void)
{
    static const char want[] =
        "\012\076\012\015\012\001\142\022\010\012\006\012\002\150\151\012"
        "\000\012\021\012\001\146\022\014\022\012\012\010\000\000\200\077"
        "\000\000\040\300\012\032\012\001\151\022\025\032\023\012\021\001"
        "\376\377\377\377\377\377\377\377\377\001\200\200\200\200\200\040";
    leat_example *e = small();
    check_bytes(e, want, sizeof(want) - 1);
    leat_example_free(e);
    e = leat_example_new();
    check_bytes(e, "", 0);
    leat_example_free(e);
    leat_example_free(NULL);
}

static void decodes(void)
{
    leat_example *e = small(), *d = NULL;
    void *bytes = NULL;
    size_t size;
    leat_tensor *t = NULL;
    CHECK_OK(leat_example_encode(e, &bytes, &size));
    CHECK_OK(leat_example_decode(bytes, size, &d));
    check_text(leat_example_feature(d, "f", &t), &t, "[1 -2.5]");
    check_text(leat_example_feature(d, "b", &t), &t, "[hi ]");
    check_text(leat_example_feature(d, "i", &t), &t, "[1 -2 1099511627776]");
    CHECK_ERROR(leat_example_feature(d, "x", &t), NOT_FOUND, "The example has no feature 'x'");
    check_bytes(d, bytes, size);
    for (size_t cut = 1; cut < size; cut++) {
        leat_example *none = NULL;
        CHECK_ERROR(leat_example_decode(bytes, cut, &none), DATA_LOSS, "");
    }
    leat_example_free(d);
    leat_example_free(e);
    free(bytes);
}

static void lists(void)
{
    leat_example *e = leat_example_new(), *d = NULL;
    CHECK_OK(leat_example_add_ints(e, "length", ints, 1));
    CHECK_ERROR(leat_example_list_add_ints(e, "steps", ints, 1), FAILED_PRECONDITION,
                "The list 'steps' has no feature yet: call leat_example_list_next first");
    CHECK_OK(leat_example_list_next(e, "steps"));
    CHECK_OK(leat_example_list_add_floats(e, "steps", floats, 2));
    CHECK_OK(leat_example_list_next(e, "steps"));
    CHECK_OK(leat_example_list_next(e, "steps"));
    CHECK_OK(leat_example_list_add_floats(e, "steps", floats, 1));
    void *bytes = NULL;
    size_t size;
    leat_tensor *t = NULL;
    CHECK_OK(leat_example_encode(e, &bytes, &size));
    CHECK_OK(leat_example_decode(bytes, size, &d));
    CHECK_INT(leat_example_list_size(d, "steps"), 3);
    CHECK_INT(leat_example_list_size(d, "length"), -1);
    check_text(leat_example_list_feature(d, "steps", 0, &t), &t, "[1 -2.5]");
    check_text(leat_example_list_feature(d, "steps", 1, &t), &t, "[]");
    check_text(leat_example_list_feature(d, "steps", 2, &t), &t, "[1]");
    CHECK_ERROR(leat_example_list_feature(d, "steps", 3, &t), OUT_OF_RANGE,
                "The list 'steps' has 3 features, there is none of index 3");
    CHECK_ERROR(leat_example_list_feature(d, "x", 0, &t), NOT_FOUND, "no list 'x'");
    free(bytes);
    leat_example_free(e);
    leat_example_free(d);
}

static void refused(void)
{
    leat_example *e = small(), *d = NULL;
    CHECK_ERROR(leat_example_add_ints(e, "f", ints, 1), INVALID_ARGUMENT,
                "The feature 'f' has floats: no int64s can be added to it");
    CHECK_ERROR(leat_example_add_ints(e, "i", ints, -1), INVALID_ARGUMENT,
                "-1 values cannot be added");
    CHECK_ERROR(leat_example_add_ints(NULL, "i", ints, 1), INVALID_ARGUMENT, "the example is NULL");
    CHECK_ERROR(leat_example_decode("\n\5", 2, &d), DATA_LOSS,
                "2 bytes are neither an Example nor a SequenceExample");
    CHECK_ERROR(leat_example_decode("\n\x0a\n\x08\n\1a\x12\x03\x1a\1\x07", 12, &d), DATA_LOSS,
                "a list of int64s is malformed, of the key 'a'");
    leat_example_free(e);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"encodes", encodes}, {"decodes", decodes}, {"lists", lists},
               {"refused", refused});
}
