/* Messages to bytes and back: TensorFlow's own bytes come out as they went in. */
#include "vectors.h"

static void same_as_tensorflow(void)
{
    for (int i = 0; i < N_VECTORS; i++) {
        leat_strbuf in = read_vector(vectors[i].name, ".pb"), out = {0};
        ProtobufCMessage *m = NULL;
        CHECK_OK(leat_proto_unpack(vectors[i].type, in.s, in.n, &m));
        if (m) {
            CHECK_OK(leat_proto_pack(m, &out));
            if (!same_bytes(&in, &out))
                printf("%s: %zu bytes, want %zu\n", vectors[i].name, out.n, in.n);
            CHECK(same_bytes(&in, &out));
        }
        leat_proto_free(m);
        leat_strbuf_release(&in);
        leat_strbuf_release(&out);
    }
}

/* Every way of cutting a graph off is an error or a shorter graph; none of them crashes. */
static void truncated(void)
{
    leat_strbuf in = read_vector("functions", ".pb");
    int errors = 0;
    for (size_t n = 0; n < in.n; n += 1 + n / 64) {
        char *part = malloc(n ? n : 1); /* of its exact size, so that a read beyond it is seen */
        memcpy(part, in.s, n);
        ProtobufCMessage *m = NULL;
        leat_status s = leat_proto_unpack(&leat__graph_def__descriptor, part, n, &m);
        if (s) {
            errors++;
            CHECK_INT(leat_status_code(s), LEAT_DATA_LOSS);
            CHECK(strstr(leat_status_message(s), " (tensorflow."));
            CHECK(m == NULL);
        }
        leat_status_free(s);
        leat_proto_free(m);
        free(part);
    }
    CHECK(errors > 100);
    leat_strbuf_release(&in);
}

