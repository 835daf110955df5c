/* place_test.c -- groups of nodes get devices by their device names, by kernels and by priority. */
#include "test.h"

#include <leat/leat.h>

#include "passes/pass.h"

/* Two GPUs, the higher priority, and two CPUs. GPUs have no kernels for integers, Where,
 * ScatterUpdate, and the only ones for Relu. */
static bool kernels(const leat_node *n, const char *type)
{
    bool gpu = strcmp(type, "GPU") == 0;
    const leat_attr *t = leat_node_attr(n, "T");
    if (!t)
        t = leat_node_attr(n, "dtype");
    if (leat_node_is(n, "Relu"))
        return gpu;
    return !gpu || ((!t || t->i != LEAT_INT32) && !leat_node_is(n, "Where") &&
                    !leat_node_is(n, "ScatterUpdate"));
}

static const char *const names[] = {
    "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:1",
    "/job:localhost/replica:0/task:0/device:GPU:0", "/job:localhost/replica:0/task:0/device:GPU:1"};

static leat_status place_on(leat_graph *g, bool soft, leat_target *devices, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_OK(leat_device_name_parse(devices[i].name, &devices[i].parsed));
    leat_compile c = {.graph = g,
                      .devices = devices,
                      .n_devices = n,
                      .soft_placement = soft,
                      .has_kernel = kernels};
    CHECK_OK(leat_graph_status(g));
    return leat_pass_place(&c);
}

static leat_status place(leat_graph *g, bool soft)
{
    static leat_target devices[4]; /* nodes point at the names */
    for (int i = 0; i < 4; i++)
        devices[i] = (leat_target){.name = names[i], .priority = i < 2 ? 70 : 210};
    return place_on(g, soft, devices, 4);
}

/* "CPU:1" */
static const char *where(leat_out x)
{
    return strstr(x.node->device, "device:") + 7;
}

static void by_priority(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_scalar(g, LEAT_FLOAT, 1), i = leat_scalar(g, LEAT_INT32, 1);
    leat_out b = leat_add(a, a), j = leat_add(i, i);
    leat_out c = leat_add(a, a, leat_on("/cpu:1")), d = leat_add(a, a, leat_on("/device:CPU:*"));
    leat_out e = leat_add(a, a, leat_on("/gpu:1")), f = leat_add(a, a, leat_on("/task:0"));
    CHECK_OK(place(g, false));
    CHECK_STR(where(a), "GPU:0");
    CHECK_STR(where(b), "GPU:0");
    CHECK_STR(where(i), "CPU:0");
    CHECK_STR(where(j), "CPU:0");
    CHECK_STR(where(c), "CPU:1");
    CHECK_STR(where(d), "CPU:0");
    CHECK_STR(where(e), "GPU:1");
    CHECK_STR(where(f), "GPU:0");
    leat_graph_free(g);
}

/* The first of those with the same priority, wherever it is in the list. */
static void equal_priority(void)
{
    leat_target devices[] = {{.name = names[1], .priority = -1},
                             {.name = names[0], .priority = -1}};
    leat_graph *g = leat_graph_new();
    leat_out a = leat_scalar(g, LEAT_FLOAT, 1);
    CHECK_OK(place_on(g, false, devices, 2));
    CHECK_STR(where(a), "CPU:1");
    leat_graph_free(g);
}

/* A variable of integers that is to be on a GPU, and what uses it. */
static leat_out integers(leat_graph *g, leat_out *update, const char *device)
{
    leat_out v = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_INT32), leat_name("v"),
                          leat_attr_shape("shape", leat_shape()), leat_on(device));
    *update = leat_assign_add(v, leat_placeholder(g, LEAT_INT32, leat_shape(), leat_name("one")),
                              leat_name("up"));
    return v;
}

static void no_kernel(void)
{
    leat_graph *g = leat_graph_new();
    leat_out update;
    integers(g, &update, "/gpu:0");
    leat_status s = place(g, false);
    const char *m = leat_status_message(s);
    CHECK(leat_status_code(s) == LEAT_INVALID_ARGUMENT);
    CHECK(strstr(m, "Cannot assign a device for operation v: Could not satisfy explicit device "
                    "specification '/device:GPU:0' because no supported kernel for GPU devices is "
                    "available."));
    CHECK(strstr(m, "\nOp: VariableV2\nNode attrs: dtype=int32\nRegistered kernels:\n  "
                    "device='CPU'\n"));
    leat_status_free(s);
    leat_graph_free(g);
}

