/* devices_matmul.c -- the program of TensorFlow's guide to GPUs: two products, each pinned to a
 * device, and their sum on a third. It writes on which device each node runs, and prints
 *     [[44 56]
 *      [98 128]] */
#include <leat/leat.h>

#include <stdio.h>

#include "common_flags.h"

static const char *first = "/gpu:2", *second = "/gpu:3", *sum = "/cpu:0", *devices;
static bool soft, log_placement = true;

static const flag flags[] = {
    {"first", FLAG_STRING, &first, 0, "device of the first product"},
    {"second", FLAG_STRING, &second, 0, "device of the second product"},
    {"sum", FLAG_STRING, &sum, 0, "device of the sum"},
    {"devices", FLAG_STRING, &devices, 0, "how many of each kind there are, as cpu:4,gpu:2"},
    {"allow_soft_placement", FLAG_BOOL, &soft, 0, "take another device where one does not exist"},
    {"log_device_placement", FLAG_BOOL, &log_placement, 0, "write the device of each node"},
    {0},
};

/* A constant of this name. */
static leat_out named_const(leat_graph *g, const leat_tensor *t, const char *name)
{
    return LEAT_OP0(g, "Const", leat_attr_type("dtype", leat_tensor_dtype(t)),
                    leat_attr_tensor("value", t), leat_name(name));
}

static leat_status constant(leat_graph *g, const char *name, leat_shape shape, leat_out *out)
{
    static const float v[] = {1, 2, 3, 4, 5, 6};
    leat_tensor *t;
    LEAT_TRY(leat_tensor_copy_of(LEAT_FLOAT, shape, v, &t));
    *out = named_const(g, t, name);
    leat_tensor_unref(t);
    return NULL;
}

static leat_status product(leat_graph *g, const char *device, leat_out *out)
{
    leat_out a = {0}, b = {0};
    leat_status s = NULL;
    leat_with_device(g, device)
    {
        s = constant(g, "a", leat_shape(2, 3), &a);
        if (!s)
            s = constant(g, "b", leat_shape(3, 2), &b);
        if (!s)
            *out = leat_matmul(a, b);
    }
    return s;
}

static leat_status run(leat_graph *g, leat_out y)
{
    const leat_session_options o = {
        .devices = devices, .allow_soft_placement = soft, .log_device_placement = log_placement};
    leat_session *s;
    leat_tensor *t = NULL;
    LEAT_TRY(leat_graph_status(g));
    LEAT_TRY(leat_session_open_with(g, &o, &s));
    leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET);
    if (!status)
        printf("[[%g %g]\n [%g %g]]\n", leat_tensor_at(t, 0), leat_tensor_at(t, 1),
               leat_tensor_at(t, 2), leat_tensor_at(t, 3));
    leat_tensor_unref(t);
    leat_session_close(s);
    return status;
}

static leat_status work(leat_graph *g)
{
    leat_out parts[2], y = {0};
    LEAT_TRY(product(g, first, &parts[0]));
    LEAT_TRY(product(g, second, &parts[1]));
    leat_with_device(g, sum) y = leat_add_n(parts, 2);
    return run(g, y);
}

int main(int argc, char **argv)
{
    int done = flags_parse(argc, argv, "adds two products of two devices on a third", flags);
    if (done >= 0)
        return done;
    leat_graph *g = leat_graph_new();
    leat_status s = work(g);
    leat_graph_free(g);
    LEAT_DIE_ON_ERROR(s);
    return 0;
}
