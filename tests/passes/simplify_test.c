/* simplify_test.c -- nodes that change nothing go, those that change a bit stay. */
#include "passes.h"

static leat_out f32(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_FLOAT, v);
}

/* A fetch of what came of x, compiled: is it x? */
static bool becomes_x(leat_graph *g, leat_out x, leat_out y)
{
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1}),
            leat_pass_fold, leat_pass_simplify, leat_pass_cse, leat_pass_sweep);
    bool is = leat_node_is(fetched(&k, 0).node, "_Arg");
    compiled_free(&k);
    static const float v[6] = {-0.0f, 0, 1.5f, NAN, -INFINITY, 3};
    leat_tensor *t = floats(leat_shape(2, 3), v);
    check_same(g, LEAT_FEED({x, t}), y);
    leat_tensor_unref(t);
    return is;
}

static void gone(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_out perm = leat_ints(g, 1, 0), ones = leat_ones(g, LEAT_FLOAT, leat_shape(3));
    leat_out ys[] = {
        leat_identity(leat_identity(x)),
        leat_stop_gradient(x),
        leat_mul(x, f32(g, 1)),
        leat_mul(ones, x),
        leat_div(x, f32(g, 1)),
        leat_sub(x, f32(g, 0)),
        leat_add(f32(g, -0.0), x),
        leat_op(g, "Transpose", leat_in(leat_op(g, "Transpose", leat_in(x), leat_in(perm))),
                leat_in(perm)),
        leat_reshape(x, leat_ints(g, 2, 3)),
        leat_reshape(x, leat_ints(g, -1, 3)),
        leat_cast(leat_cast(x, LEAT_DOUBLE), LEAT_FLOAT),
        leat_add_n(&x, 1),
        leat_placeholder_with_default(x, leat_shape(2, 3)),
    };
    for (size_t i = 0; i < sizeof(ys) / sizeof(*ys); i++) {
        if (!becomes_x(g, x, ys[i]))
            printf("%s stays\n", leat_node_name(ys[i].node));
        CHECK(becomes_x(g, x, ys[i]));
    }
    leat_graph_free(g);
}

static void stays(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_out ys[] = {
        leat_add(x, f32(g, 0)), /* -0 + 0 is 0 */
        leat_sub(x, f32(g, -0.0)),
        leat_neg(leat_neg(x)), /* the one of -0 is 0, the other 0, too */
        leat_mul(x, f32(g, 0)),
        leat_mul(x, leat_ones(g, LEAT_FLOAT, leat_shape(4, 1, 1))),
        leat_reshape(x, leat_ints(g, 3, 2)),
        leat_cast(leat_cast(x, LEAT_HALF), LEAT_FLOAT),
        leat_div(f32(g, 1), x),
    };
    for (size_t i = 0; i < sizeof(ys) / sizeof(*ys); i++)
        CHECK(!becomes_x(g, x, ys[i]));
    leat_graph_free(g);
}

/* A variable is read where its Identity stands, before or after the assignment; a use of the read
 * that comes after the assignment sees the new value (passes/reread.c). */
static void reads(void)
{
    leat_graph *g = leat_graph_new();
    leat_out v = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                          leat_attr_shape("shape", leat_shape()));
    leat_out init = leat_assign(v, f32(g, 1)), before = leat_identity(v);
    leat_out add = leat_assign_add(v, f32(g, 1), leat_after(before));
    leat_out after = leat_identity(v, leat_after(add)),
             late = leat_identity(before, leat_after(add));
    leat_session *s;
    leat_tensor *t[3] = {NULL};
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                              LEAT_FETCH({before, &t[0]}, {after, &t[1]}, {late, &t[2]}),
                              LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(t[0], 0), 1, 0);
    CHECK_NEAR(leat_tensor_at(t[1], 0), 2, 0);
    CHECK_NEAR(leat_tensor_at(t[2], 0), 2, 0);
    for (int i = 0; i < 3; i++)
        leat_tensor_unref(t[i]);
    leat_session_close(s);
    leat_graph_free(g);
}

/* What an Identity waited for, its users wait for. */
static void controls(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out v = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                          leat_attr_shape("shape", leat_shape()));
    leat_out set = leat_assign(v, f32(g, 7));
    leat_out y = leat_exp(leat_identity(x, leat_after(set)));
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1}),
            leat_pass_simplify, leat_pass_sweep);
    CHECK_INT(count_op(&k, "Identity"), 0);
    CHECK_INT(count_op(&k, "Assign"), 1);
    CHECK_INT(fetched(&k, 0).node->n_controls, 1);
    compiled_free(&k);
    leat_graph_free(g);
}

static void targets_stay(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y = leat_identity(x),
             z = leat_exp(y);
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .targets = &z, .n_targets = 1}),
            leat_pass_simplify, leat_pass_cse, leat_pass_sweep);
    CHECK_INT(count_op(&k, "Exp"), 1);
    CHECK_INT(count_op(&k, NULL), 2);
    compiled_free(&k);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"gone", gone}, {"stays", stays}, {"reads", reads},
               {"controls", controls}, {"targets_stay", targets_stay});
}
