/* messages_test.c -- the codecs of messages that carry tensors: every field encoded and decoded,
 * compared with protobuf-c's reading of src/proto/cluster.proto, and bytes that are no such
 * message. */
#include "cluster/message_codecs.h"
#include "cluster/worker.h"
#include "proto/wire.h"
#include "sanitizers.h"

/* The bytes of an outgoing message in one piece of memory. Releases o. */
static leat_strbuf flat(leat_outgoing *o)
{
    leat_strbuf b = {0};
    size_t at = 0;
    for (int i = 0; i < o->n_pieces; i++) {
        leat_strbuf_add(&b, o->text.s + at, o->pieces[i].end - at);
        at = o->pieces[i].end;
        leat_strbuf_add(&b, leat_tensor_data(o->pieces[i].tensor),
                        leat_tensor_bytes(o->pieces[i].tensor));
    }
    leat_strbuf_add(&b, leat_strbuf_text(&o->text) + at, o->text.n - at);
    CHECK_INT(b.n, leat_outgoing_size(o));
    leat_outgoing_release(o);
    return b;
}

static void check_shows(const codec *k, const leat_strbuf *bytes, size_t piece, const char *want)
{
    leat_strbuf b = {0};
    leat_status s = show(k, leat_strbuf_text(bytes), bytes->n, piece, &b);
    if (want[0] == '!')
        CHECK_ERROR(s, DATA_LOSS, want + 1);
    else
        CHECK_OK(s);
    if (want[0] != '!' && strcmp(leat_strbuf_text(&b), want) != 0)
        printf("%s, slices of %zu:\n", k->name, piece);
    if (want[0] != '!')
        CHECK_STR(leat_strbuf_text(&b), want);
    leat_strbuf_release(&b);
}

static leat_strbuf sample(const codec *k)
{
    leat_outgoing o = {0};
    k->sample(&o);
    return flat(&o);
}

/* ---- Cases ---- */

static void every_field(void)
{
    static const size_t pieces[] = {1, 2, 7, 100, 1 << 20};
    for (int i = 0; i < CODECS; i++) {
        leat_strbuf b = sample(&codecs[i]);
        for (int p = 0; p < 5; p++)
            check_shows(&codecs[i], &b, pieces[p], codecs[i].want);
        leat_strbuf_release(&b);
        check_shows(&codecs[i], &(leat_strbuf){0}, 1, codecs[i].empty);
    }
}

/* The names in fields.h have the numbers of the .proto files; what codecs write is what protobuf-c
 * reads, and they read what it writes. */
static void as_protobuf(void)
{
    for (int i = 0; i < CODECS; i++) {
        const codec *k = &codecs[i];
        ProtobufCMessage *m = NULL;
        leat_strbuf b = sample(k), again = {0};
        for (const field *f = k->fields; f->name && k->type; f++) {
            const ProtobufCFieldDescriptor *d =
                protobuf_c_message_descriptor_get_field_by_name(k->type, f->name);
            CHECK(d);
            CHECK_INT(d ? (int)d->id : 0, f->number);
        }
        if (k->type) {
            CHECK_OK(leat_proto_unpack(k->type, b.s, b.n, &m));
            CHECK_INT(m ? m->n_unknown_fields : 1, 0);
            CHECK_OK(leat_proto_pack(m, &again));
            check_shows(k, &again, 1 << 20, k->want);
            leat_proto_free(m);
        }
        leat_strbuf_release(&b);
        leat_strbuf_release(&again);
    }
}

static void run_graph_request_session(void)
{
    Leat__RunGraphRequest *q = NULL;
    leat_strbuf b = sample(&codecs[0]);
    CHECK_OK(LEAT_UNPACK(run_graph_request, b.s, b.n, &q));
    CHECK_STR(q->session_handle, "session");
    leat_proto_free(q);
    leat_strbuf_release(&b);
}

