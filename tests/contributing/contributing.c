/* contributing.c -- uses the ops that CONTRIBUTING.md adds: values, gradients, and what the passes
 * make of them. Its build has the files that the text makes instead of the library's. */
#include "passes/passes.h"

static leat_tensor *ramp(leat_shape s)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_DOUBLE, s, &t));
    for (int64_t i = 0; i < t->count; i++)
        ((double *)t->data)[i] = 0.3 + 0.1 * (double)i;
    return t;
}

/* y's value for x, with the passes and without; the gradient of y by x agrees with differences. */
static void check(leat_graph *g, leat_out x, leat_out y, leat_tensor *in, double (*want)(int))
{
    for (int plain = 0; plain < 2; plain++) {
        leat_session *s;
        leat_tensor *out = NULL;
        double worst;
        CHECK_OK(leat_session_open(g, &s, .no_optimization = plain));
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
        for (int64_t i = 0; i < out->count; i++)
            CHECK_NEAR(((double *)out->data)[i], want((int)i), 1e-12);
        CHECK_OK(leat_check_gradients(s, y, &x, 1, LEAT_FEED({x, in}), &worst));
        CHECK(worst < 1e-5);
        leat_tensor_unref(out);
        leat_session_close(s);
    }
    leat_tensor_unref(in);
}

static double exp_of_cube(int i)
{
    double x = 0.3 + 0.1 * i;
    return exp(-x * x * x);
}

static void cube(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_DOUBLE, leat_shape(2, 3)),
             y = leat_exp(leat_neg(LEAT_OP1("Cube", x)));
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = &y, .n_fetches = 1}), leat_pass_simplify,
            leat_pass_fuse_cwise, leat_pass_sweep);
    CHECK_INT(count_op(&k, "_FusedCwise"), 1);
    CHECK_INT(count_op(&k, "Cube"), 0);
    compiled_free(&k);
    check(g, x, y, ramp(leat_shape(2, 3)), exp_of_cube);
    leat_graph_free(g);
}

static double cube_of_norm(int row)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += (0.3 + 0.1 * (3 * row + i)) * (0.3 + 0.1 * (3 * row + i));
    return sum * sqrt(sum);
}

static void row_norm(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_DOUBLE, leat_shape(-1, 3)),
             y = LEAT_OP1("Cube", LEAT_OP1("RowNorm", x));
    leat_shape s = leat_out_shape(y);
    CHECK_STR(leat_shape_show(&s).s, "[?]");
    check(g, x, y, ramp(leat_shape(4, 3)), cube_of_norm);
    leat_graph_free(g);
}

/* The lists that are checked are those with the new ops. */
static void registered(void)
{
    CHECK(leat_op_find("Cube") && leat_op_find("RowNorm"));
    CHECK_OK(leat_op_registry_check());
    CHECK_OK(leat_kernel_registry_check());
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"cube", cube}, {"row_norm", row_norm}, {"registered", registered});
}
