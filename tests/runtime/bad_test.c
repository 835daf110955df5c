/* bad_test.c -- bad graphs, feeds and calls: each gets a clear status, none a crash. A row is a
 * GraphDef in text, the tensor to fetch, and the code and words that must come back, from the
 * import or from the run. */
#include "test.h"

#include <leat/leat.h>
#include <limits.h>

#define F "attr { key: 'T' value { type: DT_FLOAT } } "
#define TYPE(name, t) "attr { key: '" name "' value { type: " t " } } "
#define INT(name, v) "attr { key: '" name "' value { i: " v " } } "
#define NODE(name, op, rest) "node { name: '" name "' op: '" op "' " rest "} "
#define IN(x) "input: '" x "' "
#define FLOATS(name, dims, values)                                                                 \
    NODE(name, "Const",                                                                            \
         TYPE("dtype", "DT_FLOAT") "attr { key: 'value' value { tensor { dtype: DT_FLOAT "         \
                                   "tensor_shape { " dims " } " values " } } } ")
#define INTS(name, dims, values)                                                                   \
    NODE(name, "Const",                                                                            \
         TYPE("dtype", "DT_INT32") "attr { key: 'value' value { tensor { dtype: DT_INT32 "         \
                                   "tensor_shape { " dims " } " values " } } } ")
#define D(n) "dim { size: " n " } "
#define ONE FLOATS("one", "", "float_val: 1")
#define M23 FLOATS("m23", D("2") D("3"), "float_val: 1")
#define M22 FLOATS("m22", D("2") D("2"), "float_val: 1")

