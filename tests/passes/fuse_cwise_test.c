/* fuse_cwise_test.c -- which trees of element-wise ops become one node, which must not, and that
 * the values are the same. */
#include "passes.h"

static leat_tensor *numbers(leat_dtype t, leat_shape s)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, s, &x));
    for (int64_t i = 0; i < x->count; i++) {
        double v = (double)(i * 37 % 101) / 25 + 0.1;
        if (t == LEAT_DOUBLE)
            ((double *)x->data)[i] = v;
        else
            ((float *)x->data)[i] = (float)v;
    }
    return x;
}

/* How many nodes of an op are left of what y needs. */
static int left(leat_graph *g, leat_out x, const leat_out *y, int n, const char *op)
{
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = y, .n_fetches = n}),
            leat_pass_fuse_cwise, leat_pass_sweep);
    int count = count_op(&k, op);
    compiled_free(&k);
    return count;
}

static leat_out chain(leat_out x, int n)
{
    for (int i = 0; i < n; i++)
        x = i % 3 == 0   ? leat_mul(x, leat_scalar_like(x, 0.9))
            : i % 3 == 1 ? leat_sqrt(leat_abs(x))
                         : leat_add(x, leat_scalar_like(x, 1));
    return x;
}

/* Full binary trees, deeper than the registers go. */
static leat_out branches(leat_out x, int depth, int *leaf)
{
    if (!depth)
        return leat_mul(x, leat_scalar_like(x, 0.5 + 0.01 * (*leaf)++));
    leat_out a = branches(x, depth - 1, leaf), b = branches(x, depth - 1, leaf);
    return depth % 2 ? leat_sub(a, b) : leat_maximum(a, b);
}

static void trees(void)
{
    const leat_shape shapes[] = {leat_shape(), leat_shape(1, 1), leat_shape(3, 5), leat_shape(2000),
                                 leat_shape(100, 300)};
    const leat_dtype types[] = {LEAT_FLOAT, LEAT_DOUBLE};
    for (int s = 0; s < 5; s++)
        for (int t = 0; t < 2; t++) {
            leat_graph *g = leat_graph_new();
            leat_out x = leat_placeholder(g, types[t], shapes[s]);
            int leaf = 0;
            leat_out y[3] = {chain(x, 40), branches(x, 6, &leaf), leat_tanh(leat_exp(leat_neg(x)))};
            leat_tensor *fed = numbers(types[t], shapes[s]);
            for (int i = 0; i < 3; i++) {
                check_same(g, LEAT_FEED({x, fed}), y[i]);
                CHECK(left(g, x, &y[i], 1, "_FusedCwise") >= 1);
            }
            CHECK_INT(left(g, x, &y[0], 1, "Mul"), 0);
            CHECK_INT(left(g, x, &y[2], 1, "_FusedCwise"), 1);
            leat_tensor_unref(fed);
            leat_graph_free(g);
        }
}

static void not_these(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3)),
             u = leat_placeholder(g, LEAT_FLOAT, leat_shape_unknown());
    leat_tensor *fed = numbers(LEAT_FLOAT, leat_shape(2, 3)),
                *row = numbers(LEAT_FLOAT, leat_shape(3));
    leat_out h = leat_exp(x), both[2] = {h, leat_neg(h)};
    CHECK_INT(left(g, x, both, 2, "_FusedCwise"), 0); /* the middle is fetched */
    leat_out twice = leat_mul(leat_exp(x), leat_const(g, row));
    CHECK_INT(left(g, x, &twice, 1, "_FusedCwise"), 0); /* a row is broadcast */
    leat_out unknown = leat_neg(leat_exp(u));
    CHECK_INT(left(g, u, &unknown, 1, "_FusedCwise"), 0); /* nothing is known of its shape */
    leat_out square = leat_mul(h, h);
    CHECK_INT(left(g, x, &square, 1, "_FusedCwise"), 0);
    check_same(g, LEAT_FEED({x, fed}), twice);
    check_same(g, LEAT_FEED({x, fed}), square);
    leat_tensor_unref(fed);
    leat_tensor_unref(row);
    leat_graph_free(g);
}

