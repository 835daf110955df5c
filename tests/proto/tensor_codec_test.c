/* TensorProto to tensors and back. */
#include "vectors.h"
#include "core/buffer.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

static const Leat__TensorProto *value_of(const Leat__NodeDef *n)
{
    for (size_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i]->key, "value") == 0)
            return n->attr[i]->value->tensor;
    return NULL;
}

static leat_tensor *decode(const Leat__TensorProto *p)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_from_proto(p, &t));
    return t;
}

/* What make_vectors.py put into element i. */
static double wanted(leat_dtype t, int64_t i, bool filled)
{
    switch ((int)t) {
    case LEAT_BOOL:
        return filled ? 1 : (double)(i % 2);
    case LEAT_UINT8:
    case LEAT_UINT16:
    case LEAT_UINT32:
    case LEAT_UINT64:
    case LEAT_QINT8:
    case LEAT_QUINT8:
    case LEAT_QINT32:
        return filled ? 1 : (double)i;
    default:
        return filled ? 1 : (double)-i;
    }
}

static void check_values(const leat_tensor *t, bool filled)
{
    for (int64_t i = 0; i < t->count; i++) {
        double want = wanted(t->dtype, i, filled);
        if (t->dtype == LEAT_STRING) {
            char text[16] = "x";
            if (!filled)
                snprintf(text, sizeof(text), "s%d", (int)i);
            CHECK_STR(((const leat_string *)t->data)[i].data, text);
        } else if (t->dtype == LEAT_COMPLEX64) {
            leat_complex64 c = ((const leat_complex64 *)t->data)[i];
            CHECK(c.re == (float)want && c.im == (filled ? 0 : (float)want + 0.5f));
        } else if (t->dtype == LEAT_COMPLEX128) {
            leat_complex128 c = ((const leat_complex128 *)t->data)[i];
            CHECK(c.re == want && c.im == (filled ? 0 : want + 0.5));
        } else {
            CHECK_NEAR(leat_tensor_at(t, i), want, 0);
        }
    }
}

/* A constant of every dtype, as TensorFlow wrote it: the values are right, and writing it the way
 * of tf.constant gives the same bytes. A fill is written out in full, so it is left out there. */
static void every_dtype(void)
{
    leat_strbuf in = read_vector("dtypes", ".pb"), want = {0}, got = {0};
    Leat__GraphDef *g = NULL;
    bool seen[32] = {0};
    CHECK_OK(LEAT_UNPACK(graph_def, in.s, in.n, &g));
    for (size_t i = 0; g && i < g->n_node; i++) {
        const Leat__TensorProto *p = value_of(g->node[i]);
        leat_tensor *t = decode(p), *again;
        Leat__TensorProto *q = NULL;
        bool filled = t->count == 5;
        seen[t->dtype] = true;
        check_values(t, filled);
        for (int form = LEAT_TENSOR_CONTENT; form <= LEAT_TENSOR_CONSTANT; form++) {
            CHECK_OK(leat_tensor_to_proto(t, (leat_tensor_form)form, &q));
            again = decode(q);
            CHECK_INT(again->dtype, t->dtype);
            CHECK(leat_shape_equal(&again->shape, &t->shape));
            check_values(again, filled);
            leat_tensor_unref(again);
            if (form == LEAT_TENSOR_CONSTANT && !filled) {
                leat_strbuf_clear(&want);
                leat_strbuf_clear(&got);
                CHECK_OK(leat_proto_pack(p, &want));
                CHECK_OK(leat_proto_pack(q, &got));
                if (!same_bytes(&want, &got))
                    printf("%s differs\n", g->node[i]->name);
                CHECK(same_bytes(&want, &got));
            }
            leat_proto_free(q);
        }
        leat_tensor_unref(t);
    }
    for (int t = LEAT_FLOAT; t <= LEAT_UINT64; t++)
        CHECK(seen[t] || t == LEAT_RESOURCE || t == LEAT_VARIANT || t == LEAT_QINT16 ||
              t == LEAT_QUINT16);
    leat_proto_free(g);
    leat_strbuf_release(&in);
    leat_strbuf_release(&want);
    leat_strbuf_release(&got);
}

