/* The replica device setter: the cases of TensorFlow's device_setter_test.py, and balance. */
#include <leat/leat.h>

#include "test.h"

static leat_graph *g;
static leat_cluster *c;
static leat_out v, w, x, a;

static void begin(const char *cluster)
{
    g = leat_graph_new();
    c = NULL;
    CHECK_OK(leat_cluster_parse(cluster, &c));
}

static void end(void)
{
    CHECK_OK(leat_graph_status(g));
    leat_graph_free(g);
    leat_cluster_free(c);
}

#define STANDARD "ps=ps0:2222,ps1:2222;worker=worker0:2222,worker1:2222,worker2:2222"

static leat_out variable(const char *name)
{
    return leat_variable(g, name, leat_ints(g, 1, 2));
}

static void check_variable(leat_out value, const char *want)
{
    CHECK_STR(leat_node_device(leat_variable_ref(value).node), want);
    char init[80];
    snprintf(init, sizeof(init), "%s/Assign", leat_node_name(leat_variable_ref(value).node));
    CHECK_STR(leat_node_device(leat_graph_find(g, init)), want);
}

static void cpu_override(void)
{
    begin(STANDARD);
    leat_with_device_setter(g,
                            leat_replica_device_setter_new(&(leat_replica_options){.cluster = c}))
    {
        leat_with_device(g, "/cpu:0") v = variable("v");
        w = variable("w");
        leat_with_device(g, "/cpu:0") a = leat_add(v, w);
    }
    check_variable(v, "/job:ps/task:0/device:CPU:0");
    check_variable(w, "/job:ps/task:1");
    CHECK_STR(leat_node_device(a.node), "/job:worker/device:CPU:0");
    leat_out outside = leat_add(v, w);
    CHECK_STR(leat_node_device(outside.node), "");
    end();
}

static void resource(void)
{
    begin(STANDARD);
    leat_with_device_setter(g, leat_replica_device_setter(c, 2))
    {
        v = leat_variable(g, "v", leat_ints(g, 1, 2), .use_resource = true);
        a = leat_add(v, v);
    }
    CHECK_STR(leat_node_device(leat_variable_ref(v).node), "/job:ps/task:0");
    CHECK_STR(leat_node_device(a.node), "/job:worker/task:2");
    end();
}

static void pinned(void)
{
    begin(STANDARD);
    leat_with_device_setter(g, leat_replica_device_setter(c, 0, .worker_device = "/job:worker"))
    {
        v = variable("v");
        leat_with_device(g, "/job:moon")
        {
            w = variable("w");
            leat_with_device(g, "/job:ps") x = variable("x"); /* gets a task */
        }
        a = leat_add(leat_add(v, w), x);
    }
    check_variable(v, "/job:ps/task:0");
    check_variable(w, "/job:moon");
    check_variable(x, "/job:ps/task:1");
    CHECK_STR(leat_node_device(a.node), "/job:worker");
    end();
}

static void cpu_for_ps(void)
{
    begin(STANDARD);
    leat_with_device_setter(g, leat_replica_device_setter_new(
                                   &(leat_replica_options){.ps_tasks = 1, .ps_device = "/cpu:0"}))
    {
        v = variable("v");
        leat_with_device(g, "/job:moon") w = variable("w");
        a = leat_add(v, w);
    }
    check_variable(v, "/device:CPU:0");
    check_variable(w, "/job:moon/device:CPU:0");
    CHECK_STR(leat_node_device(a.node), "/job:worker");
    end();
}

static void no_merging(void)
{
    begin(STANDARD);
    leat_with_device_setter(
        g, leat_replica_device_setter_new(&(leat_replica_options){.cluster = c, .no_merge = true}))
    {
        v = variable("v");
        leat_with_device(g, "/job:ps") w = variable("w");
        a = leat_add(v, w);
    }
    check_variable(v, "/job:ps/task:0");
    check_variable(w, "/job:ps");
    CHECK_STR(leat_node_device(a.node), "/job:worker");
    end();
}

static void other_jobs(void)
{
    begin("sun=sun0:2222,sun1:2222,sun2:2222;moon=moon0:2222,moon1:2222");
    leat_with_device_setter(g, leat_replica_device_setter(c, 0, .ps_device = "/job:moon/cpu:0",
                                                          .worker_device = "/job:sun"))
    {
        v = variable("v");
        w = variable("w");
        a = leat_add(v, w);
    }
    check_variable(v, "/job:moon/task:0/device:CPU:0");
    check_variable(w, "/job:moon/task:1/device:CPU:0");
    CHECK_STR(leat_node_device(a.node), "/job:sun");
    end();
}

