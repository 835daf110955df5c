/* Gradients as new nodes: what is made, its names and places, and what is refused. */
#include <leat/nn.h>

#include "graph/graph_int.h"
#include "test.h"

/* Ops x -> y with good and bad gradient functions. */
static leat_status passes_back(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_grad_out(g, 0));
}

static leat_status wrong_dtype(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_scalar(leat_grad_graph(g), LEAT_DOUBLE, 1));
}

static leat_status wrong_shape(leat_grad *g)
{
    return leat_grad_in(g, 0, leat_zeros(leat_grad_graph(g), LEAT_FLOAT, leat_shape(7)));
}

#define TEST_OP(n, g)                                                                              \
    {                                                                                              \
        .name = n, .inputs = "x: T", .outputs = "y: T", .attrs = "T: type",                        \
        .shape = leat_shape_unchanged, .grad = g                                                   \
    }
static const leat_op_def ops[] = {
    TEST_OP("TestNone", leat_grad_none), TEST_OP("TestMissing", leat_grad_missing),
    TEST_OP("TestDtype", wrong_dtype),   TEST_OP("TestShape", wrong_shape),
    TEST_OP("TestPasses", passes_back),
};

static leat_out input(leat_graph *g)
{
    return leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3), leat_name("x"));
}

static void chain(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = input(g), dy = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_out y = leat_relu(x, leat_name("a/act"));
    leat_grad_value dx;
    int line = __LINE__ + 1;
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &dx, .grad_ys = &dy));
    CHECK_STR(leat_node_name(dx.value.node), "gradients/a/act_grad/ReluGrad");
    CHECK_STR(leat_node_op(dx.value.node), "ReluGrad");
    CHECK_STR(leat_node_name(leat_node_input(dx.value.node, 0).node), "gradients/grad_ys_0");
    CHECK(leat_node_input(dx.value.node, 1).node == y.node);
    CHECK_INT(dx.value.node->at.line, line);
    CHECK_STR(dx.value.node->at.file, __FILE__);
    CHECK(g->at_override.file == NULL);
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &dx, .grad_ys = &dy));
    CHECK_STR(leat_node_name(dx.value.node), "gradients_1/a/act_grad/ReluGrad");
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &dx, .grad_ys = &dy, .colocate = true, .name = "back"));
    CHECK_STR(leat_node_name(dx.value.node), "back/a/act_grad/ReluGrad");
    int n;
    const char *const *class = leat_node_strings(dx.value.node, "_class", &n);
    CHECK_INT(n, 1);
    CHECK_STR(n ? class[0] : "", "loc:@a/act");
    leat_graph_free(g);
}

/* What an x does not lead to, or leads to through integers, or stops, has no gradient. */
static void unconnected(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = input(g), other = input(g), ints = leat_placeholder(g, LEAT_INT32, leat_shape());
    leat_out y = leat_relu(x), dy = input(g);
    leat_out xs[] = {x, other}, iy = leat_relu(ints);
    leat_grad_value d[2];
    CHECK_OK(leat_gradients(&y, 1, xs, 2, d, .grad_ys = &dy));
    CHECK(d[0].value.node != NULL);
    CHECK(d[1].value.node == NULL);
    CHECK_OK(leat_gradients(&iy, 1, &ints, 1, d, .grad_ys = &ints));
    CHECK(d[0].value.node == NULL);
    leat_out middle = leat_op(g, "TestPasses", leat_in(x)), end = leat_relu(middle);
    CHECK_OK(leat_gradients(&end, 1, &x, 1, d, .grad_ys = &dy, .stop = &middle, .n_stop = 1));
    CHECK(d[0].value.node == NULL);
    leat_out none = leat_op(g, "TestNone", leat_in(leat_op(g, "TestMissing", leat_in(x))));
    CHECK_OK(leat_gradients(&none, 1, &x, 1, d, .grad_ys = &dy));
    CHECK(d[0].value.node == NULL);
    /* of itself */
    CHECK_OK(leat_gradients(&x, 1, &x, 1, d, .grad_ys = &dy));
    CHECK_STR(leat_node_op(d[0].value.node), "Identity");
    /* an x on the way to another x */
    leat_out on_the_way[] = {x, middle};
    CHECK_OK(leat_gradients(&end, 1, on_the_way, 2, d, .grad_ys = &dy));
    CHECK(d[0].value.node == d[1].value.node && d[0].value.node != NULL);
    leat_graph_free(g);
}

