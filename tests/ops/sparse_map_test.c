/* sparse_map_test.c -- sparse tensors through a queue, by their numbers in a map. */
#include <leat/leat.h>

#include "test.h"

typedef struct fixture {
    leat_graph *g;
    leat_session *s;
    leat_out add, many, numbers, take;
} fixture;

static leat_out ints(leat_graph *g, int n, const int64_t *v)
{
    return leat_int_vector_at(LEAT_AT, g, LEAT_INT64, v, n);
}
#define INTS(g, ...)                                                                               \
    ints(g, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static fixture begin(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_arg shared = leat_attr_string("shared_name", "m");
    leat_out one = leat_reshape_to(INTS(f.g, 0, 2), leat_shape(2, 1));
    f.add = LEAT_OP3("AddSparseToTensorsMap", one, INTS(f.g, 7, 8), INTS(f.g, 5), shared);
    leat_out places = leat_reshape_to(INTS(f.g, 0, 0, 0, 1, 2, 1), leat_shape(3, 2));
    f.many =
        LEAT_OP3("AddManySparseToTensorsMap", places, INTS(f.g, 1, 2, 3), INTS(f.g, 3, 2), shared);
    f.numbers = leat_placeholder(f.g, LEAT_INT64, leat_shape_unknown());
    f.take = LEAT_OP1("TakeManySparseFromTensorsMap", f.numbers,
                      leat_attr_type("dtype", LEAT_INT64), shared);
    CHECK_OK(leat_graph_status(f.g));
    CHECK_OK(leat_session_open(f.g, &f.s));
    return f;
}

static void end(fixture *f)
{
    leat_session_close(f->s);
    leat_graph_free(f->g);
}

static void check_values(leat_session *s, leat_feeds feeds, leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, feeds, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

static leat_tensor *vector(int n, const int64_t *v)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(n), v, &t));
    return t;
}

static void values(void)
{
    fixture f = begin();
    check_values(f.s, LEAT_NO_FEED, f.add, "0");
    check_values(f.s, LEAT_NO_FEED, f.many, "[1 2 3]"); /* number 2 is empty */
    check_values(f.s, LEAT_NO_FEED, f.add, "4");
    leat_tensor *x = vector(3, (int64_t[]){1, 2, 0}), *t[3] = {NULL};
    CHECK_OK(leat_session_run(f.s, LEAT_FEED({f.numbers, x}),
                              LEAT_FETCH({f.take, &t[0]}, {leat_output(f.take, 1), &t[1]},
                                         {leat_output(f.take, 2), &t[2]}),
                              LEAT_NO_TARGET));
    const char *want[] = {"[[0 0][0 1][2 0][2 2]]", "[1 2 7 8]", "[3 5]"};
    for (int i = 0; i < 3; i++) {
        char *text = leat_tensor_text(t[i], -1);
        CHECK_STR(text, want[i]);
        free(text);
        leat_tensor_unref(t[i]);
    }
    leat_tensor *again = vector(1, (int64_t[]){1}), *rest = vector(2, (int64_t[]){4, 3});
    CHECK_ERROR(
        leat_session_run(f.s, LEAT_FEED({f.numbers, again}), LEAT_NO_FETCH, LEAT_TARGET(f.take)),
        INVALID_ARGUMENT, "Unable to find SparseTensor: 1 in map: m");
    check_values(f.s, LEAT_FEED({f.numbers, rest}), leat_output(f.take, 1), "[7 8 3]");
    leat_tensor_unref(x);
    leat_tensor_unref(again);
    leat_tensor_unref(rest);
    end(&f);
}

static void errors(void)
{
    fixture f = begin();
    leat_tensor *none = vector(0, NULL), *scalar = leat_scalar_int64(0);
    leat_tensor *low = vector(1, (int64_t[]){INT64_MIN}), *high = vector(1, (int64_t[]){INT64_MAX});
    const struct {
        leat_tensor *x;
        const char *words;
    } cases[] = {{none, "Must have at least 1 serialized SparseTensor"},
                 {scalar, "sparse_handles should be a vector but received shape []"},
                 {low, "Unable to find SparseTensor"},
                 {high, "Unable to find SparseTensor"}};
    for (int i = 0; i < 4; i++) {
        CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({f.numbers, cases[i].x}), LEAT_NO_FETCH,
                                     LEAT_TARGET(f.take)),
                    INVALID_ARGUMENT, cases[i].words);
        leat_tensor_unref(cases[i].x);
    }
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"values", values}, {"errors", errors});
}
