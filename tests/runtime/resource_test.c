/* resource_test.c -- resources by name; variables, whose values are shared or copied. */
#include "runtime/resource.h"

#include <pthread.h>

#include "runtime/variable.h"
#include "test.h"

static int made, freed;

static void thing_free(void *r)
{
    freed++;
    free(r);
}
static const leat_resource_type thing = {"Thing", thing_free}, other = {"Other", thing_free};

static leat_status make_thing(void *arg, leat_resource **out)
{
    if (arg)
        return leat_error(UNAVAILABLE, "no things today");
    leat_resource *r = malloc(sizeof *r);
    leat_resource_init(r, &thing);
    made++;
    *out = r;
    return NULL;
}

static void found_and_made(void)
{
    made = freed = 0;
    leat_resources *rs = leat_resources_new();
    leat_resource *a = NULL, *b = NULL;
    CHECK_ERROR(leat_resources_find(rs, "", "a", &thing, &a), NOT_FOUND,
                "Container localhost does not exist. (Could not find resource: localhost/a)");
    CHECK_OK(leat_resources_find_or_make(rs, "", "a", &thing, make_thing, NULL, &a));
    CHECK_OK(leat_resources_find_or_make(rs, "localhost", "a", &thing, make_thing, NULL, &b));
    CHECK(a == b);
    CHECK_INT(made, 1);
    leat_resource_unref(b);
    CHECK_OK(leat_resources_find(rs, NULL, "a", &thing, &b));
    CHECK(a == b);
    leat_resource_unref(b);
    CHECK_ERROR(leat_resources_find(rs, "", "b", &thing, &b), NOT_FOUND,
                "Resource localhost/b/Thing does not exist.");
    CHECK_ERROR(leat_resources_find(rs, "", "a", &other, &b), NOT_FOUND,
                "Resource localhost/a/Other does not exist.");
    CHECK_ERROR(leat_resources_find_or_make(rs, "c", "x", &thing, make_thing, rs, &b), UNAVAILABLE,
                "no things");
    CHECK_OK(leat_resources_remove(rs, "", "a", &thing));
    CHECK_INT(freed, 0);
    leat_resource_unref(a);
    CHECK_INT(freed, 1);
    CHECK_ERROR(leat_resources_remove(rs, "", "a", &thing), NOT_FOUND, "does not exist");
    leat_resources_unref(rs);
}

static void long_names(void)
{
    made = freed = 0;
    leat_resources *rs = leat_resources_new();
    char name[1000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    leat_resource *a, *b;
    CHECK_OK(leat_resources_find_or_make(rs, "", name, &thing, make_thing, NULL, &a));
    CHECK_OK(leat_resources_find(rs, "", name, &thing, &b));
    CHECK(a == b);
    leat_resource_unref(a);
    leat_resource_unref(b);
    leat_resources_unref(rs);
    CHECK_INT(freed, 1);
}

static void containers(void)
{
    made = freed = 0;
    leat_resources *rs = leat_resources_new();
    leat_resource *r;
    const char *where[] = {"", "a", "b"};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(leat_resources_find_or_make(rs, where[i], "x", &thing, make_thing, NULL, &r));
        leat_resource_unref(r);
    }
    CHECK_INT(made, 3);
    leat_resources_clear(rs, "a");
    CHECK_INT(freed, 1);
    CHECK_ERROR(leat_resources_find(rs, "a", "x", &thing, &r), NOT_FOUND, "Container a does not");
    leat_resources_clear(rs, "a");
    leat_resources_clear(rs, "");
    CHECK_INT(freed, 2);
    leat_resources_ref(rs);
    leat_resources_unref(rs);
    CHECK_INT(freed, 2);
    leat_resources_unref(rs);
    CHECK_INT(freed, 3);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *hammer(void *arg)
{
    leat_resources *rs = arg;
    for (int i = 0; i < ROUNDS; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i % 5);
        leat_resource *r;
        leat_status_free(leat_resources_find_or_make(rs, "", name, &thing, make_thing, NULL, &r));
        leat_resource_unref(r);
        if (i % 7 == 0)
            leat_status_free(leat_resources_remove(rs, "", name, &other));
    }
    return NULL;
}

static void many_threads(void)
{
    made = freed = 0;
    leat_resources *rs = leat_resources_new();
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, hammer, rs);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    leat_resources_unref(rs);
    CHECK_INT(made, 5);
    CHECK_INT(freed, 5);
}

static void readers_and_writers(void)
{
    leat_shape scalar = leat_shape();
    leat_variable *v = leat_variable_new(&leat_ref_type, "w", LEAT_FLOAT, &scalar);
    leat_tensor *read = NULL, *mine = NULL;
    CHECK_ERROR(leat_variable_read(v, &read), FAILED_PRECONDITION,
                "Attempting to use uninitialized value w");
    leat_tensor *t = leat_scalar_float(1);
    leat_variable_lock(v);
    CHECK_ERROR(leat_variable_writable(v, 0, &mine), FAILED_PRECONDITION, "uninitialized value w");
    leat_variable_set(v, t);
    leat_tensor_unref(t);
    CHECK_OK(leat_variable_writable(v, 0, &mine));
    CHECK(mine == t); /* no other reference: written in place */
    leat_variable_unlock(v);
    CHECK_OK(leat_variable_read(v, &read));
    leat_variable_lock(v);
    CHECK_OK(leat_variable_writable(v, 0, &mine));
    CHECK(mine != read);
    *(float *)mine->data = 2;
    leat_variable_unlock(v);
    CHECK_NEAR(leat_tensor_at(read, 0), 1, 0);
    leat_tensor_unref(read);
    CHECK_OK(leat_variable_read(v, &read));
    CHECK_NEAR(leat_tensor_at(read, 0), 2, 0);
    leat_tensor_unref(read);
    leat_resource_unref(&v->base);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"found_and_made", found_and_made}, {"long_names", long_names},
               {"containers", containers}, {"many_threads", many_threads},
               {"readers_and_writers", readers_and_writers});
}
