/* Messages to text and back: TensorFlow's own text comes out as it is. */
#include "vectors.h"
#include "proto/text.h"

static void same_as_tensorflow(void)
{
    for (int i = 0; i < N_VECTORS; i++) {
        leat_strbuf bytes = read_vector(vectors[i].name, ".pb"), got = {0};
        leat_strbuf text = read_vector(vectors[i].name, ".txt"), back = {0};
        ProtobufCMessage *m = NULL, *n = NULL;
        CHECK_OK(leat_proto_unpack(vectors[i].type, bytes.s, bytes.n, &m));
        leat_proto_to_text(m, &got);
        if (!same_bytes(&text, &got)) {
            size_t k = 0;
            while (k < text.n && k < got.n && text.s[k] == got.s[k])
                k++;
            printf("%s differs at byte %zu: %.60s\n", vectors[i].name, k, got.s + k);
        }
        CHECK(same_bytes(&text, &got));
        CHECK_OK(leat_proto_from_text(vectors[i].type, text.s, text.n, &n));
        if (n) {
            CHECK_OK(leat_proto_pack(n, &back));
            CHECK(same_bytes(&bytes, &back));
        }
        leat_proto_free(m);
        leat_proto_free(n);
        leat_strbuf_release(&bytes);
        leat_strbuf_release(&got);
        leat_strbuf_release(&text);
        leat_strbuf_release(&back);
    }
}

/* Reads text as a message and checks what it is printed as. */
static void check_text(const ProtobufCMessageDescriptor *d, const char *text, const char *want)
{
    ProtobufCMessage *m = NULL;
    leat_strbuf got = {0};
    CHECK_OK(leat_proto_from_text(d, text, strlen(text), &m));
    if (m) {
        leat_proto_to_text(m, &got);
        CHECK_STR(leat_strbuf_text(&got), want);
    }
    leat_proto_free(m);
    leat_strbuf_release(&got);
}

static void other_spellings(void)
{
    const ProtobufCMessageDescriptor *node = &leat__node_def__descriptor,
                                     *attr = &leat__attr_value__descriptor,
                                     *tensor = &leat__tensor_proto__descriptor,
                                     *versions = &leat__version_def__descriptor;
    check_text(node, "", "");
    check_text(node, "# nothing\n", "");
    check_text(node, "name:'a'op:\"b\";input : [\"x\", 'y'] , input:\"z\" # end",
               "name: \"a\"\nop: \"b\"\ninput: \"x\"\ninput: \"y\"\ninput: \"z\"\n");
    check_text(node, "name: 'a' \"b\"\n  # between\n 'c'", "name: \"abc\"\n");
    check_text(node, "experimental_debug_info: < original_node_names: [] >",
               "experimental_debug_info {\n}\n");
    check_text(node, "attr: [{key: 'b' value {i: 1}}, <key: 'a' value: {i: 2}>]",
               "attr {\n  key: \"a\"\n  value {\n    i: 2\n  }\n}\n"
               "attr {\n  key: \"b\"\n  value {\n    i: 1\n  }\n}\n");
    check_text(node, "attr {key: 'a' value {i: 1}} attr {key: 'a' value {i: 2}} attr {key: 'b'}",
               "attr {\n  key: \"a\"\n  value {\n    i: 2\n  }\n}\n"
               "attr {\n  key: \"b\"\n  value {\n  }\n}\n");
    check_text(node, "name: '' name: 'x'", "name: \"x\"\n");
    check_text(versions, "producer: 0x1F min_consumer: -010 bad_consumers: [- 1, 0, 0X7fffffff]",
               "producer: 31\nmin_consumer: -8\nbad_consumers: -1\nbad_consumers: 0\n"
               "bad_consumers: 2147483647\n");
    check_text(attr, "list {b: [true, false, t, f, 1, 0, True, False]}",
               "list {\n  b: true\n  b: false\n  b: true\n  b: false\n  b: true\n  b: false\n"
               "  b: true\n  b: false\n}\n");
    check_text(attr, "list {type: [DT_FLOAT, 3, 77, -1]}",
               "list {\n  type: DT_FLOAT\n  type: DT_INT32\n  type: 77\n  type: -1\n}\n");
    check_text(attr, "i: -9223372036854775808", "i: -9223372036854775808\n");
    check_text(tensor, "uint64_val: 18446744073709551615", "uint64_val: 18446744073709551615\n");
    check_text(tensor, "float_val: [1.5f, 2F, .5, 5., 1e3, 1E-3, -inf, Infinity, NaN, -nan, 017]",
               "float_val: 1.5\nfloat_val: 2.0\nfloat_val: 0.5\nfloat_val: 5.0\n"
               "float_val: 1000.0\nfloat_val: 0.001\nfloat_val: -inf\nfloat_val: inf\n"
               "float_val: nan\nfloat_val: nan\nfloat_val: 17.0\n");
    check_text(tensor, "float_val: 1e300 double_val: 1e999", "float_val: inf\ndouble_val: inf\n");
    check_text(attr,
               "s: '\\a\\b\\f\\n\\r\\t\\v\\\\\\'\\\"\\?\\0\\1234\\xf\\x412\\u00e9\\U0001F600'",
               "s: \"\\007\\010\\014\\n\\r\\t\\013\\\\\\'\\\"?\\000S4\\017A2\\303\\251"
               "\\360\\237\\230\\200\"\n");
    check_text(attr, "placeholder: '\xc3\xa9'", "placeholder: \"\\303\\251\"\n");
    check_text(attr, "s: ''", "s: \"\"\n");
}