/* The whole group moves, to one device, if one member has no kernel. */
static void soft(void)
{
    leat_graph *g = leat_graph_new();
    leat_out update, other, v = integers(g, &update, "/gpu:1");
    leat_with_colocate(g, v) other =
        leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("with"));
    leat_out free_one = leat_scalar(g, LEAT_FLOAT, 1),
             gone = leat_add(free_one, free_one, leat_on("/gpu:7"));
    leat_out away = leat_add(free_one, free_one, leat_on("/job:ps/cpu:0"));
    CHECK_OK(place(g, true));
    CHECK_STR(where(v), "CPU:0");
    CHECK_STR(where(update), "CPU:0");
    CHECK_STR(where(other), "CPU:0");
    CHECK_STR(where(free_one), "GPU:0");
    CHECK_STR(where(gone), "GPU:0");
    CHECK_STR(where(away), "GPU:0");
    leat_graph_free(g);
}

/* The error names the node whose device cannot be had, though another member lacks the kernel. */
static void colocated(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("a"), leat_on("/gpu:0")),
             b;
    leat_with_colocate(g, a) b = leat_placeholder(g, LEAT_INT32, leat_shape(), leat_name("b"));
    CHECK_ERROR(place(g, false), INVALID_ARGUMENT, "Cannot assign a device for operation b: Could");
    leat_graph_free(g);
    g = leat_graph_new();
    a = leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("a"), leat_on("/gpu:0"));
    leat_with_colocate(g, a) b = leat_placeholder(g, LEAT_INT32, leat_shape(), leat_name("b"));
    CHECK_ERROR(place(g, false), INVALID_ARGUMENT,
                "It is colocated with {{node a}}, which asks for that device");
    leat_graph_free(g);
    (void)b;
}

/* No kind of devices has all kernels of a group; soft placement cannot help. */
static void nowhere(void)
{
    for (int soft = 0; soft < 2; soft++) {
        leat_graph *g = leat_graph_new();
        leat_out a = leat_placeholder(g, LEAT_INT32, leat_shape(), leat_name("a")), b;
        leat_with_colocate(g, a) b = leat_relu(leat_scalar(g, LEAT_FLOAT, 1), leat_name("b"));
        (void)b;
        CHECK_ERROR(place(g, soft), INVALID_ARGUMENT,
                    "no kind of devices has kernels for it and for the nodes that are colocated");
        leat_graph_free(g);
    }
}

/* A run that needs a part of the graph finds the variable where the other users need it: an op that
 * only the CPU has is not part of this run. */
static void whole_graph(void)
{
    leat_target devices[4];
    leat_graph *all = leat_graph_new(), *part = leat_graph_new();
    leat_graph *graphs[] = {all, part};
    leat_out v[2], w[2], u[2];
    for (int i = 0; i < 2; i++) {
        v[i] = LEAT_OP0(graphs[i], "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                        leat_name("v"), leat_attr_shape("shape", leat_shape(4)));
        w[i] = LEAT_OP0(graphs[i], "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                        leat_name("w"), leat_attr_shape("shape", leat_shape(4)));
        leat_identity(v[i], leat_name("read"));
        u[i] = LEAT_OP0(graphs[i], "VariableV2", leat_attr_type("dtype", LEAT_FLOAT),
                        leat_name("u"), leat_attr_shape("shape", leat_shape(4)));
    }
    /* An initial value, say, that only the CPU can compute, and that is not part of this run. */
    leat_with_colocate(all, u[0]) leat_placeholder(all, LEAT_INT32, leat_shape());
    leat_out at = leat_ints(all, 1), x = leat_ones(all, LEAT_FLOAT, leat_shape(1));
    LEAT_OP3("ScatterUpdate", v[0], at, x);
    LEAT_OP1("Where", leat_identity(w[0])); /* reads a value: no matter to w */
    for (int i = 0; i < 4; i++) {
        devices[i] = (leat_target){.name = names[i], .priority = i < 2 ? 70 : 210};
        CHECK_OK(leat_device_name_parse(names[i], &devices[i].parsed));
    }
    CHECK_OK(leat_graph_status(all));
    CHECK_OK(leat_graph_status(part));
    leat_compile c = {
        .graph = part, .source = all, .devices = devices, .n_devices = 4, .has_kernel = kernels};
    CHECK_OK(leat_pass_place(&c));
    CHECK_STR(where(v[1]), "CPU:0");
    CHECK_STR(where(w[1]), "GPU:0");
    CHECK_STR(where(u[1]), "CPU:0");
    leat_graph_free(all);
    leat_graph_free(part);
}

static void no_device(void)
{
    leat_graph *g = leat_graph_new();
    leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("a"), leat_on("/gpu:9"));
    CHECK_ERROR(place(g, false), INVALID_ARGUMENT,
                "Cannot assign a device for operation a: {{node a}} was explicitly assigned to "
                "/device:GPU:9 but available devices are [");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"by_priority", by_priority}, {"equal_priority", equal_priority},
               {"no_kernel", no_kernel}, {"soft", soft}, {"colocated", colocated},
               {"nowhere", nowhere}, {"no_device", no_device}, {"whole_graph", whole_graph});
}
