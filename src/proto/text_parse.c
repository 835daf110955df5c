/* text_parse.c -- messages from text; see text.h. Every value is stored in the message as soon as
 * it is read, so that the message can be freed at any time. */
#include "proto/text.h"
#include "core/alloc.h"
#include "proto/field.h"
#include "proto/text_lexer.h"

#include <locale.h>
#include <string.h>

typedef struct parser {
    leat_lexer l;
    int depth;
} parser;

#define FAIL(p, ...) leat_lexer_error(&(p)->l, (p)->l.start, __VA_ARGS__)

/* The current token for an error message, shortened if it is long. */
#define SHOWN(p) (int)((p)->l.n < 60 ? (p)->l.n : 60), (p)->l.start

static leat_status want(parser *p, char symbol)
{
    if (!leat_lexer_skip(&p->l, symbol))
        return p->l.kind == LEAT_TOKEN_END
                   ? FAIL(p, "Expected \"%c\", found the end.", symbol)
                   : FAIL(p, "Expected \"%c\", found \"%.*s\".", symbol, SHOWN(p));
    return NULL;
}

/* ---- Values ---- */

static leat_status parse_integer(parser *p, ProtobufCType type, leat_value *v)
{
    bool negative = leat_lexer_skip(&p->l, '-');
    uint64_t u, most = 0, least = 0; /* least is the absolute value of the most negative number */
    switch (type) {
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        most = UINT64_MAX;
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        most = UINT32_MAX;
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        most = INT64_MAX;
        least = most + 1;
        break;
    default:
        most = INT32_MAX;
        least = most + 1;
    }
    if (!leat_lexer_integer(&p->l, &u))
        return FAIL(p, "Couldn't parse integer: %.*s", SHOWN(p));
    if (u > (negative ? least : most))
        return FAIL(p, "Value out of range: %s%.*s", negative ? "-" : "", SHOWN(p));
    u = negative ? 0 - u : u;
    if (leat_field_size(type) == 8)
        v->u64 = u;
    else
        v->u32 = (uint32_t)u;
    leat_lexer_next(&p->l);
    return NULL;
}

static leat_status parse_float(parser *p, ProtobufCType type, leat_value *v)
{
    bool negative = leat_lexer_skip(&p->l, '-');
    double d;
    if (!leat_lexer_float(&p->l, &d))
        return FAIL(p, "Couldn't parse float: %.*s", SHOWN(p));
    d = negative ? -d : d;
    if (type == PROTOBUF_C_TYPE_FLOAT)
        v->f = (float)d;
    else
        v->d = d;
    leat_lexer_next(&p->l);
    return NULL;
}

static leat_status parse_bool(parser *p, leat_value *v)
{
    static const char *const yes[] = {"true", "t", "True", "1"};
    static const char *const no[] = {"false", "f", "False", "0"};
    for (int i = 0; i < 4; i++)
        if (leat_lexer_matches(&p->l, yes[i]) || leat_lexer_matches(&p->l, no[i])) {
            v->boolean = leat_lexer_matches(&p->l, yes[i]);
            leat_lexer_next(&p->l);
            return NULL;
        }
    return FAIL(p, "Expected \"true\" or \"false\", found \"%.*s\".", SHOWN(p));
}

static leat_status parse_enum(parser *p, const ProtobufCEnumDescriptor *d, leat_value *v)
{
    if (p->l.kind != LEAT_TOKEN_NAME)
        return parse_integer(p, PROTOBUF_C_TYPE_INT32, v);
    for (unsigned i = 0; i < d->n_value_names; i++)
        if (leat_lexer_matches(&p->l, d->values_by_name[i].name)) {
            v->number = d->values[d->values_by_name[i].index].value;
            leat_lexer_next(&p->l);
            return NULL;
        }
    return FAIL(p, "Enum type \"%s\" has no value named \"%.*s\".", leat_proto_enum_name(d).s,
                SHOWN(p));
}

static leat_status parse_string(parser *p, const leat_field *f, leat_value *v)
{
    leat_strbuf b = {.checked = true};
    const char *start = p->l.start;
    leat_status s = leat_lexer_string(&p->l, &b);
    if (!s)
        s = leat_strbuf_check(&b);
    const char *fault = f->type == PROTOBUF_C_TYPE_STRING ? leat_string_fault(b.s, b.n) : NULL;
    if (!s && fault)
        s = leat_lexer_error(&p->l, start, "String field \"%s\" %s.", f->name, fault);
    if (s) {
        leat_strbuf_release(&b);
        return s;
    }
    size_t n = b.n;
    if (f->type == PROTOBUF_C_TYPE_STRING)
        v->string = n ? leat_strbuf_take(&b) : leat_xstrdup("");
    else
        v->bytes = (ProtobufCBinaryData){n, n ? (uint8_t *)leat_strbuf_take(&b) : NULL};
    leat_strbuf_release(&b);
    return NULL;
}