static void check_bad(const char *text, size_t n, const char *words)
{
    Leat__NodeDef *m = NULL;
    leat_status s = LEAT_FROM_TEXT(node_def, text, n, &m);
    CHECK_INT(leat_status_code(s), LEAT_INVALID_ARGUMENT);
    CHECK_STR(leat_status_message(s), words);
    leat_status_free(s);
    leat_proto_free(m);
}

static void bad_text(void)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"name: 'a'\n  nmae: 'b'",
         "2:3: Message type \"tensorflow.NodeDef\" has no field named \"nmae\"."},
        {"attr { key: 'a' value { list { q: 1 } } }",
         "1:32: Message type \"tensorflow.AttrValue.ListValue\" has no field named \"q\"."},
        {"name 'a'", "1:6: Expected \":\", found \"'a'\"."},
        {"name:", "1:6: Expected string."},
        {"name: a", "1:7: Expected string."},
        {"name: 'a", "1:7: String missing ending quote."},
        {"name: 'a\n'", "1:7: String missing ending quote."},
        {"name: '", "1:7: String missing ending quote."},
        {"name: '\\'", "1:7: String missing ending quote."},
        {"name: 'a\\q'", "1:9: Invalid escape sequence in string literal."},
        {"name: '\\x'", "1:8: Invalid escape sequence in string literal."},
        {"name: '\\u12'", "1:8: Invalid escape sequence in string literal."},
        {"name: '\\777'", "1:8: Invalid escape sequence in string literal."},
        {"name: '\\377'", "1:7: String field \"name\" contains invalid UTF-8 data."},
        {"name: '\\ud800'", "1:7: String field \"name\" contains invalid UTF-8 data."},
        {"name: 'a\\0'", "1:7: String field \"name\" contains a NUL byte."},
        {"name: 'a' name: 'b'",
         "1:11: Message type \"tensorflow.NodeDef\" should not have multiple \"name\" fields."},
        {"attr { key: 'a' key: 'b' }",
         "1:17: Message type \"tensorflow.NodeDef.AttrEntry\" should not have multiple \"key\" "
         "fields."},
        {"attr { value { i: 1 b: true } }",
         "1:21: Field \"b\" is specified along with field \"i\", another member of the same oneof "
         "of message type \"tensorflow.AttrValue\"."},
        {"attr { value { i: 1x } }", "1:19: Couldn't parse integer: 1x"},
        {"attr { value { i: 09 } }", "1:19: Couldn't parse integer: 09"},
        {"attr { value { i: 9223372036854775808 } }",
         "1:19: Value out of range: 9223372036854775808"},
        {"attr { value { i: -9223372036854775809 } }",
         "1:20: Value out of range: -9223372036854775809"},
        {"attr { value { f: 1..2 } }", "1:19: Couldn't parse float: 1..2"},
        {"attr { value { f: 0x10 } }", "1:19: Couldn't parse float: 0x10"},
        {"attr { value { f: x } }", "1:19: Couldn't parse float: x"},
        {"attr { value { b: 2 } }", "1:19: Expected \"true\" or \"false\", found \"2\"."},
        {"attr { value { type: DT_FLAOT } }",
         "1:22: Enum type \"tensorflow.DataType\" has no value named \"DT_FLAOT\"."},
        {"attr { value { type: 3000000000 } }", "1:22: Value out of range: 3000000000"},
        {"attr { value { list { i: [1, 2 } } }", "1:32: Expected \"]\", found \"}\"."},
        {"attr { value { list { i: [1,] } } }", "1:29: Couldn't parse integer: ]"},
        {"attr {", "1:7: Expected \"}\", found the end."},
        {"attr { >", "1:8: Expected \"}\", found \">\"."},
        {"attr < }", "1:8: Expected \">\", found \"}\"."},
        {"attr 1", "1:6: Expected \"{\", found \"1\"."},
        {"}", "1:1: Expected identifier, found \"}\"."},
        {"name: 'a' }", "1:11: Expected identifier, found \"}\"."},
        {"[x.y]: 1", "1:1: Expected identifier, found \"[\"."},
        {"1: 2", "1:1: Expected identifier, found \"1\"."},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_bad(rows[i].text, strlen(rows[i].text), rows[i].words);
    check_bad("\0", 1, "1:1: Expected identifier, found \"\".");
}

static void depth(void)
{
    for (int pairs = 50; pairs <= 51; pairs++) {
        leat_strbuf b = {0};
        Leat__TensorProto *t = NULL;
        for (int i = 0; i < pairs; i++)
            leat_strbuf_puts(&b, "variant_val{tensors{");
        for (int i = 0; i < pairs; i++)
            leat_strbuf_puts(&b, "}}");
        if (pairs == 50)
            CHECK_OK(LEAT_FROM_TEXT(tensor_proto, b.s, b.n, &t));
        else
            CHECK_ERROR(LEAT_FROM_TEXT(tensor_proto, b.s, b.n, &t), INVALID_ARGUMENT,
                        "Messages are nested deeper than 100 levels.");
        leat_proto_free(t);
        leat_strbuf_release(&b);
    }
}

/* Some of these have fields of later versions, which text leaves out: so text is compared. */
static void graph_stays(const Leat__GraphDef *g)
{
    leat_strbuf text = {0}, back = {0};
    Leat__GraphDef *again = NULL;
    leat_proto_to_text(g, &text);
    CHECK_OK(LEAT_FROM_TEXT(graph_def, text.s, text.n, &again));
    leat_proto_to_text(again, &back);
    CHECK(same_bytes(&text, &back));
    leat_proto_free(again);
    leat_strbuf_release(&text);
    leat_strbuf_release(&back);
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
    return RUN(argc, argv, {"same_as_tensorflow", same_as_tensorflow},
               {"other_spellings", other_spellings}, {"bad_text", bad_text}, {"depth", depth},
               {"conformance_graphs", conformance_graphs});
}
