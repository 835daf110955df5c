/* sweep_test.c -- values that nobody uses are not computed; effects, targets and checks stay. */
#include "mlp.h"
#include "passes.h"

static void only_waited_for(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2)), y = leat_neg(leat_exp(x));
    leat_out z = leat_sqrt(x, leat_after(y)), checked = leat_check_numerics(x, "bad");
    leat_out w = leat_sqrt(z, leat_after(checked));
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = &w, .n_fetches = 1}),
            leat_pass_sweep);
    CHECK_INT(count_op(&k, "Exp"), 0);
    CHECK_INT(count_op(&k, "NoOp"), 0);
    CHECK_INT(count_op(&k, "CheckNumerics"), 1);
    compiled_free(&k);
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .targets = &y, .n_targets = 1}),
            leat_pass_sweep);
    CHECK_INT(count_op(&k, "Neg"), 1);
    compiled_free(&k);
    leat_graph_free(g);
}

/* An assignment that is only waited for happens, before what waits for it. */
static void effects(void)
{
    leat_graph *g = leat_graph_new();
    leat_out v = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                          leat_attr_shape("shape", leat_shape()));
    leat_out set = leat_neg(leat_assign(v, leat_scalar(g, LEAT_FLOAT, 7)));
    leat_out all = LEAT_OP0(g, "NoOp", leat_after(set)), read = leat_identity(v, leat_after(all));
    leat_tensor *t = NULL;
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({read, &t}), LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(t, 0), 7, 0);
    leat_tensor_unref(t);
    leat_session_close(s);
    leat_graph_free(g);
}

/* The gradient by the labels is an input of a tuple, but is not used otherwise. */
static void unasked_gradient(void)
{
    mlp m;
    mlp_build(&m, false, -1, 8, 4, 3);
    leat_out feeds[] = {m.x, m.y};
    compiled k;
    COMPILE(&k, m.g,
            &((leat_request){.feeds = feeds, .n_feeds = 2, .targets = &m.train, .n_targets = 1}),
            leat_pass_fold, leat_pass_simplify, leat_pass_cse, leat_pass_sweep);
    CHECK_INT(count_op(&k, "LogSoftmax"), 0);
    CHECK_INT(count_op(&k, "ApplyAdam"), MLP_VARS);
    compiled_free(&k);
    mlp_free(&m);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"only_waited_for", only_waited_for}, {"effects", effects},
               {"unasked_gradient", unasked_gradient});
}