static void run_callable_response(void)
{
    Leat__RunCallableResponse *r = NULL;
    leat_outgoing o = {0};
    leat_tensor *t = floats(30, 30);
    CHECK_OK(leat_run_callable_response_add_fetch(&o, t));
    leat_run_callable_response_add_metadata(&o, "\x0a\x00", 2);
    leat_strbuf b = flat(&o);
    CHECK_OK(LEAT_UNPACK(run_callable_response, b.s, b.n, &r));
    CHECK_INT(r->n_fetch, 1);
    CHECK_INT(r->fetch[0]->tensor_content.len, 3600);
    CHECK(r->metadata && r->metadata->step_stats);
    leat_proto_free(r);
    leat_strbuf_release(&b);
    leat_tensor_unref(t);
}

static void put_unknown(leat_strbuf *b)
{
    leat_put_int(b, 2001, 7);
    leat_put_fixed64(b, 2002, 7);
    leat_put_bytes(b, 2003, "what", 4);
    leat_put_tag(b, 2004, WIRE_FIXED32);
    leat_strbuf_add(b, "four", 4);
}

static void unknown_fields(void)
{
    for (int i = 0; i < CODECS; i++) {
        leat_strbuf b = {0}, s = sample(&codecs[i]);
        put_unknown(&b);
        leat_strbuf_add(&b, s.s, s.n);
        put_unknown(&b);
        check_shows(&codecs[i], &b, 3, codecs[i].want);
        leat_strbuf_release(&b);
        leat_strbuf_release(&s);
    }
}

/* True if the bytes end where a field of the message does. */
static bool whole_fields(const char *bytes, size_t n)
{
    sliced c = sliced_of(bytes, n, 1 << 20);
    leat_cursor at = leat_cursor_of(&c.in);
    leat_wire_field f;
    leat_status s;
    while (leat_next_field(&at, &f, &s))
        ;
    bool whole = !s;
    leat_status_free(s);
    sliced_release(&c);
    return whole;
}

static void cut_off(void)
{
    for (int i = 0; i < CODECS; i++) {
        leat_strbuf b = sample(&codecs[i]);
        for (size_t n = 1; n < b.n; n++) {
            leat_strbuf shown = {0};
            leat_status s = show(&codecs[i], b.s, n, 16, &shown);
            bool whole = whole_fields(b.s, n);
            if (whole && codecs[i].empty[0] != '!')
                CHECK_OK(s);
            else if (!whole)
                CHECK_ERROR(s, DATA_LOSS, "A message is cut off");
            else
                leat_status_free(s);
            leat_strbuf_release(&shown);
        }
        leat_strbuf_release(&b);
    }
}

/* A field of another wire type than the message defines. */
static void put_other(leat_strbuf *b, int number, int type)
{
    if (type == WIRE_VARINT) {
        leat_put_int(b, number, 3);
    } else if (type == WIRE_FIXED64) {
        leat_put_fixed64(b, number, 3);
    } else if (type == WIRE_FIXED32) {
        leat_put_tag(b, number, WIRE_FIXED32);
        leat_strbuf_add(b, "four", 4);
    } else {
        leat_put_bytes(b, number, "bytes", 5);
    }
}

static void wrong_types(void)
{
    static const int types[] = {WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32};
    for (int i = 0; i < CODECS; i++)
        for (const field *f = codecs[i].fields; f->name; f++)
            for (int t = 0; t < 4; t++) {
                leat_strbuf b = {0}, shown = {0};
                if ((f->kind == 'N') == (types[t] == WIRE_VARINT) && f->kind != '-' &&
                    (f->kind == 'N' || types[t] == WIRE_BYTES))
                    continue;
                put_other(&b, f->number, types[t]);
                leat_status s = show(&codecs[i], b.s, b.n, 16, &shown);
                if (f->kind == '-')
                    CHECK_OK(s);
                else
                    CHECK_ERROR(s, DATA_LOSS, "of a message is no ");
                leat_strbuf_release(&b);
                leat_strbuf_release(&shown);
            }
}

