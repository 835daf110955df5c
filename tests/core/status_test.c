/* status_test.c -- errors as values: their text, their place, taking and passing on. */
#include <leat/tensor.h>

#include "test.h"

static leat_status fail(int n)
{
    LEAT_REQUIRE(n == 2, INVALID_ARGUMENT, "MatMul wants rank 2, got %d", n);
    return NULL;
}

static leat_status pass_on(int n)
{
    LEAT_TRY(fail(n));
    return NULL;
}

static void basics(void)
{
    CHECK_OK(pass_on(2));
    CHECK_INT(leat_status_code(NULL), LEAT_OK);
    CHECK_STR(leat_status_message(NULL), "");
    leat_status_free(NULL);
    leat_status s = pass_on(3);
    CHECK_INT(leat_status_code(s), LEAT_INVALID_ARGUMENT);
    CHECK_STR(leat_status_message(s), "MatMul wants rank 2, got 3");
    CHECK(leat_status_line(s) > 0);
    leat_status copy = leat_status_copy(s);
    leat_status_free(s);
    CHECK_STR(leat_status_message(copy), "MatMul wants rank 2, got 3");
    leat_status_free(copy);
    CHECK(leat_status_new(LEAT_OK, "x.c", 1, "nothing") == NULL);
}

static void names(void)
{
    CHECK_STR(leat_code_name(LEAT_OK), "OK");
    CHECK_STR(leat_code_name(LEAT_UNAUTHENTICATED), "UNAUTHENTICATED");
    CHECK_STR(leat_code_name((leat_code)99), "UNKNOWN");
}

static void place(void)
{
    leat_status s = leat_status_new(LEAT_INTERNAL, "../kernels/x.c", 7, "x");
    CHECK_STR(leat_status_file(s), "../kernels/x.c");
    CHECK_INT(leat_status_line(s), 7);
    leat_status_free(s);
    leat_tensor *t;
    s = leat_tensor_new(LEAT_INVALID, leat_shape(), &t);
    CHECK_STR(leat_status_file(s), "src/core/tensor.c"); /* not where it was built */
    leat_status_free(s);
}

static void extend(void)
{
    CHECK(leat_status_prefix(NULL, "x") == NULL);
    CHECK(leat_status_suffix(NULL, "x") == NULL);
    leat_status s = leat_status_prefix(leat_error(ABORTED, "b"), "%s", "a");
    s = leat_status_suffix(s, "%c", 'c');
    CHECK_STR(leat_status_message(s), "abc");
    CHECK_INT(leat_status_code(s), LEAT_ABORTED);
    s = leat_status_first(s, leat_error(INTERNAL, "later"));
    CHECK_STR(leat_status_message(s), "abc");
    s = leat_status_first(NULL, s);
    s = leat_status_first(s, NULL);
    CHECK_STR(leat_status_message(s), "abc");
    leat_status_free(s);
}

static void long_messages(void)
{
    enum { LONG = 70000 };
    char *text = malloc(LONG + 1);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    leat_status s = leat_error(UNKNOWN, "%s", text);
    CHECK_INT(strlen(leat_status_message(s)), 64 * 1024);
    s = leat_status_suffix(s, "more");
    CHECK_INT(strlen(leat_status_message(s)), 64 * 1024);
    leat_status_free(s);
    text[1000] = '\0';
    s = leat_error(UNKNOWN, "%s", text);
    CHECK_STR(leat_status_message(s), text);
    leat_status_free(s);
    free(text);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"basics", basics}, {"names", names}, {"place", place},
               {"extend", extend}, {"long_messages", long_messages});
}
