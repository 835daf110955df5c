/* Variants that hold variants: zeros like them, sums of them, what does not fit together, and so
 * many in each other that no stack would hold them. */
#include <leat/leat.h>

#include "graph/graph_int.h"
#include "test.h"

static leat_out number(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_FLOAT, v);
}

static leat_out optional(leat_out x)
{
    leat_dtype t = leat_out_dtype(x);
    return leat_op(x.node->graph, "OptionalFromValue", leat_ins(&x, 1),
                   leat_attr_types("Toutput_types", &t, 1));
}

static leat_out value(leat_out o, leat_dtype t)
{
    leat_shape any = leat_shape_unknown();
    return LEAT_OP1("OptionalGetValue", o, leat_attr_types("output_types", &t, 1),
                    leat_attr_shapes("output_shapes", &any, 1));
}

static leat_out empty_list(leat_graph *g, leat_dtype t)
{
    return LEAT_OP2("EmptyTensorList", leat_ints(g), leat_scalar(g, LEAT_INT32, -1),
                    leat_attr_type("element_dtype", t));
}

static leat_out list(leat_out x)
{
    leat_dtype t = leat_out_dtype(x);
    return LEAT_OP2("TensorListPushBack", empty_list(x.node->graph, t), x,
                    leat_attr_type("element_dtype", t));
}

static leat_out item(leat_out l, leat_dtype t)
{
    leat_graph *g = l.node->graph;
    return leat_op(g, "TensorListGetItem", leat_in(l), leat_in(leat_scalar(g, LEAT_INT32, 0)),
                   leat_in(leat_ints(g)), leat_attr_type("element_dtype", t));
}

static leat_out sum(leat_out a, leat_out b)
{
    leat_out both[] = {a, b};
    return leat_add_n(both, 2);
}

static leat_status fetch(leat_out y, double *out)
{
    leat_session *s;
    leat_tensor *t = NULL;
    LEAT_TRY(leat_graph_status(y.node->graph));
    LEAT_TRY(leat_session_open(y.node->graph, &s));
    leat_status e = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET);
    *out = e ? 0 : leat_tensor_at(t, 0);
    leat_tensor_unref(t);
    leat_session_close(s);
    return e;
}

static void gives(leat_out y, double want)
{
    double got;
    CHECK_OK(fetch(y, &got));
    CHECK_NEAR(got, want, 0);
}

static void fails(leat_out y, const char *words)
{
    double got;
    CHECK_ERROR(fetch(y, &got), INVALID_ARGUMENT, words);
}

static void sums(void)
{
    leat_graph *g = leat_graph_new();
    leat_out two = number(g, 2), three = number(g, 3);
    leat_out none = LEAT_OP0(g, "OptionalNone");
    gives(value(sum(optional(two), optional(three)), LEAT_FLOAT), 5);
    gives(item(sum(list(two), list(three)), LEAT_FLOAT), 5);
    gives(value(value(sum(optional(optional(two)), optional(optional(three))), LEAT_VARIANT),
                LEAT_FLOAT),
          5);
    gives(item(value(sum(optional(list(two)), optional(list(three))), LEAT_VARIANT), LEAT_FLOAT),
          5);
    gives(value(item(sum(list(optional(two)), list(optional(three))), LEAT_VARIANT), LEAT_FLOAT),
          5);
    gives(LEAT_OP1("OptionalHasValue", sum(none, none)), 0);
    fails(LEAT_OP1("OptionalHasValue", sum(none, optional(two))),
          "one has a value and the other doesn't");
    fails(LEAT_OP1("OptionalHasValue", sum(optional(two), list(two))),
          "variants of different types: 'tensorflow::data::Optional' and 'tensorflow::TensorList'");
    fails(value(sum(optional(two), optional(leat_ones(g, LEAT_FLOAT, leat_shape(2)))), LEAT_FLOAT),
          "incompatible element shapes");
    leat_out text = leat_string_const(g, "x");
    fails(LEAT_OP1("OptionalHasValue", sum(optional(text), optional(text))),
          "Trying to add unsupported dtype string");
    fails(LEAT_OP1("TensorListLength", sum(list(two), empty_list(g, LEAT_FLOAT))),
          "lists of tensors with different lengths. One is 1 and the other is 0");
    fails(LEAT_OP1("TensorListLength", sum(list(two), list(leat_scalar(g, LEAT_INT32, 2)))),
          "lists of tensors of different dtypes. One is float and the other is int32");
    leat_graph_free(g);
}

static void zeros(void)
{
    leat_graph *g = leat_graph_new();
    leat_out two = number(g, 2), none = LEAT_OP0(g, "OptionalNone");
    gives(value(leat_zeros_like(optional(two)), LEAT_FLOAT), 0);
    gives(value(value(leat_zeros_like(optional(optional(two))), LEAT_VARIANT), LEAT_FLOAT), 0);
    gives(item(value(leat_zeros_like(optional(list(two))), LEAT_VARIANT), LEAT_FLOAT), 0);
    gives(LEAT_OP1("OptionalHasValue", leat_zeros_like(none)), 0);
    leat_graph_free(g);
}

/* ---- Very deep ---- */

static leat_out not_yet(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], leat_scalar(g, LEAT_INT32, *(int *)arg));
}

static void wrap_optional(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = leat_add(vars[0], leat_scalar(g, LEAT_INT32, 1));
    next[1] = optional(vars[1]);
}

static void wrap_list(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = leat_add(vars[0], leat_scalar(g, LEAT_INT32, 1));
    next[1] = list(vars[1]);
}

static void deep(void)
{
    leat_graph *g = leat_graph_new();
    static int turns = 100000;
    double got;
    leat_out v[2] = {leat_scalar(g, LEAT_INT32, 0), optional(number(g, 1))};
    leat_while_loop(not_yet, wrap_optional, &turns, v, 2, v);
    gives(LEAT_OP1("OptionalHasValue", v[1]), 1);
    leat_out w[2] = {leat_scalar(g, LEAT_INT32, 0), list(number(g, 1))};
    leat_while_loop(not_yet, wrap_list, &turns, w, 2, w);
    gives(LEAT_OP1("TensorListLength", w[1]), 1);
    CHECK_ERROR(fetch(LEAT_OP1("OptionalHasValue", leat_zeros_like(v[1])), &got),
                RESOURCE_EXHAUSTED, "deep are not added up, nor made zero");
    CHECK_ERROR(fetch(LEAT_OP1("TensorListLength", sum(w[1], w[1])), &got), RESOURCE_EXHAUSTED,
                "deep are not added up, nor made zero");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"sums", sums}, {"zeros", zeros}, {"deep", deep});
}
