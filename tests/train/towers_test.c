/* towers_test.c -- what towers are joined by: averages of gradients, one by one and by one
 * reduction, and the checks that find the op which made a NaN. */
#include "test.h"

#include <leat/leat.h>

enum { TOWERS = 3, VARS = 4 };

/* Variables of several shapes and dtypes, one of which gets rows as its gradient. */
typedef struct towers {
    leat_graph *g;
    leat_out vars[VARS];
    leat_var_grad *grads[TOWERS];
    int n;
} towers;

static leat_out variable(leat_graph *g, const char *name, leat_dtype t, leat_shape s)
{
    return leat_get_variable(g, name, s, .dtype = t, .initializer = leat_ones_initializer());
}

/* Tower i has the factor i + 1, and looks up rows i and 5. */
static void build(towers *t)
{
    leat_graph *g = t->g = leat_graph_new();
    t->vars[0] = variable(g, "w", LEAT_FLOAT, leat_shape(3, 4));
    t->vars[1] = variable(g, "d", LEAT_DOUBLE, leat_shape(5));
    t->vars[2] = variable(g, "rows", LEAT_FLOAT, leat_shape(6, 4));
    t->vars[3] = variable(g, "b", LEAT_FLOAT, leat_shape(4));
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.1);
    for (int i = 0; i < TOWERS; i++) {
        char device[32];
        snprintf(device, sizeof(device), "/cpu:%d", i);
        leat_device_enter(g, device);
        leat_out x = leat_scalar(g, LEAT_FLOAT, i + 1);
        leat_out rows =
            leat_embedding_lookup(&t->vars[2], 1, leat_int_vector(g, ((const int64_t[]){i, 5}), 2));
        leat_out parts[] = {
            leat_reduce_sum(leat_mul(leat_square(t->vars[0]), x)),
            leat_reduce_sum(leat_mul(leat_mul(rows, t->vars[3]), x)),
            leat_mul(leat_cast(leat_reduce_sum(leat_square(t->vars[1])), LEAT_FLOAT), x)};
        t->grads[i] = leat_compute_gradients(opt, leat_add_n(parts, 3), &t->n);
        leat_device_leave(g);
    }
    leat_optimizer_free(opt);
}

static void towers_free(towers *t)
{
    for (int i = 0; i < TOWERS; i++)
        free(t->grads[i]);
    leat_graph_free(t->g);
}

static int count_ops(const leat_graph *g, const char *op)
{
    int n = 0;
    for (int i = 0; i < leat_graph_nodes(g); i++)
        n += strcmp(leat_node_op(leat_graph_node(g, i)), op) == 0;
    return n;
}

/* Elements of the averages: each is 2 w x, 2 d x, the sum of rows * x, b x of the rows looked up,
 * with a mean of x of 2. */
static void averages(void)
{
    for (int fused = 0; fused < 2; fused++) {
        towers t = {0};
        build(&t);
        CHECK_INT(t.n, VARS);
        leat_var_grad *mean = leat_average_gradients(t.grads, TOWERS, t.n, .fused = fused);
        /* One sum for w and b, one for d; rows are concatenated. */
        CHECK_INT(count_ops(t.g, "SplitV"), fused);
        static const double first[VARS] = {4, 4, 1.0 / 3, 4}, last[VARS] = {4, 4, 2, 4};
        leat_session *s;
        CHECK_OK(leat_session_open(t.g, &s, .cpu_devices = TOWERS));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                  LEAT_TARGET(leat_global_variables_initializer(t.g))));
        for (int i = 0; i < t.n; i++) {
            leat_tensor *v = NULL;
            CHECK(leat_variable_value(mean[i].var).node == leat_variable_value(t.vars[i]).node);
            CHECK_INT(mean[i].grad.indices.node != NULL, i == 2);
            leat_out dense = leat_grad_dense(mean[i].grad);
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({dense, &v}), LEAT_NO_TARGET));
            if (!v)
                continue;
            const leat_shape want = leat_out_shape(t.vars[i]), got = leat_tensor_shape(v);
            CHECK(leat_shape_equal(&want, &got));
            CHECK_NEAR(leat_tensor_at(v, 0), first[i], 1e-6);
            CHECK_NEAR(leat_tensor_at(v, leat_tensor_count(v) - 1), last[i], 1e-6);
            leat_tensor_unref(v);
        }
        leat_session_close(s);
        free(mean);
        towers_free(&t);
    }
}

static void one_lacks(void)
{
    for (int fused = 0; fused < 2; fused++) {
        towers t = {0};
        build(&t);
        t.grads[1][3].grad.value.node = NULL;
        free(leat_average_gradients(t.grads, TOWERS, t.n, .fused = fused));
        CHECK_ERROR(leat_graph_status(t.g), INVALID_ARGUMENT,
                    "2 of 3 towers have a gradient of b; all must");
        towers_free(&t);
    }
}

/* ---- Checks ---- */

static leat_status run_fed(leat_session *s, leat_out x, double value, leat_out target)
{
    leat_tensor *t = leat_scalar_float((float)value);
    leat_status status = leat_session_run(s, LEAT_FEED({x, t}), LEAT_NO_FETCH, LEAT_TARGET(target));
    leat_tensor_unref(t);
    return status;
}

static leat_out less_than_ten(leat_graph *g, void *arg, const leat_out *v)
{
    return leat_less(v[0], leat_scalar(g, LEAT_FLOAT, 10));
}

static void twice(leat_graph *g, void *arg, const leat_out *v, leat_out *out)
{
    out[0] = leat_add(v[0], v[0]);
}

/* log(x) is the first NaN of -1 and the first infinity of 0, although it is not fetched; what comes
 * from a loop is checked where it leaves the loop. */
static void first_op(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape()), looped;
    leat_out y = leat_mul(leat_add(x, leat_log(x, leat_name("log"))), x, leat_name("product"));
    leat_out counted = leat_cast(y, LEAT_INT32);
    leat_while_loop(less_than_ten, twice, NULL, &y, 1, &looped);
    leat_out unused = leat_sqrt(leat_neg(x), leat_name("unused"));
    const leat_out wanted[] = {looped, counted};
    leat_out checks = leat_add_check_numerics(wanted, 2);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run_fed(s, x, 3, checks));
    CHECK_ERROR(run_fed(s, x, -1, checks), INVALID_ARGUMENT, "log:0 : Tensor had NaN values");
    CHECK_ERROR(run_fed(s, x, 0, checks), INVALID_ARGUMENT, "log:0 : Tensor had Inf values");
    CHECK_ERROR(run_fed(s, x, 1e30, checks), INVALID_ARGUMENT, "product:0 : Tensor had Inf values");
    CHECK_ERROR(run_fed(s, x, NAN, checks), INVALID_ARGUMENT,
                "Placeholder:0 : Tensor had NaN values");
    leat_out other = leat_add_check_numerics(&unused, 1), none = leat_add_check_numerics(NULL, 0);
    CHECK_ERROR(run_fed(s, x, 3, other), INVALID_ARGUMENT, "unused:0 : Tensor had NaN values");
    CHECK(!none.node);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"averages", averages}, {"one_lacks", one_lacks},
               {"first_op", first_op});
}