/* A message with the dims given; freed by the next call. */
static Leat__TensorProto *message(leat_dtype dtype, int rank, const int64_t *dims)
{
    static Leat__TensorProto p;
    static Leat__TensorShapeProto shape;
    static Leat__TensorShapeProto__Dim dim[300], *dim_at[300];
    leat__tensor_proto__init(&p);
    leat__tensor_shape_proto__init(&shape);
    for (int i = 0; i < rank; i++) {
        leat__tensor_shape_proto__dim__init(&dim[i]);
        dim[i].size = dims[i];
        dim_at[i] = &dim[i];
    }
    shape.n_dim = (size_t)rank;
    shape.dim = dim_at;
    p.tensor_shape = &shape;
    p.dtype = (Leat__DataType)dtype;
    return &p;
}
#define MESSAGE(dtype, ...)                                                                        \
    message((dtype), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                    \
            (int64_t[]){__VA_ARGS__})

static void set_content(Leat__TensorProto *p, const char *bytes, size_t n)
{
    p->tensor_content = (ProtobufCBinaryData){n, (uint8_t *)bytes};
}

static void fill_with_last(void)
{
    float f[] = {1, 2, 3};
    Leat__TensorProto *p = MESSAGE(LEAT_FLOAT, 2, 5);
    p->float_val = f;
    p->n_float_val = 3;
    leat_tensor *t = decode(p);
    for (int i = 0; i < 10; i++)
        CHECK_NEAR(leat_tensor_at(t, i), i < 3 ? i + 1 : 3, 0);
    leat_tensor_unref(t);

    p = MESSAGE(LEAT_FLOAT, 2); /* more values than elements: the first count */
    p->float_val = f;
    p->n_float_val = 3;
    t = decode(p);
    CHECK_INT(leat_tensor_count(t), 2);
    CHECK_NEAR(leat_tensor_at(t, 1), 2, 0);
    leat_tensor_unref(t);

    t = decode(MESSAGE(LEAT_INT64, 4)); /* no values at all are zeros */
    CHECK_NEAR(leat_tensor_at(t, 3), 0, 0);
    leat_tensor_unref(t);

    ProtobufCBinaryData s[] = {{1, (uint8_t *)"a"}, {2, (uint8_t *)"bc"}};
    p = MESSAGE(LEAT_STRING, 4);
    p->string_val = s;
    p->n_string_val = 2;
    t = decode(p);
    CHECK_STR(((leat_string *)t->data)[0].data, "a");
    CHECK_STR(((leat_string *)t->data)[3].data, "bc");
    leat_tensor_unref(t);

    float c[] = {1, 2, 3}; /* an imaginary part is missing */
    p = MESSAGE(LEAT_COMPLEX64, 2);
    p->scomplex_val = c;
    p->n_scomplex_val = 3;
    t = decode(p);
    CHECK_NEAR(((leat_complex64 *)t->data)[1].im, 2, 0);
    leat_tensor_unref(t);
}

static void content(void)
{
    Leat__TensorProto *p = MESSAGE(LEAT_INT16, 2);
    set_content(p, "\x01\x00\xff\xff", 4);
    leat_tensor *t = decode(p);
    CHECK_NEAR(leat_tensor_at(t, 1), -1, 0);
    leat_tensor_unref(t);

    p = MESSAGE(LEAT_BOOL, 2); /* any byte but zero is true */
    set_content(p, "\x02\x00", 2);
    t = decode(p);
    CHECK_INT(((uint8_t *)t->data)[0], 1);
    CHECK_INT(((uint8_t *)t->data)[1], 0);
    leat_tensor_unref(t);

    p = MESSAGE(LEAT_STRING, 3); /* lengths, then bytes */
    set_content(p,
                "\x01\x00\x02"
                "abb",
                6);
    t = decode(p);
    CHECK_STR(((leat_string *)t->data)[0].data, "a");
    CHECK_INT(((leat_string *)t->data)[1].size, 0);
    CHECK_STR(((leat_string *)t->data)[2].data, "bb");
    leat_tensor_unref(t);

    p = MESSAGE(LEAT_RESOURCE, 1); /* the same with a message for each */
    set_content(p, "\x03\x1a\x01r", 4);
    t = decode(p);
    CHECK_STR((*(leat_handle **)t->data)->name, "r");
    leat_tensor_unref(t);

    p = MESSAGE(LEAT_FLOAT, 0); /* nobody looks at it */
    set_content(p, "abc", 3);
    t = decode(p);
    CHECK_INT(leat_tensor_count(t), 0);
    leat_tensor_unref(t);
}

