/* fold_test.c -- what becomes a constant, what does not, and in which frame and branch it is. */
#include "passes.h"

static void constants(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_scalar(g, LEAT_FLOAT, 3), b = leat_mul(leat_add(a, a), a);
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2)), y = leat_add(x, b);
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1}),
            leat_pass_fold, leat_pass_sweep);
    CHECK_INT(count_op(&k, "Mul"), 0);
    CHECK_INT(count_op(&k, "Const"), 1);
    CHECK_INT(count_op(&k, NULL), 4);
    const leat_tensor *v = leat_pass_value(fetched(&k, 0).node->in[1]);
    CHECK(v && leat_tensor_at(v, 0) == 18);
    compiled_free(&k);
    leat_tensor *t = floats(leat_shape(2), (float[]){1, 2});
    check_same(g, LEAT_FEED({x, t}), y);
    leat_tensor_unref(t);
    leat_graph_free(g);
}

static void several_outputs(void)
{
    leat_graph *g = leat_graph_new();
    leat_out v = floats_const(g, leat_shape(4), (float[]){1, 2, 3, 4});
    leat_out s = leat_op(g, "Split", leat_in(leat_scalar(g, LEAT_INT32, 0)), leat_in(v),
                         leat_attr_int("num_split", 2));
    leat_out y = leat_sub(leat_output(s, 1), leat_output(s, 0));
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = &y, .n_fetches = 1}), leat_pass_fold,
            leat_pass_sweep);
    CHECK_INT(count_op(&k, NULL), 2);
    compiled_free(&k);
    check_same(g, LEAT_NO_FEED, y);
    leat_graph_free(g);
}

static void shapes(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3)),
             z = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 3));
    leat_out fetches[] = {
        leat_op(g, "Shape", leat_in(leat_neg(x))), leat_op(g, "Size", leat_in(leat_neg(x))),
        leat_op(g, "Rank", leat_in(leat_neg(z))), leat_op(g, "Shape", leat_in(leat_neg(z)))};
    leat_out feeds[] = {x, z};
    compiled k;
    COMPILE(&k, g,
            &((leat_request){.feeds = feeds, .n_feeds = 2, .fetches = fetches, .n_fetches = 4}),
            leat_pass_fold, leat_pass_sweep);
    CHECK_INT(count_op(&k, "Const"), 3);
    CHECK_INT(count_op(&k, "Shape"), 1);
    CHECK_INT(count_op(&k, "Neg"), 1);
    CHECK(leat_tensor_at(leat_pass_value(fetched(&k, 0)), 1) == 3);
    compiled_free(&k);
    leat_graph_free(g);
}

/* A constant that is fed makes shapes that were known while building untrue. */
static void fed_constant(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = floats_const(g, leat_shape(6), (float[]){1, 2, 3, 4, 5, 6});
    leat_out dims = leat_ints(g, 2, 3);
    leat_out y = leat_op(g, "Shape", leat_in(leat_reshape(x, dims)));
    leat_tensor *t = NULL, *fed;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(2), (int32_t[]){3, 2}, &fed));
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_FEED({dims, fed}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    CHECK(t && leat_tensor_at(t, 0) == 3);
    leat_tensor_unref(t);
    leat_tensor_unref(fed);
    leat_session_close(s);
    leat_graph_free(g);
}

static void left_alone(void)
{
    leat_graph *g = leat_graph_new();
    leat_out zero = leat_scalar(g, LEAT_INT32, 0);
    leat_out bad = leat_op(g, "FloorDiv", leat_in(zero), leat_in(zero));
    leat_out big =
        leat_op(g, "Fill", leat_in(leat_ints(g, 1 << 20)), leat_in(leat_scalar(g, LEAT_FLOAT, 1)));
    leat_out fetches[] = {bad, big};
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = fetches, .n_fetches = 2}), leat_pass_fold,
            leat_pass_sweep);
    CHECK_INT(count_op(&k, "FloorDiv"), 1);
    CHECK_INT(count_op(&k, "Fill"), 1);
    compiled_free(&k);
    leat_session *s;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({bad, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "zero");
    leat_session_close(s);
    leat_graph_free(g);
}

/* Constants of a branch wait for its pivot: what is made of them does, too. */
static void in_a_branch(void)
{
    leat_graph *g = leat_graph_new();
    leat_out p = leat_placeholder(g, LEAT_BOOL, leat_shape()), x = leat_scalar(g, LEAT_FLOAT, 5);
    leat_out sw = leat_op(g, "Switch", leat_in(x), leat_in(p));
    leat_out yes = leat_identity(leat_output(sw, 1)), no = leat_identity(leat_output(sw, 0));
    leat_out two = {0};
    leat_with_control(g, yes)
    {
        two = leat_scalar(g, LEAT_FLOAT, 2);
    }
    leat_out four = leat_add(two, two);
    leat_out sides[] = {four, no};
    leat_out y = leat_op(g, "Merge", leat_ins(sides, 2));
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &p, .n_feeds = 1, .fetches = &y, .n_fetches = 1}),
            leat_pass_fold, leat_pass_simplify, leat_pass_cse, leat_pass_sweep);
    CHECK_INT(count_op(&k, "Add") + count_op(&k, "AddV2"), 0);
    CHECK_INT(count_op(&k, "Identity"), 1); /* the pivot */
    compiled_free(&k);
    for (int i = 0; i < 2; i++) {
        leat_tensor *t;
        CHECK_OK(leat_tensor_copy_of(LEAT_BOOL, leat_shape(), &(bool){i}, &t));
        check_same(g, LEAT_FEED({p, t}), y);
        leat_tensor_unref(t);
    }
    leat_graph_free(g);
}

/* Folding does not compute for long: a product of matrices of 512 is 0.13e9 of 1e9 operations. */
static void bounded(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_fill(leat_ints(g, 512, 512), leat_scalar(g, LEAT_FLOAT, 0.001)), y = x;
    for (int i = 0; i < 20; i++)
        y = leat_matmul(y, x);
    leat_out text = leat_string_const(g, "0123456789abcdef");
    for (int i = 0; i < 24; i++)
        text = LEAT_OPN("StringJoin", ((leat_out[]){text, text}), 2);
    leat_out both[2] = {y, text};
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = both, .n_fetches = 2}), leat_pass_fold);
    CHECK_INT(count_op(&k, "MatMul"), 20 - 7);
    CHECK_INT(count_op(&k, "StringJoin"), 24 - 19); /* constants of at most 10 MB */
    compiled_free(&k);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"constants", constants}, {"several_outputs", several_outputs},
               {"shapes", shapes}, {"fed_constant", fed_constant}, {"left_alone", left_alone},
               {"in_a_branch", in_a_branch}, {"bounded", bounded});
}