static void unpack_error(const char *bytes, size_t n, leat_code code, const char *words)
{
    Leat__GraphDef *g = NULL;
    leat_status s = LEAT_UNPACK(graph_def, bytes, n, &g);
    CHECK_INT(leat_status_code(s), code);
    CHECK_STR(leat_status_message(s), words);
    leat_status_free(s);
    leat_proto_free(g);
}
#define UNPACK_ERROR(bytes, code, words)                                                           \
    unpack_error((bytes), sizeof(bytes) - 1, LEAT_##code, (words))

static void malformed(void)
{
    UNPACK_ERROR("\x0a\x05\x0a\x03zz", DATA_LOSS,
                 "message is truncated: a field of 5 bytes, 4 are left (tensorflow.GraphDef at "
                 "byte 2)");
    UNPACK_ERROR("\x0a\x04\x0a\x03zz", DATA_LOSS,
                 "message is truncated: a field of 3 bytes, 2 are left (tensorflow.NodeDef at "
                 "byte 4)");
    UNPACK_ERROR("\x18", DATA_LOSS, "message ends inside a number (tensorflow.GraphDef at byte 1)");
    UNPACK_ERROR("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", DATA_LOSS,
                 "malformed number (tensorflow.GraphDef at byte 1)");
    UNPACK_ERROR("\x02\x00", DATA_LOSS, "malformed field number (tensorflow.GraphDef at byte 1)");
    UNPACK_ERROR("\x22\x03\x1a\x01\x80", DATA_LOSS,
                 "field 'bad_consumers' ends inside a number (tensorflow.VersionDef at byte 4)");
    UNPACK_ERROR(
        "\x7b\x7c", INVALID_ARGUMENT,
        "field 15 has wire type 3, which is not supported (tensorflow.GraphDef at byte 1)");
    UNPACK_ERROR("\x0a\x04\x0a\x02\xc3(", INVALID_ARGUMENT,
                 "string field 'name' contains invalid UTF-8 data (tensorflow.NodeDef at byte 4)");
    UNPACK_ERROR("\x0a\x05\x0a\x03\xed\xa0\x80", INVALID_ARGUMENT,
                 "string field 'name' contains invalid UTF-8 data (tensorflow.NodeDef at byte 4)");
    UNPACK_ERROR("\x0a\x05\x0a\x03"
                 "a\0b",
                 INVALID_ARGUMENT,
                 "string field 'name' contains a NUL byte (tensorflow.NodeDef at byte 4)");
}

/* TensorProto inside variant inside TensorProto ...: each pair is two levels. */
static leat_strbuf nested(int pairs)
{
    leat_strbuf b = {0};
    for (int i = 0; i < pairs; i++) {
        Leat__VariantTensorDataProto v = LEAT__VARIANT_TENSOR_DATA_PROTO__INIT;
        Leat__TensorProto t = LEAT__TENSOR_PROTO__INIT;
        ProtobufCMessageUnknownField raw = {.tag = 3, .wire_type = 2}; /* v.tensors */
        leat_strbuf field = {0}, out = {0};
        for (size_t n = b.n;; n >>= 7) {
            leat_strbuf_putc(&field, (char)(n < 0x80 ? n : n | 0x80));
            if (n < 0x80)
                break;
        }
        leat_strbuf_add(&field, b.s, b.n);
        raw.data = (uint8_t *)field.s;
        raw.len = field.n;
        v.base.unknown_fields = &raw;
        v.base.n_unknown_fields = 1;
        Leat__VariantTensorDataProto *vp = &v;
        t.variant_val = &vp;
        t.n_variant_val = 1;
        CHECK_OK(leat_proto_pack(&t, &out));
        leat_strbuf_release(&b);
        leat_strbuf_release(&field);
        b = out;
    }
    return b;
}

static void depth(void)
{
    Leat__TensorProto *t = NULL;
    leat_strbuf b = nested(50);
    CHECK_OK(LEAT_UNPACK(tensor_proto, b.s, b.n, &t));
    leat_proto_free(t);
    leat_strbuf_release(&b);
    b = nested(51);
    CHECK_ERROR(LEAT_UNPACK(tensor_proto, b.s, b.n, &t), INVALID_ARGUMENT,
                "messages are nested deeper than 100 levels");
    leat_strbuf_release(&b);
}

/* Fields of a later version are kept, and come out behind those that are known. */
static void unknown_fields(void)
{
    /* 100: "xyz", 3: 7, 101: 5; 3 again, but of another type */
    const char in[] = "\xa2\x06\x03xyz\x18\x07\xa8\x06\x05\x1a\x00";
    const char want[] = "\x18\x07\xa2\x06\x03xyz\xa8\x06\x05\x1a\x00";
    Leat__GraphDef *g = NULL;
    leat_strbuf out = {0};
    CHECK_OK(LEAT_UNPACK(graph_def, in, sizeof(in) - 1, &g));
    CHECK_INT(g->version, 7);
    CHECK_OK(leat_proto_pack(g, &out));
    CHECK_INT(out.n, sizeof(want) - 1);
    CHECK(memcmp(out.s, want, out.n) == 0);
    leat_proto_free(g);
    leat_strbuf_release(&out);
}

/* A message in pieces is one message: later numbers win, lists are joined. */
static void merged(void)
{
    const char in[] = "\x22\x05\x08\x01\x1a\x01\x05\x22\x05\x10\x02\x1a\x01\x06\x22\x02\x18\x07";
    const char want[] = "\x22\x09\x08\x01\x10\x02\x1a\x03\x05\x06\x07";
    Leat__GraphDef *g = NULL;
    leat_strbuf out = {0};
    CHECK_OK(LEAT_UNPACK(graph_def, in, sizeof(in) - 1, &g));
    CHECK_OK(leat_proto_pack(g, &out));
    CHECK_INT(out.n, sizeof(want) - 1);
    CHECK(memcmp(out.s, want, out.n) == 0);
    leat_proto_free(g);
    leat_strbuf_release(&out);
}

/* Of a oneof the last member counts, whatever was there before it. */
static void oneofs(void)
{
    /* s: "a", s: "b", list {i: 1}, list {i: 2}, placeholder: "c", i: 0 */
    const char in[] = "\x12\x01"
                      "a\x12\x01"
                      "b\x0a\x02\x18\x01\x0a\x02\x18\x02\x4a\x01"
                      "c\x18\x00";
    for (size_t n = sizeof(in) - 1, i = 0; i < 3; i++) {
        Leat__AttrValue *a = NULL;
        CHECK_OK(LEAT_UNPACK(attr_value, in, n - (i > 0 ? 2 : 0) - (i > 1 ? 3 : 0), &a));
        if (i == 0)
            CHECK_INT(a->value_case, LEAT__ATTR_VALUE__VALUE_I);
        if (i == 1)
            CHECK_STR(a->placeholder, "c");
        if (i == 2)
            CHECK_INT(a->list->n_i, 2);
        leat_proto_free(a);
    }
}

static void maps(void)
{
    /* b: 1, a: 2, b: 3, and an entry with neither key nor value */
    const char in[] = "\x0a\x05\x0a\x01"
                      "b\x10\x01\x0a\x05\x0a\x01"
                      "a\x10\x02\x0a\x05\x0a\x01"
                      "b\x10\x03\x0a\x00";
    const char want[] = "\x0a\x04\x0a\x00\x10\x00\x0a\x05\x0a\x01"
                        "a\x10\x02\x0a\x05\x0a\x01"
                        "b\x10\x03";
    Leat__ConfigProto *c = NULL;
    leat_strbuf out = {0};
    CHECK_OK(LEAT_UNPACK(config_proto, in, sizeof(in) - 1, &c));
    CHECK_INT(c->n_device_count, 3);
    CHECK_STR(c->device_count[0]->key, "");
    CHECK_STR(c->device_count[1]->key, "a");
    CHECK_STR(c->device_count[2]->key, "b");
    CHECK_INT(c->device_count[2]->value, 3);
    Leat__ConfigProto__DeviceCountEntry *first = c->device_count[0];
    c->device_count[0] = c->device_count[2]; /* the writer sorts by itself */
    c->device_count[2] = first;
    CHECK_OK(leat_proto_pack(c, &out));
    CHECK_INT(out.n, sizeof(want) - 1);
    CHECK(memcmp(out.s, want, out.n) == 0);
    leat_proto_free(c);
    leat_strbuf_release(&out);
}

static void nothing(void)
{
    Leat__GraphDef *g = NULL;
    leat_strbuf out = {0};
    CHECK_OK(LEAT_UNPACK(graph_def, NULL, 0, &g));
    CHECK_INT(g->n_node, 0);
    CHECK_OK(leat_proto_pack(g, &out));
    CHECK_INT(out.n, 0);
    leat_proto_free(g);
    leat_proto_free(NULL);
    leat_strbuf_release(&out);
}

/* A message beyond the limit is an error that names type and size, and adds nothing. */
static void too_large(void)
{
    enum { NAME = 5000 };
    char name[NAME + 1];
    Leat__NodeDef node = LEAT__NODE_DEF__INIT, *nodes = &node;
    Leat__GraphDef g = LEAT__GRAPH_DEF__INIT;
    leat_strbuf out = {0};
    memset(name, 'n', NAME);
    name[NAME] = 0;
    node.name = name;
    g.node = &nodes;
    g.n_node = 1;
    CHECK_OK(leat_proto_pack(&g, &out));
    size_t size = out.n;
    leat_proto_pack_max = size;
    CHECK_OK(leat_proto_pack(&g, &out));
    CHECK_INT(out.n, 2 * size);
    for (size_t max = size - 1; max > 1; max /= 2) {
        leat_proto_pack_max = max;
        CHECK_ERROR(leat_proto_pack(&g, &out), INVALID_ARGUMENT,
                    "Cannot serialize protocol buffer of type tensorflow.GraphDef as the "
                    "serialized size (5006 bytes) would be larger than the limit");
    }
    CHECK_INT(out.n, 2 * size);
    leat_proto_pack_max = LEAT_PROTO_MAX_SIZE;
    leat_strbuf_release(&out);
}

/* Older writers left other orders behind: the first writing puts them right, the second
 * changes nothing. */
static void graph_stays(const Leat__GraphDef *g)
{
    leat_strbuf once = {0}, twice = {0};
    Leat__GraphDef *again = NULL;
    CHECK_OK(leat_proto_pack(g, &once));
    CHECK_OK(LEAT_UNPACK(graph_def, once.s, once.n, &again));
    CHECK_OK(leat_proto_pack(again, &twice));
    CHECK(same_bytes(&once, &twice));
    CHECK_INT(g->n_node, again->n_node);
    leat_proto_free(again);
    leat_strbuf_release(&once);
    leat_strbuf_release(&twice);
}

static void conformance_graphs(void)
{
    int n = each_conformance_graph(graph_stays);
    if (n < 0)
        SKIP("no conformance graphs beside the source");
    CHECK(n > 0);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"same_as_tensorflow", same_as_tensorflow}, {"truncated", truncated},
               {"malformed", malformed}, {"depth", depth}, {"unknown_fields", unknown_fields},
               {"merged", merged}, {"oneofs", oneofs}, {"maps", maps}, {"nothing", nothing},
               {"too_large", too_large}, {"conformance_graphs", conformance_graphs});
}