static void last_one_counts(void)
{
    for (int i = 0; i < CODECS; i++)
        for (const field *f = codecs[i].fields; f->name; f++) {
            const ProtobufCFieldDescriptor *d =
                codecs[i].type
                    ? protobuf_c_message_descriptor_get_field(codecs[i].type, (unsigned)f->number)
                    : NULL;
            if (!d || d->label == PROTOBUF_C_LABEL_REPEATED || f->kind == 'P' || f->kind == '-' ||
                codecs[i].show == show_recv_tensor_request)
                continue;
            leat_strbuf b = {0}, s = sample(&codecs[i]);
            /* Another value in front of the sample's changes nothing. */
            if (f->kind == 'N')
                leat_put_int(&b, f->number, 12345);
            else
                leat_put_text(&b, f->number, "other");
            leat_strbuf_add(&b, s.s, s.n);
            check_shows(&codecs[i], &b, 64, codecs[i].want);
            leat_strbuf_release(&b);
            leat_strbuf_release(&s);
        }
}

static void check_refused(const codec *k, const char *bytes, size_t n, const char *words)
{
    leat_strbuf shown = {0};
    CHECK_ERROR(show(k, bytes, n, 4, &shown), DATA_LOSS, words);
    leat_strbuf_release(&shown);
}

static void no_message(void)
{
    for (int i = 0; i < CODECS; i++) {
        const codec *k = &codecs[i];
        static const uint64_t lengths[] = {6, UINT32_MAX, INT64_MAX, UINT64_MAX};
        for (const field *f = k->fields; f->name; f++)
            for (int l = 0; l < 4; l++) {
                leat_strbuf b = {0};
                leat_put_tag(&b, f->number, WIRE_BYTES);
                leat_put_varint(&b, lengths[l]);
                leat_strbuf_puts(&b, "short");
                check_refused(k, b.s, b.n, "A message is cut off");
                leat_strbuf_release(&b);
            }
        check_refused(k, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12,
                      "a number of more than ten bytes");
        check_refused(k, "\x00\x00", 2, "a field of number 0");
        check_refused(k, "\x0b", 1, "a field of wire type 3");
        check_refused(k, "\x0f", 1, "a field of wire type 7");
    }
}

static void names_with_nul(void)
{
    for (int i = 0; i < CODECS; i++)
        for (const field *f = codecs[i].fields; f->name; f++) {
            leat_strbuf b = {0}, shown = {0};
            if (f->kind != 'T')
                continue;
            leat_put_bytes(&b, f->number, "a\0b", 3);
            CHECK_ERROR(show(&codecs[i], b.s, b.n, 16, &shown), INVALID_ARGUMENT, "holds a NUL");
            leat_strbuf_release(&b);
            leat_strbuf_release(&shown);
        }
}

static void too_many_keys(void)
{
    leat_strbuf b = {0}, shown = {0};
    for (int i = 0; i <= 1 << 16; i++)
        leat_put_text(&b, RECV_TENSOR_REQUEST_RENDEZVOUS_KEY, "k");
    CHECK_ERROR(show(&codecs[3], b.s, b.n, 1 << 20, &shown), INVALID_ARGUMENT,
                "More than 65,536 tensors are wanted");
    leat_strbuf_release(&b);
    leat_strbuf_release(&shown);
}

