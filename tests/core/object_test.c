/* object_test.c -- objects that are NULL, of another kind, freed, or none. */
#include "core/object.h"

#include "test.h"

typedef struct thing {
    leat_object object;
    int x;
} thing;

static void checks(void)
{
    thing *a = leat_new_object(thing, SAVER), *b = leat_new_object(thing, GRAPH);
    CHECK_OK(leat_object_check(a, LEAT_OBJECT_SAVER, "f"));
    CHECK(leat_object_alive(b, LEAT_OBJECT_GRAPH));
    CHECK_ERROR(leat_object_check(NULL, LEAT_OBJECT_SAVER, "leat_saver_save"), INVALID_ARGUMENT,
                "leat_saver_save: the saver is NULL");
    CHECK_ERROR(leat_object_check(a, LEAT_OBJECT_GRAPH, "leat_f"), INVALID_ARGUMENT,
                "leat_f: wants a graph, and was given a saver");
    thing none = {.object.magic = 7};
    CHECK_ERROR(leat_object_check(&none, LEAT_OBJECT_GRAPH, "leat_f"), INVALID_ARGUMENT,
                "is not a graph");
    leat_object_free(&a->object);
    leat_object_free(&b->object);
    CHECK_ERROR(leat_object_check(a, LEAT_OBJECT_SAVER, "leat_saver_save"), FAILED_PRECONDITION,
                "leat_saver_save: the saver has already been freed");
    CHECK(!leat_object_alive(b, LEAT_OBJECT_GRAPH));
}

/* The memory of freed objects is given back, in the end. */
static void many(void)
{
    for (int i = 0; i < 200000; i++)
        leat_object_free(&leat_new_object(thing, SESSION)->object);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"checks", checks}, {"many", many});
}