static leat_status parse_body(parser *p, ProtobufCMessage *m);

static leat_status parse_message(parser *p, const leat_field *f, ProtobufCMessage *m)
{
    char close = leat_lexer_is(&p->l, '<') ? '>' : '}';
    if (p->depth >= LEAT_PROTO_MAX_DEPTH)
        return FAIL(p, "Messages are nested deeper than %d levels.", LEAT_PROTO_MAX_DEPTH);
    if (close == '>')
        leat_lexer_next(&p->l);
    else
        LEAT_TRY(want(p, '{'));
    ProtobufCMessage *child;
    LEAT_TRY(leat_field_child(f, m, &child));
    p->depth++;
    LEAT_TRY(parse_body(p, child));
    p->depth--;
    return want(p, close);
}

static leat_status parse_value(parser *p, const leat_field *f, ProtobufCMessage *m)
{
    leat_value v;
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return parse_message(p, f, m);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        LEAT_TRY(parse_float(p, f->type, &v));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        LEAT_TRY(parse_bool(p, &v));
        break;
    case PROTOBUF_C_TYPE_ENUM:
        LEAT_TRY(parse_enum(p, leat_field_enum(f), &v));
        break;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        LEAT_TRY(parse_string(p, f, &v));
        break;
    default:
        LEAT_TRY(parse_integer(p, f->type, &v));
    }
    return leat_field_store(f, m, &v);
}

/* ---- Fields ---- */

/* [1, 2, 3] */
static leat_status parse_list(parser *p, const leat_field *f, ProtobufCMessage *m)
{
    if (leat_lexer_skip(&p->l, ']'))
        return NULL;
    do
        LEAT_TRY(parse_value(p, f, m));
    while (leat_lexer_skip(&p->l, ','));
    return want(p, ']');
}

/* A field may be given only once, and only one field of a oneof. */
static leat_status check_unset(parser *p, const leat_field *f, const ProtobufCMessage *m)
{
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    if (leat_field_count(f, m) > 0)
        return FAIL(p, "Message type \"%s\" should not have multiple \"%s\" fields.",
                    leat_proto_name(m->descriptor).s, f->name);
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t other = *(const uint32_t *)leat_field_quantifier(f, m);
        if (other)
            return FAIL(p,
                        "Field \"%s\" is specified along with field \"%s\", another member of the "
                        "same oneof of message type \"%s\".",
                        f->name,
                        protobuf_c_message_descriptor_get_field(m->descriptor, other)->name,
                        leat_proto_name(m->descriptor).s);
    }
    return NULL;
}

static const leat_field *find_field(const parser *p, const ProtobufCMessageDescriptor *d)
{
    for (unsigned i = 0; i < d->n_fields; i++)
        if (leat_lexer_matches(&p->l, d->fields[i].name))
            return &d->fields[i];
    return NULL;
}

static leat_status parse_field(parser *p, ProtobufCMessage *m)
{
    if (p->l.kind != LEAT_TOKEN_NAME)
        return FAIL(p, "Expected identifier, found \"%.*s\".", SHOWN(p));
    const leat_field *f = find_field(p, m->descriptor);
    if (!f)
        return FAIL(p, "Message type \"%s\" has no field named \"%.*s\".",
                    leat_proto_name(m->descriptor).s, SHOWN(p));
    LEAT_TRY(check_unset(p, f, m));
    leat_lexer_next(&p->l);
    if (!leat_lexer_skip(&p->l, ':') && f->type != PROTOBUF_C_TYPE_MESSAGE)
        return want(p, ':');
    if (f->label == PROTOBUF_C_LABEL_REPEATED && leat_lexer_skip(&p->l, '['))
        LEAT_TRY(parse_list(p, f, m));
    else
        LEAT_TRY(parse_value(p, f, m));
    if (!leat_lexer_skip(&p->l, ','))
        leat_lexer_skip(&p->l, ';');
    return NULL;
}

static leat_status parse_body(parser *p, ProtobufCMessage *m)
{
    bool outermost = p->depth == 0;
    while (p->l.kind != LEAT_TOKEN_END &&
           (outermost || (!leat_lexer_is(&p->l, '}') && !leat_lexer_is(&p->l, '>'))))
        LEAT_TRY(parse_field(p, m));
    return NULL;
}

leat_status leat_proto_from_text(const ProtobufCMessageDescriptor *d, const char *text, size_t n,
                                 ProtobufCMessage **out)
{
    /* Numbers are read with a decimal point, whatever the locale. */
    locale_t c = newlocale(LC_ALL_MASK, "C", NULL), before = uselocale(c);
    ProtobufCMessage *m = leat_message_new(d);
    parser p = {.depth = 0};
    leat_lexer_init(&p.l, n ? text : "", n);
    leat_status s = parse_body(&p, m);
    uselocale(before);
    freelocale(c);
    if (s) {
        leat_proto_free(m);
        return s;
    }
    leat_message_settle(m);
    *out = m;
    return NULL;
}
