/* text_print.c -- messages to text; see text.h. */
#include "proto/text.h"
#include "core/alloc.h"
#include "proto/field.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers, as Python shows them: the shortest digits that read back as the same number ---- */

typedef struct digits {
    char d[24]; /* digits without trailing zeros, at least one */
    int n;
    int point; /* exponent: the value is 0.d1d2d3... times ten to this power */
} digits;

/* x, which is finite and not negative, rounded to n digits. */
static digits rounded(double x, int n)
{
    char s[40];
    digits r = {.n = 0};
    snprintf(s, sizeof(s), "%.*e", n - 1, x);
    for (const char *p = s; *p != 'e'; p++)
        if (*p != '.')
            r.d[r.n++] = *p;
    r.point = atoi(strchr(s, 'e') + 1) + 1;
    return r;
}

static double value_of(const digits *r)
{
    char s[48];
    snprintf(s, sizeof(s), ".%.*se%d", r->n, r->d, r->point);
    return strtod(s, NULL);
}

/* The next larger number with the same number of digits; false for 99...9. */
static bool step_up(digits *r)
{
    int i = r->n - 1;
    while (i >= 0 && r->d[i] == '9')
        r->d[i--] = '0';
    if (i < 0)
        return false;
    r->d[i]++;
    return true;
}

static digits shortest(double x)
{
    digits r;
    /* 15 digits without trailing zeros suffice for all numbers that have at most 15; the smallest
     * doubles may need fewer digits than that shows. */
    int n = x < 1e-290 ? 1 : 15;
    for (; n < 17; n++) {
        r = rounded(x, n);
        if (value_of(&r) == x)
            break;
        /* Above a power of two numbers lie twice as far apart as below it, so that the next
         * decimal up may do where the nearest, below, does not. */
        if (value_of(&r) < x && step_up(&r) && value_of(&r) == x)
            break;
    }
    if (n == 17)
        r = rounded(x, n);
    while (r.n > 1 && r.d[r.n - 1] == '0')
        r.n--;
    return r;
}

static void put_zeros(leat_strbuf *out, int n)
{
    while (n-- > 0)
        leat_strbuf_putc(out, '0');
}

static void put_double(leat_strbuf *out, double x)
{
    if (isnan(x)) {
        leat_strbuf_puts(out, "nan");
        return;
    }
    if (signbit(x))
        leat_strbuf_putc(out, '-');
    if (isinf(x)) {
        leat_strbuf_puts(out, "inf");
        return;
    }
    digits r = shortest(fabs(x));
    if (r.point <= -4 || r.point > 16) {
        leat_strbuf_putc(out, r.d[0]);
        if (r.n > 1)
            leat_strbuf_printf(out, ".%.*s", r.n - 1, r.d + 1);
        leat_strbuf_printf(out, "e%c%02d", r.point > 0 ? '+' : '-', abs(r.point - 1));
    } else if (r.point <= 0) {
        leat_strbuf_puts(out, "0.");
        put_zeros(out, -r.point);
        leat_strbuf_add(out, r.d, (size_t)r.n);
    } else if (r.point >= r.n) {
        leat_strbuf_add(out, r.d, (size_t)r.n);
        put_zeros(out, r.point - r.n);
        leat_strbuf_puts(out, ".0");
    } else {
        leat_strbuf_printf(out, "%.*s.%.*s", r.point, r.d, r.n - r.point, r.d + r.point);
    }
}

/* The double with the fewest digits, from 6 on, that rounds to this float. */
static void put_float(leat_strbuf *out, float x)
{
    double d = x;
    for (int n = 6; isfinite(x) && n <= 9; n++) {
        digits r = rounded(fabs((double)x), n);
        d = copysign(value_of(&r), x);
        if ((float)d == x)
            break;
    }
    put_double(out, d);
}

/* ---- Strings ---- */

static void put_quoted(leat_strbuf *out, const char *s, size_t n)
{
    leat_strbuf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '\n')
            leat_strbuf_puts(out, "\\n");
        else if (c == '\t')
            leat_strbuf_puts(out, "\\t");
        else if (c == '\r')
            leat_strbuf_puts(out, "\\r");
        else if (c == '"' || c == '\'' || c == '\\')
            leat_strbuf_printf(out, "\\%c", c);
        else if (c < 32 || c > 126)
            leat_strbuf_printf(out, "\\%03o", c);
        else
            leat_strbuf_putc(out, (char)c);
    }
    leat_strbuf_putc(out, '"');
}

/* ---- Fields and messages ---- */

static void put_scalar(leat_strbuf *out, const leat_field *f, const void *at)
{
    const ProtobufCEnumValue *e;
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        leat_strbuf_printf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        leat_strbuf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        leat_strbuf_printf(out, "%u", (unsigned)*(const uint32_t *)at);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        put_float(out, *(const float *)at);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        put_double(out, *(const double *)at);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        leat_strbuf_puts(out, *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        e = protobuf_c_enum_descriptor_get_value(leat_field_enum(f), *(const int *)at);
        if (e)
            leat_strbuf_puts(out, e->name);
        else
            leat_strbuf_printf(out, "%d", *(const int *)at);
        break;
    case PROTOBUF_C_TYPE_STRING: {
        const char *s = *(char *const *)at;
        put_quoted(out, s, s ? strlen(s) : 0);
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *b = at;
        put_quoted(out, (const char *)b->data, b->len);
        break;
    }
    default:
        leat_strbuf_printf(out, "%d", (int)*(const int32_t *)at);
    }
}

static void put_message(leat_strbuf *out, const ProtobufCMessage *m, int indent);

static void put_field(leat_strbuf *out, const leat_field *f, const void *at, int indent)
{
    leat_strbuf_printf(out, "%*s%s", indent, "", f->name);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *m = *(ProtobufCMessage *const *)at;
        leat_strbuf_puts(out, " {\n");
        if (m)
            put_message(out, m, indent + 2);
        leat_strbuf_printf(out, "%*s}\n", indent, "");
    } else {
        leat_strbuf_puts(out, ": ");
        put_scalar(out, f, at);
        leat_strbuf_putc(out, '\n');
    }
}

static void put_map(leat_strbuf *out, const leat_field *f, const ProtobufCMessage *m, int indent)
{
    size_t n = leat_field_count(f, m);
    ProtobufCMessage **entries = leat_new_array(ProtobufCMessage *, n);
    memcpy(entries, leat_field_value(f, m, 0), n * sizeof(*entries));
    n = leat_map_sort(entries, n, NULL);
    for (size_t i = 0; i < n; i++)
        put_field(out, f, &entries[i], indent);
    free(entries);
}

static void put_message(leat_strbuf *out, const ProtobufCMessage *m, int indent)
{
    bool entry =
        /* An entry's value, if it is a message, is always set. */
        leat_message_is_entry(m->descriptor);
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const leat_field *f = &m->descriptor->fields[i];
        size_t n = entry && f->type == PROTOBUF_C_TYPE_MESSAGE ? 1 : leat_field_count(f, m);
        if (n > 0 && leat_field_is_map(f))
            put_map(out, f, m, indent);
        else
            for (size_t k = 0; k < n; k++)
                put_field(out, f, leat_field_value(f, m, k), indent);
    }
}

void leat_proto_to_text(const void *message, leat_strbuf *out)
{
    /* Numbers have a decimal point, whatever the locale. */
    locale_t c = newlocale(LC_ALL_MASK, "C", NULL), before = uselocale(c);
    put_message(out, message, 0);
    uselocale(before);
    freelocale(c);
}
