/* Variable scopes: who shares and who does not, in TensorFlow's words; collections; variables that
 * depend on each other. */
#include <leat/session.h>
#include <leat/train.h>

#include "test.h"

/* The graph's mistake, once. Frees the graph. */
static leat_status mistake(leat_graph *g)
{
    leat_status s = leat_graph_status(g);
    leat_graph_free(g);
    return s;
}

static void exists(void)
{
    leat_graph *g = leat_graph_new();
    leat_with_variable_scope(g, "foo")
    {
        leat_get_variable(g, "v", leat_shape(1));
        leat_get_variable(g, "v", leat_shape(1));
    }
    CHECK_ERROR(mistake(g), ALREADY_EXISTS,
                "Variable foo/v already exists, disallowed. Did you mean to set .reuse = "
                "LEAT_REUSE or LEAT_AUTO_REUSE in the variable scope?");
}

static void missing(void)
{
    leat_graph *g = leat_graph_new();
    leat_with_variable_scope(g, "foo", .reuse = LEAT_REUSE)
        leat_get_variable(g, "v", leat_shape(1));
    CHECK_ERROR(mistake(g), NOT_FOUND,
                "Variable foo/v does not exist, or was not created with leat_get_variable.");
}

static void shapes_and_types(void)
{
    leat_graph *g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(2, 3));
    leat_with_variable_scope(g, "", .reuse = LEAT_REUSE) leat_get_variable(g, "v", leat_shape(2));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "Trying to share variable v, but specified shape [2] and found shape [2,3].");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(2));
    leat_with_variable_scope(g, "", .reuse = LEAT_REUSE)
        leat_get_variable(g, "v", leat_shape(2), .dtype = LEAT_INT32);
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "Trying to share variable v, but specified dtype int32 and found dtype float.");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(2), .initial_value = leat_scalar(g, LEAT_FLOAT, 1));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "If initializer is a constant, do not specify shape.");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(-1));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT, "Shape of a new variable (v) must be fully defined");
    g = leat_graph_new();
    leat_variable(g, "v", leat_placeholder(g, LEAT_FLOAT, leat_shape(-1)));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT, "initial_value must have a shape specified");
}

static void sharing(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = {0}, b = {0}, c = {0}, d = {0};
    leat_with_variable_scope(g, "foo", .reuse = LEAT_AUTO_REUSE)
    {
        a = leat_get_variable(g, "v", leat_shape(1));
        leat_with_variable_scope(g, "bar") c = leat_get_variable(g, "v", leat_shape(1));
    }
    leat_with_variable_scope(g, "foo")
    {
        leat_variable_scope_reuse(g);
        b = leat_get_variable(g, "v", leat_shape(1));
        leat_with_variable_scope(g, "bar") d = leat_get_variable(g, "v", leat_shape(1));
    }
    CHECK(a.node && a.node == b.node);
    CHECK(c.node && c.node == d.node);
    CHECK_STR(leat_variable_name(a), "foo/v");
    CHECK_STR(leat_variable_name(c), "foo/bar/v");
    CHECK_STR(leat_node_name(a.node), "foo/v/read");
    CHECK_STR(leat_variable_scope_name(g), "");
    CHECK_OK(mistake(g));
}

static void unique_scopes(void)
{
    leat_graph *g = leat_graph_new();
    const char *want[] = {"s", "s_1", "s_2"};
    for (int i = 0; i < 3; i++)
        leat_with_variable_scope(g, NULL, .default_name = "s")
        {
            CHECK_STR(leat_variable_scope_name(g), want[i]);
            leat_with_variable_scope(g, NULL, .default_name = "in")
                CHECK_INT(strncmp(leat_variable_scope_name(g) + strlen(want[i]), "/in", 4), 0);
        }
    CHECK_OK(mistake(g));
}

static void collections(void)
{
    leat_graph *g = leat_graph_new();
    leat_with_variable_scope(g, "h", .regularizer = leat_l2_regularizer(0.5))
    {
        leat_get_variable(g, "w", leat_shape(2));
        leat_get_variable(g, "fixed", leat_shape(2), .not_trainable = true,
                          .regularizer = leat_no_regularizer());
    }
    leat_local_variable(g, "count", leat_scalar(g, LEAT_INT64, 0));
    leat_global_step(g);
    CHECK(leat_global_step(g).node == leat_global_step(g).node);
    int n;
    free(leat_global_variables(g, &n));
    CHECK_INT(n, 3);
    leat_out *trainable = leat_trainable_variables(g, &n);
    CHECK_INT(n, 1);
    CHECK_STR(leat_node_name(trainable[0].node), "h/w");
    free(trainable);
    free(leat_collection(g, "local_variables", NULL, &n));
    CHECK_INT(n, 1);
    free(leat_collection(g, "regularization_losses", "h/", &n));
    CHECK_INT(n, 1);
    CHECK_OK(mistake(g));
}

static double scalar(leat_session *s, leat_out x)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    double v = t ? leat_tensor_at(t, 0) : NAN;
    leat_tensor_unref(t);
    return v;
}

/* One run of the initialiser gives each its value, whatever they depend on. */
static void depends(bool resource)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, 5);
    leat_out a = leat_variable(g, "a", leat_random_uniform(g, leat_shape(), .low = 3, .high = 4),
                               .use_resource = resource);
    leat_out b =
        leat_variable(g, "b", leat_mul(a, leat_scalar_like(a, 2)), .use_resource = resource);
    leat_out c = leat_variable(g, "c", leat_add(b, a), .use_resource = resource);
    leat_out init = leat_global_variables_initializer(g);
    leat_out names = leat_report_uninitialized_variables(g);
    leat_session *s = NULL;
    CHECK_OK(leat_session_open(g, &s));
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({names, &t}), LEAT_NO_TARGET));
    CHECK_INT(leat_tensor_count(t), 3);
    leat_tensor_unref(t);
    CHECK_NEAR(scalar(s, leat_is_variable_initialized(a)), 0, 0);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    double va = scalar(s, a);
    CHECK(va >= 3 && va < 4);
    CHECK_NEAR(scalar(s, b), 2 * va, 1e-6);
    CHECK_NEAR(scalar(s, c), 3 * va, 1e-5);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({names, &t}), LEAT_NO_TARGET));
    CHECK_INT(leat_tensor_count(t), 0);
    leat_tensor_unref(t);
    leat_out set = leat_variable_assign_add(a, leat_scalar_like(a, 1));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(set))));
    CHECK_NEAR(scalar(s, a), va + 1, 1e-6);
    leat_session_close(s);
    CHECK_OK(mistake(g));
}

static void depends_by_reference(void)
{
    depends(false);
}

static void depends_by_handle(void)
{
    depends(true);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"exists", exists}, {"missing", missing},
               {"shapes_and_types", shapes_and_types}, {"sharing", sharing},
               {"unique_scopes", unique_scopes}, {"collections", collections},
               {"depends_by_reference", depends_by_reference},
               {"depends_by_handle", depends_by_handle});
}
