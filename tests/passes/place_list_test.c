/* place_list_test.c -- log_device_placement: TensorFlow's lines, in its order, each node once. */
#include "test.h"

#include <leat/leat.h>

#include "guarded_device.h"

static char logged[16384];

static void sink(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    size_t n = strlen(logged);
    if (level == LEAT_LOG_INFO)
        snprintf(logged + n, sizeof(logged) - n, "%s", message);
}

static void run(leat_session *s, leat_out y)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    leat_tensor_unref(t);
}

/* A constant of this name. */
static leat_out named_const(leat_graph *g, const leat_tensor *t, const char *name)
{
    return LEAT_OP0(g, "Const", leat_attr_type("dtype", leat_tensor_dtype(t)),
                    leat_attr_tensor("value", t), leat_name(name));
}

static leat_out product(leat_graph *g)
{
    static const float v[] = {1, 2, 3, 4, 5, 6};
    leat_tensor *a, *b;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 3), v, &a));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3, 2), v, &b));
    leat_out y = leat_matmul(named_const(g, a, "a"), named_const(g, b, "b"));
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    return y;
}

#define TASK "/job:localhost/replica:0/task:0/device:"

static void lines(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out y = product(g);
    logged[0] = 0;
    CHECK_OK(leat_session_open(g, &s, .log_device_placement = true));
    CHECK_STR(logged, "Device mapping: no known devices.\n");
    logged[0] = 0;
    run(s, y);
    CHECK_STR(logged, "MatMul: (MatMul): " TASK "CPU:0\na: (Const): " TASK "CPU:0\n"
                      "b: (Const): " TASK "CPU:0\n");
    logged[0] = 0;
    run(s, y);
    CHECK_STR(logged, "");
    run(s, leat_neg(y)); /* only what is new */
    CHECK_STR(logged, "Neg: (Neg): " TASK "CPU:0\n");
    leat_session_close(s);
    logged[0] = 0;
    CHECK_OK(leat_session_open(g, &s));
    run(s, y);
    CHECK_STR(logged, "");
    leat_session_close(s);
    leat_graph_free(g);
}

static void devices(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out y = {0};
    leat_with_device(g, "/device:GUARDED:1") y = product(g);
    y = leat_identity(y, leat_on("/cpu:0"), leat_name("sum"));
    setenv("LEAT_VISIBLE_DEVICES", "2,1,0", 1);
    logged[0] = 0;
    CHECK_OK(leat_session_open(g, &s, .devices = "guarded:2", .log_device_placement = true));
    unsetenv("LEAT_VISIBLE_DEVICES");
    CHECK_STR(logged,
              "Device mapping:\n" TASK "GUARDED:0 -> device: 2, name: protected pages\n" TASK
              "GUARDED:1 -> device: 1, name: protected pages\n");
    logged[0] = 0;
    run(s, y);
    CHECK_STR(logged, "MatMul: (MatMul): " TASK "GUARDED:1\nsum: (Identity): " TASK "CPU:0\n"
                      "a: (Const): " TASK "GUARDED:1\nb: (Const): " TASK "GUARDED:1\n");
    leat_session_close(s);
    leat_graph_free(g);
}

#if LEAT_CLUSTER
/* A server logs it, for clients of any kind. */
static void server(void)
{
    leat_server *server = NULL;
    leat_cluster *c = leat_cluster_new();
    CHECK_OK(leat_cluster_add(c, "local", "localhost:0"));
    CHECK_OK(
        leat_server_start(c, "local", 0, &(leat_server_options){.devices = "guarded:1"}, &server));
    leat_graph *g = leat_graph_new();
    leat_session *s;
    char target[64];
    snprintf(target, sizeof(target), "grpc://127.0.0.1%s",
             strrchr(leat_server_target(server), ':'));
    leat_out y = {0};
    leat_with_device(g, "/device:GUARDED:0") y = product(g);
    const char *targets[] = {target, leat_server_target(server)};
    for (int i = 0; i < 2; i++) {
        logged[0] = 0;
        CHECK_OK(leat_session_open(g, &s, .target = targets[i], .log_device_placement = true));
        run(s, y);
        CHECK(strstr(logged, "Device mapping:\n/job:local/replica:0/task:0/device:GUARDED:0 -> "
                             "device: 0, name: protected pages\n"));
        CHECK(strstr(logged, "MatMul: (MatMul): /job:local/replica:0/task:0/device:GUARDED:0\n"));
        leat_session_close(s);
    }
    leat_graph_free(g);
    leat_server_free(server);
    leat_cluster_free(c);
}
#endif

int main(int argc, char **argv)
{
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    leat_log_set_sink(sink, NULL, LEAT_LOG_INFO);
    return RUN(argc, argv, {"lines", lines}, {"devices", devices},
#if LEAT_CLUSTER
               {"server", server}
#endif
    );
}