static const struct {
    const char *name, *graph, *fetch;
    leat_code code;
    const char *words;
} rows[] = {
    {"cycle", NODE("a", "Relu", IN("b") F) NODE("b", "Relu", IN("a") F), "a", LEAT_INVALID_ARGUMENT,
     "cycle"},
    {"self", NODE("a", "Relu", IN("a") F), "a", LEAT_INVALID_ARGUMENT, "cycle"},
    {"missing input", NODE("a", "Relu", IN("nobody") F), "a", LEAT_INVALID_ARGUMENT,
     "Unknown input node 'nobody'"},
    {"no such op", NODE("a", "Frobnicate", ""), "a", LEAT_NOT_FOUND,
     "Op type not registered 'Frobnicate'"},
    {"no name", NODE("", "NoOp", ""), "a", LEAT_INVALID_ARGUMENT, "Node name"},
    {"too few inputs", ONE NODE("a", "Add", IN("one") F), "a", LEAT_INVALID_ARGUMENT, "input 'y'"},
    {"too many inputs", ONE NODE("a", "Relu", IN("one") IN("one") F), "a", LEAT_INVALID_ARGUMENT,
     "takes 1 inputs"},
    {"wrong dtype", ONE NODE("a", "Relu", IN("one") TYPE("T", "DT_INT32")), "a",
     LEAT_INVALID_ARGUMENT, "has type float"},
    {"dtype not allowed",
     NODE("a", "Placeholder", TYPE("dtype", "DT_STRING"))
         NODE("b", "Relu", IN("a") TYPE("T", "DT_STRING")),
     "b", LEAT_INVALID_ARGUMENT, "not in the list of allowed values"},
    {"no dtype", NODE("a", "Placeholder", "attr { key: 'dtype' value { type: 77 } }"), "a",
     LEAT_INVALID_ARGUMENT, "is not a dtype"},
    {"attr of another kind", ONE NODE("a", "Relu", IN("one") INT("T", "1")), "a",
     LEAT_INVALID_ARGUMENT, "wrong kind"},
    {"attr without value", ONE NODE("a", "Relu", IN("one") "attr { key: 'T' value { } }"), "a",
     LEAT_INVALID_ARGUMENT, "no value"},
    {"control before data", ONE NODE("a", "Relu", IN("^one") IN("one") F), "a",
     LEAT_INVALID_ARGUMENT, "Control dependencies must come after"},
    {"output that is not", ONE NODE("a", "Relu", IN("one:7") F), "a", LEAT_INVALID_ARGUMENT,
     "invalid output 7"},
    {"reference wanted", ONE NODE("a", "Assign", IN("one") IN("one") F), "a", LEAT_INVALID_ARGUMENT,
     "l-value"},
    {"matmul sizes", M23 NODE("a", "MatMul", IN("m23") IN("m23") F), "a", LEAT_INVALID_ARGUMENT,
     "Dimensions must be equal, but are 3 and 2"},
    {"matmul rank", M23 ONE NODE("a", "MatMul", IN("m23") IN("one") F), "a", LEAT_INVALID_ARGUMENT,
     "Shape must be rank 2 but is rank 0"},
    {"broadcast", M23 M22 NODE("a", "Add", IN("m23") IN("m22") F), "a", LEAT_INVALID_ARGUMENT,
     "Dimensions must be equal, but are 3 and 2"},
    {"negative size", INTS("s", D("1"), "int_val: -5") ONE NODE("a", "Fill", IN("s") IN("one") F),
     "a", LEAT_INVALID_ARGUMENT, "Fill dimensions must be >= 0"},
    {"size overflow",
     INTS("s", D("4"), "int_val: 2000000000") ONE NODE("a", "Fill", IN("s") IN("one") F), "a",
     LEAT_INVALID_ARGUMENT, "would have more than 2**63 - 1 elements"},
    {"more memory than there is",
     INTS("s", D("2"), "int_val: 200000") ONE NODE("a", "Fill", IN("s") IN("one") F), "a",
     LEAT_RESOURCE_EXHAUSTED, "OOM when allocating tensor with shape"},
    {"reshape", M23 INTS("s", D("1"), "int_val: 5") NODE("a", "Reshape", IN("m23") IN("s") F), "a",
     LEAT_INVALID_ARGUMENT, "Cannot reshape a tensor with 6 elements to shape [5]"},
    {"reshape twice -1",
     M23 INTS("s", D("2"), "int_val: -1") NODE("a", "Reshape", IN("m23") IN("s") F), "a",
     LEAT_INVALID_ARGUMENT, ""},
    {"transpose not a permutation",
     M23 INTS("s", D("2"), "int_val: 1") NODE("a", "Transpose", IN("m23") IN("s") F), "a",
     LEAT_INVALID_ARGUMENT, ""},
    {"gather out of range",
     M23 INTS("i", D("1"), "int_val: 9") INTS("axis", "", "int_val: 0")
         NODE("a", "GatherV2", IN("m23") IN("i") IN("axis") TYPE("Tparams", "DT_FLOAT")),
     "a", LEAT_INVALID_ARGUMENT, "indices[0] = 9 is not in [0, 2)"},
    {"axis out of range",
     M23 INTS("axis", "", "int_val: 5") NODE("a", "Sum", IN("m23") IN("axis") F), "a",
     LEAT_INVALID_ARGUMENT, "5"},
    {"integer division by zero",
     INTS("x", "", "int_val: 1") INTS("z", "", "int_val: 0")
         NODE("a", "FloorDiv", IN("x") IN("z") TYPE("T", "DT_INT32")),
     "a", LEAT_INVALID_ARGUMENT, "Integer division by zero"},
    {"integer modulo by zero",
     INTS("x", "", "int_val: 1") INTS("z", "", "int_val: 0")
         NODE("a", "FloorMod", IN("x") IN("z") TYPE("T", "DT_INT32")),
     "a", LEAT_INVALID_ARGUMENT, "Integer division by zero"},
    {"split unevenly",
     M23 INTS("axis", "", "int_val: 1")
         NODE("a", "Split", IN("axis") IN("m23") F INT("num_split", "2")),
     "a", LEAT_INVALID_ARGUMENT, ""},
    {"split into none",
     M23 INTS("axis", "", "int_val: 1")
         NODE("a", "Split", IN("axis") IN("m23") F INT("num_split", "0")),
     "a", LEAT_INVALID_ARGUMENT, "must be at least minimum 1"},
    {"huge number of outputs", M23 NODE("a", "Unpack", IN("m23") F INT("num", "9000000000")), "a",
     LEAT_INVALID_ARGUMENT, ""},
    {"content of the wrong length", FLOATS("a", D("4"), "tensor_content: 'abc'"), "a",
     LEAT_INVALID_ARGUMENT, ""},
    {"negative dimension", FLOATS("a", D("-2"), "float_val: 1"), "a", LEAT_INVALID_ARGUMENT, ""},
    {"dimensions that overflow",
     FLOATS("a", D("4611686018427387904") D("4611686018427387904"), "float_val: 1"), "a",
     LEAT_INVALID_ARGUMENT, ""},
    {"uninitialised variable",
     NODE("v", "VariableV2", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { } } }")
         NODE("a", "Identity", IN("v") F),
     "a", LEAT_FAILED_PRECONDITION, "Attempting to use uninitialized value v"},
    {"fetch of nothing", ONE, "two", LEAT_NOT_FOUND, "The graph has no node \"two\""},
    {"a frame's exit outside", ONE NODE("a", "Exit", IN("one") F), "a", LEAT_INVALID_ARGUMENT,
     "leaves no frame"},
    {"inputs of two frames",
     ONE NODE("e", "Enter", IN("one") F "attr { key: 'frame_name' value { s: 'f' } } ")
         NODE("a", "Add", IN("e") IN("one") F),
     "a", LEAT_INVALID_ARGUMENT, "different frames"},
    {"loop without NextIteration",
     ONE NODE("m", "Merge", IN("one") IN("n") F INT("N", "2")) NODE("n", "Relu", IN("m") F), "m",
     LEAT_INVALID_ARGUMENT, "cycle"},
    {"device that is not", ONE "node { name: 'a' op: 'Relu' input: 'one' device: '/gpu:3' " F "}",
     "a", LEAT_INVALID_ARGUMENT, "Cannot assign a device for operation a"},
    {"device that is no name",
     ONE "node { name: 'a' op: 'Relu' input: 'one' device: '/job:' " F "}", "a",
     LEAT_INVALID_ARGUMENT, "Malformed device specification '/job:'"},
    {"no such function",
     NODE("a", "PartitionedCall",
          "attr { key: 'f' value { func { name: 'nobody' } } } "
          "attr { key: 'Tin' value { list { } } } "
          "attr { key: 'Tout' value { list { type: DT_FLOAT } } } "),
     "a", LEAT_NOT_FOUND, "nobody"},
    {"text that is none", "node { name: ", "a", LEAT_INVALID_ARGUMENT, ""},
};

