/* dataset_seed_test.c -- random ops with seeds in functions of datasets: each iterator begins with
 * the seeds, and goes on while it is used. The numbers are TensorFlow 1.15's. */
#include "dataset_graph.h"

static leat_out int32_const(leat_graph *g, leat_shape shape, int32_t x)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, shape, &x, &t));
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

static void drawn(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out x = leat_op(g, "RandomUniformInt", leat_in(int32_const(g, leat_shape(0), 0)),
                         leat_in(int32_const(g, leat_shape(), 0)),
                         leat_in(int32_const(g, leat_shape(), 1000)), leat_attr_int("seed", 3),
                         leat_attr_int("seed2", 11));
    out[0] = leat_cast(x, LEAT_INT64);
}

static void two_drawn(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = map(g, range(g, 2), "Drawn");
}

static void joined(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(leat_mul(in[0], number(g, 1000)), in[1]);
}

/* Goes through a dataset in one run of a kernel. */
static void reduced(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out zero = number(g, 0);
    out[0] = DATASET("ReduceDataset", leat_in(map(g, range(g, 2), "Drawn")), leat_ins(&zero, 1),
                     leat_ins(NULL, 0), leat_attr_func("f", "Joined"));
}

static leat_graph *graph(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Drawn", drawn, NULL, 1, LEAT_INT64);
    leat_function_define(g, "TwoDrawn", two_drawn, NULL, 1, LEAT_INT64);
    leat_function_define(g, "Joined", joined, NULL, 1, LEAT_INT64, LEAT_INT64);
    leat_function_define(g, "Reduced", reduced, NULL, 1, LEAT_INT64);
    return g;
}

/* An iterator that is initialised twice, and another one over the same dataset. */
static void check(leat_graph *g, leat_out dataset, const char *want)
{
    elements e = elements_of(g, dataset), other = e;
    other.handle = leat_op(g, "IteratorV2", leat_attr_string("shared_name", ""),
                           leat_attr_string("container", ""), ELEMENTS);
    other.init = leat_op(g, "MakeIterator", leat_in(dataset), leat_in(other.handle));
    other.next = leat_op(g, "IteratorGetNext", leat_in(other.handle), ELEMENTS);
    char first[256] = "", again[256] = "", third[256] = "";
    CHECK_OK(begin(&e));
    read_some(&e, 20, first, sizeof(first));
    CHECK_STR(first, want);
    CHECK_OK(begin(&e));
    read_some(&e, 2, again, sizeof(again));
    CHECK_OK(begin(&other));
    read_some(&other, 20, third, sizeof(third));
    CHECK_STR(third, want);
    read_some(&e, 20, again, sizeof(again)); /* The other iterator has changed nothing. */
    CHECK_STR(again, want);
    close_elements(&e);
}

static void begins_again(void)
{
    leat_graph *g = graph();
    check(g, counted(g, "RepeatDataset", map(g, range(g, 3), "Drawn"), 2),
          "824 501 620 112 17 318 END");
    g = graph();
    leat_out d = DATASET("FlatMapDataset", leat_in(range(g, 2)), leat_ins(NULL, 0),
                         leat_attr_func("f", "TwoDrawn"));
    check(g, counted(g, "RepeatDataset", d, 2), "824 501 620 112 17 318 898 815 END");
    g = graph();
    check(g, map(g, range(g, 3), "Reduced"), "824501 824501 824501 END");
}

/* Calls at the same time: each number is drawn once, in whatever order. */
static void at_once(void)
{
    enum { N = 200 };
    leat_graph *g = graph();
    elements plain = elements_of(g, map(g, range(g, N), "Drawn"));
    elements e = elements_of(g, parallel_map(g, range(g, N), "Drawn", 8));
    for (int round = 0; round < 3; round++) {
        int64_t sum = 0;
        CHECK_OK(begin(&plain));
        CHECK_OK(begin(&e));
        for (int i = 0; i < N; i++) {
            leat_tensor *a = NULL, *b = NULL;
            CHECK_OK(get(&plain, &a));
            CHECK_OK(get(&e, &b));
            sum += *(const int64_t *)leat_tensor_data(a) - *(const int64_t *)leat_tensor_data(b);
            leat_tensor_unref(a);
            leat_tensor_unref(b);
        }
        CHECK_INT(sum, 0);
    }
    leat_session_close(plain.s);
    close_elements(&e);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"begins_again", begins_again}, {"at_once", at_once});
}
