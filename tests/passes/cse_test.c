/* cse_test.c -- what is merged and what must not be. */
#include "passes.h"

#include <time.h>

static void merged(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2)), y = leat_exp(x);
    leat_out a = leat_neg(leat_mul(x, leat_mul(y, leat_scalar(g, LEAT_FLOAT, 2)))),
             b = leat_neg(leat_mul(leat_mul(leat_scalar(g, LEAT_FLOAT, 2), y), x)),
             z = leat_sub(a, b);
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = &z, .n_fetches = 1}),
            leat_pass_cse);
    CHECK_INT(count_op(&k, "Mul"), 2);
    CHECK_INT(count_op(&k, "Const"), 1);
    leat_node *sub = fetched(&k, 0).node;
    CHECK(sub->in[0].node == sub->in[1].node);
    compiled_free(&k);
    leat_tensor *t = floats(leat_shape(2), (float[]){1, 2});
    check_same(g, LEAT_FEED({x, t}), z);
    leat_tensor_unref(t);
    leat_graph_free(g);
}

static void different(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 2)), y = leat_exp(x);
    leat_out v = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                          leat_attr_shape("shape", leat_shape(2, 2)));
    leat_out sums[] = {x, y, x}, back[] = {y, x, x};
    leat_out fetches[] = {
        leat_sub(x, y),
        leat_sub(y, x),
        leat_matmul(x, y),
        leat_matmul(x, y, leat_attr_bool("transpose_b", true)),
        leat_identity(v),
        leat_identity(v), /* another read */
        leat_exp(x, leat_after(v)),
        leat_add_n(sums, 3),
        leat_add_n(back, 3), /* another order */
        leat_scalar(g, LEAT_FLOAT, 0.0),
        leat_scalar(g, LEAT_FLOAT, -0.0),
    };
    enum { N = sizeof(fetches) / sizeof(*fetches) };
    compiled k;
    COMPILE(&k, g, &((leat_request){.feeds = &x, .n_feeds = 1, .fetches = fetches, .n_fetches = N}),
            leat_pass_cse);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            CHECK(fetched(&k, i).node != fetched(&k, j).node);
    CHECK_INT(count_op(&k, "Exp"), 2);
    compiled_free(&k);
    leat_graph_free(g);
}

static void devices(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out y = leat_add(leat_exp(x, leat_on("/cpu:0")), leat_exp(x, leat_on("/cpu:1")));
    leat_session *s;
    leat_tensor *one = leat_scalar_float(1), *t = NULL;
    leat_metadata *m = NULL;
    CHECK_OK(leat_session_open(g, &s, .cpu_devices = 2));
    CHECK_OK(leat_session_run_with(s, &(leat_run_options){.metadata_out = &m}, LEAT_FEED({x, one}),
                                   LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(t, 0), 2 * exp(1), 1e-5);
    leat_metadata_free(m);
    leat_tensor_unref(t);
    leat_tensor_unref(one);
    leat_session_close(s);
    leat_graph_free(g);
}

/* A long chain of one op: each node is looked up among those before it in constant time. Compared
 * with all of them, this takes minutes. */
static void chain(void)
{
    enum { LONG = 100000 };
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2)), y = x;
    for (int i = 0; i < LONG; i++)
        y = leat_neg(y);
    compiled k;
    const clock_t begin = clock();
    COMPILE(&k, g, &((leat_request){.fetches = &y, .n_fetches = 1}), leat_pass_cse);
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 15);
    CHECK_INT(count_op(&k, "Neg"), LONG);
    compiled_free(&k);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"merged", merged}, {"different", different}, {"devices", devices},
               {"chain", chain});
}