static void refused(const char *op, leat_code code, const char *words)
{
    leat_graph *g = leat_graph_new();
    leat_out x = input(g), dy = input(g), y = leat_op(g, op, leat_in(x), leat_name("there"));
    leat_grad_value d;
    leat_status s = leat_gradients(&y, 1, &x, 1, &d, .grad_ys = &dy);
    CHECK_INT(leat_status_code(s), code);
    if (!strstr(leat_status_message(s), words))
        printf("%s\n", leat_status_message(s));
    CHECK(strstr(leat_status_message(s), words));
    CHECK(strstr(leat_status_message(s), "gradients_test.c:"));
    CHECK(d.value.node == g->poison);
    leat_status_free(s);
    s = leat_graph_status(g);
    CHECK_INT(leat_status_code(s), code);
    leat_status_free(s);
    leat_graph_free(g);
}

static void mistakes(void)
{
    refused("TestMissing", LEAT_NOT_FOUND,
            "No gradient defined for operation 'there' (op type: TestMissing)");
    refused("TestDtype", LEAT_INVALID_ARGUMENT, "is double, the input is float");
    refused("TestShape", LEAT_INVALID_ARGUMENT,
            "Incompatible shapes between op input and calculated input gradient");
    leat_graph *g = leat_graph_new(), *h = leat_graph_new();
    leat_out x = input(g), y = leat_relu(x), z = input(h), none = {0};
    leat_grad_value d;
    CHECK_ERROR(leat_gradients(&none, 1, &none, 1, &d), INVALID_ARGUMENT, "at least one tensor");
    CHECK_ERROR(leat_gradients(&y, 1, &z, 1, &d), INVALID_ARGUMENT, "from another graph");
    CHECK_ERROR(leat_gradients(&y, 1, &x, 1, &d), INVALID_ARGUMENT, "from another graph");
    leat_graph_free(g);
    g = leat_graph_new();
    x = input(g);
    y = leat_relu(x);
    leat_out text = leat_placeholder(g, LEAT_STRING, leat_shape());
    CHECK_ERROR(leat_gradients(&y, 1, &x, 1, &d, .grad_ys = &text), INVALID_ARGUMENT,
                "must be real or integer");
    leat_graph_free(g);
    leat_graph_free(h);
}

/* What comes back from several uses: tensors are added, rows joined, both made dense and added. */
static void sums(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = input(g), i32 = leat_ints(g, 0, 1), axis = leat_scalar(g, LEAT_INT32, 0);
    leat_out i64 = leat_cast(i32, LEAT_INT64);
    leat_out a = leat_relu(x), b = leat_neg(x);
    leat_out ra = leat_gather(x, i32, axis), rb = leat_gather(x, i64, axis);
    leat_grad_value d;
    leat_out dense[] = {a, b}, rows[] = {ra, rb}, both[] = {a, ra};
    CHECK_OK(leat_gradients(dense, 2, &x, 1, &d));
    CHECK_STR(leat_node_op(d.value.node), "AddN");
    CHECK(d.indices.node == NULL);
    CHECK_OK(leat_gradients(rows, 2, &x, 1, &d));
    CHECK_STR(leat_node_op(d.value.node), "ConcatV2");
    CHECK(d.indices.node && leat_out_dtype(d.indices) == LEAT_INT64);
    CHECK_STR(leat_node_op(leat_grad_dense(d).node), "UnsortedSegmentSum");
    CHECK_OK(leat_gradients(both, 2, &x, 1, &d));
    CHECK_STR(leat_node_op(d.value.node), "AddN");
    CHECK(d.indices.node == NULL);
    d = (leat_grad_value){.value = x, .indices = i32};
    leat_grad_dense(d);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "IndexedSlices without dense_shape");
    leat_graph_free(g);
}

/* No gradient of a node's inputs is used before all are there. */
static void gated(void)
{
    leat_graph *g = leat_graph_new();
    leat_out xs[2] = {input(g), leat_placeholder(g, LEAT_FLOAT, leat_shape(3, 4))};
    leat_out y = leat_matmul(xs[0], xs[1], leat_name("h/MatMul"));
    leat_grad_value d[2];
    CHECK_OK(leat_gradients(&y, 1, xs, 2, d, .gate = true));
    CHECK_STR(leat_node_name(d[0].value.node), "gradients/h/MatMul_grad/tuple/control_dependency");
    CHECK_STR(leat_node_name(d[1].value.node),
              "gradients/h/MatMul_grad/tuple/control_dependency_1");
    for (int i = 0; i < 2; i++) {
        CHECK_INT(leat_node_controls(d[i].value.node), 1);
        CHECK_STR(leat_node_name(leat_node_control(d[i].value.node, 0)),
                  "gradients/h/MatMul_grad/tuple/group_deps");
    }
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        LEAT_DIE_ON_ERROR(leat_register_op(&ops[i]));
    return RUN(argc, argv, {"chain", chain}, {"unconnected", unconnected}, {"mistakes", mistakes},
               {"sums", sums}, {"gated", gated});
}
