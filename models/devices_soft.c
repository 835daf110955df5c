/* devices_soft.c -- what a device can run, and what becomes of the rest: constants on /cpu:0 and
 * /gpu:0, their sum on /gpu:1, and an integer variable on /gpu:0, for which GPUs have no kernel.
 * With
 * --allow_soft_placement the variable goes to the CPU; without it the program ends with an error
 * that names the op and the devices that have kernels for it. */
#include <leat/leat.h>

#include <stdio.h>

#include "common_flags.h"

static const char *first = "/gpu:0", *second = "/gpu:1", *devices;
static bool soft, log_placement = true;

static const flag flags[] = {
    {"first", FLAG_STRING, &first, 0, "device of b and of the integer variable"},
    {"second", FLAG_STRING, &second, 0, "device of c = a + b"},
    {"devices", FLAG_STRING, &devices, 0, "how many of each kind there are, as cpu:4,gpu:2"},
    {"allow_soft_placement", FLAG_BOOL, &soft, 0,
     "take another device where one cannot run a node"},
    {"log_device_placement", FLAG_BOOL, &log_placement, 0, "write the device of each node"},
    {0},
};

typedef struct model {
    leat_graph *g;
    leat_out c, count, init;
} model;

/* A constant of this name. */
static leat_out named_const(leat_graph *g, const leat_tensor *t, const char *name)
{
    return LEAT_OP0(g, "Const", leat_attr_type("dtype", leat_tensor_dtype(t)),
                    leat_attr_tensor("value", t), leat_name(name));
}

static leat_status vector(leat_graph *g, const char *name, leat_out *out)
{
    leat_tensor *t;
    LEAT_TRY(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3), (const float[]){1, 2, 3}, &t));
    *out = named_const(g, t, name);
    leat_tensor_unref(t);
    return NULL;
}

static leat_status build(model *m)
{
    leat_graph *g = m->g;
    leat_out a = {0}, b = {0};
    leat_status s = NULL;
    leat_with_device(g, "/cpu:0") s = vector(g, "a", &a);
    if (!s)
        leat_with_device(g, first)
        {
            s = vector(g, "b", &b);
            m->count = leat_variable(g, "a_gpu", leat_scalar(g, LEAT_INT32, 0));
        }
    if (s)
        return s;
    leat_with_device(g, second) m->c = leat_add(a, b, leat_name("c"));
    m->init = leat_global_variables_initializer(g);
    return leat_graph_status(g);
}

static leat_status run(const model *m)
{
    const leat_session_options o = {
        .devices = devices, .allow_soft_placement = soft, .log_device_placement = log_placement};
    leat_session *s;
    leat_tensor *c = NULL, *count = NULL;
    LEAT_TRY(leat_session_open_with(m->g, &o, &s));
    leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m->init));
    if (!status)
        status = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({m->c, &c}, {m->count, &count}),
                                  LEAT_NO_TARGET);
    if (!status)
        printf("c = [%g %g %g], a_gpu = %g\n", leat_tensor_at(c, 0), leat_tensor_at(c, 1),
               leat_tensor_at(c, 2), leat_tensor_at(count, 0));
    leat_tensor_unref(c);
    leat_tensor_unref(count);
    leat_session_close(s);
    return status;
}

int main(int argc, char **argv)
{
    int done =
        flags_parse(argc, argv, "places nodes on devices that may not be able to run them", flags);
    if (done >= 0)
        return done;
    model m = {.g = leat_graph_new()};
    leat_status s = build(&m);
    if (!s)
        s = run(&m);
    leat_graph_free(m.g);
    LEAT_DIE_ON_ERROR(s);
    return 0;
}
