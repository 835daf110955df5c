/* Functions: defined in C or imported, called, inlined, differentiated. What they compute is tested
 * with sessions (tests/ops); here is what they look like. */
#include <leat/function.h>
#include <leat/leat.h>

#include "graph/function.h"
#include "test.h"

static void scaled_sum(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(leat_mul(in[0], leat_scalar(g, LEAT_FLOAT, 3)), in[1]);
    out[1] = in[1];
}

static void calls_another(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out y[2];
    leat_call(g, "ScaledSum", ((leat_out[]){in[0], in[0]}), 2, y, 2);
    out[0] = leat_mul(y[0], y[1]);
}

static void add_twice(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(in[0], in[0]);
}

static void calls_itself(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_op(g, "PartitionedCall", leat_ins(in, 1),
                     leat_attr_types("Tout", (leat_dtype[]){LEAT_FLOAT}, 1),
                     leat_attr_func("f", "Endless"));
}

static void counts_up(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_op(g, "AssignAddVariableOp", leat_in(in[0]), leat_in(in[1]), leat_name("add"));
}

static leat_graph *with_functions(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "ScaledSum", scaled_sum, NULL, 2, LEAT_FLOAT, LEAT_FLOAT);
    leat_function_define(g, "Outer", calls_another, NULL, 1, LEAT_FLOAT);
    leat_function_define(g, "CountUp", counts_up, NULL, 0, LEAT_RESOURCE, LEAT_FLOAT);
    CHECK_OK(leat_graph_status(g));
    return g;
}

static int count(const leat_graph *g, const char *op)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += leat_node_is(g->nodes[i], op);
    return n;
}

static leat_out input(leat_graph *g)
{
    return leat_placeholder(g, LEAT_FLOAT, leat_shape(2), leat_name("x"));
}

static void inlined(void)
{
    leat_graph *g = with_functions();
    leat_out x = input(g), y = leat_op(g, "Outer", leat_in(x), leat_name("call"));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_functions_inline(g, LEAT_INLINE_ALL, false));
    CHECK_STR(leat_node_op(y.node), "IdentityN");
    CHECK_STR(leat_node_name(leat_node_input(y.node, 0).node), "call/Mul");
    leat_node *mul = leat_graph_find(g, "call/ScaledSum/Mul");
    CHECK(mul && leat_node_input(mul, 0).node == x.node);
    CHECK_INT(count(g, "Outer") + count(g, "ScaledSum"), 0);
    /* a constant of the body runs when the call does */
    leat_node *c = leat_graph_find(g, "call/ScaledSum/Const");
    CHECK_INT(c ? leat_node_controls(c) : -1, 1);
    leat_graph_free(g);
}

/* What waits for a call waits for its side effects; what the call waits for comes before them. */
static void side_effects(void)
{
    leat_graph *g = with_functions();
    leat_out v = leat_op(g, "VarHandleOp", leat_attr_type("dtype", LEAT_FLOAT),
                         leat_attr_shape("shape", leat_shape()));
    leat_out first = leat_no_op(g, leat_name("first"));
    leat_out call = leat_op(g, "CountUp", leat_in(v), leat_in(leat_scalar(g, LEAT_FLOAT, 1)),
                            leat_after(first), leat_name("call"));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_functions_inline(g, LEAT_INLINE_ALL, false));
    CHECK_STR(leat_node_op(call.node), "NoOp");
    leat_node *add = leat_graph_find(g, "call/add");
    bool waits = false;
    for (int i = 0; i < leat_node_controls(call.node); i++)
        waits |= leat_node_control(call.node, i) == add;
    CHECK(waits);
    leat_node *arg = add ? leat_node_input(add, 0).node : NULL;
    CHECK(arg && leat_node_controls(arg) == 1 && leat_node_control(arg, 0) == first.node);
    leat_graph_free(g);
}

/* ---- Side effects in conditions and loops of a body ---- */