static void no_ps(void)
{
    begin("worker=w:1");
    CHECK(leat_replica_device_setter(c, 0) == NULL);
    leat_with_device_setter(g, leat_replica_device_setter(c, 0)) v = variable("v");
    check_variable(v, "");
    end();
}

/* A setter that is used twice goes on where it was; a job with gaps uses the tasks there are. */
static void used_again(void)
{
    begin("worker=w:1");
    CHECK_OK(leat_cluster_set(c, "ps", 1, "p1:1"));
    CHECK_OK(leat_cluster_set(c, "ps", 4, "p4:1"));
    static const char *const ops[] = {"VariableV2", "Add", NULL};
    leat_device_setter *d = leat_replica_device_setter(c, 0, .ps_ops = ops);
    leat_with_device_fn(g, leat_device_setter_fn, d) v = variable("v");
    leat_with_device_fn(g, leat_device_setter_fn, d)
    {
        w = variable("w");
        a = leat_add(v, w);
    }
    check_variable(v, "/job:ps/task:1");
    check_variable(w, "/job:ps/task:4");
    CHECK_STR(leat_node_device(a.node), "/job:ps/task:1");
    leat_device_setter_free(d);
    end();
}

static leat_out sized(const char *name, int64_t n, bool handle)
{
    return leat_variable(g, name, leat_zeros(g, LEAT_FLOAT, leat_shape(n)), .use_resource = handle);
}

static void greedy(void)
{
    begin(STANDARD);
    leat_out b, d;
    leat_with_device_setter(g, leat_replica_device_setter(c, 0, .strategy = LEAT_PS_GREEDY))
    {
        v = sized("v", 100, false);
        w = sized("w", 10, true);
        x = sized("x", 80, false);
        b = sized("b", 20, false);
        d = sized("d", 1, true);
    }
    CHECK_STR(leat_node_device(leat_variable_ref(v).node), "/job:ps/task:0");
    CHECK_STR(leat_node_device(leat_variable_ref(w).node), "/job:ps/task:1");
    CHECK_STR(leat_node_device(leat_variable_ref(x).node), "/job:ps/task:1");
    CHECK_STR(leat_node_device(leat_variable_ref(b).node), "/job:ps/task:1");
    CHECK_STR(leat_node_device(leat_variable_ref(d).node), "/job:ps/task:0");
    CHECK_NEAR(leat_byte_size_load(leat_variable_ref(w).node), 40, 0);
    end();
}

static double one(const leat_node *n)
{
    return 1;
}
static int last(void *arg, const leat_node *n)
{
    return *(int *)arg;
}

static void own_ways(void)
{
    begin(STANDARD);
    int task = 1;
    leat_with_device_setter(
        g, leat_replica_device_setter(c, 0, .strategy = LEAT_PS_GREEDY, .load = one))
    {
        v = sized("v", 100, false);
        w = sized("w", 10, false);
        x = sized("x", 80, false);
    }
    check_variable(x, "/job:ps/task:0");
    leat_with_device_setter(g,
                            leat_replica_device_setter(c, 0, .choose = last, .choose_arg = &task))
        a = sized("a", 1, false);
    check_variable(a, "/job:ps/task:1");
    end();
}

static void mistakes(void)
{
    begin(STANDARD);
    leat_with_device_setter(g, leat_replica_device_setter(c, 0, .ps_device = "/jib:ps")) v =
        variable("v");
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "'/jib:ps'");
    leat_graph_free(g);
    g = leat_graph_new();
    leat_with_device_setter(g, leat_replica_device_setter(c, 0, .strategy = LEAT_PS_GREEDY))
        leat_variable(g, "v", leat_placeholder(g, LEAT_FLOAT, leat_shape(-1)), .any_shape = true);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "not fully defined");
    leat_graph_free(g);
    leat_cluster_free(c);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"cpu_override", cpu_override}, {"resource", resource},
               {"pinned", pinned}, {"cpu_for_ps", cpu_for_ps}, {"no_merging", no_merging},
               {"other_jobs", other_jobs}, {"no_ps", no_ps}, {"used_again", used_again},
               {"greedy", greedy}, {"own_ways", own_ways}, {"mistakes", mistakes});
}