static leat_status attempt(const char *text, const char *fetch)
{
    leat_graph *g = leat_graph_new();
    leat_status s = leat_graph_from_text(g, text, "");
    leat_out x;
    leat_session *session = NULL;
    leat_tensor *t = NULL;
    if (!s)
        s = leat_graph_find_out(g, fetch, &x);
    if (!s)
        s = leat_session_open(g, &session);
    if (!s)
        s = leat_session_run(session, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET);
    leat_tensor_unref(t);
    leat_session_close(session);
    leat_graph_free(g);
    return s;
}

static void corpus(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_status s = attempt(rows[i].graph, rows[i].fetch);
        if (leat_status_code(s) != rows[i].code || !strstr(leat_status_message(s), rows[i].words)) {
            test_failures++;
            printf("%s: %s: %s; want %s: ...%s...\n", rows[i].name,
                   leat_code_name(leat_status_code(s)), leat_status_message(s),
                   leat_code_name(rows[i].code), rows[i].words);
        }
        leat_status_free(s);
    }
    printf("%zu bad graphs\n", sizeof(rows) / sizeof(*rows));
}

/* Nodes nested 20,000 deep: no recursion may eat the stack. */
static void deep(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y = x;
    for (int i = 0; i < 20000; i++)
        y = leat_neg(y);
    leat_grad_value dx;
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &dx));
    leat_session *s;
    leat_tensor *one = leat_scalar_float(1), *t = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, one}), LEAT_FETCH({dx.value, &t}), LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(t, 0), 1, 0);
    leat_tensor_unref(t);
    leat_tensor_unref(one);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Every cut of a good GraphDef, and one flipped byte at every place. */
static void mutilated(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_relu(leat_matmul(x, leat_zeros(g, LEAT_FLOAT, leat_shape(3, 2))), leat_on("/cpu:0"));
    void *bytes = NULL;
    size_t n = 0;
    int refused = 0;
    CHECK_OK(leat_graph_to_binary(g, &bytes, &n));
    leat_graph_free(g);
    for (size_t i = 0; i < 2 * n; i++) {
        char *bad = malloc(n);
        memcpy(bad, bytes, n);
        if (i >= n)
            bad[i - n] ^= (char)(1 << (i % 8));
        g = leat_graph_new();
        leat_status s = leat_graph_from_binary(g, bad, i < n ? i : n, "");
        refused += s != NULL;
        CHECK(!s || (leat_status_message(s)[0] && leat_graph_nodes(g) == 0));
        leat_status_free(s);
        leat_graph_free(g);
        free(bad);
    }
    CHECK(refused > (int)n / 2);
    free(bytes);
}

static void bad_calls(void)
{
    leat_graph *g = leat_graph_new(), *other = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2)), y = leat_neg(x),
             z = leat_scalar(other, LEAT_FLOAT, 1);
    leat_session *s;
    leat_tensor *two = NULL, *one = leat_scalar_float(1), *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(2), &two));
    CHECK_ERROR(leat_session_open(g, &s, .cpu_devices = -1), INVALID_ARGUMENT, "not -1");
    CHECK_ERROR(leat_session_open(g, &s, .target = "udp://x"), NOT_FOUND, "udp://x");
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_NO_TARGET), INVALID_ARGUMENT,
                "at least one target");
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({z, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "of another graph");
    CHECK_ERROR(
        leat_session_run(s, LEAT_FEED({x, two}, {x, two}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET),
        INVALID_ARGUMENT, "fed twice");
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, one}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Cannot feed value of shape []");
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, NULL}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "is fed nothing");
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({{y.node, 3}, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "has 1 outputs");
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({{NULL, 0}, &t}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "A tensor to be fetched is no tensor");
    CHECK(t == NULL);
    leat_session_close(s);
    leat_tensor_unref(one);
    leat_tensor_unref(two);
    leat_graph_free(g);
    leat_graph_free(other);
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(INT64_MAX, INT64_MAX), &t), INVALID_ARGUMENT,
                "");
    CHECK_ERROR(leat_tensor_new(LEAT_FLOAT, leat_shape(-1), &t), INVALID_ARGUMENT, "");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"corpus", corpus}, {"deep", deep}, {"mutilated", mutilated},
               {"bad_calls", bad_calls});
}
