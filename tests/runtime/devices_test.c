/* devices_test.c -- several devices in one process: placement, edges that cross. */
#include "test.h"

#include <leat/leat.h>

static float run_float(leat_session *s, leat_out y)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    float v = t ? (float)leat_tensor_at(t, 0) : NAN;
    leat_tensor_unref(t);
    return v;
}

static void crosses(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a, b, c = {0}, v = {0};
    leat_with_device(g, "/cpu:0")
    {
        a = leat_scalar(g, LEAT_FLOAT, 3);
        v = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                     leat_attr_shape("shape", leat_shape()));
    }
    leat_out init = leat_assign(v, a);
    leat_with_device(g, "/device:CPU:1")
    {
        b = leat_add(a, a);
        c = leat_add(b, leat_identity(v));
    }
    leat_out d = leat_mul(c, a, leat_on("/cpu:0"));
    leat_out after = leat_identity(a, leat_on("/cpu:0"), leat_after(c));
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s, .cpu_devices = 2, .no_optimization = true));
    CHECK_NEAR(run_float(s, init), 3, 0);
    for (int i = 0; i < 200; i++) {
        CHECK_NEAR(run_float(s, d), 27, 0);
        CHECK_NEAR(run_float(s, after), 3, 0);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

static void no_such_device(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_scalar(g, LEAT_FLOAT, 3),
             b = leat_add(a, a, leat_name("sum"), leat_on("/gpu:0"));
    leat_session *s;
    leat_tensor *t;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({b, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Cannot assign a device for operation sum");
    leat_session_close(s);
    CHECK_OK(leat_session_open(g, &s, .allow_soft_placement = true));
    CHECK_NEAR(run_float(s, b), 6, 0);
    leat_session_close(s);
    leat_graph_free(g);
}

static leat_out below_ten(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], leat_scalar(g, LEAT_FLOAT, 10));
}

static void add_three(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = leat_add(vars[0], leat_scalar(g, LEAT_FLOAT, 3), leat_on("/cpu:1"));
}

/* Nodes that use a variable's reference are placed on its device, and a loop's nodes on one device,
 * whatever their device names are. */
static void asked_in_vain(void)
{
    leat_graph *g = leat_graph_new();
    leat_out v = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                          leat_attr_shape("shape", leat_shape()), leat_on("/cpu:0"));
    leat_out one = leat_scalar(g, LEAT_FLOAT, 1), end;
    leat_out init = leat_assign(v, one, leat_on("/cpu:1")),
             more = leat_assign_add(v, one, leat_on("/cpu:1"));
    leat_with_device(g, "/cpu:0") leat_while_loop(below_ten, add_three, NULL, &one, 1, &end);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s, .cpu_devices = 2, .no_optimization = true));
    CHECK_NEAR(run_float(s, init), 1, 0);
    CHECK_NEAR(run_float(s, more), 2, 0);
    CHECK_NEAR(run_float(s, end), 10, 0);
    leat_session_close(s);
    leat_graph_free(g);
}

/* An error on one device ends the step on all. */
static void failure_on_one(void)
{
    leat_graph *g = leat_graph_new();
    leat_out p = leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_on("/cpu:1"));
    leat_out a = leat_add(p, p, leat_on("/cpu:0"));
    leat_session *s;
    leat_tensor *t;
    CHECK_OK(leat_session_open(g, &s, .cpu_devices = 2));
    for (int i = 0; i < 20; i++)
        CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({a, &t}), LEAT_NO_TARGET),
                    INVALID_ARGUMENT, "You must feed a value");
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"crosses", crosses}, {"no_such_device", no_such_device},
               {"asked_in_vain", asked_in_vain}, {"failure_on_one", failure_on_one});
}
