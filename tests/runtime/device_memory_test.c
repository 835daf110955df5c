/* device_memory_test.c -- devices that have no memory left, and devices that are lost: an error
 * that says which, after which the session goes on as far as that is possible. */
#include "test.h"

#include <leat/leat.h>

#include "guarded_device.h"
#include "opencl_devices.h"

enum { LIMIT = 8 << 20, FLOATS = (3 << 20) / 4 };

static leat_out ones(leat_graph *g, const char *device)
{
    leat_out x = {0};
    leat_with_device(g, device) x =
        leat_fill(leat_placeholder_with_default(leat_ints(g, FLOATS), leat_shape(1)),
                  leat_scalar(g, LEAT_FLOAT, 1));
    return x;
}

static leat_status run(leat_session *s, leat_out y)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(y));
}

/* Four tensors of 4 MB (the kind rounds sizes up) at a time do not fit into 8 MB. */
static void exhausted(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out x = ones(g, "/device:GUARDED:0"), few = {0}, all = {0}, parts[4];
    leat_with_device(g, "/device:GUARDED:0")
    {
        for (int i = 0; i < 4; i++)
            parts[i] = leat_mul(x, leat_scalar(g, LEAT_FLOAT, i));
        all = leat_add_n(parts, 4);
        few = leat_neg(x);
    }
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .devices = "guarded:1", .gpu.memory_limit = LIMIT,
                               .no_optimization = true));
    for (int i = 0; i < 3; i++) {
        CHECK_ERROR(run(s, all), RESOURCE_EXHAUSTED,
                    "/job:localhost/replica:0/task:0/device:GUARDED:0");
        CHECK_OK(run(s, few));
    }
    leat_session_close(s);
    CHECK_OK(leat_session_open(g, &s, .devices = "guarded:1", .gpu.memory_limit = 8 * LIMIT,
                               .no_optimization = true));
    CHECK_OK(run(s, all));
    leat_session_close(s);
    leat_graph_free(g);
}

/* GPUs say which nodes hold their memory. */
static void holders(void)
{
    leat_device_listing *list;
    int n;
    CHECK_OK(leat_devices_list(NULL, &list, &n));
    const bool has_gpu = n > 1;
    free(list);
    if (!has_gpu) {
        printf("no PoCL: skipped\n");
        return;
    }
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *zeros;
    leat_out x = {0}, v = {0}, init = {0}, parts[8], all = {0}, few = {0};
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(1 << 20), &zeros));
    memset(leat_tensor_mutable(zeros), 0, 4 << 20);
    leat_with_device(g, "/cpu:0") x = leat_placeholder(g, LEAT_FLOAT, leat_shape(1 << 20));
    leat_with_device(g, "/device:GPU:0")
    {
        v = leat_variable(g, "weights", x);
        init = leat_variable_initializer(v);
        few = leat_neg(v, leat_name("few"));
        for (int i = 0; i < 8; i++)
            parts[i] = leat_mul(v, leat_scalar(g, LEAT_FLOAT, i), leat_name("product"));
        all = parts[0];
        leat_control_enter(g, parts, 8); /* all of them are there at the same time */
        for (int i = 1; i < 8; i++)
            all = leat_add(all, parts[i]);
        leat_control_leave(g);
    }
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .devices = "gpu:1", .gpu.memory_limit = 20 << 20,
                               .no_optimization = true));
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, zeros}), LEAT_NO_FETCH, LEAT_TARGET(init)));
    for (int i = 0; i < 3; i++) {
        leat_status status = run(s, all);
        CHECK_INT(leat_status_code(status), LEAT_RESOURCE_EXHAUSTED);
        const char *m = leat_status_message(status);
        CHECK(strstr(m, "OOM when allocating tensor with shape[1048576] and type float: "));
        CHECK(strstr(m, "OOM when allocating 4194304 bytes on "
                        "/job:localhost/replica:0/task:0/device:GPU:0"));
        CHECK(strstr(m, "its limit is 20 MB"));
        CHECK(strstr(m, " product"));
        leat_status_free(status);
        CHECK_OK(run(s, few)); /* the variable is there, and there is room again */
    }
    leat_session_close(s);
    leat_tensor_unref(zeros);
    leat_graph_free(g);
}

/* What a plan keeps for its next step makes room for another plan. */
static void reclaimed(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out runs[4];
    for (int i = 0; i < 4; i++)
        leat_with_device(g, "/device:GUARDED:0") runs[i] =
            leat_reduce_mean(leat_neg(ones(g, "/device:GUARDED:0")));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s, .devices = "guarded:1", .gpu.memory_limit = LIMIT,
                               .allow_soft_placement = true, .no_optimization = true));
    for (int i = 0; i < 12; i++) {
        leat_tensor *t = NULL;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({runs[i % 4], &t}), LEAT_NO_TARGET));
        CHECK_NEAR(t ? leat_tensor_at(t, 0) : NAN, -1, 0);
        leat_tensor_unref(t);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

/* The device is lost at any point of a step: the step ends with an error that names it, and so do
 * later ones; the CPU goes on, and the session can be closed. */
static void lost(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = {0}, y = {0}, z = {0}, here = {0};
    leat_with_device(g, "/cpu:0") x = leat_placeholder(g, LEAT_FLOAT, leat_shape(4));
    leat_with_device(g, "/device:GUARDED:0") y = leat_square(leat_neg(x));
    leat_with_device(g, "/device:GUARDED:1") z = leat_neg(y);
    leat_with_device(g, "/cpu:0") here = leat_neg(x);
    leat_tensor *fed, *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(4), (const float[]){1, 2, 3, 4}, &fed));
    for (int after = 0; after < 40; after++) {
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s, .devices = "guarded:2", .timeout_ms = 20000));
        atomic_store(&guarded_until_lost, after);
        leat_status status = NULL;
        for (int i = 0; i < 20 && !status; i++) {
            status = leat_session_run(s, LEAT_FEED({x, fed}), LEAT_FETCH({z, &t}), LEAT_NO_TARGET);
            if (!status)
                leat_tensor_unref(t);
        }
        CHECK_INT(leat_status_code(status), LEAT_UNAVAILABLE);
        CHECK(strstr(leat_status_message(status), "/device:GUARDED:"));
        CHECK(strstr(leat_status_message(status), "the device does not reply"));
        leat_status_free(status);
        CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_FETCH({z, &t}), LEAT_NO_TARGET),
                    UNAVAILABLE, "/device:GUARDED:");
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_FETCH({here, &t}), LEAT_NO_TARGET));
        leat_tensor_unref(t);
        leat_session_close(s);
        atomic_store(&guarded_until_lost, -1);
    }
    leat_tensor_unref(fed);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    if (TEST_OPENCL)
        setenv("POCL_DEVICES", "basic", 0);
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    return RUN(argc, argv, {"exhausted", exhausted}, {"holders", holders}, {"reclaimed", reclaimed},
               {"lost", lost});
}