/* TensorProtos that are not what Leat writes, and those that are wrong. */
static void tensors(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *want; /* an error's words begin with '!' */
    } rows[] = {
#define ROW(bytes, want) {bytes, sizeof(bytes) - 1, want}
        ROW("\x08\x01\x12\x00\x2a\x04\x00\x00\x80\x3f", "tensor=float[]#fbf "), /* float_val */
        ROW("\x08\x01\x22\x04\x00\x00\x80\x3f", "tensor=float[]#fbf "),         /* no shape */
        ROW("\x08\x01\x12\x04\x12\x02\x08\x01\x18\x07\x22\x04\x00\x00\x80\x3f",
            "tensor=float[1]#fbf "), /* a version number */
        ROW("\x08\x01\x12\x07\x12\x05\x08\x01\x12\x01n\x22\x04\x00\x00\x80\x3f",
            "tensor=float[1]#fbf "), /* a dimension with a name */
        ROW("\x08\x01\x12\x02\x12\x00\x22\x00", "tensor=float[0]#0 "),
        ROW("\x22\x04\x00\x00\x80\x3f\x08\x01\x12\x00", "tensor=float[]#fbf "), /* content first */
        ROW("\x08\x01\x12\x04\x12\x02\x08\x02\x22\x04\x00\x00\x80\x3f", "!"),   /* too few bytes */
        ROW("\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x22\x04\x00\x00"
            "\x80\x3f",
            "!"),                                                     /* a dimension of -1 */
        ROW("\x08\x01\x12\x02\x18\x01\x22\x04\x00\x00\x80\x3f", "!"), /* an unknown rank */
        ROW("\x08\x01\x12\x03\x12\x02\x08", "!"),                     /* a shape that is cut off */
        ROW("\x08\x01\x12\x02\x12\x05\x22\x04\x00\x00\x80\x3f", "!"), /* so is a dimension */
        ROW("\x08\x3f\x12\x00\x22\x04\x00\x00\x80\x3f", "!"),         /* no such dtype */
#undef ROW
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_strbuf b = {0}, shown = {0};
        leat_put_bytes(&b, RECV_TENSORS_RESPONSE_TENSOR, rows[i].bytes, rows[i].n);
        leat_status s = show(&codecs[5], b.s, b.n, 3, &shown);
        bool refused =
            leat_status_code(s) == LEAT_DATA_LOSS || leat_status_code(s) == LEAT_INVALID_ARGUMENT;
        if (rows[i].want[0] == '!')
            CHECK(refused);
        else
            CHECK_STR(leat_strbuf_text(&shown), rows[i].want);
        if (s && rows[i].want[0] != '!')
            printf("row %zu: %s\n", i, leat_status_message(s));
        leat_status_free(s);
        leat_strbuf_release(&b);
        leat_strbuf_release(&shown);
    }
}

/* ---- Sizes that a peer decides ---- */

/* A message that is larger than memory: what is not there is not looked at. */
static void no_memory_for_it(void)
{
    const size_t huge = (size_t)1 << 60;
    uint8_t byte = 0;
    const leat_slice slices[] = {{&byte, 1, NULL}, {&byte, huge - 1, NULL}};
    const leat_incoming in = {slices, 2, huge, NULL};
    leat_cursor c = leat_cursor_of(&in);
    const void *bytes;
    void *copy = NULL;
    CHECK_ERROR(leat_cursor_take(&c, huge, &copy), RESOURCE_EXHAUSTED,
                "There is no memory for a message of 1152921504606846976 bytes");
    CHECK_ERROR(leat_incoming_flat(&in, &bytes, &copy), RESOURCE_EXHAUSTED,
                "There is no memory for a message of 1152921504606846976 bytes");
    CHECK(!copy);
    CHECK_ERROR(leat_cursor_take(&c, huge + 1, &copy), DATA_LOSS, "A message is cut off");
    Leat__GetStatusRequest *q = NULL;
    CHECK_ERROR(LEAT_REQUEST(get_status_request, &in, &q), RESOURCE_EXHAUSTED, "no memory");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"every_field", every_field}, {"as_protobuf", as_protobuf},
               {"run_graph_request_session", run_graph_request_session},
               {"run_callable_response", run_callable_response}, {"unknown_fields", unknown_fields},
               {"cut_off", cut_off}, {"wrong_types", wrong_types},
               {"last_one_counts", last_one_counts}, {"no_message", no_message},
               {"names_with_nul", names_with_nul}, {"too_many_keys", too_many_keys},
               {"tensors", tensors}, {"no_memory_for_it", no_memory_for_it});
}