static leat_out about_one(leat_graph *g)
{
    return leat_round(leat_random_uniform(g, leat_shape(), .low = 0.9, .high = 1.1));
}

static void one_more(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_add(*(leat_out *)arg, about_one(g));
}

static void negative(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_neg(*(leat_out *)arg);
}

static leat_out under_ten(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], leat_scalar(g, LEAT_FLOAT, 10));
}

static void up(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = leat_add(vars[0], about_one(g));
}

static void branches(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out x = in[0];
    leat_cond(leat_greater(x, leat_scalar(g, LEAT_FLOAT, 0)), one_more, negative, &x, out, 1);
}

static void counts(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_while_loop(under_ten, up, NULL, in, 1, out);
}

/* The one may not be had, the other is had in each turn: the call is over all the same. */
static void effects_inside(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Branches", branches, NULL, 1, LEAT_FLOAT);
    leat_function_define(g, "Counts", counts, NULL, 1, LEAT_FLOAT);
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out y = leat_op(g, "Branches", leat_in(x)), z = leat_op(g, "Counts", leat_in(x));
    leat_session *s;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    for (int i = -3; i < 12; i += 7) {
        leat_tensor *in = leat_scalar_float((float)i), *got[2] = {NULL, NULL};
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &got[0]}, {z, &got[1]}),
                                  LEAT_NO_TARGET));
        CHECK_NEAR(leat_tensor_at(got[0], 0), i > 0 ? i + 1 : -i, 0);
        CHECK_NEAR(leat_tensor_at(got[1], 0), i > 10 ? i : 10, 0);
        for (int k = 0; k < 2; k++)
            leat_tensor_unref(got[k]);
        leat_tensor_unref(in);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

/* A recursive function is inlined once; the call in its body is left. */
static void endless(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Endless", calls_itself, NULL, 1, LEAT_FLOAT);
    leat_out y = leat_op(g, "Endless", leat_in(input(g)));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_functions_inline(g, LEAT_INLINE_ALL, false));
    CHECK_STR(leat_node_op(y.node), "IdentityN");
    CHECK_STR(leat_node_op(leat_node_input(y.node, 0).node), "PartitionedCall");
    CHECK_INT(count(g, "PartitionedCall"), 1);
    CHECK(leat_graph_names_functions(g));
    leat_graph_free(g);
}

static void one_more_call(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_op(g, arg, leat_in(in[0]));
}

/* Each function calls the one before it. Of 150 calls inside each other some are inlined, and one
 * is left, by an op that has a kernel. */
static void too_deep(void)
{
    enum { N = 150 };
    leat_graph *g = leat_graph_new();
    static char names[N + 1][16];
    leat_function_define(g, "Level0", add_twice, NULL, 1, LEAT_FLOAT);
    snprintf(names[0], sizeof(names[0]), "Level0");
    for (int i = 1; i <= N; i++) {
        snprintf(names[i], sizeof(names[i]), "Level%d", i);
        leat_function_define(g, names[i], one_more_call, names[i - 1], 1, LEAT_FLOAT);
    }
    leat_op(g, names[N], leat_in(input(g)));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_functions_inline(g, LEAT_INLINE_ALL, false));
    CHECK_INT(count(g, "PartitionedCall"), 1);
    for (int i = 0; i <= N; i++)
        CHECK_INT(count(g, names[i]), 0);
    /* what the rest needs: the function that is still called, and those that it calls */
    leat_graph *library = leat_graph_new();
    CHECK_OK(leat_functions_gather(g, g, library));
    CHECK(leat_function_find(library, "Level0"));
    CHECK(!leat_function_find(library, names[N]));
    leat_graph_free(library);
    leat_graph_free(g);
}

