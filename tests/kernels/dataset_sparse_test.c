/* dataset_sparse_test.c -- sparse tensors in datasets: as variants and strings, cut into rows and
 * joined again; inputs that are no sparse tensors. */
#include "dataset_graph.h"

static leat_out ints(leat_graph *g, leat_shape shape, const int64_t *v)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, shape, v, &t));
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

/* Values at (0,1), (0,3), (2,0) of a matrix of 3 rows and 4 columns. */
static const int64_t indices[] = {0, 1, 0, 3, 2, 0}, values[] = {10, 20, 30}, shape[] = {3, 4};

static leat_out serialized(leat_graph *g, const char *op, leat_dtype t)
{
    return leat_op(g, op, leat_in(ints(g, leat_shape(3, 2), indices)),
                   leat_in(ints(g, leat_shape(3), values)), leat_in(ints(g, leat_shape(2), shape)),
                   leat_attr_type("out_type", t));
}

static leat_out nth(leat_out x, int i)
{
    return (leat_out){x.node, i};
}

static void check_text(leat_session *s, leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    if (text)
        CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

/* Rows of a sparse tensor go through a dataset and become a batch of sparse tensors. */
static void through_a_dataset(leat_dtype t)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out rows = serialized(g, "SerializeManySparse", t);
    const leat_dtype types[] = {t};
    const leat_shape unknown[] = {leat_shape_unknown()};
    leat_out d = leat_op(g, "TensorSliceDataset", leat_ins(&rows, 1),
                         leat_attr_shapes("output_shapes", unknown, 1));
    d = leat_op(g, "BatchDataset", leat_in(d), leat_in(number(g, 5)),
                leat_attr_types("output_types", types, 1),
                leat_attr_shapes("output_shapes", unknown, 1));
    leat_out one =
        leat_op(g, "DatasetToSingleElement", leat_in(d), leat_attr_types("output_types", types, 1),
                leat_attr_shapes("output_shapes", unknown, 1));
    leat_out y = leat_op(g, "DeserializeSparse", leat_in(one), leat_attr_type("dtype", LEAT_INT64));
    leat_out whole = leat_op(g, "DeserializeSparse", leat_in(serialized(g, "SerializeSparse", t)),
                             leat_attr_type("dtype", LEAT_INT64));
    leat_out wrong = leat_op(g, "DeserializeSparse", leat_in(serialized(g, "SerializeSparse", t)),
                             leat_attr_type("dtype", LEAT_FLOAT));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    check_text(s, nth(y, 0), "[[0 1][0 3][2 0]]");
    check_text(s, nth(y, 1), "[10 20 30]");
    check_text(s, nth(y, 2), "[3 4]");
    check_text(s, nth(whole, 0), "[[0 1][0 3][2 0]]");
    leat_tensor *none = NULL;
    CHECK_ERROR(
        leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({nth(wrong, 1), &none}), LEAT_NO_TARGET),
        INVALID_ARGUMENT, "Requested SparseTensor of type float");
    leat_session_close(s);
    leat_graph_free(g);
}

static void round_trip(void)
{
    through_a_dataset(LEAT_VARIANT);
    through_a_dataset(LEAT_STRING);
}

/* Dense vectors of lengths 0, 1 and 2 as one sparse batch. */
static void to_number(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_op(g, "Fill",
                     leat_in(leat_op(g, "ExpandDims", leat_in(leat_cast(in[0], LEAT_INT32)),
                                     leat_in(leat_scalar(g, LEAT_INT32, 0)))),
                     leat_in(in[0]));
}

static void dense_to_sparse(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_function_define(g, "ToNumber", to_number, NULL, 1, LEAT_INT64);
    const int64_t any[] = {-1}, small[] = {1};
    const leat_dtype types[] = {LEAT_VARIANT};
    const leat_shape three[] = {leat_shape(3)};
    leat_out y[2];
    for (int i = 0; i < 2; i++) {
        leat_out d = leat_op(
            g, "DenseToSparseBatchDataset", leat_in(map(g, range(g, 3), "ToNumber")),
            leat_in(number(g, 4)), leat_in(ints(g, leat_shape(1), i ? small : any)),
            leat_attr_types("output_types", types, 1), leat_attr_shapes("output_shapes", three, 1));
        leat_out one = leat_op(g, "DatasetToSingleElement", leat_in(d),
                               leat_attr_types("output_types", types, 1),
                               leat_attr_shapes("output_shapes", three, 1));
        y[i] = leat_op(g, "DeserializeSparse", leat_in(one), leat_attr_type("dtype", LEAT_INT64));
    }
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    check_text(s, nth(y[0], 0), "[[1 0][2 0][2 1]]");
    check_text(s, nth(y[0], 1), "[1 2 2]");
    check_text(s, nth(y[0], 2), "[3 2]");
    leat_tensor *none = NULL;
    CHECK_ERROR(
        leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({nth(y[1], 0), &none}), LEAT_NO_TARGET),
        DATA_LOSS, "that is larger than the row shape ([1]).");
    leat_session_close(s);
    leat_graph_free(g);
}

static void refused(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    const int64_t unordered[] = {2, 0, 0, 1, 0, 3}, outside[] = {0, 1, 0, 3, 7, 0};
    leat_out bad[2];
    for (int i = 0; i < 2; i++)
        bad[i] = leat_op(
            g, "SerializeManySparse", leat_in(ints(g, leat_shape(3, 2), i ? outside : unordered)),
            leat_in(ints(g, leat_shape(3), values)), leat_in(ints(g, leat_shape(2), shape)));
    CHECK_OK(leat_session_open(g, &s));
    leat_tensor *none = NULL;
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({bad[0], &none}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "is outside of the 3 rows, or not in their order");
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({bad[1], &none}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Index 7 of value 2 is outside of the 3 rows");
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"round_trip", round_trip}, {"dense_to_sparse", dense_to_sparse},
               {"refused", refused});
}