static void bad(const Leat__TensorProto *p, leat_code code, const char *words)
{
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_from_proto(p, &t);
    CHECK_INT(leat_status_code(s), code);
    if (!strstr(leat_status_message(s), words))
        CHECK_STR(leat_status_message(s), words);
    CHECK(!t);
    leat_status_free(s);
}

static void bad_content(leat_dtype dtype, int64_t dim, const char *bytes, size_t n,
                        const char *words)
{
    Leat__TensorProto *p = MESSAGE(dtype, dim);
    set_content(p, bytes, n);
    bad(p, LEAT_INVALID_ARGUMENT, words);
}

static void bad_messages(void)
{
    int64_t many[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    bad(MESSAGE(LEAT_INVALID, 2), LEAT_INVALID_ARGUMENT,
        "Cannot parse tensor from proto: a tensor cannot have dtype invalid (0)");
    bad(MESSAGE((leat_dtype)99, 2), LEAT_INVALID_ARGUMENT, "(99)");
    bad(MESSAGE((leat_dtype)-5, 2), LEAT_INVALID_ARGUMENT, "(-5)");
    bad(MESSAGE((leat_dtype)(LEAT_FLOAT + LEAT_REF), 2), LEAT_INVALID_ARGUMENT, "float_ref");
    bad(MESSAGE(LEAT_FLOAT, 2, -1), LEAT_INVALID_ARGUMENT, "Shape [2,?] is not fully defined");
    bad(MESSAGE(LEAT_FLOAT, -2), LEAT_INVALID_ARGUMENT, "has dimensions with values below -1");
    bad(MESSAGE(LEAT_FLOAT, INT64_MIN), LEAT_INVALID_ARGUMENT, "below -1");
    bad(message(LEAT_FLOAT, 17, many), LEAT_INVALID_ARGUMENT, "too many dimensions");
    bad(MESSAGE(LEAT_FLOAT, 4000000000, 4000000000), LEAT_INVALID_ARGUMENT,
        "Shape [4000000000,4000000000] is too large (more than 2**63 - 1 entries)");
    bad(MESSAGE(LEAT_FLOAT, 4000000000, 1000000000), LEAT_INVALID_ARGUMENT, "2**63 - 1 bytes");
    bad(MESSAGE(LEAT_FLOAT, 4000000000, 1000000), LEAT_RESOURCE_EXHAUSTED, "OOM");
    bad_content(LEAT_FLOAT, 2, "abc", 3,
                "tensor_content has 3 bytes, 2 elements of type float need 8");
    bad_content(LEAT_FLOAT, 2, "abcdefghijkl", 12, "12 bytes");
    bad_content(LEAT_FLOAT, INT64_MAX, "abcd", 4, "4 bytes");
    bad_content(LEAT_STRING, 5, "abcd", 4, "5 elements of type string need at least 5");
    bad_content(LEAT_STRING, 2, "\x01\x02xx", 4, "their lengths add up to 3");
    bad_content(LEAT_STRING, 2, "\x01\x00xx", 4, "their lengths add up to 1");
    bad_content(LEAT_STRING, 1, "\xff\xff\xff\xff\xff\x01", 6, "element 0 of 1 is not in them");
    bad_content(LEAT_STRING, 2, "\x01\xff", 2, "element 1 of 2 is not in them");
    Leat__TensorProto *p = MESSAGE(LEAT_RESOURCE, 1);
    set_content(p, "\x01\x1a", 2);
    bad(p, LEAT_DATA_LOSS, "tensorflow.ResourceHandleProto");
    p = MESSAGE(LEAT_FLOAT);
    p->tensor_shape->unknown_rank = 1;
    bad(p, LEAT_INVALID_ARGUMENT, "Shape <unknown> is not fully defined");
    Leat__VariantTensorDataProto v = LEAT__VARIANT_TENSOR_DATA_PROTO__INIT, *vp = &v;
    v.type_name = (char *)"tensorflow::Nonsense";
    p = MESSAGE(LEAT_VARIANT, 1);
    p->variant_val = &vp;
    p->n_variant_val = 1;
    bad(p, LEAT_UNIMPLEMENTED, "Could not decode variant with type_name: \"tensorflow::Nonsense\"");
    ProtobufCBinaryData s = {2, (uint8_t *)"bc"};
    leat_allocator *a = leat_cpu_allocator();
    size_t limit = a->limit;
    a->limit = 1 << 20;
    p = MESSAGE(LEAT_STRING, 1 << 20);
    p->string_val = &s;
    p->n_string_val = 1;
    bad(p, LEAT_RESOURCE_EXHAUSTED, "OOM");
    a->limit = limit;
}

static void handles(void)
{
    Leat__ResourceHandleProto h = LEAT__RESOURCE_HANDLE_PROTO__INIT, *hp = &h;
    Leat__ResourceHandleProto__DtypeAndShape d = LEAT__RESOURCE_HANDLE_PROTO__DTYPE_AND_SHAPE__INIT,
                                             *dp = &d;
    Leat__TensorShapeProto unknown = LEAT__TENSOR_SHAPE_PROTO__INIT;
    leat_strbuf want = {0}, got = {0};
    Leat__TensorProto *p = MESSAGE(LEAT_RESOURCE, 1), *q = NULL;
    unknown.unknown_rank = 1;
    d.dtype = LEAT__DATA_TYPE__DT_INT8;
    d.shape = &unknown;
    h.device = (char *)"/cpu:0";
    h.container = (char *)"c";
    h.name = (char *)"n";
    h.maybe_type_name = (char *)"Var";
    h.hash_code = UINT64_MAX;
    h.dtypes_and_shapes = &dp;
    h.n_dtypes_and_shapes = 1;
    p->resource_handle_val = &hp;
    p->n_resource_handle_val = 1;
    CHECK_OK(leat_proto_pack(p, &want));
    leat_tensor *t = decode(p);
    CHECK_OK(leat_tensor_to_proto(t, LEAT_TENSOR_CONTENT, &q));
    CHECK_OK(leat_proto_pack(q, &got));
    CHECK(same_bytes(&want, &got));
    leat_tensor_unref(t);
    leat_proto_free(q);
    p = MESSAGE(LEAT_RESOURCE, 3);
    p->resource_handle_val = &hp;
    p->n_resource_handle_val = 1;
    t = decode(p);
    CHECK(((leat_handle **)t->data)[2] == ((leat_handle **)t->data)[0]);
    leat_tensor_unref(t);
    leat_strbuf_release(&want);
    leat_strbuf_release(&got);
}

static void shapes(void)
{
    const leat_shape all[] = {leat_shape(), leat_shape(2, -1, 0), leat_shape_unknown(),
                              leat_shape_unknown_dims(16)};
    leat_shape back;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        Leat__TensorShapeProto *p = leat_shape_to_proto(&all[i]);
        CHECK_OK(leat_shape_from_proto(p, &back));
        CHECK(leat_shape_equal(&all[i], &back));
        leat_proto_free(p);
    }
    CHECK_OK(leat_shape_from_proto(NULL, &back));
    CHECK_INT(back.rank, 0);
    Leat__TensorShapeProto *p = MESSAGE(LEAT_FLOAT, 2)->tensor_shape;
    p->unknown_rank = 1;
    CHECK_ERROR(leat_shape_from_proto(p, &back), INVALID_ARGUMENT,
                "An unknown shape must not have any dimensions set.");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"every_dtype", every_dtype}, {"fill_with_last", fill_with_last},
               {"content", content}, {"bad_messages", bad_messages}, {"handles", handles},
               {"shapes", shapes});
}