/* Dimensions that only a run knows: equal ones, single elements, and some that must be repeated. */
static void unknown_dims(void)
{
    const leat_shape shapes[][2] = {
        {leat_shape(2, 3), leat_shape(2, 3)}, {leat_shape(1, 3), leat_shape(700, 3)},
        {leat_shape(5, 1), leat_shape(1, 4)}, {leat_shape(1, 1), leat_shape(3, 2)},
        {leat_shape(0, 3), leat_shape(1, 3)}, {leat_shape(1, 1), leat_shape(1, 1)}};
    leat_graph *g = leat_graph_new();
    leat_out a = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, -1)),
             b = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, -1)),
             half = leat_scalar(g, LEAT_FLOAT, 0.5);
    leat_out y[] = {leat_mul(leat_exp(leat_mul(a, half)), leat_sub(leat_neg(b), a)),
                    leat_maximum(leat_sqrt(a), leat_add(leat_relu(b), leat_elu(leat_neg(b))))};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(left(g, a, &y[i], 1, "_FusedCwise"), 1);
        for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++) {
            leat_tensor *fed[2] = {numbers(LEAT_FLOAT, shapes[s][0]),
                                   numbers(LEAT_FLOAT, shapes[s][1])};
            check_same(g, LEAT_FEED({a, fed[0]}, {b, fed[1]}), y[i]);
            check_same(g, LEAT_FEED({a, fed[1]}, {b, fed[0]}), y[i]);
            leat_tensor_unref(fed[0]);
            leat_tensor_unref(fed[1]);
        }
    }
    leat_graph_free(g);
}

/* What does not fit is refused in the name of the node that it was given to. */
static void refused(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1)),
             b = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1));
    leat_out sum = leat_op(g, "AddV2", leat_in(leat_exp(a)), leat_in(b), leat_name("the_sum")),
             y = leat_neg(leat_tanh(sum)),
             grad = leat_neg(leat_op(g, "TanhGrad", leat_in(a), leat_in(b), leat_name("slope")));
    leat_tensor *two = numbers(LEAT_FLOAT, leat_shape(2)),
                *three = numbers(LEAT_FLOAT, leat_shape(3)),
                *one = numbers(LEAT_FLOAT, leat_shape(1)), *t;
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(
        leat_session_run(s, LEAT_FEED({a, two}, {b, three}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET),
        INVALID_ARGUMENT, "Incompatible shapes: [2] vs. [3]\n\t [[{{node the_sum}}]]");
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({a, three}, {b, one}), LEAT_FETCH({grad, &t}),
                                 LEAT_NO_TARGET),
                INVALID_ARGUMENT,
                "Inputs to operation slope of type TanhGrad must have the same size and shape.");
    leat_session_close(s);
    leat_tensor_unref(one);
    leat_tensor_unref(two);
    leat_tensor_unref(three);
    leat_graph_free(g);
}

/* The average of towers' gradients: a sum of several and a product. */
static void sums(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(40, 30)),
             u = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 30)),
             third = leat_scalar(g, LEAT_FLOAT, 1.0 / 3);
    leat_tensor *fed = numbers(LEAT_FLOAT, leat_shape(40, 30));
    for (int n = 2; n <= 5; n++) {
        leat_out v[] = {x, leat_neg(x), leat_exp(x), leat_sqrt(x), x};
        leat_out y = leat_neg(leat_mul(leat_add_n(v, n), third));
        CHECK_INT(left(g, x, &y, 1, "_FusedCwise"), 1);
        CHECK_INT(left(g, x, &y, 1, "AddN"), 0);
        check_same(g, LEAT_FEED({x, fed}), y);
    }
    leat_out twice[] = {u, u};
    leat_out unknown = leat_mul(leat_add_n(twice, 2), third);
    CHECK_INT(left(g, u, &unknown, 1, "AddN"), 1);
    leat_tensor_unref(fed);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"trees", trees}, {"not_these", not_these},
               {"unknown_dims", unknown_dims}, {"refused", refused}, {"sums", sums});
}
