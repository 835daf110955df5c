/* map_stage_test.c -- staging maps: keys, parts of tuples, order, limits, mistakes; MapDefun. */
#include "kernels/dataset_graph.h"

static leat_out indices(leat_graph *g, int n, const int32_t *v)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(n), v, &t));
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}
#define INDICES(...) indices(g, sizeof((int32_t[]){__VA_ARGS__}) / 4, (int32_t[]){__VA_ARGS__})
#define MAP                                                                                        \
    leat_attr_types("dtypes", two, 2), leat_attr_string("shared_name", "map"),                     \
        leat_attr_int("capacity", 2)

static const leat_dtype two[] = {LEAT_INT64, LEAT_INT64};

static leat_out put(leat_graph *g, int64_t key, leat_out where, const leat_out *x, int n)
{
    return leat_op(g, "OrderedMapStage", leat_in(number(g, key)), leat_in(where), leat_ins(x, n),
                   MAP);
}

static leat_status run(leat_session *s, leat_out op)
{
    leat_run_options o = {.timeout_ms = 300};
    return leat_session_run_with(s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(op));
}

static void expect(leat_session *s, leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *got = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(got, want);
    free(got);
    leat_tensor_unref(t);
}

static void maps(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    const leat_out x[] = {number(g, 70), number(g, 71), number(g, 50), number(g, 51)};
    leat_out both = INDICES(0, 1), first = INDICES(0), second = INDICES(1);
    leat_out put7 = put(g, 7, both, x, 2), part5 = put(g, 5, first, x + 2, 1);
    leat_out rest5 = put(g, 5, second, x + 3, 1), put9 = put(g, 9, both, x, 2);
    leat_out size = leat_op(g, "OrderedMapSize", MAP),
             parts = leat_op(g, "OrderedMapIncompleteSize", MAP);
    leat_out peek = leat_op(g, "OrderedMapPeek", leat_in(number(g, 7)), leat_in(both), MAP);
    leat_out any = leat_op(g, "OrderedMapUnstageNoKey", leat_in(both), MAP);
    leat_out one = leat_op(g, "OrderedMapUnstage", leat_in(number(g, 7)), leat_in(second),
                           leat_attr_types("dtypes", two, 1),
                           leat_attr_string("shared_name", "map"), leat_attr_int("capacity", 2));
    leat_out wrong = put(g, 1, INDICES(1, 0), x, 2), far = put(g, 1, INDICES(5), x, 1);
    leat_out clear = leat_op(g, "OrderedMapClear", MAP);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, put7));
    CHECK_OK(run(s, part5));
    expect(s, size, "1");
    expect(s, parts, "1");
    CHECK_OK(run(s, rest5));
    expect(s, size, "2");
    expect(s, parts, "0");
    CHECK_ERROR(run(s, put9), DEADLINE_EXCEEDED, ""); /* there is no room */
    expect(s, leat_output(peek, 1), "71");
    expect(s, leat_output(any, 0), "5"); /* the least key */
    expect(s, one, "71");
    CHECK_ERROR(run(s, one), INVALID_ARGUMENT, "has already been removed");
    CHECK_ERROR(run(s, wrong), INVALID_ARGUMENT, "Indices are not strictly ordered");
    CHECK_ERROR(run(s, far), INVALID_ARGUMENT, "Index '5' for key '1' was out of bounds '2'");
    CHECK_OK(run(s, clear));
    expect(s, size, "0");
    CHECK_ERROR(run(s, peek), DEADLINE_EXCEEDED, "");
    leat_session_close(s);
    leat_graph_free(g);
}

static void sum(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(in[0], in[1]);
}

/* A function for each row, with a captured number. */
static void defun(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_function_define(g, "SumOfBoth", sum, NULL, 1, LEAT_INT64, LEAT_INT64);
    leat_out rows = leat_cast(INDICES(1, 2, 3), LEAT_INT64), captured = number(g, 10);
    leat_out y = leat_op(g, "MapDefun", leat_ins(&rows, 1), leat_ins(&captured, 1),
                         leat_attr_func("f", "SumOfBoth"), leat_attr_types("output_types", two, 1),
                         leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape()}, 1));
    leat_out bad =
        leat_op(g, "MapDefun", leat_ins(&rows, 1), leat_ins(&captured, 1),
                leat_attr_func("f", "SumOfBoth"), leat_attr_types("output_types", two, 1),
                leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape(2)}, 1));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    expect(s, y, "[11 12 13]");
    CHECK_ERROR(run(s, bad), INVALID_ARGUMENT, "Mismatch in function retval shape");
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"maps", maps}, {"defun", defun});
}