static void gradient(void)
{
    leat_graph *g = with_functions();
    leat_out x = input(g), y = leat_op(g, "Outer", leat_in(x), leat_name("call"));
    leat_grad_value d;
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &d));
    CHECK_STR(leat_node_op(d.value.node), "SymbolicGradient");
    CHECK_STR(leat_node_func(d.value.node, "f"), "Outer");
    CHECK_INT(leat_node_inputs(d.value.node), 2);
    CHECK_OK(leat_functions_inline(g, LEAT_INLINE_ALL, false));
    CHECK_INT(count(g, "SymbolicGradient") + count(g, "Outer") + count(g, "ScaledSum"), 0);
    leat_graph_free(g);
}

static void there_and_back(void)
{
    leat_graph *g = with_functions(), *h = leat_graph_new();
    leat_op(g, "Outer", leat_in(input(g)), leat_name("call"));
    void *a = NULL, *b = NULL;
    size_t na = 0, nb = 0;
    CHECK_OK(leat_graph_to_binary(g, &a, &na));
    CHECK_OK(leat_graph_from_binary(h, a, na, ""));
    CHECK_OK(leat_graph_to_binary(h, &b, &nb));
    CHECK(na == nb && memcmp(a, b, na) == 0);
    /* once more: the functions are there already, and the same */
    CHECK_OK(leat_graph_from_binary(h, a, na, "again"));
    CHECK_OK(leat_functions_inline(h, LEAT_INLINE_ALL, false));
    CHECK(leat_graph_find(h, "again/call/ScaledSum/Mul"));
    free(a);
    free(b);
    leat_graph_free(g);
    leat_graph_free(h);
}

#define LIST_FUNCTION                                                                              \
    "library { function {"                                                                         \
    "  signature { name: 'Parts' input_arg { name: 'xs' type_attr: 'T' number_attr: 'N' }"         \
    "    output_arg { name: 'sum' type_attr: 'T' } output_arg { name: 'ys' type_list_attr: 'L' }"  \
    "    attr { name: 'T' type: 'type' } attr { name: 'N' type: 'int' has_minimum: true "          \
    "minimum: 1 } attr { name: 'L' type: 'list(type)' } }"                                         \
    "  node_def { name: 'all' op: 'AddN' input: 'xs' attr { key: 'N' value { placeholder: 'N' } }" \
    "    attr { key: 'T' value { placeholder: 'T' } } }"                                           \
    "  node_def { name: 'each' op: 'IdentityN' input: 'xs' input: 'all:sum:0' "                    \
    "    attr { key: 'T' value { placeholder: 'L' } } }"                                           \
    "  node_def { name: 'one' op: 'Identity' input: 'xs:1' input: '^each' input: '^xs' "           \
    "    attr { key: 'T' value { placeholder: 'T' } } }"                                           \
    "  ret { key: 'sum' value: 'one:output:0' } ret { key: 'ys' value: 'each:output' } } } "

static void lists(void)
{
    leat_graph *g = leat_graph_new();
    CHECK_OK(leat_graph_from_text(g, LIST_FUNCTION, ""));
    leat_out xs[2] = {input(g), input(g)};
    leat_out y =
        leat_op(g, "Parts", leat_ins(xs, 2),
                leat_attr_types("L", (leat_dtype[]){LEAT_FLOAT, LEAT_FLOAT, LEAT_FLOAT}, 3),
                leat_name("call"));
    CHECK_OK(leat_graph_status(g));
    CHECK_INT(leat_node_outputs(y.node), 4);
    CHECK_OK(leat_functions_inline(g, LEAT_INLINE_ALL, false));
    CHECK_STR(leat_node_name(leat_node_input(y.node, 0).node), "call/one");
    CHECK_INT(leat_node_input(y.node, 3).index, 2);
    leat_shape s = leat_out_shape(y);
    CHECK(s.rank == 1 && s.dim[0] == 2);
    leat_node *one = leat_graph_find(g, "call/one");
    CHECK(one && leat_node_input(one, 0).node == xs[1].node);
    CHECK_INT(one ? leat_node_controls(one) : 0, 3);
    leat_graph_free(g);
}

