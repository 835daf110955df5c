/* graphdef_test.c -- GraphDef in and out: what comes in goes out byte for byte, and bad ones are
 * refused with the graph as it was. */
#include "test.h"

#include <leat/leat.h>

static leat_status import_text(const char *text, char **text_out)
{
    leat_graph *g = leat_graph_new();
    leat_status s = leat_graph_from_text(g, text, "");
    if (!s && text_out)
        s = leat_graph_to_text(g, text_out);
    if (s && leat_graph_nodes(g) != 0)
        s = leat_status_prefix(s, "NODES WERE LEFT: ");
    leat_graph_free(g);
    return s;
}

static void round_trip(void)
{
    const char *text =
        "node {\n  name: \"x\"\n  op: \"Placeholder\"\n  device: \"/cpu:0\"\n  attr {\n"
        "    key: \"dtype\"\n    value {\n      type: DT_FLOAT\n    }\n  }\n  attr {\n"
        "    key: \"shape\"\n    value {\n      shape {\n        dim {\n          size: -1\n"
        "        }\n      }\n    }\n  }\n}\n"
        "node {\n  name: \"y\"\n  op: \"Relu\"\n  input: \"x\"\n  attr {\n    key: \"T\"\n"
        "    value {\n      type: DT_FLOAT\n    }\n  }\n}\n"
        "library {\n}\nversions {\n  producer: 134\n}\n";
    char *again = NULL;
    CHECK_OK(import_text(text, &again));
    CHECK_STR(again, text);
    free(again);
}

static void order_does_not_matter(void)
{
    char *again = NULL;
    CHECK_OK(import_text("node { name: 'y' op: 'Relu' input: 'x' attr { key: 'T' value { type: "
                         "DT_FLOAT } } } node { name: 'x' op: 'Placeholder' attr { key: 'dtype' "
                         "value { type: DT_FLOAT } } }",
                         &again));
    CHECK(again && strstr(again, "name: \"x\"") < strstr(again, "name: \"y\""));
    free(again);
}

static void bad_ones(void)
{
#define X "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
#define T "attr { key: 'T' value { type: DT_FLOAT } }"
    CHECK_ERROR(import_text(X X, NULL), INVALID_ARGUMENT, "Node 'x' is not unique");
    CHECK_ERROR(import_text(X "node { name: 'y' op: 'Relu' input: 'z' " T "}", NULL),
                INVALID_ARGUMENT, "Node 'y': Unknown input node 'z'");
    CHECK_ERROR(import_text(X "node { name: 'y' op: 'Relu' input: 'x:1' " T "}", NULL),
                INVALID_ARGUMENT, "invalid output 1 of source node x which has 1 outputs.");
    CHECK_ERROR(import_text(X
                            "node { name: 'c' op: 'StatelessIf' input: 'x' input: 'x' attr { key: "
                            "'Tcond' value { type: DT_FLOAT } } attr { key: 'Tin' value { list { "
                            "type: DT_FLOAT } } } attr { key: 'Tout' value { list { type: "
                            "DT_FLOAT } } } attr { key: 'then_branch' value { func { name: 'f' } "
                            "} } attr { key: 'else_branch' value { func { name: 'f' } } } }"
                            "node { name: 'y' op: 'Relu' input: 'c:1' " T "}",
                            NULL),
                INVALID_ARGUMENT,
                "invalid output 1 of source node c which has 1 outputs. Try using "
                "tf.compat.v1.experimental.output_all_intermediates(True).");
    CHECK_ERROR(import_text(X
                            "node { name: 'y' op: 'Relu' input: 'x' attr { key: 'T' value { type: "
                            "DT_INT32 } } }",
                            NULL),
                INVALID_ARGUMENT, "has type float that does not match");
    CHECK_ERROR(import_text(X "node { name: 'y' op: 'Relu' " T "}", NULL), INVALID_ARGUMENT,
                "needs input 'features'");
    CHECK_ERROR(import_text(X "node { name: 'y' op: 'Relu' input: 'x' input: 'x' " T "}", NULL),
                INVALID_ARGUMENT, "takes 1 inputs, got 2");
    CHECK_ERROR(import_text("node { name: 'a' op: 'Relu' input: 'b' " T
                            "} node { name: 'b' op: 'Relu' input: 'a' " T "}",
                            NULL),
                INVALID_ARGUMENT, "2 nodes in a cycle");
    CHECK_ERROR(import_text("node { name: 'a' op: 'Foo' }", NULL), NOT_FOUND,
                "Op type not registered 'Foo'");
    CHECK_ERROR(import_text("node { name: '-a' op: 'NoOp' }", NULL), INVALID_ARGUMENT,
                "invalid characters");
    CHECK_ERROR(import_text("node { name: 'a' op: 'NoOp' attr { key: 'b' value { i: 1 } } }", NULL),
                INVALID_ARGUMENT, "NodeDef mentions attr 'b' not in Op<name=NoOp>");
    /* What TensorFlow 2 added to old ops: hints, and defaults. */
    CHECK_OK(import_text("node { name: 'a' op: 'NoOp' attr { key: 'grad_a' value { b: true } } "
                         "attr { key: 'Tk' value { type: DT_INT32 } } }",
                         NULL));
    CHECK_ERROR(import_text("node { name: 'a' op: 'NoOp' attr { key: 'Tk' value { type: DT_INT64 "
                            "} } }",
                            NULL),
                INVALID_ARGUMENT, "NodeDef mentions attr 'Tk' not in Op<name=NoOp>");
    CHECK_ERROR(import_text("node { name: 'a' op: 'Placeholder' }", NULL), INVALID_ARGUMENT,
                "NodeDef missing attr 'dtype' from Op<name=Placeholder>");
    CHECK_ERROR(import_text("node { name: 'a' op: 'NoOp' input: '^a' }", NULL), INVALID_ARGUMENT,
                "in a cycle");
    CHECK_ERROR(import_text("versions { min_consumer: 1000 }", NULL), INVALID_ARGUMENT,
                "min consumer version 1000");
    CHECK_ERROR(
        import_text("node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: "
                    "DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_FLOAT } } } }",
                    NULL),
        INVALID_ARGUMENT, "Inconsistent value float and dtype int32");
}

static void prefix(void)
{
    leat_graph *g = leat_graph_new();
    CHECK_OK(leat_graph_from_text(g, X "node { name: 'y' op: 'Relu' input: 'x' " T "}", "a"));
    CHECK_OK(leat_graph_from_text(g, X "node { name: 'y' op: 'Relu' input: 'x' " T "}", "b"));
    CHECK(leat_graph_find(g, "a/y") && leat_graph_find(g, "b/x"));
    CHECK_ERROR(leat_graph_from_text(g, X, "a"), INVALID_ARGUMENT, "already exists");
    leat_out x;
    CHECK_ERROR(leat_graph_find_out(g, "a/z:0", &x), NOT_FOUND, "did you mean \"a/");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"round_trip", round_trip},
               {"order_does_not_matter", order_does_not_matter}, {"bad_ones", bad_ones},
               {"prefix", prefix});
}
