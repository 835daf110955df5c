/* stack_test.c -- stacks: order, limits, closing, and that what is pushed outlives its maker. */
#include "test.h"

#include <leat/leat.h>

static leat_graph *g;
static leat_out handle;

static void begin(int max)
{
    g = leat_graph_new();
    handle = LEAT_OP1("StackV2", leat_scalar(g, LEAT_INT32, max),
                      leat_attr_type("elem_type", LEAT_FLOAT), leat_attr_string("stack_name", "s"));
}

static leat_out push(double v, leat_out after)
{
    return LEAT_OP2("StackPushV2", handle, leat_scalar(g, LEAT_FLOAT, v), leat_after(after));
}

static leat_out pop(leat_out after)
{
    return LEAT_OP1("StackPopV2", handle, leat_attr_type("elem_type", LEAT_FLOAT),
                    leat_after(after));
}

static leat_status run(leat_out y, double *value)
{
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    leat_status status = leat_session_open(g, &s);
    if (!status)
        status = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET);
    *value = t ? leat_tensor_at(t, 0) : NAN;
    leat_tensor_unref(t);
    leat_session_close(s);
    leat_graph_free(g);
    return status;
}

static void order(void)
{
    double v;
    begin(-1);
    leat_out a = push(1, handle), b = push(2, a), c = pop(b), d = pop(c);
    CHECK_OK(run(leat_sub(leat_mul(c, leat_scalar(g, LEAT_FLOAT, 10)), d), &v));
    CHECK_NEAR(v, 19, 0);
}

static void limits(void)
{
    double v;
    begin(1);
    leat_out a = push(1, handle), b = push(2, a);
    CHECK_ERROR(run(b, &v), INVALID_ARGUMENT, "overflowed its max_size (1)");
    begin(1);
    CHECK_ERROR(run(pop(handle), &v), INVALID_ARGUMENT, "is empty when calling Pop()");
    begin(1);
    leat_out other = LEAT_OP2("StackPushV2", handle, leat_scalar(g, LEAT_INT32, 1));
    CHECK_ERROR(run(other, &v), INVALID_ARGUMENT, "Must have type float but got int32");
}

static void closed(void)
{
    double v;
    begin(-1);
    leat_out a = push(1, handle);
    leat_out close = LEAT_OP1("StackCloseV2", handle, leat_after(a));
    CHECK_ERROR(run(pop(leat_done(close)), &v), INVALID_ARGUMENT, "has already been closed");
}

static void no_stack(void)
{
    double v;
    begin(-1);
    handle = LEAT_OP0(g, "VarHandleOp", leat_attr_type("dtype", LEAT_FLOAT),
                      leat_attr_shape("shape", leat_shape()));
    CHECK_ERROR(run(pop(handle), &v), NOT_FOUND, "does not exist");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"order", order}, {"limits", limits}, {"closed", closed},
               {"no_stack", no_stack});
}
