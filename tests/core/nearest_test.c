/* nearest_test.c -- the name that was meant. */
#include "core/nearest.h"

#include "test.h"

static const char *nearest(const char *name)
{
    static const char *const names[] = {"Relu", "Relu6", "MatMul", "Add", "learning_rate"};
    const char *near = leat_nearest_name(name, names, 5);
    return near ? near : "(none)";
}

static void names(void)
{
    CHECK_STR(nearest("Rleu"), "Relu");
    CHECK_STR(nearest("relu"), "Relu");
    CHECK_STR(nearest("RELU6"), "Relu6");
    CHECK_STR(nearest("MatMull"), "MatMul");
    CHECK_STR(nearest("Matmlu"), "MatMul");
    CHECK_STR(nearest("learnin-rat"), "learning_rate");
    CHECK_STR(nearest("Conv2D"), "(none)");
    CHECK_STR(nearest("A"), "(none)");
    CHECK_STR(nearest(""), "(none)");
}

static void text(void)
{
    leat_nearest n = leat_nearest_to("Sqare");
    CHECK_STR(leat_nearest_show(&n).s, "");
    leat_nearest_see(&n, "Square");
    leat_nearest_see(&n, "Sqrt");
    CHECK_STR(leat_nearest_show(&n).s, "; did you mean \"Square\"?");
    char longer[400];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    n = leat_nearest_to(longer);
    leat_nearest_see(&n, longer);
    CHECK(strlen(leat_nearest_show(&n).s) < 256);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"names", names}, {"text", text});
}