static void bad_call(const char *text, const char *words)
{
    leat_graph *g = leat_graph_new();
    leat_status s = leat_graph_from_text(g, text, "");
    if (!s)
        s = leat_functions_inline(g, LEAT_INLINE_ALL, false);
    CHECK(s != NULL);
    if (!strstr(leat_status_message(s), words))
        printf("%s\n", leat_status_message(s));
    CHECK(strstr(leat_status_message(s), words));
    leat_status_free(s);
    leat_graph_free(g);
}

#define FUNCTION(body)                                                                             \
    "library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "           \
    "output_arg { name: 'y' type: DT_FLOAT } attr { name: 'A' type: 'type' default_value { type: " \
    "DT_FLOAT } } } " body " } } "                                                                 \
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } "         \
    "node { name: 'call' op: 'F' input: 'x' }"
#define NODE(name, op, inputs)                                                                     \
    "node_def { name: '" name "' op: '" op "' " inputs                                             \
    " attr { key: 'T' value { placeholder: 'A' } } } "

static void mistakes(void)
{
    bad_call(FUNCTION("ret { key: 'y' value: 'nobody:y:0' }"), "input nobody:y:0 is not found");
    bad_call(FUNCTION(""), "Return y is not found");
    bad_call(FUNCTION(NODE("a", "Identity", "input: 'b:output:0'")), "input b:output:0");
    bad_call(FUNCTION(NODE("a", "Identity", "input: 'x'") "ret { key: 'y' value: 'a:wrong:0' }"),
             "no output of that name");
    bad_call(FUNCTION(NODE("a", "Identity", "input: 'x'") "ret { key: 'y' value: 'a:output:1' }"),
             "no such output");
    bad_call(FUNCTION(NODE("a", "Nothing", "")), "Op type not registered 'Nothing'");
    bad_call(FUNCTION(NODE("x", "Identity", "input: 'x'")), "Duplicated name 'x'");
    bad_call(FUNCTION("node_def { name: 'a' op: 'Identity' input: 'x' attr { key: 'T' value { "
                      "placeholder: 'B' } } } ret { key: 'y' value: 'a:output:0' }"),
             "Attr B is not found");
    bad_call(FUNCTION(NODE("a", "Identity", "input: 'a:output:0'") "ret { key: 'y' value: 'x' }"),
             "cycle");
    bad_call("library { function { signature { name: 'Identity' } } }", "an op with the same name");
    bad_call("library { function { } }", "a signature with a name");
    bad_call("library { function { signature { name: 'F' input_arg { name: 'x' } } } }",
             "exactly one type");
    bad_call("library { function { signature { name: 'F' input_arg { name: 'x' type_attr: 'T' } } "
             "} }",
             "refers to attr 'T'");
    bad_call("library { function { signature { name: 'F' } } function { signature { name: 'F' "
             "is_stateful: true } } }",
             "a different function with the same name");
    bad_call("node { name: 'c' op: 'PartitionedCall' attr { key: 'f' value { func { name: 'No' } } "
             "} attr { key: 'Tin' value { list {} } } attr { key: 'Tout' value { list {} } } }",
             "Function No is not defined.");
    leat_graph *g = with_functions(), *h = leat_graph_new();
    leat_out y[1];
    leat_call(g, "ScaledSum", ((leat_out[]){input(g), input(g)}), 2, y, 1);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "has 2 results, not 1");
    leat_graph_free(g);
    g = leat_graph_new();
    leat_op(h, "Relu", leat_in(input(g)));
    CHECK_ERROR(leat_graph_status(h), INVALID_ARGUMENT, "must be from the same graph");
    leat_graph_free(g);
    leat_graph_free(h);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"inlined", inlined}, {"side_effects", side_effects},
               {"effects_inside", effects_inside}, {"endless", endless}, {"too_deep", too_deep},
               {"gradient", gradient}, {"there_and_back", there_and_back}, {"lists", lists},
               {"mistakes", mistakes});
}
