/* Any bytes as an Example and as a SequenceExample, by the ops that parse them, one by one and as a
 * batch, by leat_example_parse, and by leat_example_decode, whose result is encoded and decoded
 * again alike; as a JSON text and as a tensor. */
#include <leat/leat.h>

#include <stdlib.h>
#include <string.h>

enum { N = 7 };
static leat_session *session;
static leat_out one, two, outs[N];

static leat_out strings(leat_graph *g, int n)
{
    leat_tensor *t = NULL;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_STRING, leat_shape(n), &t));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

static const leat_dtype types[] = {LEAT_FLOAT, LEAT_INT64, LEAT_STRING};
static const char *const keys[] = {"a", "b", "c"};

/* Sparse features if the shape is unknown, else dense ones of this shape. */
static leat_out parse(leat_graph *g, const leat_shape *shape)
{
    const leat_shape shapes[] = {*shape, *shape, *shape};
    leat_out zero[] = {leat_scalar(g, LEAT_FLOAT, 0), leat_scalar(g, LEAT_INT64, 0),
                       leat_string_const(g, "")};
    leat_out names[] = {leat_string_const(g, "a"), leat_string_const(g, "b"),
                        leat_string_const(g, "c")};
    const int sparse = shape->rank < 0 ? 3 : 0, dense = 3 - sparse;
    return leat_op(g, "ParseExample", leat_in(two), leat_in(strings(g, 0)), leat_ins(names, sparse),
                   leat_ins(names, dense), leat_ins(zero, dense),
                   leat_attr_types("sparse_types", types, sparse),
                   leat_attr_types("Tdense", types, dense),
                   leat_attr_shapes("dense_shapes", shapes, dense));
}

static leat_out parse_sequence(leat_graph *g)
{
    const leat_shape scalars[] = {leat_shape(), leat_shape(), leat_shape()};
    leat_out zero[] = {leat_scalar(g, LEAT_FLOAT, 0), leat_scalar(g, LEAT_INT64, 0),
                       leat_string_const(g, "")};
    return leat_op(
        g, "ParseSequenceExample", leat_in(two), leat_in(strings(g, 0)), leat_ins(zero, 3),
        leat_attr_strings("feature_list_dense_missing_assumed_empty", keys, 3),
        leat_attr_strings("context_dense_keys", keys, 3),
        leat_attr_strings("context_sparse_keys", NULL, 0),
        leat_attr_strings("feature_list_sparse_keys", NULL, 0),
        leat_attr_strings("feature_list_dense_keys", keys, 3), leat_attr_int("Ncontext_dense", 3),
        leat_attr_int("Nfeature_list_dense", 3), leat_attr_types("Tcontext_dense", types, 3),
        leat_attr_shapes("context_dense_shapes", scalars, 3),
        leat_attr_types("feature_list_dense_types", types, 3),
        leat_attr_shapes("feature_list_dense_shapes", scalars, 3));
}

static leat_out parse_single_sequence(leat_graph *g)
{
    leat_out names[] = {leat_string_const(g, "a"), leat_string_const(g, "b"),
                        leat_string_const(g, "c")};
    return leat_op(g, "ParseSingleSequenceExample", leat_in(one), leat_in(strings(g, 0)),
                   leat_ins(names, 3), leat_ins(NULL, 0), leat_ins(names, 3), leat_ins(NULL, 0),
                   leat_ins(NULL, 0), leat_in(leat_string_const(g, "name")),
                   leat_attr_types("Tcontext_dense", NULL, 0),
                   leat_attr_types("context_sparse_types", types, 3),
                   leat_attr_types("feature_list_sparse_types", types, 3));
}

static void open_session(void)
{
    leat_graph *g = leat_graph_new();
    const leat_shape sparse = leat_shape_unknown(), dense = leat_shape(), padded = leat_shape(-1);
    one = leat_placeholder(g, LEAT_STRING, leat_shape());
    two = leat_placeholder(g, LEAT_STRING, leat_shape(2));
    outs[0] = parse(g, &sparse);
    outs[1] = parse(g, &dense);
    outs[2] = parse(g, &padded);
    outs[3] = parse_sequence(g);
    outs[4] = parse_single_sequence(g);
    outs[5] = LEAT_OP1("DecodeJSONExample", one);
    outs[6] = LEAT_OP1("ParseTensor", one, leat_attr_type("out_type", LEAT_FLOAT));
    LEAT_DIE_ON_ERROR(leat_graph_status(g));
    LEAT_DIE_ON_ERROR(leat_session_open(g, &session));
}

static void run_ops(const uint8_t *data, size_t n)
{
    leat_tensor *t = leat_scalar_string((const char *)data, n), *pair = NULL;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_STRING, leat_shape(2), &pair));
    leat_string *s = (leat_string *)leat_tensor_data(pair); /* not shared yet */
    leat_string_set(&s[0], (const char *)data, n / 2);
    leat_string_set(&s[1], (const char *)data, n);
    for (int i = 0; i < N; i++)
        leat_status_free(leat_session_run(session, LEAT_FEED({one, t}, {two, pair}), LEAT_NO_FETCH,
                                          LEAT_TARGET(leat_done(outs[i]))));
    leat_tensor_unref(t);
    leat_tensor_unref(pair);
}

static void parse_features(const uint8_t *data, size_t n)
{
    leat_tensor *t[3];
    for (int i = 0; i < 3; i++) {
        const leat_shape shape = i == 0   ? leat_shape()
                                 : i == 1 ? leat_shape(-1)
                                          : leat_shape(-1, 2);
        const leat_feature_spec f[] = {{keys[0], types[0], shape, NULL},
                                       {keys[1], types[1], shape, NULL},
                                       {keys[2], types[2], shape, NULL}};
        leat_status s = leat_example_parse(data, n, f, 3, t);
        for (int k = 0; k < 3 && !s; k++)
            leat_tensor_unref(t[k]);
        leat_status_free(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!session)
        open_session();
    run_ops(data, n);
    parse_features(data, n);
    leat_example *e = NULL, *again = NULL;
    leat_status s = leat_example_decode(data, n, &e);
    if (!s) {
        void *once = NULL, *twice = NULL;
        size_t n1 = 0, n2 = 0;
        LEAT_DIE_ON_ERROR(leat_example_encode(e, &once, &n1));
        LEAT_DIE_ON_ERROR(leat_example_decode(once, n1, &again));
        LEAT_DIE_ON_ERROR(leat_example_encode(again, &twice, &n2));
        if (n1 != n2 || memcmp(once, twice, n1) != 0)
            abort();
        free(once);
        free(twice);
    }
    leat_status_free(s);
    leat_example_free(e);
    leat_example_free(again);
    return 0;
}
