/* Graphs cut by process: pairs of _Send and _Recv, waves, and what waits for a node elsewhere. */
#include "passes/pass.h"

#include <leat/leat.h>

#include "test.h"

static const char ps[] = "/job:ps/replica:0/task:0/device:CPU:0";
static const char worker[] = "/job:worker/replica:0/task:0/device:CPU:0";

/* The parts of ps and worker; together: both are Leat's. */
static void cut(leat_graph *g, bool together, leat_graph **at_ps, leat_graph **at_worker)
{
    leat_target devices[2] = {{.name = worker, .incarnation = 1, .together = true},
                              {.name = ps, .incarnation = 2, .together = together, .process = 1}};
    for (int i = 0; i < 2; i++)
        CHECK_OK(leat_device_name_parse(devices[i].name, &devices[i].parsed));
    leat_compile c = {.graph = g, .devices = devices, .n_devices = 2, .by_process = true};
    leat_graph **parts;
    CHECK_OK(leat_pass_partition(&c, &parts));
    *at_worker = parts[0];
    *at_ps = parts[1];
    free(parts);
    leat_graph_free(c.graph);
}

static int count(const leat_graph *g, const char *op)
{
    int n = 0;
    for (int i = 0; i < leat_graph_nodes(g); i++)
        n += strcmp(leat_node_op(leat_graph_node(g, i)), op) == 0;
    return n;
}

/* A sum on the ps of what the worker has, after a node there. */
static leat_graph *build(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = {0}, before = {0};
    leat_with_device(g, worker)
    {
        x = leat_scalar(g, LEAT_FLOAT, 1);
        before = leat_scalar(g, LEAT_FLOAT, 2);
    }
    leat_with_device(g, ps) leat_with_control(g, before) leat_add(x, x, leat_name("sum"));
    return g;
}

static void pairs(void)
{
    leat_graph *at_ps, *at_worker;
    cut(build(), true, &at_ps, &at_worker);
    CHECK_INT(count(at_worker, "_Send"), 2); /* the value, once, and the signal */
    CHECK_INT(count(at_ps, "_Recv"), 2);
    CHECK_INT(count(at_ps, "Identity"), 0);
    const leat_node *sum = leat_graph_find(at_ps, "sum");
    CHECK(sum && sum->in[0].node == sum->in[1].node && leat_node_is(sum->in[0].node, "_Recv"));
    CHECK(sum && sum->n_controls == 1 && leat_node_is(sum->controls[0], "_Recv"));
    CHECK_INT(leat_node_int(sum->in[0].node, "_wave"), 0);
    leat_graph_free(at_ps);
    leat_graph_free(at_worker);
}

/* A TensorFlow task does not hand a dead signal on to what waits for it: a node behind does. */
static void signals_to_tensorflow(void)
{
    leat_graph *at_ps, *at_worker;
    cut(build(), false, &at_ps, &at_worker);
    const leat_node *sum = leat_graph_find(at_ps, "sum");
    CHECK(sum && sum->n_controls == 1 && leat_node_is(sum->controls[0], "Identity"));
    CHECK(sum && leat_node_is(sum->controls[0]->in[0].node, "_Recv"));
    CHECK(sum && leat_node_is(sum->in[0].node, "_Recv"));
    leat_graph_free(at_ps);
    leat_graph_free(at_worker);
}

static int wave_of(const leat_graph *g, const char *user, int input)
{
    const leat_node *n = leat_graph_find(g, user);
    CHECK(n && leat_node_is(n->in[input].node, "_Recv"));
    return n ? (int)leat_node_int(n->in[input].node, "_wave") : -2;
}

/* There, back, there: what is ready early but only used with what comes last travels with that;
 * what somebody needs before that does not wait. */
static void late(void)
{
    leat_graph *g = leat_graph_new(), *at_ps, *at_worker;
    leat_out early = {0}, needed = {0}, back = {0}, last = {0};
    leat_with_device(g, worker)
    {
        early = leat_scalar(g, LEAT_FLOAT, 1);
        needed = leat_scalar(g, LEAT_FLOAT, 2);
    }
    leat_with_device(g, ps) back = leat_neg(needed, leat_name("first"));
    leat_with_device(g, worker) last = leat_neg(back, leat_name("back"));
    leat_with_device(g, ps)
    {
        leat_add(early, last, leat_name("both"));
        leat_add(needed, last, leat_name("again"));
    }
    cut(g, true, &at_ps, &at_worker);
    CHECK_INT(wave_of(at_ps, "first", 0), 0);
    CHECK_INT(wave_of(at_worker, "back", 0), 1);
    CHECK_INT(wave_of(at_ps, "both", 0), 2);
    CHECK_INT(wave_of(at_ps, "both", 1), 2);
    CHECK_INT(wave_of(at_ps, "again", 0), 0);
    leat_graph_free(at_ps);
    leat_graph_free(at_worker);
}

/* One process serves two tasks of the ps and a device of the worker: only the edge to the process
 * of the other worker is cut. */
static void by_process(void)
{
    static const char *names[] = {
        "/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0",
        "/job:ps/replica:0/task:1/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0"};
    static const int process[] = {0, 5, 0, 5};
    leat_target devices[4] = {0};
    leat_graph *g = leat_graph_new();
    leat_out x[4];
    for (int i = 0; i < 4; i++) {
        devices[i] = (leat_target){.name = names[i], .incarnation = 1, .process = process[i]};
        CHECK_OK(leat_device_name_parse(names[i], &devices[i].parsed));
        leat_with_device(g, names[i]) x[i] = leat_scalar(g, LEAT_FLOAT, i);
    }
    leat_with_device(g, names[0]) leat_add(x[0], x[2], leat_name("here"));
    leat_with_device(g, names[3]) leat_add(x[1], x[3], leat_name("there"));
    leat_with_device(g, names[2]) leat_add(x[2], x[3], leat_name("crosses"));
    leat_compile c = {.graph = g, .devices = devices, .n_devices = 4, .by_process = true};
    leat_graph **parts;
    CHECK_OK(leat_pass_partition(&c, &parts));
    CHECK(parts[0] && parts[1] && !parts[2] && !parts[3]);
    CHECK(leat_graph_find(parts[0], "here") && leat_graph_find(parts[0], "crosses"));
    CHECK(leat_graph_find(parts[1], "there"));
    CHECK_INT(count(parts[0], "_Recv"), 1);
    CHECK_INT(count(parts[0], "_Send"), 0);
    CHECK_INT(count(parts[1], "_Send"), 1);
    CHECK_INT(count(parts[1], "_Recv"), 0);
    for (int i = 0; i < 2; i++)
        leat_graph_free(parts[i]);
    free(parts);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"pairs", pairs}, {"signals_to_tensorflow", signals_to_tensorflow},
               {"late", late}, {"by_process", by_process});
}
